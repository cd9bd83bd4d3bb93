"""The picture in the terminal: dots where the curve is, marks where they belong."""

import pytest

import setpoint as sp
from setpoint.cli.display.terminal_plot import ASCII, BRAILLE, Axis, Picture
from setpoint.cli.display.tradeoff_view import constraint_of, picture


def plain(drawn, **more):
    return [line.plain for line in drawn.draw(40, **more)]


@pytest.mark.parametrize("pen", [ASCII, BRAILLE])
def test_a_rising_line_rises(pen):
    lines = plain(Picture("x", "y", (0.0, 1.0), (0.0, 1.0)), height=5, pen=pen)
    body = [line.split(pen.up)[1] for line in lines[1:6]]
    starts = [len(row) - len(row.lstrip()) for row in body]
    assert starts == sorted(starts, reverse=True)
    assert starts[-1] == 0
    assert len(set(starts)) == 5


@pytest.mark.parametrize("pen", [ASCII, BRAILLE])
@pytest.mark.parametrize("width", [12, 40, 72])
def test_width_is_kept(pen, width):
    drawn = Picture("precision", "recall", (0.0, 0.5, 1.0), (1.0, 0.7, 0.0), (0.5, 0.7), True, 0.4)
    assert all(len(line.plain) <= max(width, 15) for line in drawn.draw(width, pen=pen))


def test_a_picture_in_full():
    drawn = Picture("x", "y", (0.0, 1.0), (1.0, 0.0), mark=(0.5, 0.5), bound=0.25)
    assert [line.plain for line in drawn.draw(15, height=3, pen=ASCII)] == [
        "    y",
        "  1 |***",
        "0.5 |  :*O**",
        "  0 |  :    ***",
        "    +----------",
        "     0   x    1",
    ]


def test_marks_and_bound():
    drawn = Picture("x", "y", (0.0, 1.0), (1.0, 0.0), mark=(1.0, 0.0), good=False, bound=0.0)
    lines = plain(drawn, height=3, pen=ASCII)
    assert lines[3].endswith("X")
    assert lines[2].split("|")[1][0] == ":"
    good = plain(Picture("x", "y", (0.0, 1.0), (1.0, 0.0), mark=(1.0, 0.0)), height=3, pen=ASCII)
    assert good[3].endswith("O")


def test_a_flat_curve_is_drawn():
    lines = plain(Picture("x", "y", (0.0, 1.0), (0.5, 0.5)), height=3, pen=ASCII)
    assert "*" in lines[2]


def test_axis_says_zero_for_next_to_nothing():
    assert Axis(1e-14, 1.0).label(1e-14) == "0"
    assert Axis(0.2, 1.0).label(0.2) == "0.2"


Y, S = [0, 1, 0, 1, 1, 0], [0.1, 0.4, 0.35, 0.8, 0.7, 0.75]


# From the top: precision 1, 1/2, 2/3, 3/4, 3/5, 1/2 at recall 1/3, 1/3, 2/3, 1, 1, 1.
@pytest.mark.parametrize(
    ("goal", "threshold", "along"),
    [
        ("maximize recall subject to fpr <= 0.9, precision >= 0.8", 0.8, 1),  # binding
        ("maximize recall subject to fpr <= 0.9, precision >= 0.7", 0.4, 0),  # none is binding
        ("maximize f1 subject to recall >= 0.9, precision >= 0.99", 0.4, 1),  # broken
    ],
)
def test_trade_off_is_drawn_along_what_is_broken_then_binding_then_first(goal, threshold, along):
    rule = sp.tune(goal, Y, S)
    assert rule.threshold == threshold
    assert constraint_of(rule) == along


def test_picture_has_rule_and_bound():
    rule = sp.tune("maximize recall subject to precision >= 0.7", Y, S)
    drawn = picture(rule)
    assert drawn is not None
    assert (drawn.x_name, drawn.y_name, drawn.bound) == ("precision", "recall", 0.7)
    assert drawn.mark == (rule.held[0].value, rule.value)


def test_picture_without_constraints_is_along_the_threshold():
    drawn = picture(sp.tune("maximize f1", Y, S))
    assert drawn is not None
    assert drawn.x_name == "threshold"
    assert drawn.bound is None


def test_rules_without_a_curve_have_no_picture():
    assert picture(sp.tune("maximize precision_at_k(2)", Y, S)) is None
