"""Every combination of a sweep against its scenario, before anything runs, and the points that follow."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.service.json_codec import encode
from testbed.errors import BadInputError, CannotRunError, TestbedError
from testbed.input_digests import digests_of
from testbed.scenario import build_fabric, build_jobs, build_managed, load
from testbed.sweep.values import Settings, Sweep, SweepPoint
from topologies.limits import LINE, one_line

_CERTAIN: Final = LINE * 2 // 3
"""Characters at the beginning of a message that are never left out."""
_SHOWN: Final = 120
"""Characters of a setting that is named beside others."""
_SEED: Final = 1
"""Any would do: what a combination is does not depend on the seeds it will run with."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A combination that is right: the ``seed`` of the scenario, and a digest of all else that decides a run."""

    seed: int
    digest: str


Resolve = Callable[[str, Sequence[str], int | None], Resolved]
"""(scenario, overrides, seed or the scenario's own) -> what it comes to; raises a ``TestbedError`` if it is wrong."""


def resolve(scenario: str, overrides: Sequence[str], seed: int | None) -> Resolved:
    """Load, build and place the scenario; the digest is of what it says and reads, and of its jobs."""
    changed = [*overrides, *([] if seed is None else [f"seed={seed}"])]
    loaded = load(scenario, changed)
    fabric = build_fabric(loaded)
    jobs, managed = build_jobs(loaded, fabric), build_managed(loaded, fabric)
    # What forwards changes no result: a point from before there was a choice still counts.
    unsaid = {"datapath"} if loaded.datapath is None else set[str]()
    says = loaded.model_dump(mode="json", exclude={"description", "seed", *unsaid})
    # The jobs show what their files say, but not what the file of a fabric or the source of a plug-in does.
    read = digests_of(loaded, managed)
    text = json.dumps([says, encode(jobs if managed is None else managed), *([read] if read else [])], sort_keys=True)
    return Resolved(loaded.seed, hashlib.sha256(text.encode()).hexdigest())


def resolve_and_scale(scenario: str, overrides: Sequence[str], seed: int | None) -> Resolved:
    """The same, and ``CannotRunError`` where this machine cannot emulate it at any scale."""
    from testbed.api import prepare
    from testbed.needs import require_machine

    found = resolve(scenario, overrides, seed)
    prepared = prepare(scenario, overrides=overrides, seed=seed)
    require_machine(prepared.datapaths.values(), prepared.experiments)
    return found


def points_of(
    sweep: Sweep, *, version: str = "", resolve: Resolve = resolve, tick: Callable[[int], None] = lambda done: None
) -> tuple[SweepPoint, ...]:
    """Every combination with every seed, seeds of a combination one after the other.

    ``version`` is of the program and part of every fingerprint; ``tick`` hears how many combinations are done.
    Raises ``BadInputError`` with a line for everything that is wrong, at the sweep's line it comes from and with
    the combinations that meet it; ``CannotRunError`` likewise where nothing is wrong but too much for the machine.
    """
    seed = _SEED if sweep.seeds else None
    found: dict[Settings, Resolved] = {}
    faults: dict[Settings, TestbedError] = {}
    for number, settings in enumerate(sweep.combinations(), 1):
        try:
            found[settings] = resolve(sweep.scenario, sweep.overrides(settings), seed)
        except (BadInputError, CannotRunError) as error:
            faults[settings] = error
        tick(number)
    _refuse(sweep, faults, lambda: _lines_without(sweep, resolve, seed))
    return tuple(
        _point(sweep, settings, seed, resolved.digest, version)
        for settings, resolved in found.items()
        for seed in sweep.seeds or (resolved.seed,)
    )


def _point(sweep: Sweep, settings: Settings, seed: int, digest: str, version: str) -> SweepPoint:
    decides = json.dumps([version, sweep.engine, digest, seed])
    fingerprint = hashlib.sha256(decides.encode()).hexdigest()
    return SweepPoint(sweep.scenario, sweep.engine, sweep.overrides(settings), settings, seed, fingerprint)


def _lines_without(sweep: Sweep, resolve: Resolve, seed: int | None) -> list[str]:
    """What is wrong with the scenario as it stands, whatever the parameters are."""
    try:
        resolve(sweep.scenario, sweep.overrides(()), seed)
    except (BadInputError, CannotRunError) as error:
        return str(error).splitlines()
    return []


def _refuse(sweep: Sweep, faults: Mapping[Settings, TestbedError], lines_without: Callable[[], list[str]]) -> None:
    wrong = {settings: error for settings, error in faults.items() if isinstance(error, BadInputError)}
    counted = wrong or faults
    if not counted:
        return
    met: dict[str, list[Settings]] = {}
    for settings, error in counted.items():
        for line in str(error).splitlines():
            met.setdefault(line, []).append(settings)
    always = lines_without()
    told = dict.fromkeys(_line(sweep, line, where, line in always) for line, where in met.items())
    text = "\n".join(line for _, line in sorted(told, key=lambda item: item[0]))
    raise BadInputError(text) if wrong else CannotRunError(text)


def _line(sweep: Sweep, line: str, met: Sequence[Settings], always: bool) -> tuple[int, str]:
    """``line``, which the combinations ``met`` are told, at the place in the sweep file that it comes from.

    That line's number comes first, 0 for what is the scenario's own.
    """
    starts = (text for text in sweep.lines if line.startswith(_head(text)[:_CERTAIN]))
    override = max(starts, key=len, default="")
    blamed = [text for text in _blamed(sweep, met) if text != override]
    with_ = f"with {', '.join(one_line(text, _SHOWN) for text in blamed)}: " if blamed else ""
    if override:
        number, head = sweep.lines[override], _head(override)
        said = line.removeprefix(head) if line.startswith(head) else line.rpartition(" [..] ")[2]
        key = override.partition("=")[0]
        whole = len(met) == math.prod(len(axis.values) for axis in sweep.axes if axis.key != key)
        return number, one_line(f"{sweep.path}:{number}: {'' if whole else with_}{said}")
    if always or not blamed:
        missing = line.startswith(f"{sweep.scenario}: ")  # no line of its own: the file itself is what is wrong
        whole_line = one_line(f"{sweep.path}:{sweep.scenario_line}: {line}")
        return (sweep.scenario_line, whole_line) if missing else (0, line)
    number = sweep.lines.get(blamed[0], sweep.set_line) if len(blamed) == 1 else sweep.set_line
    return number, one_line(f"{sweep.path}:{number}: {with_}{line}")


def _head(override: str) -> str:
    """How a message about ``override`` begins, if nothing of it is left out."""
    return one_line(f"--set {override}: ", len(override) * 10 + 10)


def _blamed(sweep: Sweep, met: Sequence[Settings]) -> list[str]:
    """The settings that all of ``met`` share, if no others have them; else the first combination and how many more.

    A parameter of one value is only named where there is no other to blame.
    """
    shared = [pair for pair in met[0] if all(pair in settings for settings in met)]
    alike = math.prod(len(axis.values) for axis in sweep.axes if axis.key not in dict(shared))
    if alike > len(met):
        *others, last = _texts(met[0])
        return [*others, f"{last} and {len(met) - 1} more"]
    varied = {axis.key for axis in sweep.axes if len(axis.values) > 1}
    return _texts([pair for pair in shared if pair[0] in varied]) or _texts(shared)


def _texts(settings: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{key}={value}" for key, value in settings]
