"""Schedulers by name: the built-in ones, and those of other packages (entry points ``testbed.schedulers``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from controller.cassini import Cassini
from controller.crux import Crux, CruxPa, CruxPsPa
from controller.decision import JOB_EVENTS, Scheduler
from controller.ecmp import Ecmp, EcmpSwitch
from controller.fixed import Fixed
from controller.hedera import Hedera
from controller.ideal import Ideal
from controller.lina import Lina
from controller.pfabric import PFabric
from controller.pias import Pias
from controller.sincronia import Sincronia
from controller.taccl_star import TacclStar
from controller.varys import Varys, VarysPriority

GROUP = "testbed.schedulers"

_BUILT_IN: Mapping[str, Callable[..., Scheduler]] = {
    "cassini": Cassini,
    "crux": Crux,
    "crux-pa": CruxPa,
    "crux-ps-pa": CruxPsPa,
    "ecmp": Ecmp,
    "ecmp-switch": EcmpSwitch,
    "fixed": Fixed,
    "hedera": Hedera,
    "ideal": Ideal,
    "lina": Lina,
    "pfabric": PFabric,
    "pias": Pias,
    "sincronia": Sincronia,
    "taccl-star": TacclStar,
    "varys": Varys,
    "varys-priority": VarysPriority,
}


@dataclass(frozen=True, slots=True)
class Description:
    """A scheduler as it describes itself.

    ``decides`` are columns of a decision, ``events`` names of the types it hears, ``source`` the publication
    it follows; empty where it says nothing. ``package`` is the distribution a plug-in comes from, "" for
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
    return tuple(sorted(_BUILT_IN.keys() | {point.name for point in entry_points(group=GROUP)}))


def create(name: str, options: Mapping[str, object] | None = None, seed: int | None = None) -> Scheduler:
    """Return the scheduler ``name`` with its ``options``; ``seed`` goes to those that take one.

    Raises ``ValueError``, one line, for an unknown name, an unknown option, or an option's bad value.
    """
    factory = _find(name)
    given = dict(options or {})
    known, takes_any = _options(factory)
    unknown = sorted(given.keys() - known)
    if unknown and not takes_any:
        expected = ", ".join(sorted(known)) or "none"
        raise ValueError(f"unknown option '{unknown[0]}' of scheduler {name}, expected: {expected}")
    if seed is not None and "seed" in known:
        given.setdefault("seed", seed)
    try:
        scheduler = factory(**given)
    except TypeError as error:  # an option that must be given, or one of the wrong type
        raise ValueError(f"scheduler {name}: {error}") from error
    if not isinstance(scheduler, Scheduler):
        raise ValueError(f"scheduler '{name}' has no decide(view, event), name and summary")
    return scheduler


def descriptions() -> tuple[Description, ...]:
    """Return what every scheduler says of itself, by name."""
    return tuple(describe(name) for name in names())


def describe(name: str) -> Description:
    """Return what the scheduler ``name`` says of itself; one that cannot be loaded has the reason in ``problem``."""
    package = _package_of(name)
    try:
        factory = _find(name)
        subject = factory if _is_scheduler(factory) else create(name)
        return Description(
            name=name,
            summary=" ".join(str(getattr(subject, "summary", "")).split()),
            decides=_words(getattr(subject, "decides", ())),
            events=tuple(sorted(event.__name__ for event in getattr(subject, "events", JOB_EVENTS))),
            source=" ".join(str(getattr(subject, "source", "")).split()),
            package=package,
        )
    except Exception as error:  # a foreign package may fail in any way; the list goes on
        said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return Description(name=name, package=package, problem=" ".join(said.split()))


def _is_scheduler(factory: object) -> bool:
    """Whether the class itself has what is asked for: then no instance is needed, and no option."""
    return isinstance(factory, type) and all(hasattr(factory, part) for part in ("name", "summary", "decide"))


def _words(said: str | Iterable[object]) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else tuple(str(word) for word in said)


def _package_of(name: str) -> str:
    """The distribution whose entry point is the plug-in ``name``; "" for a built-in scheduler."""
    if name in _BUILT_IN:
        return ""
    found = (point.dist for point in entry_points(group=GROUP, name=name))
    return next((dist.name for dist in found if dist is not None), "")


def _find(name: str) -> Callable[..., Scheduler]:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    for point in entry_points(group=GROUP, name=name):
        return _loaded(name, point.load)
    raise ValueError(f"unknown scheduler '{name}', expected one of: {', '.join(names())}")


def _loaded(name: str, load: Callable[[], object]) -> Callable[..., Scheduler]:
    try:
        factory = load()
    except Exception as error:  # a foreign package may fail in any way; the user needs its name and reason
        raise ValueError(f"scheduler '{name}' cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(factory):
        raise ValueError(f"scheduler '{name}' is not a class or function but {type(factory).__name__}")
    return factory


def _options(factory: Callable[..., Scheduler]) -> tuple[set[str], bool]:
    """The names of the options, and whether others are taken too (``**kwargs``)."""
    parameters = inspect.signature(factory).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = {parameter.name for parameter in parameters if parameter.kind in kinds}
    return named, any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
