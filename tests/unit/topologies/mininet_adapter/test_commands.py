"""A command that fails is named shortly; all of it is kept beside."""

from __future__ import annotations

import sys

import pytest

from topologies.mininet_adapter import system
from topologies.mininet_adapter.system import CommandError, run_batch, run_command, shortened

LONG = [f"argument{n}" for n in range(10_000)]


def failed(script: str, *arguments: str) -> CommandError:
    with pytest.raises(CommandError) as found:
        run_command([sys.executable, "-c", script, *arguments])
    return found.value


def test_the_line_has_first_and_last_arguments_the_status_and_the_tools_words() -> None:
    error = failed("import sys; sys.exit('the switch is on fire')", *LONG)
    assert str(error).endswith("argument9998 argument9999 ended with 1: the switch is on fire")
    assert len(str(error)) <= 500 and "argument5000" not in str(error) and "argument5000" in error.whole


def test_words_without_end_are_cut() -> None:
    assert len(str(failed("import sys; sys.exit('x' * 100_000)"))) <= 500


def test_a_command_that_says_nothing_is_told_so() -> None:
    assert str(failed("raise SystemExit(3)")).endswith("ended with 3: no message")


def test_a_command_that_does_not_end_is_not_repeated_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "LIMIT_S", 0.2)
    error = failed("import time; time.sleep(9)", *LONG)
    assert str(error).endswith("did not end within 0.2 s") and len(str(error)) <= 500
    assert error.__suppress_context__  # the log would have the whole command in one line


def test_a_tool_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match=r"no-such-tool -batch - cannot be run: No such file or directory"):
        run_batch("no-such-tool", ["link set lo up"])


def test_a_long_line_loses_its_middle() -> None:
    assert shortened("a" * 300 + "b" * 300, 25) == "a" * 10 + " ... " + "b" * 10
