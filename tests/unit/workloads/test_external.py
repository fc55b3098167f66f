from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.build import JobSpec, build_jobs
from workloads.external import VARIABLES, ExternalCommand, HostSetting, filled, variables

HOSTS = [HostSetting(rank, f"h{rank}", f"10.0.{rank}.1", f"h{rank}n0p0", 2) for rank in range(3)]


def test_every_variable_has_a_value_on_every_host() -> None:
    for rank in range(3):
        assert variables(HOSTS, rank, 4000, 10).keys() == VARIABLES.keys()


def test_a_command_knows_its_rank_and_all_addresses() -> None:
    values = variables(HOSTS, 1, 4000, 12345)
    text = "--rank {rank} --of {world_size} --first {first_address}:{port} --all {addresses} --bytes {bytes}"
    assert filled(text, values) == (
        "--rank 1 --of 3 --first 10.0.0.1:4000 --all 10.0.0.1,10.0.1.1,10.0.2.1 --bytes 12345"
    )


def test_doubled_braces_stand_for_single_ones() -> None:
    assert filled("{{rank}} {rank}", {"rank": "2"}) == "{rank} 2"


@given(st.text(alphabet='{}":, 0123456789ABC$'))
def test_braces_around_anything_but_a_word_are_left_alone(text: str) -> None:
    assert filled(text, {"rank": "2"}) == text


def test_a_word_in_braces_that_is_no_variable_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"'\{rnak\}' is no variable, did you mean 'rank'\?"):
        filled("{rnak}", VARIABLES)


def test_a_real_program_is_planned_with_the_ring_that_it_declares() -> None:
    fabric = clos(hosts=2, gpus_per_host=1, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)
    program = ExternalCommand(("true",), communication=1e6, compute_s=0.5)
    common = {"placement": ("h0g0", "h1g0"), "compute_s": 0.5, "communication_bytes": 1e6, "overlap": 0.0}
    real, synthetic = (
        build_jobs([JobSpec("job", model, **common, **more)], fabric)[0]  # type: ignore[arg-type]
        for model, more in (
            ("", {"external": program, "flops": 3e12}),
            ("bert", {"collective": "ring", "flops": 3e12}),
        )
    )
    assert real.external == program
    assert (real.flows, real.phases, real.flops) == (synthetic.flows, synthetic.phases, synthetic.flops)
