"""``summary.json`` as it is read back: whether it has all that tables, plots and comparisons use. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat, ValidationError

from testbed.metrics.catalogue import COMPARISON, JOB, RUN
from testbed.metrics.managers.manager_metrics import MANAGER, OUTCOMES
from testbed.metrics.metric import Metric, columns, value_at
from testbed.results import plain_names
from testbed.results.record import Verdict


class _Part(BaseModel):
    """Other keys may be there: metrics are added to the catalogue, and old runs have keys of their own."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Finding(_Part):
    kind: str
    from_s: FiniteFloat
    to_s: FiniteFloat
    what: str
    discarded: bool = False


class _Fidelity(_Part):
    verdict: Verdict
    reasons: list[str] = []
    findings: list[_Finding] = []


class _Idle(_Part):
    exposed: FiniteFloat
    straggler: FiniteFloat
    start: FiniteFloat


class _Loss(_Part):
    alone_points: FiniteFloat
    own_points: FiniteFloat
    others_points: FiniteFloat
    failures_points: FiniteFloat = 0.0


class _Manager(_Part):
    refused: dict[str, str] = {}
    partly_started: dict[str, str] = {}


class _Job(_Part):
    name: str
    jct_s: FiniteFloat | None
    jct_source: str | None
    gpu_idle_s: _Idle
    allocated_gpu_s: FiniteFloat
    disturbed: int = 0
    loss: _Loss | None = None


class _Run(_Part):
    scheduler: Annotated[str, AfterValidator(plain_names.scheduler_name)]
    scheduler_name: str = ""
    options: dict[str, Any] = {}
    gpu_utilization: FiniteFloat
    work_flop: FiniteFloat
    duration_s: FiniteFloat
    jobs: list[_Job]
    fidelity: _Fidelity
    gpu_idle_s: _Idle
    allocated_gpu_s: FiniteFloat
    loss: _Loss | None = None
    manager: _Manager | None = None


class _Against(_Part):
    gpu_utilization_points: FiniteFloat
    jct_change: dict[str, FiniteFloat | None]


class _Scale(_Part):
    bandwidth: FiniteFloat
    time: FiniteFloat


class _Check(_Part):
    check: str
    passed: bool


class _Summary(_Part):
    scenario: str
    engine: str
    seed: int
    scale: _Scale
    runs: list[_Run]
    comparison: dict[str, _Against | str]
    checks: list[_Check] = []


_ENTRIES: Final[Mapping[str, tuple[Metric[Any], ...]]] = {
    "run": tuple(RUN),
    "job": tuple(JOB),
    "manager": (*OUTCOMES, *MANAGER),
    "comparison": tuple(metric for metric in COMPARISON if not metric.by_job),
}


def checked_summary(document: dict[str, Any]) -> dict[str, Any]:
    """Return ``document`` unchanged; ``ValueError`` with one line for the first value that cannot be shown."""
    try:
        _Summary.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"{place}: {first['msg']}") from None
    for run in document["runs"]:
        _show_all("run", run)
        _show_all("manager", run.get("manager") or {})
        for job in run["jobs"]:
            _show_all("job", job)
    for against in document["comparison"].values():
        _show_all("comparison", against if isinstance(against, Mapping) else {})
    return document


def _show_all(kind: str, entry: Mapping[str, Any]) -> None:
    """Make every cell of the catalogue once: each metric's column says itself what it can show."""
    for metric, column in columns(_shown(kind, entry)):
        try:
            column.cell(entry, metric.key)
        except (TypeError, ValueError, KeyError, OverflowError):
            raise ValueError(f"{kind}: {metric.key} is {str(value_at(entry, metric.key))[:40]!a}") from None


def _shown(kind: str, entry: Mapping[str, Any]) -> Iterable[Metric[Any]]:
    return (metric for metric in _ENTRIES[kind] if value_at(entry, metric.key) is not None)
