"""Who the processes of a run are that need no root, and the command that starts them as that.

A command that a user gave through sudo gives root up for that user's rights. What a run starts for work without
privileges (workers, the controller with its scheduler) belongs to the same user; to ``nobody`` where root itself runs
it; and to root without a single capability where neither may read the code.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

from testbed.machine.child_python import PACKAGES

_NOBODY: Final = 65534


@dataclass(frozen=True, slots=True)
class User:
    """A user other than root: user and group id, all groups, home directory."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    name: str = ""
    home: str = "/"


def sudo_user(environment: Mapping[str, str] = os.environ) -> User | None:
    """The user who called sudo; None without sudo, or if root did."""
    uid, gid = environment.get("SUDO_UID", ""), environment.get("SUDO_GID", "")
    if not (uid.isdecimal() and gid.isdecimal()) or int(uid) == 0 or os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwuid(int(uid))
    except (KeyError, OverflowError):
        return User(int(uid), int(gid))
    groups = os.getgrouplist(entry.pw_name, int(gid))
    return User(int(uid), int(gid), tuple(groups), entry.pw_name, entry.pw_dir)


def plain_user() -> User | None:
    """Whose the processes are that need no root: see above; None is root without capabilities, or who is not root."""
    return _plain_user(os.geteuid(), os.environ.get("PYTHONPATH", ""))


@cache
def _plain_user(uid: int, path: str) -> User | None:
    # Found out once, at the start: meanwhile threads of this process act as somebody else, and so would their children.
    if uid != 0:
        return None
    entries = [entry for entry in path.split(os.pathsep) if entry]
    needed: list[str | os.PathLike[str]] = [PACKAGES / "testbed" / "__init__.py", sys.executable, *entries]
    candidates = [user for user in (sudo_user(), User(_NOBODY, _NOBODY)) if user is not None]
    return next((user for user in candidates if may_read(user, needed)), None)


def may_read(user: User, paths: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether ``user`` may read every one of ``paths`` that exists; only for root, and before threads open files."""
    existing = [path for path in paths if os.path.exists(path)]
    with _acting_as(user):
        return all(os.access(path, os.R_OK, effective_ids=True) for path in existing)


@contextmanager
def _acting_as(user: User) -> Iterator[None]:
    uid, gid, groups = os.geteuid(), os.getegid(), os.getgroups()
    try:
        os.setgroups(user.groups)
        os.setegid(user.gid)
        os.seteuid(user.uid)
        yield
    finally:
        os.seteuid(uid)
        os.setegid(gid)
        os.setgroups(groups)


def unprivileged(command: Sequence[str], user: User | None, keep: Sequence[str] = ()) -> list[str]:
    """Return ``command`` as ``user`` (None: as this one), with no capability but those to ``keep``, for good.

    It can gain none back: not by a set-user-ID program either (``no_new_privs``). A user other than root keeps none.
    """
    if os.geteuid() != 0:
        return ["setpriv", "--no-new-privs", "--", *command]
    options = ["--bounding-set=" + ",".join(["-all", *(f"+{name}" for name in keep)]), "--inh-caps=-all"]
    if user is not None:
        groups = f"--groups={','.join(map(str, user.groups))}" if user.groups else "--clear-groups"
        options += [f"--reuid={user.uid}", f"--regid={user.gid}", groups]
    return ["setpriv", *options, "--no-new-privs", "--", *command]
