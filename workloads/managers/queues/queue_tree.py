"""A hierarchy of queues: which queues there are, what is used in each, and which waiting job is served next.

A queue is named by its path, from the top down. A job goes to the leaf that its virtual cluster names: by path
(``research.vision``) or, where only one leaf is called so, by name (``vision``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, TypeVar

from workloads.managers.cluster_state import ClusterState
from workloads.managers.jobs import Waiting
from workloads.managers.options import shown

Path = tuple[str, ...]
"""Names of queues, the one that contains the next first."""
ROOT: Final[Path] = ()
CHILDREN: Final = "queues"
"""Key of the queues inside a queue."""

ShareT = TypeVar("ShareT")
ShareOf = Callable[[str, Mapping[str, object]], ShareT]
"""Makes the share of a queue from its name and its keys; ``ValueError``, one line, where they are wrong."""


@dataclass(frozen=True)
class QueueTree(Generic[ShareT]):
    """The queues by path, each after the one that contains it, with its share; :data:`ROOT` is not among them."""

    shares: Mapping[Path, ShareT]

    @cached_property
    def children(self) -> Mapping[Path, tuple[Path, ...]]:
        """Path -> paths of the queues inside it."""
        found: dict[Path, list[Path]] = {}
        for path in self.shares:
            found.setdefault(path[:-1], []).append(path)
        return {path: tuple(inside) for path, inside in found.items()}

    @cached_property
    def leaves(self) -> Mapping[str, Path]:
        """Path in words, or a name that only one leaf has -> path of a queue that jobs go to."""
        found = [path for path in self.shares if path not in self.children]
        names = [path[-1] for path in found]
        by_name = {path[-1]: path for path in found if names.count(path[-1]) == 1}
        return {**by_name, **{in_words(path): path for path in found}}

    def with_leaves(self, paths: Iterable[Path], share: ShareT) -> QueueTree[ShareT]:
        """Return the tree with more leaves, each of this ``share``; those that are there stay."""
        more = {path: share for path in paths if path not in self.shares}
        return QueueTree({**self.shares, **more}) if more else self


def in_words(path: Path) -> str:
    """Return a path as one writes it."""
    return ".".join(path)


def above(path: Path) -> Iterator[Path]:
    """Yield ``path`` and the queues that contain it, :data:`ROOT` left out."""
    for length in range(len(path), 0, -1):
        yield path[:length]


def tree_of(given: object, share: ShareOf[ShareT]) -> QueueTree[ShareT]:
    """Return the tree of an option: name -> keys of the share, and ``queues`` inside it by name, if any.

    ``ValueError``, one line, where something is wrong.
    """
    return QueueTree(dict(_parsed(ROOT, given, share)))


def _parsed(parent: Path, given: object, share: ShareOf[ShareT]) -> Iterator[tuple[Path, ShareT]]:
    if not isinstance(given, Mapping):
        raise ValueError(f"the queues are {shown(given)}, expected queues by name such as {{vision: {{}}}}")
    for name, keys in given.items():
        path = (*parent, str(name))
        if not isinstance(keys, Mapping):
            raise ValueError(
                f"virtual cluster '{in_words(path)}' has {shown(keys)}, expected keys in braces such as {{}}"
            )
        yield path, share(in_words(path), {key: value for key, value in keys.items() if key != CHILDREN})
        yield from _parsed(path, keys.get(CHILDREN, {}), share)


def used_by(state: ClusterState, leaf_of: Callable[[str], Path]) -> dict[Path, int]:
    """Return queue -> GPUs of its running jobs; a job that waits for the rest of its GPUs counts with all of them."""
    used: dict[Path, int] = {}
    for running in state.running.values():
        add(used, leaf_of(running.job.virtual_cluster), running.claimed_gpus)
    return used


def add(used: dict[Path, int], leaf: Path, gpus: int) -> None:
    """Add ``gpus`` to a leaf and to all queues that contain it."""
    for path in above(leaf):
        used[path] = used.get(path, 0) + gpus


@dataclass(frozen=True)
class Order:
    """How a hierarchy serves: among siblings the queue of the lowest ``rank`` first, none beyond its ``most``.

    Inside a leaf in order of submission; a job that may not start yet holds up those behind it, unless ``backfill``.
    """

    children: Mapping[Path, Sequence[Path]]
    rank: Callable[[Path, Mapping[Path, int]], tuple[float, ...]]
    most: Callable[[Path], float]
    backfill: bool

    def serve(self, queues: Mapping[Path, Sequence[Waiting]], used: dict[Path, int]) -> Iterator[tuple[Path, Waiting]]:
        """Yield leaf and job, the first to be served first; ``used`` counts each as if it started.

        ``queues``: leaf -> its waiting jobs, in order of submission.
        """
        left = {leaf: list(reversed(jobs)) for leaf, jobs in queues.items() if jobs}
        with_jobs = _with_jobs(left)
        while left:
            leaf = self._next(with_jobs, used)
            job = left[leaf].pop()
            fits = all(used.get(path, 0) + job.gpus <= self.most(path) for path in above(leaf))
            if not left[leaf] or not (fits or self.backfill):
                del left[leaf]
                with_jobs = _with_jobs(left)
            if fits:
                yield leaf, job
                add(used, leaf, job.gpus)

    def _next(self, with_jobs: set[Path], used: Mapping[Path, int]) -> Path:
        """The leaf that is served next: level by level, the queue of the lowest rank that has a job."""
        path = ROOT
        while path in self.children:
            inside = (child for child in self.children[path] if child in with_jobs)
            path = min(inside, key=lambda child: (self.rank(child, used), child))
        return path


def _with_jobs(leaves: Iterable[Path]) -> set[Path]:
    return {path for leaf in leaves for path in above(leaf)}
