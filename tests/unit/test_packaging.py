"""The metadata of the distribution, and the versions that are installed for CI."""

from __future__ import annotations

import hashlib
import re
import sys
from configparser import ConfigParser
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from testbed.machine.distribution import DISTRIBUTION, EXTRAS

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "constraints" / "ci.txt"
LOCKED_ON = re.search(r"^# Python (\d+)\.(\d+)", LOCK.read_text("utf-8"), re.MULTILINE)
ENVIRONMENT = {"python_version": ".".join(LOCKED_ON.groups()) if LOCKED_ON else "", "extra": ""}


def metadata() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg", "utf-8")
    return parser


def requirements(text: str) -> list[Requirement]:
    found = [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    return [each for each in found if each.marker is None or each.marker.evaluate(ENVIRONMENT)]


def extras_that_set_up_installs() -> list[str]:
    line = re.search(r"^extras=(.*)$", (ROOT / "tools" / "setup.sh").read_text("utf-8"), re.MULTILINE)
    assert line
    return line.group(1).split(",")


def required() -> list[Requirement]:
    parser = metadata()
    texts = [parser["options"]["install_requires"]]
    texts += [parser["options.extras_require"][extra] for extra in extras_that_set_up_installs()]
    return [each for text in texts for each in requirements(text)]


def locked() -> dict[str, Version]:
    lines = (line.partition("==") for line in LOCK.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {canonicalize_name(name): Version(number) for name, _, number in lines}


def set_up_here() -> bool:
    """Whether tools/setup.sh has made the environment from the files as they are now, on the Python of the lock."""
    stamp = Path(sys.prefix) / "testbed-setup"
    files = ["setup.cfg", "pyproject.toml", *sorted(f"constraints/{path.name}" for path in LOCK.parent.glob("*.txt"))]
    text = b"".join((ROOT / name).read_bytes() for name in [*files, "tools/setup.sh"])
    same_python = ENVIRONMENT["python_version"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    return same_python and stamp.exists() and hashlib.sha256(text).hexdigest() in stamp.read_text("utf-8")


def test_everything_that_set_up_installs_has_its_version_in_the_lock() -> None:
    versions = locked()
    found = {str(each): versions.get(canonicalize_name(each.name)) for each in required()}
    assert found
    missing = [text for text, number in found.items() if number is None]
    assert not missing, f"renew constraints/ci.txt: make lock (missing: {missing})"
    assert [text for text, number in found.items() if number not in Requirement(text).specifier] == []


@pytest.mark.skipif(not set_up_here(), reason="set-up has not installed this checkout with this lock")
def test_what_the_tests_run_with_is_what_the_lock_says() -> None:
    here = {each.name: version(each.name) for each in required()}
    assert here == {name: str(locked()[canonicalize_name(name)]) for name in here}


def test_the_lock_names_versions_and_no_places() -> None:
    lines = [line for line in LOCK.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line)] == []
    assert LOCKED_ON


def test_the_messages_name_the_distribution_and_extras_that_there_are() -> None:
    parser = metadata()
    assert parser["metadata"]["name"] == DISTRIBUTION
    for name, extra in EXTRAS.items():
        named = {each.name for each in requirements(parser["options.extras_require"][name])}
        assert set(extra.modules) <= named


def test_documents_install_the_distribution_by_its_own_name() -> None:
    """On the package index ``testbed`` is another project."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    wrong = [page.name for page in pages if re.search(r"pip install '?testbed\b", page.read_text("utf-8"))]
    assert wrong == []


def test_the_citation_and_the_distribution_have_one_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {metadata()['metadata']['version']}\n" in citation
