"""Plots show the record's numbers; sheets show the images that were beaten."""

import math

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from tests.robustness.stand_ins import exact, linear, problem

import setpoint as sp
from setpoint.robustness.evaluate import evaluate
from setpoint.robustness.plots import as_picture, chosen_rows


@pytest.fixture(scope="module")
def found():
    model, weights, bias, x, y = problem()
    attack = exact(weights, bias, 2.0)
    return evaluate(model, x.reshape(-1, 2, 3), y, "l2", [0.02, 0.06], attacks=attack)


def test_accuracy_over_eps(found):
    figure = found.plot_accuracy()
    assert isinstance(figure, Figure)
    (ax,) = figure.axes
    steps, marks = ax.lines[0], ax.lines[1]
    for eps, value in zip(steps.get_xdata(), steps.get_ydata(), strict=True):
        assert value == found.at(float(eps)).accuracy
    assert marks.get_xdata().tolist() == list(found.eps)
    assert marks.get_ydata().tolist() == [level.accuracy for level in found.levels]
    assert steps.get_ydata()[0] == found.clean_accuracy
    assert steps.get_ydata()[-1] == 0  # this attack beats every image at some distance
    assert ax.get_ylabel() == "robust accuracy, at most"


def test_radii(found):
    (ax,) = found.plot_radii().axes
    heights = sum(bar.get_height() for bar in ax.patches)
    assert heights == int(found.columns["correct"].sum())
    assert ax.get_title() == "36 beaten, 0 without a success, 4 wrong before"


def test_a_sheet_shows_the_beaten_from_least_moved_to_most(found):
    figure = found.plot_examples(count=3)
    assert len(figure.axes) == 9
    rows = chosen_rows(found.columns, 3)
    beaten = found.columns["attacked"]
    moved = np.sort(found.columns["distance"][beaten])
    middle = moved[round((len(moved) - 1) / 2)]
    assert beaten[rows].all()
    assert found.columns["distance"][rows].tolist() == [moved[0], middle, moved[-1]]
    shown = figure.axes[1].images[0].get_array()
    np.testing.assert_allclose(shown, found.points[rows[0]])
    words = figure.axes[1].get_title()
    assert words == f"beaten: {found.columns['prediction'][rows[0]]}"
    wide = np.abs(figure.axes[2].images[0].get_array() - 0.5).max()
    assert wide == pytest.approx(0.5)  # the largest difference fills the range


def test_where_none_is_beaten_those_that_came_nearest_are_shown():
    model, _, _, x, y = problem()
    found = evaluate(
        model, x.reshape(-1, 2, 3), y, "l2", 0.1, attacks=lambda model, images, labels: images
    )
    rows = chosen_rows(found.columns, 2)
    right = found.columns["correct"]
    assert right[rows].all()
    assert found.columns["margin"][rows[0]] == found.columns["margin"][right].max()
    assert found.plot_examples(count=2).axes[1].get_title().startswith("not beaten")
    (ax,) = found.plot_radii().axes
    assert "36 without a success" in ax.get_title()


@pytest.mark.parametrize(
    ("shape", "given", "drawn"),
    [
        ((8, 8), None, (8, 8)),
        ((1, 8, 8), None, (8, 8)),
        ((3, 4, 5), None, (4, 5, 3)),
        ((12,), (3, 4), (3, 4)),
        ((12,), (3, 2, 2), (2, 2, 3)),
    ],
)
def test_pictures(shape, given, drawn):
    image = np.arange(math.prod(shape), dtype=float).reshape(shape)
    picture = as_picture(image, given)
    assert picture.shape == drawn
    assert sorted(picture.ravel()) == sorted(image.ravel())
    if drawn[-1] == 3 and len(drawn) == 3:
        source = image.reshape(given or shape)
        assert (picture[..., 1] == source[1]).all()


@pytest.mark.parametrize(("shape", "given"), [((12,), None), ((4, 2, 2), None), ((12,), (5, 2))])
def test_what_cannot_be_drawn_is_a_sentence(shape, given):
    with pytest.raises(sp.DataError, match="shape"):
        as_picture(np.zeros(shape), given)


def test_nothing_right_is_nothing_to_show():
    model = linear([[1.0, 0.0], [0.0, 1.0]], [0.0, 9.0])
    x = torch.rand(3, 1, 1, 2, dtype=torch.float64)
    found = evaluate(model, x, [0, 0, 0], "l2", 0.1, attacks=lambda m, a, b: a)
    assert (found.clean_accuracy, found.robust_accuracy) == (0.0, 0.0)
    with pytest.raises(sp.DataError, match="gets no image right"):
        found.plot_examples()
    found.plot_radii()
    found.plot_accuracy()
