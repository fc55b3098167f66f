"""What ran, exported as Chakra traces: read back it is as many iterations of the same collectives and compute."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cli.main import main
from workloads.imported import chakra
from workloads.imported import chakra_wire as wire
from workloads.imported.workload import totals
from workloads.models.catalogue import CATALOGUE

SCENARIO = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 2, nics_per_host: 2, tors: 2, aggregations: 2, port_rate: 100Gbps,
         fabric_rate: 100Gbps}
jobs:
- {name: dense, model: bert, gpus: 4}
- {name: mixture, model: moe, gpus: 4}
schedulers: [ecmp, crux]
measure: {iterations: 3, warmup: 1}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    (folder / "own.yaml").write_text(SCENARIO, "utf-8")
    assert main(["run", str(folder / "own.yaml"), "--engine", "flow", "--out", str(folder / "runs")]) == 0
    (run,) = (folder / "runs").glob("own-*")
    assert main(["export", str(run), "--chakra", "--scheduler", "crux", "--out", str(folder / "traces")]) == 0
    return folder / "traces" / "crux"


@pytest.mark.parametrize(("job", "model"), [("dense", "bert"), ("mixture", "moe")])
def test_what_is_exported_reads_back_as_what_ran(exported: Path, job: str, model: str) -> None:
    found = chakra.read(exported / job)
    assert found.parallelism.gpus == 4
    moved, count = sum(size for _, size in totals(found).values()), 0
    assert len(list((exported / job).glob("*.et"))) == 4
    nodes = chakra.read_graph(exported / job / f"{job}.0.et")
    count = len({node.name.split(".")[1] for node in nodes})
    assert count >= 4
    assert moved == pytest.approx(count * CATALOGUE[model].communication_bytes, rel=1e-6)
    assert found.compute_s == pytest.approx(count * CATALOGUE[model].compute_s, rel=0.01)


def test_every_collective_has_type_size_and_time(exported: Path) -> None:
    nodes = chakra.read_graph(exported / "dense" / "dense.0.et")
    sent = [node for node in nodes if node.kind == wire.COLLECTIVE]
    assert sent and all(node.seconds > 0 and {"comm_type", "comm_size"} <= node.attributes.keys() for node in sent)


def test_a_scheduler_that_did_not_run_is_refused(exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = (exported.parents[1] / "runs").glob("own-*")
    assert main(["export", str(run), "--chakra", "--scheduler", "varys"]) == 2
    assert capsys.readouterr().err == f"{run}: no scheduler 'varys', expected one of ecmp, crux\n"
