"""The error of a file that describes a workload."""

from __future__ import annotations

from topologies.input.file_error import InputFileError


class WorkloadFileError(InputFileError):
    """A file describes no workload: ``file:line: what is wrong, expected what``."""
