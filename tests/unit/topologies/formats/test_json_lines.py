"""A place in a JSON document has the line on which it begins, however the document is laid out."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from topologies.formats.json_lines import line_of

KEYS = st.sampled_from(["a", "b", 'q"', "\n"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)
)


@given(st.dictionaries(KEYS, VALUES, min_size=1), st.data())
def test_the_line_of_a_value_begins_with_it(data: dict[str, Any], draw: st.DataObject) -> None:
    text = json.dumps(data, indent=0)
    key = draw.draw(st.sampled_from(sorted(data)))
    line = text.splitlines()[line_of(text, (key,)) - 1]
    assert line.startswith(json.dumps(key) + ": ")


def test_what_is_not_there_has_the_line_of_what_is_around_it() -> None:
    assert line_of('{\n"a": [\n1]}', ("a", 5)) == 2
    assert line_of('{\n"a": 1}', ("b",)) == 1
