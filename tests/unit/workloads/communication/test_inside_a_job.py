"""What systems inside a job decide: RALP's cut, what becomes of jobs."""

from __future__ import annotations

from collections import Counter

import pytest
from parameter_server import server_egress
from ralp_cut import VGG16, best_cut

from topologies.clos import clos
from workloads.build import JobError, JobSpec, build_jobs
from workloads.communication.gradients import Gradients
from workloads.communication.ralp import exchanged_share, traffic
from workloads.models.convnets import vgg
from workloads.traces.job_failures import SHARES, Fate, ended_early, fate_of, with_prerun, without_repeats


def test_ralp_on_vgg16_moves_nine_times_less() -> None:
    assert traffic(VGG16, len(VGG16), 32) == pytest.approx(1053.6e6)
    cut = best_cut(VGG16, 32, workers=4, bits_per_s=10e9, server_flops_per_s=10e12)
    assert VGG16[cut.first].name == "fc6"
    assert cut.traffic == pytest.approx(116.8e6, rel=1e-3)
    assert cut.saving == pytest.approx(9.0, rel=0.01)


def test_ralp_of_the_layers_of_the_catalogue_saves_as_much() -> None:
    assert 1 / exchanged_share(vgg((2, 2, 3, 3, 3)), 32) == pytest.approx(9.0, rel=0.02)
    assert exchanged_share(vgg((2, 2, 3, 3, 3)), 1e9) == 1.0


def test_a_job_under_ralp_sends_what_is_left_and_others_have_nothing_to_place() -> None:
    fabric = clos(hosts=4, gpus_per_host=1, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)

    def sent(**options: bool) -> float:
        spec = JobSpec("one", "vgg", 4, collective="parameter-server", gradients=Gradients(**options))
        return sum(flow.bytes for flow in build_jobs([spec], fabric)[0].flows)

    assert sent(ralp=True) / sent() == pytest.approx(exchanged_share(vgg((2, 2, 3, 3, 3)), 128))
    with pytest.raises(JobError, match=r"gradients\.ralp needs a convolutional network, model 'bert' is none"):
        build_jobs([JobSpec("one", "bert", 4, gradients=Gradients(ralp=True))], fabric)


def test_a_slow_server_is_given_no_layers() -> None:
    cut = best_cut(VGG16, 32, workers=64, bits_per_s=400e9, server_flops_per_s=1e9)
    assert cut.first == len(VGG16)
    assert cut.saving == 1.0


def test_fates_come_in_the_published_shares_and_the_same_again() -> None:
    fates = [fate_of(f"job{number}", 1 + number % 16, 1000.0, seed=3) for number in range(20_000)]
    shares = {status: count / len(fates) for status, count in Counter(fate.status for fate in fates).items()}
    assert shares == pytest.approx(dict(SHARES), abs=0.01)
    assert fate_of("job7", 8, 1000.0, 3) == fate_of("job7", 8, 1000.0, 3)
    assert all(len(fate.attempts) <= 5 and max(fate.attempts) <= 1000.0 for fate in fates)


def test_the_policies_against_failures_save_time_and_change_no_outcome() -> None:
    for number in range(500):
        fate = fate_of(f"job{number}", 16, 1000.0, seed=1)
        for other in (with_prerun(fate, 1.0), without_repeats(fate), ended_early(fate)):
            assert other.ran_s <= fate.ran_s
            assert (other.status, other.cause) == (fate.status, fate.cause)


def test_a_job_that_ends_early_is_not_interrupted_after_its_end() -> None:
    assert ended_early(Fate("passed", "", (350.0, 900.0, 1000.0))) == Fate("passed", "", (350.0, 400.0))


def test_a_node_sends_gradients_of_what_is_elsewhere_and_parameters_to_workers_elsewhere() -> None:
    # Two nodes with two GPUs each, half the model on each: every node sends 2 halves out and serves 2 workers a half.
    assert server_egress(100.0, 50.0, 4, 2) == 2 * 50.0 + 2 * 50.0
    assert server_egress(100.0, 100.0, 4, 4) == 0.0  # all on one node
