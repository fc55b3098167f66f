"""The report of a run in a real browser: it loads nothing, and everything on it can be used."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.report.page.job_loads import job_loads
from testbed.results.run_directory import RunDirectory

PHONE = (390, 844)
OpenPage = Callable[..., Any]
FABRIC = ".fabric-picture"
COLORS = f"() => document.querySelector('{FABRIC}').linkColors()"
PIXELS = "() => document.querySelector('.fabric-lines').toDataURL()"
FOCUSABLE = "button, select, input, summary, a[href], [tabindex='0']"


def choose(page: Any, label: str, option: str) -> None:
    page.locator("#fabric").get_by_label(label, exact=True).select_option(label=option)


def test_it_loads_without_a_complaint_and_without_a_request(open_page: OpenPage, report: Path) -> None:
    opened = open_page(report)
    assert opened.complaints == []
    assert opened.requests == [report.as_uri()]
    heading = opened.page.locator(".headline").inner_text()
    assert "crux keeps" in heading and "idle points under ecmp" in heading and "are lost alone" in heading


def test_a_page_of_a_managed_run_shows_which_job_holds_which_gpu(open_page: OpenPage, managed_report: Path) -> None:
    opened = open_page(managed_report)
    assert opened.complaints == []
    assert "Which job holds which GPU" in opened.page.locator("#time").inner_text()
    assert opened.page.get_by_role("heading", name="Cluster manager").is_visible()


def test_the_slider_moves_by_keyboard_and_the_colours_follow(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    slider = page.locator("#time-slider")
    slider.focus()
    slider.press("Home")
    page.wait_for_timeout(200)
    before, picture = page.evaluate(COLORS), page.evaluate(PIXELS)
    slider.press("ArrowRight")
    assert slider.input_value() == "1"
    assert page.evaluate(COLORS) != before
    page.wait_for_function(f"(before) => ({PIXELS})() !== before", arg=picture)
    slider.press("ArrowLeft")
    assert page.evaluate(COLORS) == before


def test_another_scheduler_changes_the_colours_and_says_what_changed(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    page.get_by_label("average of the run").check()
    before = page.evaluate(COLORS)
    choose(page, "scheduler", "crux")
    assert page.evaluate(COLORS) != before
    assert page.get_by_role("heading", name="Links that change most from ecmp to crux").is_visible()


def expected_jobs(report: Path, link: str, scheduler: str = "ecmp") -> set[str]:
    """The jobs on ``link``, from the files of the run."""
    directory = RunDirectory.open(report.parent)
    experiment, record = directory.read_experiment(), directory.read_record(scheduler)
    links = experiment.fabric.network_links
    loads = job_loads(record, experiment.jobs, list(range(len(experiment.jobs))), links, experiment.levels)
    assert loads is not None
    place = [each.name for each in links].index(link)
    return {
        experiment.jobs[job].name for at, job in zip(loads.link, loads.job, strict=True) if at == place and job >= 0
    }


def test_a_click_on_a_link_names_its_jobs(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    page.locator(FABRIC).scroll_into_view_if_needed()
    page.wait_for_timeout(300)  # the picture learns of the scroll with the next frame
    # A tenth of the way up from the first host's first port, where no other line passes.
    spot = page.evaluate(f"() => document.querySelector('{FABRIC}').linkPoint(0, 0.1)")
    page.locator(FABRIC).click(position=spot)
    name = page.locator(".panel h3").first.inner_text()
    assert name.startswith("h0n0p0->") or name.endswith("->h0n0p0")
    rows = page.locator(".panel .scroll tbody tr")
    named = {rows.nth(i).locator("td").first.inner_text() for i in range(rows.count())}
    assert named == expected_jobs(report, name) != set()


def test_the_list_of_links_does_what_a_click_does(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    choose(page, "link", "tor0->agg0")
    assert page.locator(".panel h3").first.inner_text() == "tor0->agg0"
    text = page.locator(".panel").inner_text()
    assert "200 Gbit/s" in text and all(job in text for job in expected_jobs(report, "tor0->agg0"))


def test_a_job_shows_its_paths_and_its_iterations(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    page.wait_for_timeout(200)
    before = page.evaluate(PIXELS)
    choose(page, "job", "bert-0")
    page.wait_for_function(f"(before) => ({PIXELS})() !== before", arg=before)
    assert "crux-bert on 16 GPUs" in page.locator(".panel").inner_text()
    assert page.locator(".panel .uplot").count() == 1


def test_plots_of_all_schedulers_zoom_together(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    strips = page.locator("#time .plot")
    before = [strips.nth(i).screenshot() for i in range(2)]
    page.locator("#time").get_by_role("button", name="zoom in").click()
    page.wait_for_timeout(200)
    assert all(strips.nth(i).screenshot() != before[i] for i in range(2))


def test_tables_sort_by_keyboard(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    table = page.locator("#results table").first
    head = table.get_by_role("button", name="GPU util %")
    head.focus()
    head.press("Enter")
    values = [float(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    head.press("Enter")
    assert table.locator("tbody td:nth-child(2)").all_inner_texts() == [f"{value:.1f}" for value in sorted(values)]
    assert table.locator("th[aria-sort=ascending]").count() == 1


def test_the_keyboard_reaches_every_control(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    page.evaluate(f'() => document.querySelectorAll("{FOCUSABLE}").forEach((each, i) => each.dataset.control = i)')
    count = page.evaluate(
        f'() => [...document.querySelectorAll("{FOCUSABLE}")].filter((e) => e.checkVisibility()).length'
    )
    reached = set()
    for _ in range(count + 5):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.dataset.control ?? null"))
    assert len(reached - {None}) == count > 30


CUT = """() => {
  const width = document.documentElement.clientWidth;
  const cut = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || !parent.checkVisibility() || parent.closest('.scroll, script, option')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.left < -0.5 || box.right > width + 0.5) cut.push(node.textContent.trim().slice(0, 60));
      for (let around = parent; around; around = around.parentElement) {
        const hides = getComputedStyle(around).overflowX !== 'visible';
        const edge = around.getBoundingClientRect();
        if (hides && box.right > edge.right + 1) cut.push(node.textContent.trim().slice(0, 60));
      }
    }
  }
  return cut;
}"""


@pytest.mark.parametrize("size", [PHONE, (768, 1024), (1280, 900)])
def test_no_text_is_cut(open_page: OpenPage, report: Path, size: tuple[int, int]) -> None:
    page = open_page(report, size).page
    choose(page, "link", "tor0->agg0")
    assert page.evaluate(CUT) == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0]


def test_no_text_of_a_managed_run_is_cut_on_a_phone(open_page: OpenPage, managed_report: Path) -> None:
    page = open_page(managed_report, PHONE).page
    assert page.evaluate(CUT) == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE[0]


def luminance(color: str) -> float:
    red, green, blue = (int(part) / 255 for part in color.removeprefix("rgb(").removesuffix(")").split(",")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_page_follows_the_theme_of_the_reader(open_page: OpenPage, report: Path, scheme: str, dark: bool) -> None:
    page = open_page(report, color_scheme=scheme).page
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    text = page.evaluate("() => getComputedStyle(document.querySelector('.facts')).color")
    assert (luminance(ground) < 0.2) is dark
    assert abs(luminance(ground) - luminance(text)) > 0.4


def test_on_paper_there_are_no_controls_and_the_ground_is_white(open_page: OpenPage, report: Path) -> None:
    page = open_page(report, color_scheme="dark").page
    page.emulate_media(media="print")
    assert page.locator("button.download").first.is_hidden()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def downloaded(page: Any, name: str) -> str:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"download {name}", exact=True).click()
    return Path(waiting.value.path()).read_text("utf-8")


def test_what_is_drawn_can_be_taken_away(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    rows = list(csv.reader(io.StringIO(downloaded(page, "runs.csv"))))
    assert rows[0][:2] == ["scheduler", "GPU util %"] and [row[0] for row in rows[1:]] == ["ecmp", "crux"]
    loads = list(csv.DictReader(io.StringIO(downloaded(page, "link-loads.csv"))))
    assert {row["job"] for row in loads} >= {"gpt", "bert-0", "resnet-1"}
    for name in ("fabric.svg", "idle-time.svg", "gpus-ecmp.svg"):
        drawing = ET.fromstring(downloaded(page, name))
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg" and len(list(drawing)) > 5


def test_evidence_stands_beside_its_threshold(open_page: OpenPage, report: Path) -> None:
    page = open_page(report).page
    row = page.locator("#evidence tbody tr", has_text="rate error of a busy link").inner_text()
    assert "\u2264 2" in row and "%" in row
    assert "ok" in page.locator("#evidence .verdicts").inner_text()
