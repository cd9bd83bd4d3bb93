"""Comparisons: a truth that gives no score is refused at once, and verdicts are true."""

import math
from dataclasses import replace

import pytest
import torch
from tests.restoration.smooth import images, make

import setpoint as sp
from setpoint.restoration.compare import compare
from setpoint.restoration.operators import as_operator

MANY = 3


@pytest.fixture(scope="module")
def found():
    truth, prior = images(MANY), make()
    operator = as_operator("sr:2", shape=prior.shape)
    return compare(operator(truth), operator, prior, ["dmplug", "tv"], truth, iterations=2)


def holed(truth):
    truth = truth.clone()
    truth[1, 0, 3, 3] = math.nan
    return truth


@pytest.mark.parametrize(
    ("make_truth", "box", "said"),
    [
        (lambda x: x[:2], None, r"shape \(2, 1, 12, 12\), and \(3, 1, 12, 12\) will be restored"),
        (lambda x: x[..., :6], None, r"shape \(3, 1, 12, 6\), and \(3, 1, 12, 12\)"),
        (lambda x: (255 * x).byte(), None, "the truth holds torch.uint8"),
        (lambda x: (x > 0.5).numpy(), None, "the truth holds torch.bool"),
        (holed, None, "the truth of image 1 holds values that are no numbers"),
        (lambda x: x, (-math.inf, math.inf), r"the prior declares \(-inf, inf\); declare two ends"),
        (lambda x: x, (0.0, math.inf), r"the prior declares \(0, inf\); declare two ends"),
    ],
)
def test_a_truth_that_gives_no_score_is_refused_before_any_work(make_truth, box, said):
    truth, prior = images(MANY), make()
    prior.range = box or prior.range
    operator = as_operator("sr:2", shape=prior.shape)
    steps = []
    with pytest.raises(sp.SetpointError, match=said):
        compare(
            operator(truth),
            operator,
            prior,
            ["dmplug", "tv"],
            make_truth(truth),
            iterations=2,
            callback=lambda *told: steps.append(told),
        )
    assert steps == []


def test_what_is_wrong_with_y_or_the_prior_is_said_first():
    truth, prior = images(MANY), make()
    with pytest.raises(sp.KindError, match="y is a list"):
        compare([1.0], "sr:2", prior, ["tv"], truth)
    with pytest.raises(sp.KindError, match="prior is a function that lacks shape"):
        compare(truth, "sr:2", make, ["tv"], truth)


def with_psnr(found, **columns):
    scores = {
        name: replace(found.evaluations[name], psnr=torch.tensor(values, dtype=torch.float64))
        for name, values in columns.items()
    }
    return replace(found, evaluations=scores)


@pytest.mark.parametrize(
    ("first", "second", "exact"),
    [
        ([math.inf, 20.0, 30.0], [10.0, 20.0, 40.0], (1, 0)),
        ([math.inf] * 3, [10.0, 20.0, 40.0], (3, 0)),
        ([math.inf, math.inf, 5.0], [math.inf, 20.0, 40.0], (2, 1)),
        ([math.inf, 20.0, 30.0], [10.0, math.inf, 20.0], (1, 1)),
    ],
)
def test_an_infinite_lead_on_several_images_is_not_one_image(found, first, second, exact):
    for columns in (
        {"dmplug": first, "tv": second},
        {"tv": second, "dmplug": first},  # whatever the order they were asked for in
    ):
        said = with_psnr(found, **columns).verdict()
        assert said == (
            f"dmplug meets the truth exactly on {exact[0]} of 3 images, tv on {exact[1]}: PSNR is "
            "infinite there, so the difference of the two has no size and no standard error."
        )


def test_methods_that_meet_the_same_images_are_ranked_by_the_others(found):
    told = with_psnr(found, dmplug=[math.inf, 10.0, 12.0], tv=[math.inf, 20.0, 20.0])
    assert told.ranking() == ["tv", "dmplug"]
    assert told.lead()[0] == pytest.approx((0 + 10 + 8) / 3)
    assert told.verdict().startswith("tv has the greatest PSNR at the selected iterate, 6.00 dB")


def test_one_image_is_said_to_be_one(found):
    for value in (30.0, math.inf):
        said = with_psnr(found, dmplug=[value], tv=[10.0]).verdict()
        assert said.startswith("dmplug has the greatest PSNR")
        assert said.endswith("on one image: that says nothing of others.")
