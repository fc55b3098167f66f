"""One HTML file out of JavaScript modules, vendored libraries, a style sheet and a JSON value; it loads nothing.

Modules are plain ES modules that import from each other by relative path. They are put one after the other in the
order of their imports, without the lines that import and the word ``export``, so no two may use the same name at the
top. A content security policy allows only the scripts in the file, by their hashes, and no request at all; a page that
a server keeps up to date may ask that server.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Final

_IMPORT: Final = re.compile(r"^import\s+\{[^}]*\}\s+from\s+['\"]\./([\w-]+\.js)['\"];\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(async )?function |const |class )", re.MULTILINE)
LIBRARIES: Final = ("uPlot.iife.min.js", "cytoscape.min.js")


def page(
    title: str,
    headline: str,
    document: object,
    main: str,
    *,
    libraries: Iterable[str] = LIBRARIES,
    asks_server: bool = False,
) -> str:
    """The page: ``main`` is the module (``js/<main>``) that draws ``document`` into the element ``main``.

    ``title`` and ``headline`` are plain text. ``libraries`` are files of ``testbed/report/vendor``.
    ``asks_server``: the page may send requests to where it came from.
    """
    scripts = [vendored(name) for name in libraries] + [bundle(main)]
    style = vendored("uPlot.min.css") + "\n" + _text(_here() / "page.css")
    return Template(_text(_here() / "page.html")).substitute(
        title=escape(title),
        headline=escape(headline),
        policy=escape(_policy(scripts, asks_server)),
        style=style,
        data=json_for_script(document),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def json_for_script(document: object) -> str:
    """JSON that can stand inside a ``<script>`` element: no character in it ends the element or begins a comment."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def vendored(name: str) -> str:
    """The text of a vendored library."""
    return _text(files("testbed.report") / "vendor" / name)


@cache
def bundle(main: str) -> str:
    """The module ``js/<main>`` and all that it imports as one script that runs at once."""
    parts = [_IMPORT.sub("", _EXPORT.sub("", _module(name))) for name in modules_of(main)]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"


def modules_of(main: str) -> tuple[str, ...]:
    """``main`` and the modules it imports, each after those that it imports itself."""
    imports: dict[str, list[str]] = {}
    waiting = [main]
    while waiting:
        name = waiting.pop()
        if name not in imports:
            imports[name] = _IMPORT.findall(_module(name))
            waiting += imports[name]
    return tuple(TopologicalSorter(imports).static_order())


def _policy(scripts: Iterable[str], asks_server: bool) -> str:
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    connect = " connect-src 'self';" if asks_server else ""
    # Styles that scripts set on elements, as plots do, need no permission; styles in attributes of <svg> do.
    styles = "style-src 'unsafe-inline'; img-src data: blob:"
    return f"default-src 'none'; script-src {hashes}; {styles};{connect} base-uri 'none'"


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _module(name: str) -> str:
    return _text(_here() / "js" / name)


def _here() -> Traversable:
    return files("testbed.report.page")


def _text(path: Traversable) -> str:
    return path.read_text("utf-8")
