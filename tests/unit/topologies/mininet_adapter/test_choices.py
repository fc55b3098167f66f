"""What is chosen on machines that have more, or less, than this one: commands are answered, not run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from topologies.mininet_adapter import choices
from topologies.mininet_adapter.system import CommandError


@pytest.mark.parametrize(("has_prio", "discipline"), [(True, "prio"), (False, "htb")])
def test_strict_bands_are_the_kernels_where_it_has_them(
    has_prio: bool, discipline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Sequence[str]] = []

    def answer(command: Sequence[str]) -> str:
        ran.append(command)
        if not has_prio:
            raise CommandError("Error: Specified qdisc kind is unknown.")
        return ""

    monkeypatch.setattr(choices, "run_command", answer)
    assert choices.best_discipline() == discipline
    assert [command[2] for command in ran] == (["add", "del"] if has_prio else ["add"])
    assert "prio" in ran[0]
