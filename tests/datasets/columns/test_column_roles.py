"""Columns for a role: what is taken, and the sentence for each one that cannot be."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from setpoint._core.errors import DataError
from setpoint.datasets import column, numbers

TABLE = pd.DataFrame({"amount": [1, 2], "fraud": [0, 1]})


def test_column_is_returned():
    assert column(TABLE, "fraud", "label").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("table", "name", "role", "sentence"),
    [
        (
            TABLE,
            "fruad",
            "label",
            'there is no column "fruad" (label). Did you mean "fraud"? '
            'The columns are "amount", "fraud".',
        ),
        (
            TABLE,
            "p",
            "score",
            'there is no column "p" (score). The columns are "amount", "fraud".',
        ),
        (pd.DataFrame(), "p", "score", 'there is no column "p" (score). The table has no columns.'),
        (
            pd.DataFrame([[1, 2]], columns=["p", "p"]),
            "p",
            "score",
            '2 columns are named "p" (score); rename all but one.',
        ),
    ],
)
def test_column_that_cannot_be_used(table, name, role, sentence):
    with pytest.raises(DataError) as caught:
        column(table, name, role)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, ValueError)


def test_long_lists_of_columns_are_cut():
    table = pd.DataFrame([range(40)], columns=[f"c{i}" for i in range(40)])
    with pytest.raises(DataError, match=r'"c10", "c11", …\.$'):
        column(table, "weight", "weight")


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        [1.0, 2.0],
        np.array([1, 2], dtype=np.float32),
        np.array([1, 2], dtype=np.uint8),
        pd.array([1, 2], dtype="Int64"),
        pd.array([1.0, 2.0], dtype="double[pyarrow]"),
        pd.Categorical([1, 2]),
        ["1", "2.0"],
        [Decimal(1), Decimal(2)],
    ],
    ids=lambda values: str(getattr(values, "dtype", type(values[0]).__name__)),
)
def test_numbers(values):
    table = pd.DataFrame({"p": values})
    found = numbers(table, "p", "score")
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0]
    found[0] = 5  # a copy: the table keeps its values
    assert float(table["p"].iloc[0]) == 1.0


ONE_STRANGE = 'column "p" (score) has 1 value that is not a number, the first is {} in data row {}.'
TWO_STRANGE = 'column "p" (score) has 2 values that are not numbers, the first is {} in data row 1.'
MISSING = 'column "p" (score) has {}, the first in data row {}; give each row a value or drop it.'


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.5, "high"], ONE_STRANGE.format('"high"', 2)),
        (["0.5", "0,7"], ONE_STRANGE.format('"0,7"', 2)),
        (["a", "b"], TWO_STRANGE.format('"a"')),
        (pd.Categorical(["a", "b"]), TWO_STRANGE.format('"a"')),
        ([True, False], TWO_STRANGE.format('"True"')),
        ([0.5, True], ONE_STRANGE.format('"True"', 2)),
        ([1j, 2j], TWO_STRANGE.format('"1j"')),
        ([None, "x"], ONE_STRANGE.format('"x"', 2)),
        (pd.to_datetime(["2020-01-02", None]), ONE_STRANGE.format('"2020-01-02 00:00:00"', 1)),
        ([0.5, None], MISSING.format("1 missing value", 2)),
        ([None, np.nan, 1.0], MISSING.format("2 missing values", 1)),
        (pd.array([1, None], dtype="Int64"), MISSING.format("1 missing value", 2)),
        (["0.5", None], MISSING.format("1 missing value", 2)),
        (
            [0.5, np.inf, -np.inf],
            'column "p" (score) has 2 infinite values, the first in data row 2; '
            "give finite numbers.",
        ),
    ],
)
def test_numbers_that_cannot_be_used(values, sentence):
    with pytest.raises(DataError) as caught:
        numbers(pd.DataFrame({"p": values}), "p", "score")
    assert str(caught.value) == sentence


def test_rows_are_counted_by_place_not_by_index():
    table = pd.DataFrame({"p": [0.1, None]}, index=[70, 71])
    with pytest.raises(DataError, match="data row 2"):
        numbers(table, "p", "score")


def test_numbers_of_a_missing_column():
    with pytest.raises(DataError, match=r'no column "amuont" \(weight\)\. Did you mean "amount"\?'):
        numbers(TABLE, "amuont", "weight")
