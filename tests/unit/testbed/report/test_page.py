"""The page is one file that loads nothing, shows names as they are, and holds what the run's files hold."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.experiment.experiment import Experiment
from testbed.metrics.summary import summary
from testbed.report import html
from testbed.report.headline import headline
from testbed.report.page.assemble import LIBRARIES, bundle, json_for_script, modules_of, page
from testbed.report.page.evidence_view import rate_errors
from testbed.report.page.payload import payload
from testbed.results.record import RunRecord

PAGE = Path(str(files("testbed.report.page")))
VENDOR = PAGE.parent / "vendor"
MODULES = sorted(path.name for path in (PAGE / "js").iterdir())
Records = tuple[RunRecord, ...]


def numbers(column: dict[str, str]) -> Any:
    ((kind, text),) = column.items()
    return np.frombuffer(base64.b64decode(text), {"u8": np.uint8, "u32": "<u4", "f32": "<f4"}[kind])


@pytest.fixture(scope="module")
def document(experiment: Experiment, records: Records) -> dict[str, Any]:
    return payload(summary(experiment, records), records, experiment)


def test_libraries_are_those_that_were_published() -> None:
    recorded = json.loads((VENDOR / "VERSIONS.json").read_text())
    shipped = {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".css")}
    assert set(recorded) == shipped and set(LIBRARIES) <= shipped
    for name, about in recorded.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == about["sha256"]
        assert {"version", "source", "licence"} <= set(about)
        assert (VENDOR / about["licence"].rpartition(" ")[2]).read_text().strip()


def test_libraries_are_small() -> None:
    assert sum(path.stat().st_size for path in VENDOR.iterdir() if path.suffix in (".js", ".css")) < 500_000


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_small_and_never_makes_markup_out_of_text(name: str) -> None:
    text = (PAGE / "js" / name).read_text()
    assert len(text.splitlines()) < 200
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|fetch\(", text)
    imports = [line for line in text.splitlines() if line.startswith("import")]
    assert all(re.fullmatch(r'import \{ [\w, ]+ \} from "\./[\w-]+\.js";', line) for line in imports)


def top_names(text: str) -> list[str]:
    return re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", text, re.MULTILINE)


def test_a_name_at_the_top_of_a_module_exists_once() -> None:
    names = Counter(name for module in MODULES for name in top_names((PAGE / "js" / module).read_text()))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_import_is_a_name_that_the_other_module_exports() -> None:
    for module in MODULES:
        for names, other in re.findall(
            r'^import \{ ([\w, ]+) \} from "\./([\w-]+\.js)"', (PAGE / "js" / module).read_text(), re.M
        ):
            text = (PAGE / "js" / other).read_text()
            exported = set(re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE))
            assert set(names.split(", ")) <= exported, module


def test_modules_come_after_those_that_they_import() -> None:
    order = modules_of("run_page.js")
    assert order[-1] == "run_page.js" and set(order) <= set(MODULES)
    assert order.index("dom.js") < order.index("table.js") < order.index("details.js")
    assert not re.search(r"^(import|export) ", bundle("run_page.js"), re.MULTILINE)


def test_the_page_loads_nothing_and_allows_only_its_own_scripts(experiment: Experiment, records: Records) -> None:
    text = html.page(summary(experiment, records), records, experiment)
    ours = text
    for library in (*LIBRARIES, "uPlot.min.css"):
        ours = ours.replace((VENDOR / library).read_text(), "")
    assert not re.search(r"<link|<img|<iframe|src=|@import|url\(|https?://(?!www\.w3\.org/2000/svg)", ours)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and "default-src &#x27;none&#x27;" in policy[1]
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(scripts) == 3 and all(f"&#x27;sha256-{each}&#x27;" in policy[1] for each in hashes)
    assert policy[1].count("sha256-") == 3


NASTY = "</script><script>alert(1)</script><!-- & \u2028"


def test_names_cannot_leave_the_data_or_the_title() -> None:
    text = page(NASTY, NASTY, {"name": NASTY}, "run_page.js")
    assert NASTY not in text and "<script>alert" not in text
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(data) == {"name": NASTY}
    assert not set("<>&") & set(json_for_script({"name": NASTY}))


def test_numbers_that_are_none_are_refused(experiment: Experiment, records: Records) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_for_script([float("nan")])


def test_the_document_holds_every_iteration_and_load(document: dict[str, Any], records: Records) -> None:
    for run, record in zip(document["runs"], records, strict=True):
        lanes = run["timeline"]["lanes"]
        assert sum(count for _, _, count in lanes) == len(record.iterations)
        spent = sum(float(numbers(run["timeline"][name]).sum()) for name in ("compute", "straggler", "exposed"))
        assert spent == pytest.approx(
            sum(r.compute_s + r.straggler_s + r.exposed_s for r in record.iterations), rel=1e-5
        )
        samples = len(run["loads"]["edges_s"]) - 1
        assert len(numbers(run["loads"]["values"])) == samples * len(run["loads"]["series"])


def test_more_iterations_than_a_browser_bears_are_cut_and_the_page_says_from_when(
    experiment: Experiment, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.report.page.payload.MAX_ROWS", 40)
    for run in payload(summary(experiment, records), records, experiment)["runs"]:
        assert 0 < sum(count for _, _, count in run["timeline"]["lanes"]) <= 20
        assert run["timeline"]["until_s"] > 0


def test_the_tables_show_work_per_gpu_second(
    document: dict[str, Any], experiment: Experiment, records: Records
) -> None:
    found = summary(experiment, records)
    table = document["tables"][0]
    place = [column["title"] for column in table["columns"]].index("TFLOP per GPU-second")
    for row, run in zip(table["rows"], found["runs"], strict=True):
        assert row[place][1] == pytest.approx(run["work_flop"] / run["allocated_gpu_s"])


def entry(name: str, share: float, *, verdict: str = "ok", loss: dict[str, float] | None = None) -> dict[str, Any]:
    return {"scheduler": name, "gpu_utilization": share, "fidelity": {"verdict": verdict}, "loss": loss}


def lost(alone: float, own: float, others: float) -> dict[str, float]:
    return {"alone_points": alone, "own_points": own, "others_points": others}


def found(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"runs": list(runs), "comparison": {"baseline": runs[0]["scheduler"]}}


def test_the_headline_says_who_keeps_gpus_busy_and_why_the_others_are_idle() -> None:
    ecmp, crux = entry("ecmp", 0.514, loss=lost(11.6, 21.9, 15.1)), entry("crux", 0.883, loss=lost(11.6, 0.0, 0.1))
    assert headline(found(ecmp, crux)) == (
        "crux keeps 88 % of the GPUs busy, ecmp 51 %. Of 48.6 idle points under ecmp 11.6 are lost alone, "
        "21.9 to collisions of a job's own connections and 15.1 to other jobs; of 11.7 under crux 11.6, 0.0 and 0.1."
    )


def test_the_headline_says_why_gpus_are_idle_where_schedulers_do_the_same() -> None:
    same = [entry(name, 0.732, loss=lost(25.7, 0.0, 1.1)) for name in "ab"]
    assert headline(found(*same)) == (
        "a and b keep the GPUs equally busy: 73 %, within 1 point. "
        "Of 26.8 idle points under a 25.7 are lost alone and 1.1 to other jobs."
    )


def test_the_headline_says_where_nothing_is_lost_to_contention() -> None:
    one, other = entry("a", 0.5, loss=lost(50.0, 0.0, 0.0)), entry("b", 0.52, loss=lost(48.0, 0.0, 0.0))
    said = headline(found(one))
    assert said == "a keeps 50 % of the GPUs busy. All 50.0 idle points are lost alone, none to contention."
    assert headline(found(one, one)).endswith("All 50.0 idle points under a are lost alone, none to contention.")
    assert headline(found(one, other)).endswith(
        "All 50.0 idle points under a and 48.0 under b are lost alone, none to contention."
    )


def test_the_headline_says_what_cannot_be_believed_and_nothing_of_what_is_unknown() -> None:
    assert headline(found(entry("a", 0.701), entry("b", 0.705), entry("c", 0.7))) == (
        "a, b and c keep the GPUs equally busy: 70 %, within 1 point."
    )
    assert headline(found(entry("a", 0.5), entry("b", 0.6, verdict="invalid"))).startswith("b (invalid) keeps 60 %")


def test_the_rate_error_shown_is_the_one_that_is_judged() -> None:
    rows = {
        row["link"]: row
        for row in rate_errors({"a": (9.0, 0.985, 0.004), "b": (9.0, 1.03, 0.04), "c": (1.0, 0.5, 0.1)})
    }
    assert (rows["a"]["error"], rows["a"]["judged"]) == (-1.1, True)
    assert rows["b"]["error"] == 0.0 and rows["b"]["raw"] == 3.0
    assert not rows["c"]["judged"]


def test_a_run_without_rows_can_be_shown(experiment: Experiment, records: Records) -> None:
    empty = dataclasses.replace(records[0], iterations=(), links=(), windows={}, decisions=())
    document = payload(summary(experiment, (empty,)), (empty,), experiment)
    assert document["runs"][0]["loads"] is None
    assert document["runs"][0]["timeline"]["lanes"] == []
