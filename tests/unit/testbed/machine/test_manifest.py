from __future__ import annotations

import json

import pytest

from testbed.machine import manifest


@pytest.fixture
def machine(tmp_path):
    """A root directory with little in /proc."""
    settings = tmp_path / "proc/sys/net/ipv4"
    settings.mkdir(parents=True)
    (settings / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU 9000\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal:       1024 kB\nMemFree: 1 kB\n")
    return tmp_path


def _collect(root):
    arguments = {"command": ["testbed", "run"], "seed": 3, "scenario_yaml": "name: x\n", "scale": {"bandwidth": 2.0}}
    return manifest.collect(**arguments, extra={"qdiscs": ["htb"]}, root=root)


def test_settings_and_cpu_are_read(machine):
    found = _collect(machine)
    assert found["sysctls"]["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert (found["cpu"]["model"], found["memory_bytes"]) == ("Some CPU 9000", 1024 * 1024)
    assert (found["seed"], found["qdiscs"]) == (3, ["htb"])
    assert len(manifest.SYSCTLS) >= 30
    json.dumps(found)


def test_what_a_machine_lacks_is_null(tmp_path):
    found = _collect(tmp_path)
    assert set(found["sysctls"].values()) == {None}
    assert (found["cpu"]["model"], found["memory_bytes"]) == (None, None)


def test_the_same_scenario_has_the_same_hash(machine):
    assert _collect(machine)["scenario_sha256"] == _collect(machine)["scenario_sha256"]
    other = manifest.collect(command=[], seed=3, scenario_yaml="name: y\n", scale={}, root=machine)
    assert other["scenario_sha256"] != _collect(machine)["scenario_sha256"]


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": "abc\n"},
        {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": "abc\n"},
        {"HEAD": "ref: refs/heads/main\n", "packed-refs": "# pack-refs\nfff refs/heads/other\nabc refs/heads/main\n"},
    ],
)
def test_the_commit_is_found_however_git_keeps_it(tmp_path, files):
    for name, text in files.items():
        (tmp_path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".git" / name).write_text(text)
    (tmp_path / "testbed").mkdir()
    assert manifest.git_commit(tmp_path / "testbed") == "abc"


def test_a_linked_worktree_has_its_own_commit(tmp_path):
    common, tree = tmp_path / "main/.git", tmp_path / "tree"
    (common / "refs/heads").mkdir(parents=True)
    (common / "refs/heads/side").write_text("abc\n")
    (common / "worktrees/tree").mkdir(parents=True)
    (common / "worktrees/tree/HEAD").write_text("ref: refs/heads/side\n")
    (common / "worktrees/tree/commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {common / 'worktrees/tree'}\n")
    assert manifest.git_commit(tree) == "abc"
