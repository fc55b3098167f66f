"""The set-up script on machines that lack something: stand-ins for the system's tools come first in PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER = {"id": "echo 1000"}
NOT_ROOT = {**USER, "sudo": "exit 1"}
ONLY_APT = '*apt-get*) exec "$@" ;; *) exit 1 ;;'
PYENV_SHIM = "echo 'pyenv: python: command not found' >&2; exit 127"
INSTALLED = {"dpkg-query": "printf installed"}
ALL_BUT_NFTABLES = 'case "$*" in *nftables*) exit 1 ;; *) printf installed ;; esac'
ALL_BUT_MININET = 'case "$*" in *mininet*) exit 1 ;; *) printf installed ;; esac'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose set-up takes the folder ``local-bin`` for /usr/local/bin; root's PATH has a ``python``."""
    for name in ("tools", "constraints"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    script = tmp_path / "tools" / "setup.sh"
    text = script.read_text("utf-8")
    assert "local_bin=/usr/local/bin\n" in text
    script.write_text(text.replace("local_bin=/usr/local/bin\n", f"local_bin={tmp_path}/local-bin\n"), "utf-8")
    for name in ("local-bin", "secure"):
        (tmp_path / name).mkdir()
    (tmp_path / "secure" / "sh").symlink_to("/bin/sh")
    (tmp_path / "secure" / "python").symlink_to("/usr/bin/python3")
    return tmp_path


def set_up(checkout: Path, **tools: str) -> subprocess.CompletedProcess[str]:
    """Run the script where ``tools`` (name -> shell commands) replace those of the system.

    Unless ``sudo`` is one of them, it carries out everything with root's PATH: ``secure`` and ``local-bin``.
    """
    stand_ins = checkout / "stand-ins"
    stand_ins.mkdir()
    for name, commands in {"python": PYENV_SHIM, "apt-get": "exit 99", "sudo": sudo(checkout), **tools}.items():
        (stand_ins / name).write_text(f"#!/bin/sh\n{commands}\n")
        (stand_ins / name).chmod(0o755)
    path = f"{stand_ins}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [checkout / "tools" / "setup.sh"],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def sudo(checkout: Path, *secure_path: str, does: str = '*) exec "$@" ;;') -> str:
    """The commands of a ``sudo -n`` with that secure path that does only what ``does`` (a case of sh) says."""
    path = os.pathsep.join(secure_path or (str(checkout / "secure"), str(checkout / "local-bin")))
    return f"""shift; case "$*" in *'"$PATH"'*) printf %s '{path}' ;; true) ;; {does} esac"""


def be_set_up(checkout: Path) -> None:
    """Leave what a set-up that came to its end leaves."""
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to("/bin/true")
    version = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=True).stdout
    digest = subprocess.run(
        "cat setup.cfg pyproject.toml constraints/*.txt tools/setup.sh | sha256sum",
        shell=True,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (checkout / ".venv" / "testbed-setup").write_text(f"{checkout}\n{version}{digest}")


def test_without_root_a_missing_package_is_named_with_what_to_do(checkout: Path) -> None:
    done = set_up(checkout, **NOT_ROOT, **{"dpkg-query": ALL_BUT_MININET})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "setup: not installed: mininet; installing needs root, run: sudo make setup\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("E: Unable to locate package mininet", "E: Unable to locate package mininet"),
        ("Err: Temporary failure resolving", "where packages come from cannot be reached (no network?)"),
    ],
)
def test_what_cannot_be_installed_is_one_line_with_the_cause(checkout: Path, said: str, reason: str) -> None:
    done = set_up(
        checkout,
        **USER,
        **{
            "sudo": sudo(checkout, does=ONLY_APT),
            "dpkg-query": ALL_BUT_MININET,
            "apt-get": f"echo '{said}'; exit 100",
        },
    )
    assert done.returncode == 1
    assert done.stdout == "setup: installing Debian packages: mininet\nsetup: updating the package lists\n"
    assert done.stderr.splitlines()[-1] == (f"setup: cannot install mininet: {reason} (all of it: .testbed-setup.log)")


def test_the_second_time_nothing_is_said_or_done(checkout: Path) -> None:
    be_set_up(checkout)
    done = set_up(checkout, **USER, **INSTALLED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (checkout / ".testbed-setup.log").exists()


def test_a_package_that_came_to_be_needed_is_noticed_on_a_machine_set_up_before(checkout: Path) -> None:
    be_set_up(checkout)
    done = set_up(checkout, **NOT_ROOT, **{"dpkg-query": ALL_BUT_NFTABLES})
    needs = "nftables python3-nftables"
    assert done.stderr == f"setup: not installed: {needs}; installing needs root, run: sudo make setup\n"


def test_a_changed_dependency_is_noticed(checkout: Path) -> None:
    be_set_up(checkout)
    with (checkout / "setup.cfg").open("a") as metadata:
        metadata.write("# one more\n")
    done = set_up(checkout, **NOT_ROOT, **{"dpkg-query": ALL_BUT_MININET})
    assert "setup: not installed: mininet" in done.stderr


def test_an_environment_that_is_a_link_is_refused_and_not_emptied(checkout: Path) -> None:
    other = checkout / "other"
    other.mkdir()
    (other / "kept").touch()
    (checkout / ".venv").symlink_to(other)
    done = set_up(checkout, **INSTALLED)
    assert done.returncode != 0
    assert f".venv is a link to {other}, which set-up would empty; remove the link" in done.stderr
    assert (other / "kept").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_sudo_makes_in_a_users_checkout_belongs_to_the_user(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "31415")
    monkeypatch.setenv("SUDO_GID", "31416")
    (checkout / ".venv").write_text("in the way of an environment")
    os.chown(checkout, 31415, 31416)
    done = set_up(checkout, **INSTALLED)
    assert done.stderr.startswith("setup: cannot make .venv: ")
    for name in (".venv", ".testbed-setup.log"):
        assert ((checkout / name).stat().st_uid, (checkout / name).stat().st_gid) == (31415, 31416)


def runs_as_root(checkout: Path) -> bool:
    """Whether ``python`` runs with nothing but root's PATH."""
    path = f"{checkout}/secure:{checkout}/local-bin"
    return subprocess.run(["/usr/bin/env", "-i", f"PATH={path}", "python", "-c", ""], check=False).returncode == 0


def test_roots_path_decides_whether_there_is_a_python_and_not_the_shim_in_the_users(checkout: Path) -> None:
    be_set_up(checkout)
    (checkout / "secure" / "python").unlink()
    done = set_up(checkout, **USER, **INSTALLED)
    made = f"{checkout}/local-bin/python"
    assert done.stdout == f"setup: root had no 'python': made {made} -> /usr/bin/python3\nsetup: done\n"
    assert os.readlink(made) == "/usr/bin/python3" and runs_as_root(checkout)


def test_a_python_of_roots_that_does_not_run_stays_and_the_other_command_is_named(checkout: Path) -> None:
    be_set_up(checkout)
    (checkout / "secure" / "python").unlink()
    shim = checkout / "local-bin" / "python"
    shim.write_text(f"#!/bin/sh\n{PYENV_SHIM}\n")
    shim.chmod(0o755)
    done = set_up(checkout, **USER, **INSTALLED)
    use = "use 'sudo .venv/bin/python -m testbed' in place of 'sudo python -m testbed'"
    assert (done.returncode, done.stdout) == (0, f"setup: root's 'python', {shim}, does not run: {use}\nsetup: done\n")
    assert PYENV_SHIM in shim.read_text()


def test_where_root_does_not_look_into_usr_local_bin_the_systems_package_provides_python(checkout: Path) -> None:
    be_set_up(checkout)
    python = checkout / "secure" / "python"
    python.unlink()
    install = f'case "$*" in *python-is-python3*) /bin/ln -s /usr/bin/python3 {python} ;; esac'
    secure = sudo(checkout, str(checkout / "secure"))
    done = set_up(checkout, **USER, **INSTALLED, **{"sudo": secure, "apt-get": install})
    assert done.stdout.startswith(f"setup: root had no 'python': made {python} -> ")
    assert not (checkout / "local-bin" / "python").exists() and runs_as_root(checkout)


def test_who_may_not_make_a_python_is_told_the_command_that_works_without(checkout: Path) -> None:
    be_set_up(checkout)
    (checkout / "secure" / "python").unlink()
    done = set_up(checkout, **USER, **INSTALLED, **{"sudo": sudo(checkout, does="*) exit 1 ;;")})
    use = "use 'sudo .venv/bin/python -m testbed' in place of 'sudo python -m testbed'"
    assert (done.returncode, done.stdout) == (0, f"setup: root has no 'python': {use}\nsetup: done\n")
