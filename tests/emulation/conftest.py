"""Which emulation tests need the machine for themselves."""

from __future__ import annotations

import pytest
from emulation_runs import default_datapath


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where only ``userspace`` forwards packets, every run takes a whole machine: before tests are chosen by mark."""
    if default_datapath() == "userspace":
        for item in items:
            if item.get_closest_marker("emulation"):
                item.add_marker(pytest.mark.whole_machine)
