"""YAML with the line of everything in it, and ``--set`` overrides that are remembered as such."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from testbed.scenario.bounded_yaml import MERGE, BoundedLoader, Count, TooManyError
from topologies.limits import WHOLE_NUMBER, YAML_NODES, one_line

Location = tuple[str | int, ...]
"""Keys and list positions from the top of a document to a value."""

_TEXT: Final = "tag:yaml.org,2002:str"
_LONGEST_NUMBER: Final = 100
"""Characters of a value that is no text; those of a time to the nanosecond are 35."""

Origin = int | str
"""Where a value comes from: a line number of the file, or the text of a ``--set`` option."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at ``location``, to be reported as ``file:line: message``."""

    location: Location
    message: str


class DocumentError(ValueError):
    """The text is no usable YAML document; ``lines`` are ready to be shown."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


@dataclass
class Document:
    """A parsed file: plain ``data``, and the origin of each location in it."""

    path: str
    data: object
    origins: dict[Location, Origin] = field(default_factory=dict)

    def origin(self, location: Location) -> Origin:
        """Return the origin of ``location``, or that of the nearest thing around it."""
        for length in range(len(location), -1, -1):
            if location[:length] in self.origins:
                return self.origins[location[:length]]
        return 1

    def line(self, problem: Problem) -> str:
        """Return ``file:line: message``, or ``--set key=value: message`` for what an override brought in."""
        origin = self.origin(problem.location)
        where = f"{self.path}:{origin}" if isinstance(origin, int) else f"--set {origin}"
        return one_line(f"{where}: {problem.message}")

    def lines(self, problems: Iterable[Problem]) -> list[str]:
        """Return the lines of all problems, each once: those of the file by line number, then the overrides'."""
        return list(dict.fromkeys(self.line(problem) for problem in sorted(problems, key=self._rank)))

    def _rank(self, problem: Problem) -> tuple[bool, int]:
        origin = self.origin(problem.location)
        return (False, origin) if isinstance(origin, int) else (True, 0)

    def at(self, location: Location) -> object:
        """Return what is at ``location``, which must exist."""
        found: Any = self.data
        for step in location:
            found = found[step]
        return found

    def rename_key(self, location: Location, new: str) -> None:
        """Give the key at ``location`` another name; it keeps its position and its lines."""
        holder, length = self.at(location[:-1]), len(location)
        assert isinstance(holder, dict)
        inside = list(_places(holder[location[-1]], location))
        items = [(new if key == location[-1] else key, value) for key, value in holder.items()]
        holder.clear()
        holder.update(items)
        for known in inside:
            if known in self.origins:
                self.origins[(*location[:-1], new, *known[length:])] = self.origins.pop(known)

    def override(self, text: str, rename: Callable[[Sequence[str]], Sequence[str]] = tuple) -> None:
        """Apply ``KEY=VALUE`` with a dotted key and a YAML value; :class:`DocumentError` if there is no such place.

        List items are named by position (``jobs.0.gpus``), or by their ``label`` or ``name`` (``jobs.gpt.gpus``).
        ``rename`` turns the parts of the key into those that the document has.
        """
        key, equals, value = text.partition("=")
        parts = rename(key.split("."))
        if not equals or not all(parts):
            raise DocumentError([one_line(f"--set {text}: no key or no value, expected KEY=VALUE such as seed=2")])
        try:
            parsed = parse_yaml(value, "value").data
        except DocumentError as error:
            reasons = (line.split(": ", 1)[1] for line in error.lines)
            raise DocumentError([one_line(f"--set {text}: {reason}") for reason in reasons]) from None
        location, holder = self._descend(text, parts)
        if isinstance(holder, list):
            holder[int(location[-1])] = parsed
        else:
            holder[str(location[-1])] = parsed
        for inner in [known for known in self.origins if known[: len(location)] == location]:
            del self.origins[inner]
        self.origins[location] = text

    def _descend(self, text: str, parts: Sequence[str]) -> tuple[Location, dict[str, object] | list[object]]:
        """Return the location that ``parts`` name and the container that holds it; missing mappings are made."""
        holder: Any = self.data
        location: Location = ()
        for number, part in enumerate(parts):
            if isinstance(holder, list):
                index = _index(holder, part)
                if index is None:
                    raise DocumentError([one_line(f"--set {text}: {_no_item(parts[:number], part, holder)}")])
                step: str | int = index
            elif isinstance(holder, dict):
                step = part
            else:
                holds = f"'{'.'.join(parts[:number])}' is a single value"
                raise DocumentError([one_line(f"--set {text}: {holds}, expected no keys below it")])
            location = (*location, step)
            if number == len(parts) - 1:
                return location, holder
            if isinstance(holder, dict) and holder.get(part) is None:
                holder[part] = {}
                self.origins[location] = text
            holder = holder[step]
        raise AssertionError("a key has at least one part")


def _places(value: object, location: Location) -> Iterator[Location]:
    """``location`` of ``value`` and those of everything in it."""
    yield location
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*location, key))


def _index(items: list[object], part: str) -> int | None:
    if part.isdecimal():
        return int(part) if len(part) <= len(str(YAML_NODES)) and int(part) < len(items) else None
    names = [item.get("label") or item.get("name") if isinstance(item, dict) else item for item in items]
    return names.index(part) if part in names else None


def _no_item(before: Sequence[str], part: str, items: list[object]) -> str:
    return f"no item '{part}' in '{'.'.join(before)}', expected 0 to {len(items) - 1} or an item's name"


def parse_yaml(text: str, path: str) -> Document:
    """Parse one YAML document; raises :class:`DocumentError` with a line for everything that is wrong with it."""
    document = Document(path, None)
    loader = BoundedLoader(_printable(text, path))
    try:
        node = loader.get_single_node()
        if node is not None:
            reader = _Reader(loader, document)
            document.data = reader.read(node, (), ())
            if reader.problems:
                raise DocumentError(document.lines(reader.problems))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "cannot be read"
        if error.context and what.startswith("but "):
            what = f"{error.context}, {what}"
        raise _error(path, mark.line + 1 if mark else 1, f"not valid YAML: {what}") from None
    except TooManyError as error:
        what = f"more than {YAML_NODES} values, aliases counted each time, expected at most {YAML_NODES}"
        raise _error(path, error.line, what) from None
    except RecursionError:
        raise _error(path, 1, "nested too deep, expected a few levels") from None
    finally:
        loader.dispose()
    return document


def _printable(text: str, path: str) -> str:
    try:
        yaml.reader.Reader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _error(path, line, "not valid YAML: unprintable character, expected text") from None
    return text


def _error(path: str, line: int, what: str) -> DocumentError:
    return DocumentError([one_line(f"{path}:{line}: {what}")])


class _Reader:
    """Turns nodes into plain values, and writes down their lines and what is wrong with them."""

    def __init__(self, loader: BoundedLoader, document: Document) -> None:
        self.loader = loader
        self.count = Count()
        self.origins = document.origins
        self.problems: list[Problem] = []

    def read(self, node: yaml.Node, location: Location, around: tuple[yaml.Node, ...]) -> object:
        self.count.take(1, node.start_mark.line + 1)
        self.origins.setdefault(location, node.start_mark.line + 1)
        if any(outer is node for outer in around):
            return self._problem(location, "an alias inside its own anchor, expected no loops")
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, location, (*around, node))
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.read(item, (*location, index), (*around, node)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, location)
        return self._problem(location, f"unknown tag '{node.tag}', expected plain YAML")

    def _problem(self, location: Location, message: str) -> object:
        self.problems.append(Problem(location, message))
        return None

    def _scalar(self, node: yaml.ScalarNode, location: Location) -> object:
        kind = node.tag.rpartition(":")[2]
        if node.tag != _TEXT and len(node.value) > _LONGEST_NUMBER:
            most = f"expected at most {_LONGEST_NUMBER}, or quotes around text"
            return self._problem(location, f"a value of {len(node.value)} characters that is no text, {most}")
        try:
            value: object = self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError):
            # PyYAML fails in all these ways where a tag is given that the text does not fit.
            return self._problem(location, f"'{node.value}' is no {kind}, expected one, or quotes around text")
        if isinstance(value, bytes):
            return self._problem(location, f"unknown tag '{node.tag}', expected plain YAML")
        if isinstance(value, int) and abs(value) > WHOLE_NUMBER:
            side = f"at most {WHOLE_NUMBER}" if value > 0 else f"at least {-WHOLE_NUMBER}"
            return self._problem(location, f"'{node.value}' is too large for a whole number, expected {side}")
        return value

    def _mapping(self, node: yaml.MappingNode, location: Location, around: tuple[yaml.Node, ...]) -> dict[str, object]:
        self._refuse_duplicates(node, location)
        self.loader.flatten_mapping(node)
        out: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(location, "a key is a list or a mapping, expected a word")
                continue
            key = str(key_node.value)
            self.origins[(*location, key)] = key_node.start_mark.line + 1
            out[key] = self.read(value_node, (*location, key), around)
        return out

    def _refuse_duplicates(self, node: yaml.MappingNode, location: Location) -> None:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == MERGE:
                continue
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in seen:
                # A location of its own, so that the problem is reported where the second key stands.
                place = (*location, key, f"again at {line}")
                self.origins[place] = line
                self._problem(place, f"key '{key}' is given twice, expected it only once (it is on line {seen[key]})")
            seen.setdefault(key, line)
