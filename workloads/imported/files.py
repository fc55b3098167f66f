"""Files of workloads by format: which reader takes which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from workloads.imported import chakra, kineto, simai
from workloads.imported.workload import GroupKind, ImportedWorkload

Reader = Callable[[Path, int | None, GroupKind | None], ImportedWorkload]

READERS: Final[Mapping[str, Reader]] = {"simai": simai.read, "chakra": chakra.read, "kineto": kineto.read}
"""Format -> its reader, which takes the path, the number of GPUs, and the group of collectives that say none."""


FORMS: Final = ("simai", "chakra", "kineto")
"""What a scenario may name as the form of a model's file."""


SCHEDULE: Final = "goal"
"""The same of a file that has the operations of every rank: a GOAL schedule."""
ALGORITHM: Final = "msccl"
"""The same of a file that has the steps of one collective: an algorithm of MSCCL."""
SHAPE: Final = "config"
"""The same of a file that has a model's shape and no iteration: a ``config.json`` of Hugging Face."""


def form_of(path: Path) -> str:
    """Return the format of a file by its name; a folder and ``.et`` are Chakra's, ``.goal`` GOAL's, JSON Kineto's."""
    if path.is_dir() or path.suffix == ".et":
        return "chakra"
    if path.suffix == ".goal":
        return SCHEDULE
    return "kineto" if path.name.endswith((".json", ".json.gz")) else "simai"
