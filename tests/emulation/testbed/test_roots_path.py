"""``sudo python -m testbed run``: with sudo's PATH and environment, and the Python that set-up provides there."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import NOT_BELIEVABLE, ROOT, run_to_end

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.shares_machine,
    pytest.mark.skipif(not (ROOT / ".venv" / "pyvenv.cfg").exists(), reason="this checkout is not set up"),
]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def test_packets_are_sent_with_nothing_but_roots_path(tmp_path: Path) -> None:
    folder = tmp_path / "local-bin"
    folder.mkdir()
    (folder / "python").symlink_to("/usr/bin/python3")  # as tools/setup.sh makes it
    start = ["/usr/bin/env", "-i", f"PATH={PATH}:{folder}", "python", "-m", "testbed"]
    done = run_to_end("hello.yaml", tmp_path / "runs", "--scheduler", "ecmp", "--set", "checks=[]", start=start)
    assert done.status in (0, NOT_BELIEVABLE), done.error
    assert done.summary["engine"] == "emulation" and (done.directory / "report.html").exists()
