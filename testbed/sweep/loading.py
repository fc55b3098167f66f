"""Read a sweep file: everything that is wrong with it at once, each with its line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import yaml

from testbed.engines.registry import ENGINES
from testbed.errors import BadInputError
from testbed.scenario.document import Document, DocumentError, Location, Problem, parse_yaml
from testbed.scenario.old_keys import rename_dotted, rename_old_keys
from testbed.sweep.values import Axis, Sweep
from topologies.input.spelling import expectation
from topologies.limits import YAML_BYTES, LimitError, line_of_damage, one_line, read_text

KEYS: Final = ("scenario", "engine", "schedulers", "seeds", "set")
MOST_POINTS: Final = 100_000
"""More is a slip of the pen; a point costs seconds at least."""


def load(path: str) -> Sweep:
    """The sweep in the file ``path``; :class:`BadInputError` has a line for everything that is wrong.

    What its values mean for the scenario is not looked at here: see :mod:`testbed.sweep.checking`.
    """
    try:
        document = parse_yaml(_text(path), path)
        problems = [*_rename_old_keys(document), *_problems(document.data)]
        if problems:
            raise DocumentError(document.lines(problems))
    except DocumentError as error:
        raise BadInputError(str(error)) from None
    return _sweep(document, cast("dict[str, object]", document.data))


def _rename_old_keys(document: Document) -> list[Problem]:
    """Give keys of the scenario under ``set``, and those in their values, the names of today; a scalar is a list."""
    settings = document.data.get("set") if isinstance(document.data, dict) else None
    if not isinstance(settings, dict):
        return []
    problems = [problem for key in list(settings) for problem in rename_dotted(document, ("set", key))]
    settings.update({key: [value] for key, value in settings.items() if isinstance(value, str | int | float)})
    for key, values in settings.items():
        for index in range(len(values) if isinstance(values, list) else 0):
            problems += rename_old_keys(document, ("set", key, index), key.split("."))
    return problems


def yaml_of(value: object) -> str:
    """``value`` as YAML of one line, which reads back as the same."""
    text = _dumped(value, None)
    return text if "\n" not in text else _dumped(value, '"')


def _dumped(value: object, style: str | None) -> str:
    text: str = yaml.safe_dump(
        value, default_flow_style=True, default_style=style, width=math.inf, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _text(path: str) -> str:
    try:
        return read_text(Path(path), YAML_BYTES)
    except FileNotFoundError:
        raise BadInputError(f"{path}: no such file, expected a sweep file") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}:{line_of_damage(error)}: not UTF-8 text, expected a YAML file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        expected = f"a sweep file of at most {YAML_BYTES} bytes" if isinstance(error, LimitError) else "a sweep file"
        raise BadInputError(one_line(f"{path}: cannot be read ({reason}), expected {expected}")) from None


def _problems(data: object) -> Iterator[Problem]:
    if not isinstance(data, dict):
        what = "empty" if data is None else "no mapping of keys to values"
        yield Problem((), f"the sweep is {what}, expected the keys {', '.join(KEYS)}")
        return
    for key in data:
        if key not in KEYS:
            yield Problem((key,), f"unknown key '{key}', {expectation(key, KEYS)}")
    yield from _scenario(data)
    if "engine" in data and data["engine"] not in ENGINES:
        yield Problem(("engine",), f"engine is {_show(data['engine'])}, {expectation(str(data['engine']), ENGINES)}")
    if "schedulers" in data:
        yield from _list(data["schedulers"], ("schedulers",), "a list of schedulers such as [ecmp, crux]")
    if "seeds" in data:
        yield from _seeds(data["seeds"])
    if "set" in data:
        yield from _set(data["set"], "schedulers" in data)
    yield from _too_many(data)


def _scenario(data: Mapping[str, object]) -> Iterator[Problem]:
    expected = "expected a scenario file or the name of a bundled scenario"
    if "scenario" not in data:
        yield Problem((), f"missing key 'scenario', {expected}")
    elif not isinstance(data["scenario"], str) or not data["scenario"]:
        yield Problem(("scenario",), f"scenario is {_show(data['scenario'])}, {expected}")


def _list(value: object, location: Location, expected: str) -> Iterator[Problem]:
    """A list that holds something, and nothing twice."""
    name = str(location[-1])
    if not isinstance(value, list) or not value:
        yield Problem(location, f"{name} is {_show(value)}, expected {expected}")
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        text = yaml_of(item)
        if text in seen:
            yield Problem((*location, index), f"{text} is in {name} twice, expected each value once")
        seen.add(text)


def _seeds(value: object) -> Iterator[Problem]:
    expected = "a list of seeds such as [1, 2, 3], or how many, from 1 on"
    if _whole(value, 1):
        return
    yield from _list(value, ("seeds",), expected)
    for index, seed in enumerate(value if isinstance(value, list) else ()):
        if not _whole(seed, 0):
            yield Problem(("seeds", index), f"seed {_show(seed)}, expected a whole number, at least 0")


def _set(value: object, schedulers: bool) -> Iterator[Problem]:
    if not isinstance(value, dict) or not value:
        what = _show(value)
        yield Problem(("set",), f"set is {what}, expected keys of the scenario, each with a list of values")
        return
    for key, values in value.items():
        location: Location = ("set", key)
        if key.partition(".")[0] == "seed":
            yield Problem(location, "the seed is set as a parameter, expected the key seeds")
        elif key == "schedulers" and schedulers:
            yield Problem(location, "schedulers are given twice, expected them under set or above it")
        elif "=" in key or not all(key.split(".")):
            yield Problem(location, f"'{key}' is no key, expected one of the scenario such as jobs.0.overlap")
        else:
            yield from _list(values, location, "a list of values such as [1, 2]")


def _too_many(data: Mapping[str, object]) -> Iterator[Problem]:
    settings = data.get("set")
    columns = list(settings.values()) if isinstance(settings, dict) else []
    seeds = data.get("seeds")
    count = seeds if isinstance(seeds, int) else len(seeds) if isinstance(seeds, list) else 1
    for values in columns:
        count *= len(values) if isinstance(values, list) else 1
    if count > MOST_POINTS:
        place: Location = ("set",) if columns else ("seeds",)
        yield Problem(place, f"the sweep has {count} points, expected at most {MOST_POINTS}")


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _show(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, list | dict):
        return f"{'a' if value else 'an empty'} {'list' if isinstance(value, list) else 'mapping'}"
    return f"'{value}'" if isinstance(value, str) else yaml_of(value)


def _sweep(document: Document, data: Mapping[str, object]) -> Sweep:
    schedulers = yaml_of(data["schedulers"]) if "schedulers" in data else ""
    columns = cast("dict[str, list[object]]", data.get("set", {}))
    lines = {
        f"{key}={yaml_of(value)}": _line(document, ("set", key, index))
        for key, values in columns.items()
        for index, value in enumerate(values)
    }
    if schedulers:
        lines[f"schedulers={schedulers}"] = _line(document, ("schedulers",))
    return Sweep(
        path=document.path,
        scenario=_beside(document.path, str(data["scenario"])),
        engine=str(data.get("engine", "emulation")),
        schedulers=schedulers,
        seeds=_seeds_of(data.get("seeds")),
        axes=tuple(Axis(key, tuple(map(yaml_of, values))) for key, values in columns.items()),
        lines=lines,
        scenario_line=_line(document, ("scenario",)),
        set_line=_line(document, ("set",)),
    )


def _line(document: Document, location: Location) -> int:
    return int(document.origin(location))


def _beside(path: str, scenario: str) -> str:
    """The scenario beside the sweep file if there is one of this name, else as ``testbed run`` would find it."""
    near = Path(path).parent / scenario
    return str(near) if near.is_file() else scenario


def _seeds_of(value: object) -> tuple[int, ...]:
    if isinstance(value, int):
        return tuple(range(1, value + 1))
    return tuple(cast("list[int]", value or ()))
