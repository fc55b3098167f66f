"""Messages of a run: when each began and had arrived, and how long it takes in an empty network."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.api import prepare
from testbed.engines.common.messages import EmptyPath
from testbed.engines.flow.engine import FlowEngine, SimulationEngine
from testbed.experiment.experiment import Experiment
from testbed.metrics.network.message_metrics import MOST_GROUPS, message_metrics
from testbed.metrics.summary import summary
from testbed.results.record import MessageRow, RunRecord
from testbed.results.row_files import messages_from_csv, messages_to_csv

FABRIC = {
    "kind": "clos",
    "hosts": 4,
    "gpus_per_host": 2,
    "nics_per_host": 1,
    "tors": 2,
    "aggregations": 1,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}
RING = {
    "name": "ring",
    "model": "bert",
    "placement": ["h0:0", "h2:0"],
    "compute": "0.1s",
    "communication": "1GB",
    "channels": 1,
    "jitter": 0,
}
OTHER = {**RING, "name": "other", "placement": ["h1:0", "h3:0"]}


def run(
    jobs: list[dict[str, Any]], engine: str = "flow", scheduler: str = "ecmp", **more: Any
) -> tuple[Experiment, RunRecord]:
    measure = {"iterations": 3, "warmup": 1, "time_limit": "500s"}
    document = {"fabric": FABRIC, "jobs": jobs, "schedulers": [scheduler], "measure": measure, **more}
    with TemporaryDirectory() as folder:
        path = Path(folder, "scenario.yaml")
        path.write_text(yaml.safe_dump(document), "utf-8")
        (experiment,) = prepare(path, engine=engine).experiments
        chosen = FlowEngine() if engine == "flow" else SimulationEngine()
        return experiment, chosen.run(experiment, Path(folder), lambda _message: None)


def slowdowns(record: RunRecord, job: str) -> list[float]:
    return [row.slowdown for row in record.messages if row.job == job]


def test_a_message_alone_takes_what_its_slowest_link_says() -> None:
    _, record = run([RING])
    assert record.messages[0].completion_s == pytest.approx(8e9 / 100e9, rel=1e-3)
    assert slowdowns(record, "ring") == pytest.approx([1.0] * len(record.messages), abs=1e-3)


@pytest.mark.parametrize("transport", ["window", "dcqcn", "hpcc"])
def test_a_message_alone_takes_little_more_in_a_simulation(transport: str) -> None:
    network = {"transport": transport}
    _, record = run([RING], "simulation", network=network, scale={"bandwidth": 13000 if transport == "window" else 50})
    longest = {"window": 1.06, "dcqcn": 1.02, "hpcc": 1.06}[transport]  # 57 packets; and HPCC leaves 5 % of a link free
    assert all(0.98 <= slowdown <= longest for slowdown in slowdowns(record, "ring")), slowdowns(record, "ring")


def test_two_messages_on_one_link_take_twice_as_long() -> None:
    _, record = run([RING, OTHER])
    assert slowdowns(record, "ring") == pytest.approx([2.0] * len(slowdowns(record, "ring")), rel=0.01)


def test_priority_shows_in_the_slowdown_of_messages() -> None:
    _, record = run([{**RING, "compute": "0.05s"}, OTHER], scheduler="crux")
    assert min(max(slowdowns(record, "ring")), max(slowdowns(record, "other"))) == pytest.approx(1.0, abs=0.01)


@st.composite
def a_job(draw: st.DrawFn) -> dict[str, Any]:
    """A job of one or several phases, perhaps with gradients in the background, that may be late on one host."""
    model = draw(st.sampled_from(["gpt", "bert", "moe"]))
    job: dict[str, Any] = {
        "name": "job",
        "model": model,
        "placement": draw(st.sampled_from([["h0:0", "h2:0"], ["h0:0-1", "h1:0-1", "h3:0-1"]])),
        "compute": f"{draw(st.integers(1, 9)) / 100}s",
        "communication": f"{draw(st.integers(1, 400))}MB",
        "overlap": draw(st.sampled_from([0, 0.5, 1])),
        "jitter": 0.05,
        "stragglers": [{"gpu": "h0g0", "factor": 1.5}] if draw(st.booleans()) else [],
    }
    if model == "moe":
        job["gradients"] = {"background": draw(st.booleans())}
    return job


@settings(max_examples=60, deadline=None)
@given(a_job(), st.integers(0, 1000))
def test_every_message_of_every_iteration_has_a_row(job: dict[str, Any], seed: int) -> None:
    experiment, record = run([job], seed=seed)
    (built,) = experiment.jobs
    expected = [(index, each.flow, each.bytes) for index, phase in enumerate(built.phases) for each in phase.transfers]
    ends = {row.iteration: row.end_s for row in sorted(record.iterations, key=lambda row: row.end_s)}
    for number, end_s in ends.items():
        rows = [row for row in record.messages if row.iteration == number]
        assert [(row.phase, row.flow, row.bytes) for row in rows] == expected
        assert all(row.start_s <= row.end_s <= end_s + 1e-9 for row in rows)
        assert all(row.slowdown > 0.999 for row in rows)


TIMES = st.floats(min_value=0, max_value=1e9, allow_nan=False)


@given(
    st.lists(
        st.builds(
            MessageRow,
            *(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.integers(0, 99), st.integers(0, 9)),
            *(st.from_regex(r"[a-z:>]{1,9}", fullmatch=True), TIMES, TIMES, TIMES),
            st.floats(min_value=1e-9, max_value=1e9),
        )
    )
)
def test_message_rows_survive_the_file(rows: list[MessageRow]) -> None:
    assert messages_from_csv(messages_to_csv(rows)) == tuple(rows)


def test_an_empty_path_costs_a_packet_at_every_link_and_the_rest_at_the_slowest() -> None:
    path = EmptyPath(link_s=1.0, switch_s=0.5, packet=10.0)
    assert path.seconds(100.0, [80.0, 40.0]) == pytest.approx(10 / 10 + 10 / 5 + 90 / 5 + 2 * 1.0 + 0.5)


@given(st.lists(st.sampled_from([2.0**power for power in range(20)]), min_size=1, max_size=200))
def test_every_message_is_in_one_group_of_sizes(sizes: list[float]) -> None:
    rows = [MessageRow("a", 0, 0, "f", size, 0.0, 2.0, 1.0) for size in sizes]
    found = message_metrics({"a": rows}, ["a"])
    assert found is not None
    assert sum(group.count for group in found.by_size) == len(rows)
    assert len(found.by_size) <= MOST_GROUPS
    bounds = [bound for group in found.by_size for bound in (group.from_bytes, group.to_bytes)]
    assert bounds == sorted(bounds) and len({group.to_bytes for group in found.by_size}) == len(found.by_size)


def test_the_summary_counts_messages_of_measured_iterations_only() -> None:
    experiment, record = run([RING])
    (entry,) = summary(experiment, [record])["runs"]
    assert entry["messages"]["count"] == entry["jobs"][0]["messages"]["count"] == 2 * 3
    assert entry["jobs"][0]["messages"]["by_size"][0]["to_bytes"] == 1e9
