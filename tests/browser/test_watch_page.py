"""The page of a watched run in a real browser, fed with samples of a run of the flow engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from testbed.api import prepare
from testbed.engines.common.live_sampler import LiveSampler
from testbed.engines.flow.cluster import FlowCluster
from testbed.watch.messages import LiveSample, message_of
from testbed.watch.page import watch_page
from testbed.watch.server_process import ServerProcess
from testbed.watch.terminal import level

from .conftest import WIDE

PHONE = (390, 844)
COLORS = "() => document.querySelector('.fabric-picture').linkColors()"
EXPERIMENTS = prepare("hello", engine="flow").experiments
LINKS = EXPERIMENTS[0].fabric.network_links


@dataclass
class Live:
    """A page in the browser, its server, and a run that goes on at the pace of the test."""

    page: Any
    server: ServerProcess
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._cluster = FlowCluster(EXPERIMENTS[0])
        self._sampler = LiveSampler(EXPERIMENTS[0], self._cluster.jobs)

    def go_on(self, seconds: float) -> LiveSample:
        """Let the run go on, and the page show where it is."""
        cluster, until_s = self._cluster, self._cluster.now + seconds
        while cluster.now < until_s:
            cluster.step()
        cluster.flush_links()
        sample = self._sampler.take(cluster.now, cluster.now, cluster.links, cluster.decisions)
        if sample.routes is not None:
            self.server.tell("routes", message_of(sample)["sample"]["routes"])
        self.server.tell("sample", message_of(sample)["sample"])
        self.page.locator(".headline", has_text=f", {sample.time_s:.0f} s:").wait_for(timeout=10_000)
        return sample


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def live(browser: Any, request: pytest.FixtureRequest) -> Iterator[Live]:
    server = ServerProcess(watch_page(EXPERIMENTS))
    context = browser.new_context(viewport={"width": request.param[0], "height": request.param[1]})
    try:
        found = Live(context.new_page(), server)
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(server.url)
        found.page.wait_for_selector("html[data-drawn]", timeout=60_000)
        server.tell("run", {"scheduler": "ecmp"})
        server.tell("phase", {"phase": "warm up"})
        yield found
    finally:
        context.close()
        server.close()


def test_a_sample_colours_the_links_that_carry_the_jobs_and_no_others(live: Live) -> None:
    idle = live.page.evaluate(COLORS)
    assert len(set(idle)) == 1
    sample = live.go_on(2.0)
    carrying = {load.link for load in sample.link_loads() if load.share > 0.05}
    coloured = {
        place for place, (before, now) in enumerate(zip(idle, live.page.evaluate(COLORS), strict=True)) if before != now
    }
    assert coloured == carrying != set()


def test_it_asks_only_its_own_server_and_complains_about_nothing(live: Live) -> None:
    live.go_on(1.0)
    assert live.requests == [live.server.url, f"{live.server.url}/events"]
    assert live.complaints == []


def test_a_chosen_link_names_its_jobs_and_its_load(live: Live) -> None:
    sample = live.go_on(2.0)
    assert sample.routes is not None
    link = sample.routes["big"][-1]
    live.page.locator("#live select").select_option(label=LINKS[link].name)
    jobs = [job for job in sample.jobs if link in sample.routes[job.name]]
    panel = live.page.locator(".panel").inner_text()
    assert LINKS[link].name in panel and all(f"{job.name} (level {level(job)})" in panel for job in jobs)
    share = sum(load.share for load in sample.link_loads() if load.link == link)
    assert f"Load now: {100 * share:.0f} %" in panel


def test_a_chosen_job_keeps_the_focus_when_the_next_sample_comes(live: Live) -> None:
    live.go_on(1.0)
    live.page.get_by_role("button", name="small", exact=True).press("Enter")
    live.go_on(1.0)
    assert live.page.evaluate("() => document.activeElement.textContent") == "small"
    assert "Its paths are highlighted" in live.page.locator(".panel").inner_text()


def test_the_jobs_and_the_busiest_links_are_in_tables(live: Live) -> None:
    sample = live.go_on(3.0)
    rows = live.page.get_by_role("region", name="jobs").locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0].strip() for row in rows] == [job.name for job in sample.jobs]
    highest = max(sample.link_loads(), key=lambda load: load.share)
    first = live.page.get_by_role("region", name="busiest links").locator("tbody tr").first.inner_text()
    assert f"{100 * highest.share:.0f} %" in first


def test_no_text_is_cut_and_the_page_never_scrolls_sideways(live: Live) -> None:
    live.go_on(2.0)
    assert live.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


def test_at_the_end_it_says_so_and_where_the_report_is(live: Live) -> None:
    live.go_on(1.0)
    live.server.tell("ended", {"report": "/home/me/runs/hello/report.html"})
    live.server.close()
    live.page.get_by_text("The run has ended").wait_for()
    assert "/home/me/runs/hello/report.html" in live.page.locator("main").inner_text()
    live.page.wait_for_timeout(4000)  # longer than a browser waits before it asks again
    assert live.requests == [live.server.url, f"{live.server.url}/events"]


def test_a_lost_connection_is_not_taken_for_the_end(live: Live) -> None:
    live.go_on(1.0)
    live.server.close()
    live.page.get_by_text("The connection to the run is lost").wait_for()
    assert live.page.get_by_text("The run has ended").count() == 0
