"""The error of a file that describes a fabric."""

from __future__ import annotations

from topologies.input.file_error import InputFileError


class FabricFileError(InputFileError):
    """A file describes no fabric: ``file:line: what is wrong, expected what``."""
