"""What describes an experiment of a paper, what the user may set, and the rows that come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from testbed.errors import EXIT_OK

if TYPE_CHECKING:  # it imports rich, and the command line only wants to know where results go
    from testbed.progress import Progress

OUT: Final = Path("runs") / "reproduce"


@dataclass(frozen=True)
class Settings:
    """The user's choices; :mod:`testbed.cli.reproduce` fills in the experiment's defaults.

    ``cases`` to generate from ``seed`` by so many ``processes``. Emulated and trace experiments: the number of
    ``seeds``, starting at ``seed``. Where rows can be chosen: ``only`` these (all if empty). Emulated experiments:
    ``redo``: rerun kept runs whose verdict is not ``ok``.
    Trace experiments: the ``trace`` (None: a synthetic one), its first ``days``, and the names of the ``numerics`` that
    each seed is repeated with (all if empty); ``channels``: connections per pair of ports (None: the experiment's own).
    Results are kept in ``out``.
    """

    cases: int
    seed: int = 1
    processes: int = 1
    seeds: int = 0
    only: tuple[str, ...] = ()
    out: Path = OUT
    redo: bool = False
    trace: Path | None = None
    days: float = 0.0
    numerics: tuple[str, ...] = ()
    channels: int | None = None


@dataclass(frozen=True)
class PaperRow:
    """One line of the result: the ``paper``'s numbers and ours (``here``), by the same keys.

    ``status`` is the exit status that the row asks for: not 0 if a run failed or its verdict is not ``ok``.
    ``fitted``: the keys of ``here`` whose inputs were fitted to the same number of the paper; ``calibrated_on`` says
    in words what was fitted to what, empty if nothing was. ``a_priori``: the same numbers with inputs that were
    chosen before anything was compared.
    """

    label: str
    paper: Mapping[str, float] = field(default_factory=dict)
    here: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    status: int = EXIT_OK
    fitted: tuple[str, ...] = ()
    calibrated_on: str = ""
    a_priori: Mapping[str, float] = field(default_factory=dict)

    @property
    def predicted(self) -> bool:
        """Whether the row predicts: it holds a number of the paper's, or of ours, that no input was fitted to."""
        return not set(self.paper or self.here) <= set(self.fitted)


Run = Callable[[Settings, "Progress"], Sequence[PaperRow]]


@dataclass(frozen=True)
class PaperColumn:
    """A column of the printed table: the key of its numbers, its title, and their format.

    ``paper``: the numbers are the paper's, not ours; ``a_priori``: they are ours with the inputs chosen beforehand.
    ``spread``: the number is a difference, and this is the key of its
    spread; a difference that is not larger is put in parentheses: it proves nothing.
    """

    key: str
    title: str
    form: Callable[[float], str]
    paper: bool = False
    spread: str = ""
    a_priori: bool = False

    def numbers(self, row: PaperRow) -> Mapping[str, float]:
        """Return the numbers of ``row`` that this column shows one of."""
        if self.paper:
            return row.paper
        return row.a_priori if self.a_priori else row.here


@dataclass(frozen=True)
class PaperExperiment:
    """One experiment: what it shows, where it was published, and what computes it.

    An experiment generates ``cases``, emulates ``seeds`` hash seeds, or replays ``days`` of a trace: what is not 0 is
    the default of its option. Those that replay a trace do it with ``seeds`` seeds, 0 where only one can be chosen. A
    worked example, or a fit with seeds of its own, does none of them. ``artifacts``: it takes a folder of other
    authors' simulators as its trace. ``channels``: the user may choose how many connections a job opens per pair of
    ports; ``rows``: the user may choose rows, though nothing is emulated.
    """

    name: str
    summary: str
    source: str
    columns: tuple[PaperColumn, ...]
    function: str
    """``module:function`` that takes settings and progress and returns the rows; imported when it is called."""
    cases: int = 0
    seeds: int = 0
    days: float = 0.0
    artifacts: bool = False
    channels: bool = False
    rows: bool = False

    @property
    def emulates(self) -> bool:
        """Whether it emulates packets, which takes root."""
        return self.seeds > 0 and not self.replays

    @property
    def replays(self) -> bool:
        """Whether it replays a trace."""
        return self.days > 0

    @property
    def draws(self) -> bool:
        """Whether a seed changes anything: cases, hashes or a trace are drawn."""
        return bool(self.cases or self.seeds or self.replays)

    def load(self) -> Run:
        """Import and return the function that computes the rows."""
        module, _, name = self.function.partition(":")
        return cast(Run, getattr(import_module(module), name))

    def run(self, settings: Settings, progress: Progress) -> Sequence[PaperRow]:
        """Return the rows."""
        return self.load()(settings, progress)
