"""The codec: what is written is read back, whatever the fields; what is damaged is refused."""

import json
import math
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint import FileError
from setpoint._core.json_codec import Record, from_json, number_from, number_to, to_json


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point(Record):
    x: float
    y: float | None = None


@dataclass(frozen=True)
class Shape(Record):
    name: str
    colour: Colour
    points: tuple[Point, ...]
    pair: tuple[str, int]
    sizes: dict[str, float]
    count: int = 0
    cache: object = field(default=None, metadata={"saved": False})


numbers = st.floats(allow_nan=False)
points = st.builds(Point, numbers, st.none() | numbers)
shapes = st.builds(
    Shape,
    st.text(),
    st.sampled_from(Colour),
    st.lists(points).map(tuple),
    st.tuples(st.text(), st.integers()),
    st.dictionaries(st.text(), numbers),
    st.integers(),
)


@given(shapes)
def test_what_is_written_is_read_back(shape):
    text = json.dumps(to_json(shape), allow_nan=False)
    assert from_json(Shape, json.loads(text)) == shape


def test_a_field_that_is_not_there_takes_its_default():
    assert Point.from_json({"x": 1}) == Point(1.0)


def test_a_field_that_is_not_saved_is_not_written():
    shape = Shape("a", Colour.RED, (), ("b", 1), {}, cache=np.ones(3))
    assert "cache" not in shape.to_json()


def test_not_a_number_is_null():
    assert to_json(Point(math.nan)) == {"x": None, "y": None}
    assert math.isnan(Point.from_json({"x": None}).x)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({}, 'lacks "x"'),
        ({"x": "one"}, "Point.x cannot be 'one'"),
        ({"x": True}, "Point.x cannot be True"),
        ([1, 2], "should be an object"),
    ],
)
def test_damage_is_named(data, place):
    with pytest.raises(FileError, match=place):
        Point.from_json(data)


def test_an_unknown_word_of_an_enum_is_damage():
    good = to_json(Shape("a", Colour.RED, (), ("b", 1), {}))
    with pytest.raises(FileError, match=r"Shape.colour cannot be 'green'"):
        Shape.from_json({**good, "colour": "green"})


@pytest.mark.parametrize("x", [0.5, 3, math.inf, -math.inf, math.nan, None, "score"])
def test_a_number_is_read_back_and_nan_is_not_null(x):
    back = number_from(json.loads(json.dumps(number_to(x), allow_nan=False)))
    assert type(back) is type(x)
    assert back == x or (math.isnan(x) and math.isnan(back))
