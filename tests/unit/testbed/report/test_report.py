from __future__ import annotations

import dataclasses
import json
import sys
import xml.etree.ElementTree as ET

import pytest

from testbed.metrics.summary import summary
from testbed.report import html, plots
from testbed.report.evidence import draw_evidence
from testbed.report.gpu_timeline import shown
from testbed.report.link_load import busiest, load
from testbed.report.tables import doubts, left_out, render, tables
from testbed.results.record import Fidelity, Finding, LinkRow


def data_of(page):
    """What the page shows."""
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


@pytest.fixture(scope="module")
def document(experiment, records):
    return summary(experiment, records)


@pytest.fixture(scope="module")
def degraded(experiment, records):
    doubtful = dataclasses.replace(records[1], fidelity=Fidelity("degraded", ("idle CPU <0.28> in second 31",)))
    return (records[0], doubtful), summary(experiment, (records[0], doubtful))


def test_the_tables_hold_the_numbers_and_line_up(document):
    lines = render(tables(document), width=100).splitlines()
    assert max(len(line) for line in lines) <= 100
    assert not any("…" in line for line in lines)
    head = next(number for number, line in enumerate(lines) if "GPU util %" in line)
    end = lines[head].index("GPU util %") + len("GPU util %")
    ecmp, crux = lines[head + 2], lines[head + 3]
    assert ecmp[:end].endswith(f"{100 * document['runs'][0]['gpu_utilization']:.1f}")
    assert crux[:end].endswith(f"{100 * document['runs'][1]['gpu_utilization']:.1f}")
    assert any(line.split()[:3] == ["big", "ecmp", "6"] and line.rstrip().endswith("-") for line in lines)


def test_a_single_run_needs_no_baseline(experiment, records):
    assert "ecmp" in render(tables(summary(experiment, records[:1])))


def test_numbers_that_are_missing_are_a_dash(experiment, records):
    nothing = dataclasses.replace(records[0], iterations=(), windows={}, decisions=())
    document = summary(experiment, (nothing, records[1]))
    text = render(tables(document))
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert any(
        line.split()[:2] == ["big", "ecmp"] and line.split()[-3:] == ["-", "0.0", "-"] for line in text.splitlines()
    )


def test_doubts_are_told_with_their_reason(document, degraded):
    assert doubts(document) == []
    assert doubts(degraded[1]) == ["crux is degraded: idle CPU <0.28> in second 31"]


def test_every_plot_is_drawn_and_is_well_formed(document, records, experiment):
    drawn = plots.run_plots(document, records, experiment)
    both = {f"{kind}_{name}.svg" for kind in ("gpu_timeline", "link_load") for name in ("ecmp", "crux")}
    assert set(drawn) == both | {"idle_by_cause.svg"}
    for drawing in drawn.values():
        assert ET.fromstring(drawing).tag.endswith("svg")


def test_the_same_run_gives_the_same_plots(document, records, experiment):
    assert plots.run_plots(document, records, experiment) == plots.run_plots(document, records, experiment)


def test_the_idle_bars_name_every_job_and_scheduler(document):
    text = plots.svg(plots.idle_by_cause({"": document}))
    assert all(f"{job}  {run}" in text for job in ("all", "big", "small") for run in ("ecmp", "crux"))


def test_a_run_without_rows_can_be_drawn(experiment, records):
    empty = dataclasses.replace(records[0], iterations=(), links=(), windows={})
    drawn = plots.run_plots(summary(experiment, (empty,)), (empty,), experiment)
    assert "no bytes were sent" in drawn["link_load_ecmp.svg"]


def test_the_timeline_shows_some_iterations_of_the_window(records):
    start, end = shown(records[0])
    assert start == pytest.approx(1.2)
    assert start < end <= records[0].duration_s


def test_links_between_switches_are_shown_before_links_of_hosts(experiment):
    rows = [LinkRow(1.0, "h0n0p0->tor0", 0, 9e9, 0, 0), LinkRow(1.0, "tor0->agg1", 0, 1e9, 0, 0)]
    rows += [LinkRow(1.0, "tor0->agg0", level, 1e9, 0, 0) for level in (0, 7)]
    assert busiest(rows, experiment.fabric) == ["tor0->agg0", "tor0->agg1", "h0n0p0->tor0"]


def test_load_is_the_share_of_the_rate_in_each_sample(experiment):
    rows = [LinkRow(2.0, "tor0->agg0", 0, 25e9, 0, 0), LinkRow(4.0, "tor0->agg0", 7, 50e9, 0, 0)]
    edges, loads = load(rows, "tor0->agg0", [0, 7], experiment.fabric)
    assert edges == [0.0, 2.0, 4.0]
    assert (list(loads[0]), list(loads[7])) == ([0.5, 0.0], [0.0, 1.0])


def test_the_report_holds_everything_and_loads_nothing(write_run, records):
    directory = write_run(*records)
    page = data_of(html.build(directory, plots=True).read_text())
    assert page["doubts"] == []
    assert [run["scheduler"] for run in page["runs"]] == ["ecmp", "crux"]
    assert page["runs"][1]["decisions"]["rows"][0] == [0.0, "arrival of big", 50.0, 6, "big: 0, small: 1"]
    assert len(list((directory.path / "plots").iterdir())) == 5


def test_the_report_needs_no_matplotlib(write_run, records, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    directory = write_run(*records)
    assert data_of(html.build(directory, plots=True).read_text())["jobs"]
    assert not (directory.path / "plots").exists()


def test_the_report_says_where_a_run_is_not_believed(write_run, degraded):
    text = html.build(write_run(*degraded[0])).read_text()
    assert data_of(text)["doubts"] == ["crux is degraded: idle CPU <0.28> in second 31"]
    assert "crux (degraded)" in text.partition("</header>")[0]


EVIDENCE = {
    "cpu": [[1.0, 1.0, 0.6, 0.1, 0.05, 0.2], [2.0, 1.0, 0.5, 0.0, 0.0, 0.1]],
    "run_delay": [[1.0, 0.1, 0.0, 0.05, 0.0], [2.0, 0.2, 0.0, 0.1, 0.3]],
    "timers": [[0.7, 0.001], [1.4, 0.03]],
    "standstills": [["the worker of host h0", 0.5, 0.8]],
    "link_stretches": {"tor0->agg0": [[0.2, 0.9, 0.99]]},
    "link_rates": {"tor0->agg0": [2.5, 0.97, 0.004]},
}


def test_the_evidence_is_drawn_over_time_where_a_run_left_some(experiment, records):
    found = (Finding("quota", 1.0, 2.0, "a CPU quota held ovs-vswitchd back"),)
    emulated = dataclasses.replace(
        records[1], environment=EVIDENCE, fidelity=Fidelity("degraded", ("a quota",), findings=found)
    )
    runs = (records[0], emulated)
    drawn = plots.run_plots(summary(experiment, runs), runs, experiment)
    assert "evidence_crux.svg" in drawn and "evidence_ecmp.svg" not in drawn
    text = "".join(ET.fromstring(drawn["evidence_crux.svg"]).itertext())
    for words in ("crux (degraded)", "stolen", "PSI", "Open vSwitch", "standstills"):
        assert words in text


def test_a_run_that_is_not_ok_says_so_wherever_its_numbers_appear(experiment, degraded):
    runs, document = degraded
    for table in tables(document)[1:]:
        assert "crux (degraded)" in render([table], width=200)
    for name, drawing in plots.run_plots(document, runs, experiment).items():
        assert "crux" not in name or "crux (degraded)" in drawing


def test_what_was_left_out_is_said(experiment, records):
    finding = Finding("standstill", 1.0, 1.3, "the worker of host h0 stood still for 300 ms", discarded=True)
    rows = tuple(dataclasses.replace(row, disturbed=row.iteration == 1) for row in records[1].iterations)
    run = dataclasses.replace(records[1], iterations=rows, fidelity=Fidelity(findings=(finding,)))
    document = summary(experiment, (records[0], run))
    (line,) = left_out(document)
    assert line.startswith("crux: ") and "iterations left out as disturbed (1.0 to 1.3 s: the worker of host h0" in line
    assert data_of(html.page(document, (records[0], run), experiment))["left_out"] == [line]


def test_the_drawn_rate_error_is_the_one_that_the_verdict_judges(records):
    from matplotlib.lines import Line2D

    emulated = dataclasses.replace(records[1], environment=EVIDENCE)
    *_, rates = draw_evidence(emulated, 1.0).axes
    drawn = [line.get_ydata()[0] for line in rates.get_lines() if isinstance(line, Line2D)]
    assert drawn == [-2.6, -2.0, 2.0]
