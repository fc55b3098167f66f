from __future__ import annotations

import threading
from pathlib import Path

import pytest

from testbed.client import mpirun

HERE = {
    "TESTBED_ADDRESS": "10.0.0.1",
    "TESTBED_ADDRESSES": "10.0.0.1,10.0.1.1",
    "TESTBED_INTERFACE": "h0n0p0",
    "TESTBED_RANK": "0",
}


def test_mpirun_gets_a_process_per_host_and_reaches_them_through_the_agent() -> None:
    words = mpirun.command(["--mca", "btl_tcp_eager_limit", "1000", "--", "prog", "-x"], ["10.0.0.1", "10.0.1.1"])
    assert words[:5] == ["mpirun", "--host", "10.0.0.1:1,10.0.1.1:1", "-np", "2"]
    assert words[-2:] == ["prog", "-x"]
    assert words[words.index("plm_rsh_agent") + 1].endswith("-m testbed.client.mpirun --connect")
    assert words.index("btl_tcp_eager_limit") < words.index("--inside")


def test_a_command_runs_on_the_host_that_serves_and_its_status_comes_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = mpirun.place(str(tmp_path), "10.0.1.1")
    statuses: list[int] = []
    server = threading.Thread(target=lambda: statuses.append(mpirun.serve(path)))
    server.start()
    environment = {**HERE, "TESTBED_FOLDER": str(tmp_path)}
    assert mpirun.main(["--connect", "10.0.1.1", "echo", "$((6 * 7));", "exit", "5"], environment) == 5
    with mpirun.connect(path) as connection:
        connection.send(b"\0quit")
    server.join(5.0)
    assert statuses == [0]
    assert capfd.readouterr().out == "42\n"


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {**HERE, "TESTBED_FOLDER": "x"}, "no program, expected"),
        (["prog"], HERE, "TESTBED_FOLDER is not set, expected to run as a job of a testbed"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    arguments: list[str], environment: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mpirun.main(arguments, environment) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
