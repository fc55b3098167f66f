"""The error of a file that the user gave and that cannot be used."""

from __future__ import annotations

from topologies.limits import one_line


class InputFileError(ValueError):
    """A file cannot be used: ``file:line: what is wrong, expected what``; ``line`` counts from 1."""

    def __init__(self, file: str, line: int | None, what: str, expected: str) -> None:
        super().__init__(file, line, what, expected)
        self.file = file
        self.line = line
        self.what = what
        self.expected = expected

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return one_line(f"{where}: {self.what}, expected {self.expected}")
