"""What Optimus learns online: non-negative least squares, loss curves and speeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.managers.policies.fitting import LossCurve, fit_losses, fit_steps, fitted_step_s, nnls

CELLS = st.floats(-3.0, 3.0).map(lambda value: round(value, 3))


@given(st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), min_size=3, max_size=8))
def test_least_squares_without_negative_coefficients_meets_the_conditions_of_its_optimum(
    rows: list[tuple[float, float, float, float]],
) -> None:
    table = np.array(rows)
    matrix, target = table[:, :3], table[:, 3]
    found = nnls(matrix, target)
    gradient = matrix.T @ (target - matrix @ found)
    assert (found >= 0).all()
    assert (gradient <= 1e-6).all()  # no coefficient of 0 would improve it by growing
    assert abs(gradient @ found) <= 1e-5  # nor any other by a change


def test_what_is_linear_and_positive_is_found_exactly() -> None:
    matrix = np.array([[1.0, 2.0], [3.0, 1.0], [0.5, 4.0]])
    assert nnls(matrix, matrix @ np.array([2.0, 3.0])) == pytest.approx([2.0, 3.0])
    assert nnls(matrix, matrix @ np.array([2.0, -3.0]))[1] == 0.0


def test_a_loss_curve_is_recovered_from_its_first_losses() -> None:
    curve = LossCurve(0.4, 0.5, 0.3)
    found = fit_losses(tuple((epoch, curve.loss(epoch)) for epoch in range(12)))
    assert found is not None
    assert found.loss(60) == pytest.approx(curve.loss(60), rel=0.1)
    assert found.converges_at() == pytest.approx(curve.converges_at(), rel=0.1)


def test_a_curve_has_converged_when_an_epoch_changes_little() -> None:
    curve = LossCurve(1.0, 1.0, 0.0)
    assert curve.converges_at(0.05) == pytest.approx(18.0)  # 1 - (k + 1) / (k + 2) = 1 / 20
    assert fit_losses(((0, 1.0), (1, 0.5))) is None


def test_speeds_are_fitted_and_one_gpu_sends_nothing() -> None:
    def step_s(gpus: int) -> float:
        return 8.0 / gpus + 1.2 * (gpus - 1) / gpus + 0.03 * (gpus - 1)

    found = fit_steps({gpus: step_s(gpus) for gpus in (1, 2, 4, 8)})
    assert found == pytest.approx((8.0, 1.2, 0.03), rel=1e-6)
    assert fitted_step_s(found, 16) == pytest.approx(step_s(16))
    assert fitted_step_s(found, 1) == pytest.approx(8.0)


def test_one_sample_tells_the_compute_alone() -> None:
    assert fitted_step_s(fit_steps({4: 0.5}), 8) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="a speed needs at least one sample"):
        fit_steps({})
