"""What the authors' simulators gave: mean completion times, with the settings under which they were run.

Every number comes from a run of the artifact at the commit named here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

ArtifactName = Literal["pollux", "muri"]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A published simulator."""

    repository: str
    commit: str
    licence: str

    @property
    def named(self) -> str:
        """In one line."""
        return f"{self.repository} at {self.commit[:7]} ({self.licence})"


ARTIFACTS: Final[Mapping[ArtifactName, Artifact]] = MappingProxyType(
    {
        "pollux": Artifact(
            "petuum/adaptdl, branch osdi21-artifact,", "c793c7089bd307462686339d29707925c461f9a9", "Apache-2.0"
        ),
        "muri": Artifact("Rivendile/Muri", "4e69a78ce75f629a5a00abd48150a1860b341ce6", "Apache-2.0"),
    }
)
SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "optimus": "rounds of 60 s, 30 s for every restart",
        "tiresias on pollux": "rounds of 60 s, restarts free, a queue up to 57,600 GPU-seconds",
        "tiresias on muri": "8 x 8 GPUs, overhead of restarts off, queues up to 3,250 and 7,200 GPU-seconds",
        "srtf": "8 x 8 GPUs, overhead of restarts off",
        "srsf": "8 x 8 GPUs, overhead of restarts off",
    }
)


@dataclass(frozen=True, slots=True)
class KnownResult:
    """Mean completion time of the ``jobs`` of a trace, as an artifact gave it; ``file`` is its path there."""

    artifact: ArtifactName
    file: str
    policy: str
    jobs: int
    jct_s: float
    packed: bool = False
    """Whether jobs are as fast as on the fewest servers, wherever they are."""
    start_s: float = 0.0
    """What the first start of a job costs."""

    @property
    def label(self) -> str:
        """The trace and the policy."""
        name = f"{self.file.rpartition('/')[2].removesuffix('.csv')} {self.policy}"
        return f"{name}, jobs packed" if self.packed else name

    @property
    def settings(self) -> str:
        """How the artifact was run."""
        said = SETTINGS.get(self.policy) or SETTINGS[f"{self.policy} on {self.artifact}"]
        first = f", {self.start_s:g} s for the first start" if self.start_s else ""
        return f"{said}{first}" + (", jobs as fast as on the fewest servers" if self.packed else "")


def _published() -> Iterator[KnownResult]:
    yield KnownResult(
        "pollux", "simulator/workloads/workload-6.csv", "optimus", 160, 5177.30625, packed=True, start_s=30.0
    )
    workloads = {6: (5301.875, 3387.79375), 1: (4087.0625, 2411.3875), 3: (3944.00625, 3764.3)}
    for number, (optimus_s, tiresias_s) in workloads.items():
        file = f"simulator/workloads/workload-{number}.csv"
        yield KnownResult("pollux", file, "optimus", 160, optimus_s, start_s=30.0)
        yield KnownResult("pollux", file, "tiresias", 160, tiresias_s)
    folder = "simulator/trace-data"
    for policy, jct_s in (("tiresias", 340306.277096), ("srtf", 190377.377380), ("srsf", 183965.977985)):
        yield KnownResult("muri", f"{folder}/trace3.csv", policy, 992, jct_s)
    yield KnownResult("muri", f"{folder}/job_type_1.csv", "tiresias", 992, 340307.171316)
    yield KnownResult("muri", f"{folder}/job_type_3.csv", "tiresias", 992, 340305.978933)


def _small() -> Iterator[KnownResult]:
    pollux = {1: (2298.45, 4195.625), 2: (2705.025, 5518.925), 3: (2039.3, 3999.75)}
    for seed, means in pollux.items():
        for policy, jct_s in zip(("optimus", "tiresias"), means, strict=True):
            yield KnownResult("pollux", f"small-{seed}", policy, 40, jct_s)
    muri = {
        1: (22779.176626, 15924.301257, 15945.575816),
        2: (17460.238690, 13668.289154, 13590.379372),
        3: (17331.898030, 13799.705613, 14079.892609),
    }
    for seed, triple in muri.items():
        for policy, jct_s in zip(("tiresias", "srtf", "srsf"), triple, strict=True):
            yield KnownResult("muri", f"muri-{seed}", policy, 40, jct_s)


PUBLISHED: Final = tuple(_published())
"""Of the artifacts' own traces."""
SMALL: Final = tuple(_small())
"""Of :mod:`.small_traces`; Pollux's on 4 servers of 4 GPUs."""
