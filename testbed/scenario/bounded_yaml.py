"""YAML as nodes, but never too many: a few lines of aliases and merge keys can stand for any number of values."""

from __future__ import annotations

from typing import Final

import yaml

from topologies.limits import YAML_NODES

MERGE: Final = "tag:yaml.org,2002:merge"
"""Tag of the key ``<<``."""


class TooManyError(Exception):
    """The document holds more than it may, as of ``line``."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class Count:
    """Counts values up to the limit."""

    def __init__(self) -> None:
        self._left = YAML_NODES

    def take(self, values: int, line: int) -> None:
        """Count ``values`` more; :class:`TooManyError` names the ``line`` of the one that is too many."""
        self._left -= values
        if self._left < 0:
            raise TooManyError(line)


class BoundedLoader(yaml.SafeLoader):
    """The safe loader with bounds on nodes, and on what merge keys make of them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes, self._merged = Count(), Count()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As the base class does; :class:`TooManyError` for the node that is too many."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._nodes.take(1, event.start_mark.line + 1)
        return super().compose_node(parent, index)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the pairs of merged mappings before those of ``node``, as the base class does, but never too many."""
        given = node.value
        node.value = [(key, value) for key, value in given if key.tag != MERGE]
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        for source in [source for key, value in given if key.tag == MERGE for source in _sources(value)]:
            self.flatten_mapping(source)
            self._merged.take(len(source.value), source.start_mark.line + 1)
            merged.extend(source.value)
        node.value = merged + node.value


def _sources(value: yaml.Node) -> list[yaml.MappingNode]:
    """The mappings that a merge key names, the one that wins last."""
    found = value.value if isinstance(value, yaml.SequenceNode) else [value]
    if not all(isinstance(source, yaml.MappingNode) for source in found):
        problem = "'<<' merges something else than mappings"
        raise yaml.constructor.ConstructorError(None, None, problem, value.start_mark)
    return list(reversed(found))
