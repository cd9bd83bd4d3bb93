"""Scores at the selected iterate and at the oracle's; methods side by side, honestly ranked."""

import math

import pytest
import torch
from tests.restoration.smooth import images, make

import setpoint as sp
from setpoint.restoration.compare import compare
from setpoint.restoration.evaluate import evaluate, mean_and_error
from setpoint.restoration.image_scores import manifold_distance, psnr, ssim
from setpoint.restoration.operators import as_operator
from setpoint.restoration.restore import restore


@pytest.fixture(scope="module")
def case():
    truth, prior = images(4), make()
    operator = as_operator("inpaint:0.5", shape=prior.shape, batch=4)
    noise = 0.05 * torch.randn(truth.shape, generator=torch.Generator().manual_seed(1))
    y = operator(truth + noise)
    return y, operator, prior, truth


@pytest.fixture(scope="module")
def restored(case):
    y, operator, prior, _ = case
    return restore(y, operator, prior, method="dmplug", trail=1, iterations=40)


def test_the_selected_iterate_is_scored(case, restored):
    *_, prior, truth = case
    found = evaluate(restored, truth, prior)
    torch.testing.assert_close(found.psnr, psnr(restored.image, truth))
    torch.testing.assert_close(found.ssim, ssim(restored.image, truth))
    torch.testing.assert_close(found.residual, restored.residual.double())
    torch.testing.assert_close(found.manifold, manifold_distance(restored.image, prior, 0.1))


def test_the_residual_is_that_of_the_image(case, restored):
    y, operator, _, _ = case
    seen = operator.observed.expand_as(y)
    for at in range(4):
        gap = (operator(restored.image) - y)[at][seen[at]]
        assert float(restored.residual[at]) == pytest.approx(
            float(gap.square().mean().sqrt()), 1e-4
        )


def test_the_oracle_is_the_best_of_the_trail_by_brute_force(case, restored):
    *_, truth = case
    found = evaluate(restored, truth)
    for at in range(4):
        one = truth[at : at + 1]
        values = [float(psnr(x[at : at + 1], one)) for x in restored.trail]
        alike = [float(ssim(x[at : at + 1], one)) for x in restored.trail]
        assert float(found.oracle_psnr[at]) == pytest.approx(max(*values, float(found.psnr[at])))
        assert float(found.oracle_ssim[at]) == pytest.approx(max(*alike, float(found.ssim[at])))
        best = int(restored.trail_steps[values.index(max(values))])
        if max(values) > float(found.psnr[at]):
            assert int(found.oracle_step[at]) == best
    assert (found.oracle_psnr >= found.psnr).all()
    assert found.manifold is None


def test_no_trail_no_oracle(case):
    y, operator, prior, truth = case
    found = evaluate(restore(y, operator, prior, iterations=3), truth)
    assert (found.oracle_psnr, found.oracle_ssim, found.oracle_step) == (None, None, None)
    assert "oracle" not in str(found)


def test_the_truth_changes_no_solution(case):
    y, operator, prior, truth = case
    options = {"seed": 3, "iterations": 15, "trail": 5}
    a = compare(y, operator, prior, ["dmplug"], truth, **options).restored["dmplug"]
    b = compare(y, operator, prior, ["dmplug"], 1 - truth, **options).restored["dmplug"]
    torch.testing.assert_close(a.image, b.image, rtol=0, atol=0)
    assert torch.equal(a.chosen, b.chosen)


def test_mean_and_standard_error():
    mean, error = mean_and_error(torch.tensor([1.0, 2.0, 6.0]))
    assert mean == 3
    assert error == pytest.approx(math.sqrt((4 + 1 + 9) / 2 / 3))
    assert mean_and_error(torch.tensor([2.0])) == (2.0, None)
    assert mean_and_error(torch.tensor([2.0, math.inf])) == (math.inf, None)


def test_methods_are_ranked_by_what_they_selected(case):
    y, operator, prior, truth = case
    told = []
    found = compare(
        y,
        operator,
        prior,
        ["dmplug", "tv"],
        truth,
        iterations=60,
        callback=lambda *a: told.append(a),
    )
    means = {name: float(e.psnr.mean()) for name, e in found.evaluations.items()}
    assert found.best == max(means, key=means.get)
    first, second = found.ranking()
    gap = found.evaluations[first].psnr - found.evaluations[second].psnr
    assert found.lead() == pytest.approx((float(gap.mean()), float(gap.std()) / 2))
    assert f"{found.best} has the greatest PSNR" in found.verdict()
    assert [row["method"] for row in found.table()] == ["dmplug", "tv"]
    assert {"dmplug", "tv"} == {name for name, *_ in told}
    assert "oracle (picked by the truth)" in str(found)


def test_one_image_says_nothing_of_others(case):
    *_, prior, truth = case
    operator = as_operator("sr:2", shape=prior.shape)
    found = compare(operator(truth[:1]), operator, prior, ["dmplug", "tv"], truth[:1], iterations=5)
    assert "on one image: that says nothing of others" in found.verdict()


def test_without_the_truth_nothing_is_best(case):
    y, operator, prior, _ = case
    found = compare(y, operator, prior, ["dmplug", "tv"], iterations=5)
    assert found.best is None
    assert found.evaluations == {}
    assert "The truth is not known" in found.verdict()
    assert all(row["psnr"] is None and row["residual"] is not None for row in found.table())


def test_a_method_that_does_not_fit_is_named_with_its_reason(case):
    y, operator, prior, truth = case
    found = compare(y, operator, prior, ["fmplug", "dmplug"], truth, iterations=5)
    assert list(found.restored) == ["dmplug"]
    assert "fmplug could not be used: " in str(found)
    with pytest.raises(sp.SetpointError):
        compare(y, operator, prior, ["fmplug"], truth)


def test_ctrl_c_ends_the_comparison(case):
    y, operator, prior, truth = case

    def stop(name, step, *_):
        if step >= 3:
            raise KeyboardInterrupt

    found = compare(y, operator, prior, ["dmplug", "tv"], truth, iterations=30, callback=stop)
    assert found.stopped
    assert list(found.restored) == ["dmplug"]
    assert found.asked == ("dmplug", "tv")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: compare(*c[:3], ["dmplg"]), 'there is no method "dmplg"; did you mean dmplug?'),
        (lambda c: compare(*c[:3], []), "no method is named"),
        (lambda c: compare(*c[:3], ["nearest"]), "give them as training="),
        (
            lambda c: compare(*c[:3], ["tv"], options={"tv": {"colour": 1}}),
            "tv has no option 'colour'",
        ),
        (lambda c: compare(*c[:3], ["tv"], options={"vt": {}}), 'options= names "vt"'),
    ],
)
def test_mistakes(case, call, said):
    with pytest.raises(sp.SetpointError) as error:
        call(case)
    assert said in str(error.value)


def test_a_truth_of_another_shape(case, restored):
    with pytest.raises(sp.DataError, match=r"the truth has shape \(2, 1, 12, 12\)"):
        evaluate(restored, case[3][:2])
