"""In which values scenarios differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from testbed.results.run_inputs import differing_keys as differing

__all__ = ["differing", "flattened", "short_names"]

_ASIDE: Final = ("name", "description", "seed", "schedulers", "checks")
"""Seeds and schedulers are compared in their own right, the others do not change what a run finds."""
_NAMED: Final = "name"


def flattened(document: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """(dotted key, value) of every value in a scenario; entries of a list by their names, as ``--set`` has them."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if prefix or key not in _ASIDE:
                yield from flattened(value, f"{prefix}{key}.")
    elif isinstance(document, list) and document and all(_is_named(entry) for entry in document):
        for entry in document:
            rest = {key: value for key, value in entry.items() if key != _NAMED}
            yield from flattened(rest, f"{prefix}{entry[_NAMED]}.")
    else:
        yield prefix[:-1], document


def _is_named(entry: object) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get(_NAMED), str)


def short_names(keys: Sequence[str]) -> list[str]:
    """The last words of each key that tell it from the others."""
    parts = [key.split(".") for key in keys]
    for length in range(1, max(map(len, parts), default=0)):
        short = [".".join(words[-length:]) for words in parts]
        if len(set(short)) == len(short):
            return short
    return list(keys)
