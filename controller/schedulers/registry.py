"""Schedulers by name: the built-in ones, and those of other packages (entry points ``testbed.schedulers``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from controller.decision import Scheduler, as_scheduler
from controller.schedulers.cassini.scheduler import Cassini
from controller.schedulers.crux.scheduler import Crux, CruxPa, CruxPsPa
from controller.schedulers.ecmp import Ecmp, EcmpSwitch
from controller.schedulers.fixed import Fixed
from controller.schedulers.guarded import GuardedScheduler
from controller.schedulers.hedera import Hedera
from controller.schedulers.ideal import Ideal
from controller.schedulers.lina import Lina
from controller.schedulers.mltcp import Mltcp
from controller.schedulers.pfabric import PFabric
from controller.schedulers.pias import Pias
from controller.schedulers.sglb import Sglb
from controller.schedulers.sincronia import Sincronia
from controller.schedulers.taccl_star import TacclStar
from controller.schedulers.varys import Varys, VarysPriority
from workloads.plugin_errors import PluginCode
from workloads.plugins import Options, Plugins

GROUP = "testbed.schedulers"

BUILT_IN: Final[tuple[type[Scheduler], ...]] = (
    Cassini,
    Crux,
    CruxPa,
    CruxPsPa,
    Ecmp,
    EcmpSwitch,
    Fixed,
    Hedera,
    Ideal,
    Lina,
    Mltcp,
    PFabric,
    Pias,
    Sglb,
    Sincronia,
    TacclStar,
    Varys,
    VarysPriority,
)
"""The one place where a built-in scheduler is registered: it goes by its ``name``."""

_ATTRIBUTES = ("name", "summary", "decide")
_SCHEDULERS = Plugins("scheduler", GROUP, {scheduler.name: scheduler for scheduler in BUILT_IN}, _ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class Description:
    """A scheduler as it describes itself.

    ``decides`` are fields of a decision, ``events`` the names of the event types it is called for, ``source`` the
    publication it follows; empty where not given. ``package`` is the distribution a plug-in comes from, "" for
    a built-in one. ``problem`` is why it cannot be used, "" if it can.
    """

    name: str
    summary: str = ""
    decides: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    source: str = ""
    package: str = ""
    problem: str = ""


def names() -> tuple[str, ...]:
    """Return the names of all schedulers that can be created, sorted."""
    return _SCHEDULERS.names()


def create(name: str, options: Options | None = None, seed: int | None = None) -> Scheduler:
    """Return the scheduler ``name`` with its ``options``; ``seed`` goes to those that take one.

    One of another package raises :class:`workloads.plugin_errors.PluginError`, one line that names its file and line,
    where its code raises or its decision cannot be carried out.

    Raises ``ValueError``, one line, for an unknown name, an unknown option, or an option's bad value.
    """
    made, code = _SCHEDULERS.create(name, options, seed), _SCHEDULERS.code_of(name)
    return as_scheduler(made) if code is None else GuardedScheduler(made, code)


def code_of(name: str) -> PluginCode | None:
    """Return where the code of the scheduler ``name`` is; None if it is built in or there is none."""
    return _SCHEDULERS.code_of(name)


def descriptions() -> tuple[Description, ...]:
    """Return the descriptions of all schedulers, sorted by name."""
    return tuple(describe(name) for name in names())


def describe(name: str) -> Description:
    """Return the description of the scheduler ``name``; if it cannot be loaded, ``problem`` gives the reason."""
    package = _SCHEDULERS.package_of(name)
    try:
        factory = _SCHEDULERS.find(name)
        subject = as_scheduler(factory) if _is_scheduler(factory) else create(name)
        return Description(
            name=name,
            summary=" ".join(str(subject.summary).split()),
            decides=_words(subject.decides),
            events=tuple(sorted(event.__name__ for event in subject.events)),
            source=" ".join(str(subject.source).split()),
            package=package,
        )
    except Exception as error:  # a foreign package may fail in any way; the list goes on
        said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return Description(name=name, package=package, problem=" ".join(said.split()))


def _is_scheduler(factory: object) -> bool:
    """Whether the class itself has all attributes of a scheduler: then no instance and no options are needed."""
    return isinstance(factory, type) and all(hasattr(factory, part) for part in _ATTRIBUTES)


def _words(said: str | Iterable[object]) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else tuple(str(word) for word in said)
