"""Codes: numbers as they are, categories by rank, NaN for what is missing or unknown."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.datasets import Codes

WORDS = st.lists(st.one_of(st.none(), st.sampled_from("abcdefgh")), min_size=1, max_size=40)


@given(WORDS, WORDS, st.integers(2, 9))
def test_codes_are_ranks(seen, later, most):
    codes = Codes.fit(pd.DataFrame({"c": pd.Series(seen, dtype=object), "n": 1.0}), most)
    counts = Counter(cell for cell in seen if cell is not None)
    if not counts:  # a column without a value is one of numbers
        assert codes.categorical == ()
        return
    ranked = sorted(counts, key=lambda level: (-counts[level], level))
    wanted = [min(ranked.index(cell), most - 1) if cell in ranked else np.nan for cell in later]
    made, categorical = codes.transform(
        pd.DataFrame({"c": pd.Series(later, dtype=object), "n": np.arange(len(later))})
    )
    assert categorical == (0,)
    assert np.array_equal(made[:, 0], wanted, equal_nan=True)
    assert np.array_equal(made[:, 1], np.arange(len(later)))
    assert len(np.unique(made[~np.isnan(made[:, 0]), 0])) <= most


def test_no_more_codes_than_bins():
    words = [f"w{k}" for k in range(400) for _ in range(1 + k % 3)]
    made, _ = Codes.fit(table := pd.DataFrame({"c": words})).transform(table)
    assert made.max() == 254
    counts = Counter(made[:, 0].tolist())
    assert counts[254.0] == len(words) - sum(sorted(Counter(words).values())[-254:])


@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_any_kind_of_text(kind):
    cells = pd.Series(["b", None, "a", "b"], dtype=object)
    codes = Codes.fit(pd.DataFrame({"c": cells}))
    made, _ = codes.transform(pd.DataFrame({"c": cells.astype(kind)}))
    assert np.array_equal(made[:, 0], [0, np.nan, 1, 0], equal_nan=True)


def test_categories_that_are_numbers_have_their_texts():
    codes = Codes.fit(pd.DataFrame({"c": pd.Categorical([1, 2, 2], categories=[1, 2, 9])}))
    assert codes.columns == (("c", ("2", "1")),)
    made, _ = codes.transform(pd.DataFrame({"c": [1.0, 2.0, np.nan]}))
    assert np.array_equal(made[:, 0], [1, 0, np.nan], equal_nan=True)


def test_numbers_keep_their_size():
    small = pd.DataFrame({"a": np.float32([1.5, np.nan]), "c": ["x", "y"]})
    made, _ = Codes.fit(small).transform(small)
    assert made.dtype == np.float32
    made, _ = Codes.fit(small).transform(small.astype({"a": float}))
    assert made.dtype == np.float64
    assert Codes.fit(small[["c"]]).transform(small[["c"]])[0].dtype == np.float64


def test_an_array_is_returned_as_it_is():
    X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    made, categorical = Codes.fit(X).transform(X)
    assert made is X
    assert categorical == ()
    with pytest.raises(sp.DataError, match="array of 2 columns"):
        Codes.fit(X).transform(X[:, 1:])


def test_trees_learn_from_codes():
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"n": rng.normal(size=900), "c": rng.choice(list("abcdef"), 900)})
    y = table["c"].isin(["a", "d"]).to_numpy()  # no threshold on ranks parts these
    made, categorical = Codes.fit(table).transform(table)
    trees = HistGradientBoostingClassifier(max_iter=5, categorical_features=list(categorical))
    assert trees.fit(made, y).score(made, y) == 1


def test_json_there_and_back():
    codes = Codes.fit(pd.DataFrame({"n": [1.0, 2.0], "c": ["x", "y"]}), 9)
    assert Codes.from_json(json.loads(json.dumps(codes.to_json()))) == codes


@pytest.mark.parametrize(
    "harm",
    [
        {"format": "x"},
        {"max_levels": 1},
        {"max_levels": True},
        {"columns": []},
        {"columns": ["n"]},
        {"columns": [{"name": 1, "levels": None}]},
        {"columns": [{"name": "c", "levels": [1]}]},
        {"columns": [{"name": "c", "levels": ["a", "a"]}]},
    ],
)
def test_damaged_json(harm):
    with pytest.raises(sp.FileError):
        Codes.from_json({**Codes.fit(np.eye(2)).to_json(), **harm})


def test_bad_input():
    table = pd.DataFrame({"n": [1.0, 2.0], "c": ["x", "y"]})
    with pytest.raises(sp.KindError, match="max_levels=1"):
        Codes.fit(table, 1)
    with pytest.raises(sp.KindError, match="list"):
        Codes.fit([[1.0]])
    with pytest.raises(sp.DataError, match="other columns"):
        Codes.fit(table).transform(table[["c", "n"]])
    with pytest.raises(sp.DataError, match="array of 2 columns"):
        Codes.fit(table).transform(np.eye(2))
    with pytest.raises(sp.DataError, match='now holds "z" in data row 2'):
        Codes.fit(table).transform(table.assign(n=[1.0, "z"]))
