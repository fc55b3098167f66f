"""The API reference is complete: every public name of plug-ins is on a page, and every part of it has a docstring."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from testbed import plugins

PAGES = Path(__file__).parents[3] / "docs" / "reference" / "api"
SHOWN = re.findall(r"^::: ([\w.]+)$", "\n".join(p.read_text("utf-8") for p in sorted(PAGES.glob("*.md"))), re.MULTILINE)
CLASSES = [name for name in plugins.__all__ if inspect.isclass(getattr(plugins, name))]


def test_every_name_of_plug_ins_is_on_a_page_once() -> None:
    assert sorted(name for name in SHOWN if name.startswith("testbed.plugins.")) == sorted(
        f"testbed.plugins.{name}" for name in plugins.__all__
    )


@pytest.mark.parametrize("name", SHOWN)
def test_every_name_on_a_page_is_there(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(import_module(module), attribute)


def without_docstring(name: str) -> Iterator[str]:
    """Public fields, properties and methods of a class that have none."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(getattr(plugins, name)))).body
    assert isinstance(tree, ast.ClassDef)
    if ast.get_docstring(tree) is None:
        yield name
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            if not (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)):
                yield f"{name}.{node.target.id}"
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and ast.get_docstring(node) is None:
            yield f"{name}.{node.name}()"


@pytest.mark.parametrize("name", CLASSES)
def test_every_part_of_a_class_says_what_it_is(name: str) -> None:
    assert list(without_docstring(name)) == []


def test_functions_say_what_they_return() -> None:
    functions = [name for name in plugins.__all__ if inspect.isfunction(getattr(plugins, name))]
    assert functions and [name for name in functions if not inspect.getdoc(getattr(plugins, name))] == []


@pytest.mark.parametrize("name", SHOWN)
def test_docstrings_are_plain_markdown(name: str) -> None:
    """Roles such as ``:class:`` mean nothing to the site."""
    module, _, attribute = name.rpartition(".")
    shown = getattr(import_module(module), attribute)
    text = inspect.getsource(shown) if inspect.isclass(shown) or inspect.isfunction(shown) else ""
    assert re.findall(r":[a-z]+:`", text) == []
