"""The parser of the command line: an error is one line, and says what was probably meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from testbed.errors import EXIT_BAD_INPUT
from topologies.input.spelling import expectation, nearest
from topologies.limits import one_line


class Parser(argparse.ArgumentParser):
    """A wrong option is reported in one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        """Print the line and end with the status of bad input."""
        self.exit(EXIT_BAD_INPUT, f"{one_line(f'{self.prog}: {message}')} (see {self.prog} --help)\n")

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse; what belongs to no argument is an error of the verb it was given to."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            verb = self._verb(str(getattr(parsed, "verb", ""))) or self
            verb.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(unknown, verb._option_string_actions)}")
        return parsed

    def _verb(self, name: str) -> Parser | None:
        actions = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return next((action.choices.get(name) for action in actions), None)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = "unknown verb" if isinstance(action, argparse._SubParsersAction) else "invalid choice:"
            said = f"{what} '{value}', {expectation(str(value), map(str, action.choices))}"
            raise argparse.ArgumentError(None if what == "unknown verb" else action, said)


def _meant(unknown: Sequence[str], options: Iterable[str]) -> str:
    """``, did you mean --scheduler?`` for the first unknown option that is like a known one."""
    first = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
    near = nearest(first, [option for option in options if option.startswith("--")]) if first else ""
    return f", did you mean {near}?" if near else ""
