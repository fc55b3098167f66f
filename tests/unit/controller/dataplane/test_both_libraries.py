from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[2]

MESSAGES = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import FABRICS, mix
from controller.dataplane import openflow, ryu_compat
from controller.dataplane.rules import RuleBuilder
fabric = FABRICS["clos96"]()
protocol = ryu_compat.ofproto_protocol.ProtocolDesc(4)
flow = mix(fabric)[0].flows[0]
plan = RuleBuilder(fabric).plan(flow, fabric.candidate_paths(flow.source, flow.target), 56)
messages = [openflow.add_group(protocol, group) for group in plan.groups]
messages += [openflow.add_rule(protocol, rule) for rule in plan.rules]
messages += [openflow.delete_rule(protocol, rule) for rule in plan.rules]
messages += [*openflow.wipe(protocol), openflow.barrier(protocol), openflow.stats_request(protocol)]
for message in messages:
    message.xid = 1
    message.serialize()
    print(bytes(message.buf).hex())
"""


def installed(library: str) -> bool:
    return importlib.util.find_spec({"ryu": "ryu", "os-ken": "os_ken"}[library]) is not None


def python(library: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TESTBED_OPENFLOW": library, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.skipif(not (installed("ryu") and installed("os-ken")), reason="needs Ryu and os-ken")
def test_ryu_and_os_ken_put_the_same_bytes_on_the_wire() -> None:
    outputs = [python(library, "-c", MESSAGES, str(HERE)) for library in ("ryu", "os-ken")]
    assert [output.stderr for output in outputs] == ["", ""]
    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[0].stdout.count("\n") > 20


@pytest.mark.parametrize("library", ["ryu", "os-ken"])
def test_the_controllers_tests_pass_on_either_library(library: str) -> None:
    if not installed(library):
        pytest.skip(f"{library} is not installed")
    tests = [
        str(HERE / name) for name in ("dataplane/test_rules.py", "service/test_rest.py", "service/test_service.py")
    ]
    finished = python(library, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not clos96", *tests)
    assert finished.returncode == 0, finished.stdout


def test_an_unknown_library_is_one_clear_line() -> None:
    finished = python("pox", "-m", "controller", "--scheduler", "ecmp")
    assert finished.returncode == 3
    assert finished.stderr == "controller: TESTBED_OPENFLOW must be ryu or os-ken, not 'pox'\n"
