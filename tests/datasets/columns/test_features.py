"""Features against scikit-learn, weights against repetition, and a sentence for each refusal."""

import datetime
import json
from decimal import Decimal
from fractions import Fraction

import hypothesis.extra.numpy as arrays
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from setpoint._core.errors import DataError, FileError, KindError
from setpoint.datasets.columns.features import Features

NAN = float("nan")
DAY = pd.Timestamp("2024-05-01")
MIXED = pd.DataFrame(
    {
        "age": [31.0, None, 45.0, 60.0, 22.0, 31.0],
        "member": [True, False, True, True, False, False],
        "plan": ["a", "b", None, "a", "b", "a"],
        "city": pd.Categorical(["x", "y", "z", "x", "y", "q"], categories=list("qxyzw")),
    }
)


def rng():
    return np.random.default_rng(0)


def encoded(X, **options):
    features = Features.fit(X, **options)
    return dict(zip(features.names, features.transform(X).T.tolist(), strict=True))


# --- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, rng().integers(0, 4, 200), rng().random(200)])
def test_plain_is_the_standard_scaler(weights):
    X = rng().lognormal(size=(200, 3)) * [1, 1e6, 1e-6] + [0, -5, 1]
    ours = Features.fit(X, weights, tails="plain").transform(X)
    theirs = StandardScaler().fit(X, sample_weight=weights).transform(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_robust_is_the_standard_scaler_where_there_are_no_tails():
    r = rng()
    X = np.column_stack([r.uniform(size=300), r.integers(0, 2, 300), r.random(300) < 0.02])
    theirs = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(Features.fit(X).transform(X), theirs, rtol=1e-4, atol=1e-5)


def test_robust_keeps_the_order_and_tames_the_tails():
    x = np.sort(rng().standard_cauchy(5000))[:, None]
    plain, robust = (Features.fit(x, tails=t).transform(x)[:, 0] for t in ("plain", "robust"))
    assert (np.diff(robust[np.diff(x[:, 0], prepend=-1e9) > 1e-3]) > 0).all()
    assert abs(plain).max() > 30 > 10 > abs(robust).max()


def test_robust_is_the_formula():
    x = np.append(rng().normal(size=399), 50.0)
    ordered = np.sort(x)
    iqr = ordered[299] - ordered[99]  # the least values with 3/4 and 1/4 at or below them
    r = 1.3489795 * (x - ordered[199]) / iqr
    g = np.where(abs(r) <= 3, r, np.sign(r) * (3 + np.log1p(np.maximum(abs(r) - 3, 0))))
    np.testing.assert_allclose(
        Features.fit(x[:, None]).transform(x[:, None])[:, 0], (g - g.mean()) / g.std(), rtol=1e-4
    )


@pytest.mark.parametrize("tails", ["robust", "plain"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_weighted_mean_is_0_and_sd_1_over_the_values_present(data, tails):
    n = data.draw(st.integers(2, 40))
    cell = st.one_of(st.integers(-1000, 1000).map(float), st.just(NAN))
    x = np.array(data.draw(st.lists(cell, min_size=n, max_size=n)))
    w = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    used = (w > 0) & ~np.isnan(x)
    if not (w > 0).any() or len(np.unique(x[used])) < 2:
        return
    z = Features.fit(x[:, None], w, tails=tails).transform(x[:, None])[:, 0]
    mean = np.average(z[used], weights=w[used])
    assert mean == pytest.approx(0, abs=1e-4)
    assert np.average((z[used] - mean) ** 2, weights=w[used]) == pytest.approx(1, abs=1e-4)
    assert (z[np.isnan(x)] == 0).all()


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.one_of(
            st.floats(allow_infinity=False, allow_nan=True), st.sampled_from([0.0, 1e300, -1e300])
        ),
    ),
    st.sampled_from(["robust", "plain"]),
    st.integers(0, 11),
)
@settings(max_examples=200, deadline=None)
def test_output_is_finite_for_anything_finite_or_missing(X, tails, seen):
    features = Features.fit(X[: seen + 1], tails=tails)
    Z = features.transform(X)
    assert Z.dtype == np.float32
    assert Z.shape == (len(X), len(features.names))
    assert np.isfinite(Z).all()
    assert abs(Z).max() <= 1e4


def test_largest_floats_are_standardised_as_small_ones_are():
    x = np.array([-1.0, 0.5, 1.0, 1.0, 0.9])[:, None]
    for tails in ("robust", "plain"):
        small = Features.fit(x, tails=tails).transform(x)
        for unit in (1e300, 1.79e308, 1e-300):
            large = Features.fit(x * unit, tails=tails).transform(x * unit)
            np.testing.assert_allclose(large, small, rtol=1e-5)


def test_a_value_far_outside_is_cut_and_does_not_overflow():
    X = [[0.0], [1e-300]]
    assert Features.fit(X, tails="plain").transform([[1e300], [-1e300]]).tolist() == [[1e4], [-1e4]]
    top, bottom = Features.fit(X).transform([[1e300], [-1e300]])[:, 0]
    assert 100 < top <= 1e4
    assert -1e4 <= bottom < -100


def test_missing_values_are_the_mean_and_flagged_if_some_were_missing_when_fitted():
    assert encoded([[1.0, 5], [3.0, None], [NAN, 7]], tails="plain") == {
        "x0": [-1, 1, 0],
        "x0 (missing)": [0, 0, 1],
        "x1": [-1, 0, 1],
        "x1 (missing)": [0, 1, 0],
    }
    features = Features.fit([[1.0], [3.0]])
    assert features.names == ("x0",)
    assert features.transform([[NAN], [None], [3.0]]).tolist() == [[0], [0], [1]]


def test_a_column_of_one_value_or_none_is_0_always_and_noted():
    features = Features.fit([[0.1, None]] * 3)
    assert features.transform([[0.1, None], [-1.7e308, 5]]).tolist() == [[0, 0, 1], [0, 0, 0]]
    assert features.notes == (
        'column "x0" holds one value only (0.1): it is 0 in every row.',
        'column "x1" holds no value: it is 0 in every row.',
    )


def test_one_row_will_do():
    assert Features.fit([[1.0, "a"]]).transform([[1.0, "a"]]).tolist() == [[0, 1]]


NUMBERS = [1, 0, 1, 1]
TYPED = [
    np.array(NUMBERS, dtype=np.int8),
    np.array(NUMBERS, dtype=np.uint64),
    np.array(NUMBERS, dtype=np.float16),
    np.array(NUMBERS, dtype=bool),
    np.array(NUMBERS, dtype=object),
    np.array([True, 0, Decimal(1), Fraction(1, 1)], dtype=object),
    pd.array(NUMBERS, dtype="Int64"),
    pd.array(NUMBERS, dtype="Float64"),
    pd.array([True, False, True, True], dtype="boolean"),
    pd.array(NUMBERS, dtype="int64[pyarrow]"),
    pd.array([True, False, True, True], dtype="bool[pyarrow]"),
    pd.array([Decimal(1), Decimal(0), Decimal(1), Decimal(1)], pd.ArrowDtype(pa.decimal128(5, 2))),
]


@pytest.mark.parametrize("column", TYPED, ids=lambda c: str(c.dtype))
def test_numbers_of_every_type_are_the_same_numbers(column):
    truth = StandardScaler().fit_transform(np.array(NUMBERS, dtype=float)[:, None])
    frame = pd.DataFrame({"a": column, "text": ["u", "v", "u", "v"]})
    for X in (frame, frame[["a"]]):
        np.testing.assert_allclose(Features.fit(X).transform(X)[:, :1], truth, rtol=1e-6)


@pytest.mark.parametrize(
    "dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]"]
)
def test_missing_in_nullable_types(dtype):
    frame = pd.DataFrame({"a": pd.array([1, None, 0], dtype=dtype)})
    assert encoded(frame) == {"a": [1, 0, -1], "a (missing)": [0, 1, 0]}


def test_arrays_lists_tensors_frames_and_masks_agree():
    X = rng().normal(size=(20, 3)).astype(np.float32)
    truth = Features.fit(X).transform(X)
    for same in (X.astype(object), X.tolist(), torch.tensor(X), np.asfortranarray(X), X[::1]):
        assert Features.fit(same) == Features.fit(X)
        np.testing.assert_array_equal(Features.fit(same).transform(same), truth)
    frame = pd.DataFrame(X)
    np.testing.assert_array_equal(Features.fit(frame).transform(frame), truth)
    masked = np.ma.array(X, mask=X > 1)
    holes = Features.fit(np.where(X > 1, np.nan, X.astype(float)))
    assert Features.fit(masked) == holes


# --- categories --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [object, "str", "string", "string[pyarrow]", "category", "dictionary"]
)
def test_levels_are_the_one_hot_encoder(dtype):
    values = rng().choice(["red", "green", "blue", "red "], size=60)
    if dtype == "dictionary":
        dtype = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object).astype(dtype)})
    features = Features.fit(frame)
    np.testing.assert_array_equal(
        features.transform(frame), OneHotEncoder(sparse_output=False).fit_transform(values[:, None])
    )
    assert features.names == ("c=blue", "c=green", "c=red", "c=red ")


@pytest.mark.parametrize(("max_levels", "min_count"), [(64, 12), (3, 1), (1, 1), (64, 1)])
def test_rare_levels_are_the_infrequent_ones_of_the_one_hot_encoder(max_levels, min_count):
    # no two equally frequent: scikit-learn does not say which of them it takes
    values = rng().permutation(np.repeat(list("abcdefg"), [19, 30, 25, 13, 5, 3, 2]))
    features = Features.fit(values[:, None], max_levels=max_levels, min_count=min_count)
    theirs = OneHotEncoder(
        sparse_output=False,
        min_frequency=min_count,
        max_categories=max_levels + 1,
        handle_unknown="infrequent_if_exist",
    ).fit(values[:, None])
    new = np.array([*"abcdefg", "unknown"])[:, None]
    np.testing.assert_array_equal(features.transform(new), theirs.transform(new))


def test_two_levels_need_one_column():
    values = np.array([["no"], ["yes"], ["yes"]])
    features = Features.fit(values, min_count=1)
    theirs = OneHotEncoder(sparse_output=False, drop="if_binary").fit_transform(values)
    np.testing.assert_array_equal(features.transform(values), theirs)
    assert features.names == ("x0=yes",)
    assert Features.fit([["no"], ["yes"], [None]], min_count=1).names == (
        "x0=no",
        "x0=yes",
        "x0 (missing)",
    )


def test_missing_and_unknown_levels():
    seen = [["a"], ["a"], ["b"], ["b"], ["c"], ["c"], ["d"], [None], [NAN], [pd.NA]]
    features = Features.fit(seen)
    assert features.names == ("x0=a", "x0=b", "x0=c", "x0 (other)", "x0 (missing)")
    new = features.transform([["b"], ["d"], ["unknown"], [None], [3]])
    assert new.argmax(axis=1).tolist() == [1, 3, 3, 4, 3]
    assert new.sum() == 5
    plain = Features.fit([["a"], ["b"], ["c"]] * 2)  # nothing rare, nothing missing
    assert plain.transform([["unknown"], [None], ["c"]]).tolist() == [[0] * 3, [0] * 3, [0, 0, 1]]


def test_equally_frequent_levels_are_taken_by_name():
    rows = [["d"], ["b"], ["c"], ["a"]] * 3
    assert Features.fit(rows, max_levels=2).names == ("x0=a", "x0=b", "x0 (other)")
    assert Features.fit(rows[::-1], max_levels=2) == Features.fit(rows, max_levels=2)


def test_too_many_levels_are_noted():
    ids = [[f"id{i}"] for i in range(100)]
    features = Features.fit(ids)
    assert features.names == ("x0 (other)",)
    assert features.notes == (
        'column "x0" has 100 levels, none of them in 2 rows: all share the column "x0 (other)".',
    )
    assert Features.fit(ids * 10, max_levels=5).notes == (
        'column "x0" has 100 levels; the 5 most frequent have their own columns, the rest share '
        'the column "x0 (other)".',
    )


def test_rare_by_default_is_one_row_in_a_hundred_from_2_to_10():
    def kept(n, times):
        return "x0=b" in Features.fit([["b"]] * times + [["a"], ["c"]] * ((n - times) // 2)).names

    for n, least in ((50, 2), (600, 6), (5000, 10)):
        assert kept(n, least)
        assert not kept(n, least - 1)


def test_weights_of_any_unit_keep_the_frequent_levels():
    rows = [["a"]] * 50 + [["b"]] * 50 + [["c"]]
    shares = np.full(101, 1 / 101)
    assert Features.fit(rows, shares) == Features.fit(rows)
    assert Features.fit(rows, shares * 1e-300).names == Features.fit(rows).names
    assert Features.fit(rows, np.full(101, 1e308)).names == ("x0=a", "x0=b", "x0=c")


def test_numbers_among_texts_are_texts():
    cells = [1, 1.0, "1", True, "True", 0.5, "a", 10**400, pd.Interval(0, 1)]
    column = np.empty((len(cells), 1), dtype=object)
    column[:, 0] = cells
    names = Features.fit(column, min_count=1).names
    assert names == tuple(f"x0={t}" for t in sorted({str(c) for c in cells} - {"1.0"}))
    features = Features.fit(np.array([["a"], [1], ["b"]], dtype=object), min_count=1)
    assert features.transform([[1.0], [1]]).tolist() == [[1, 0, 0]] * 2
    assert features.transform(np.array([[1.0], [NAN]])).tolist() == [[1, 0, 0], [0, 0, 0]]


def test_declared_categories_are_levels_even_of_numbers_and_only_if_they_occur():
    frame = pd.DataFrame({"c": pd.Categorical([3, 1, 3, 2], categories=[3, 2, 1, 0])})
    assert Features.fit(frame, min_count=1).names == ("c=1", "c=2", "c=3")
    cut = pd.DataFrame({"c": pd.cut([1, 2, 8, 9], [0, 5, 10])})
    assert Features.fit(cut).names == ("c=(5, 10]",)
    as_objects = cut.to_numpy(dtype=object)
    np.testing.assert_array_equal(Features.fit(cut).transform(as_objects), [[0], [0], [1], [1]])


def test_texts_that_look_like_numbers_stay_texts():
    assert Features.fit(np.array([["1"], ["2"], ["3"]] * 2)).names == ("x0=1", "x0=2", "x0=3")
    assert Features.fit([["1", 1], ["2", 2]] * 2).names == ("x0=2", "x1")


# --- rows, columns, weights --------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-5, 5), st.floats(-1e3, 1e3)),
        st.one_of(st.none(), st.sampled_from("abcd"), st.integers(0, 2), st.booleans()),
        st.booleans(),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=30,
)


def table(rows):
    frame = pd.DataFrame({"n": [None] * len(rows), "c": None, "b": None}, dtype=object)
    for j in range(3):
        frame.isetitem(j, pd.Series([row[j] for row in rows], dtype=object))
    return frame


@given(rows=ROWS, seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_weights_are_repetition_and_weight_0_is_absence(rows, seed):
    weights = np.array([row[3] for row in rows])
    if not weights.any():
        return
    X = table(rows)
    repeated = X.iloc[np.repeat(np.arange(len(rows)), weights)]
    present = X.iloc[np.flatnonzero(weights)]
    a, b = Features.fit(X, weights, min_count=2), Features.fit(repeated, min_count=2)
    assert a.names == b.names
    np.testing.assert_allclose(a.transform(present), b.transform(present), rtol=1e-4, atol=1e-4)


@given(rows=ROWS, seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_order_of_rows_does_not_matter(rows, seed):
    X = table(rows)
    order = np.random.default_rng(seed).permutation(len(rows))
    features = Features.fit(X)
    np.testing.assert_array_equal(features.transform(X.iloc[order]), features.transform(X)[order])
    again = Features.fit(X.iloc[order])
    assert again.names == features.names
    np.testing.assert_allclose(again.transform(X), features.transform(X), rtol=1e-4, atol=1e-4)


def test_rows_of_weight_0_may_hold_anything():
    X = np.array([[1.0], [3.0], [np.inf]])
    assert Features.fit(X, [1, 1, 0]) == Features.fit(X[:2])
    X = [[1.0], [3.0], [{}]]
    assert Features.fit(X, [1, 1, 0]) == Features.fit([[1.0], [3.0]])


def test_rows_are_counted_in_the_table_given():
    weights = [0, 1, 1, 1]
    for X, sentence in (
        ([[1.0], [1.0], [1.0], [np.inf]], 'column "x0" is infinite in data row 4'),
        ([["a"], ["a"], [{}], ["b"]], 'column "x0" holds {} (dict) in data row 3'),
        (pd.DataFrame({"x": [1, 2, 3, DAY]}, index=list("abcd")), "the first in data row 4"),
        ([["a"], ["a"], ["b"], [DAY]], "the first in data row 4"),
        ([[1], [2], [10**400], [3]], "in data row 3"),
    ):
        with pytest.raises((DataError, KindError)) as refusal:
            Features.fit(X, weights)
        assert sentence in str(refusal.value)


def test_many_rows_are_as_few():
    X = rng().normal(size=(70_000, 3))
    X[::5, 1] = np.nan
    features = Features.fit(X)
    parts = [features.transform(part) for part in np.array_split(X, 7)]
    np.testing.assert_array_equal(features.transform(X), np.concatenate(parts))
    X[69_000, 2] = np.inf
    with pytest.raises(DataError, match='column "x2" is infinite in data row 69001'):
        features.transform(X)


@pytest.mark.parametrize("X", [MIXED, MIXED[["age", "member"]]], ids=["mixed", "numbers"])
def test_columns_are_found_by_name(X):
    features = Features.fit(X)
    truth = features.transform(X)
    np.testing.assert_array_equal(features.transform(X[X.columns[::-1]]), truth)
    np.testing.assert_array_equal(features.transform(X.to_numpy(dtype=object)), truth)
    unnamed = Features.fit(X.to_numpy(dtype=object))
    np.testing.assert_array_equal(unnamed.transform(X), unnamed.transform(X.to_numpy(object)))


def test_a_mixed_table():
    features = Features.fit(MIXED)
    assert features.n_inputs == 4
    assert features.names == (
        "age",
        "age (missing)",
        "member",
        "plan=a",
        "plan=b",
        "plan (missing)",
        "city=x",
        "city=y",
        "city (other)",
    )
    assert features.transform(MIXED)[:, 3:].argmax(axis=1).tolist() == [0, 1, 2, 0, 1, 0]


def test_the_table_is_left_alone():
    X = rng().normal(size=(10, 2)) * 100
    before = X.copy()
    Features.fit(X).transform(X)
    np.testing.assert_array_equal(X, before)


# --- records -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tails", ["robust", "plain"])
def test_json_gives_the_same_features_back(tails):
    X = MIXED.assign(wild=rng().standard_cauchy(6) * 1e300, id=list("abcdef"), c=1)
    features = Features.fit(X, tails=tails)
    for data in (features.to_json(), json.loads(json.dumps(features.to_json(), allow_nan=False))):
        again = Features.from_json(data)
        assert again == features
        assert hash(again) == hash(features)
        np.testing.assert_array_equal(again.transform(X), features.transform(X))


def test_features_are_frozen():
    with pytest.raises(AttributeError):
        Features.fit([[1.0]]).tails = "plain"


GOOD = Features.fit(MIXED).to_json()


def broken(column=None, **parts):
    data = json.loads(json.dumps(GOOD))
    if column is None:
        return data | parts
    data["columns"][column] |= parts
    return data


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], 'the format is "list", not "setpoint features 1"'),
        ({}, 'these are no features: the format is "None"'),
        (broken(tails="odd"), 'these features are damaged: tails is "odd", not one of robust'),
        (broken(named=1), "named is 1, not true or false"),
        (broken(columns=[]), "there is no list of columns"),
        (broken(columns=[3]), "column 1 is neither a number nor a category"),
        (broken(columns=GOOD["columns"] * 2), "two columns have one name"),
        (broken(notes=[1]), "notes is no list of sentences"),
        (broken(0, kind="os.system"), "column 1 is neither a number nor a category"),
        (
            broken(0, extra=1),
            "column 1 has the parts name, centre, scale, mean, sd, missing, extra",
        ),
        (broken(0, name=3), "the name of column 1 is no text"),
        (broken(0, mean="1"), 'a part of column "age" is no finite number'),
        (broken(0, centre=NAN), 'a part of column "age" is no finite number'),
        (broken(0, scale=0), 'the scale of column "age" is not positive'),
        (broken(2, levels="ab"), 'the levels of column "plan" are no list of texts'),
        (broken(2, levels=["b", "a"]), 'the levels of column "plan" are not sorted'),
        (broken(2, other=0), 'other is no truth value for column "plan"'),
    ],
)
def test_damaged_records_are_refused(data, sentence):
    with pytest.raises(FileError) as error:
        Features.from_json(data)
    assert sentence in str(error.value)


# --- refusals ----------------------------------------------------------------------------------

DATES = 'column "d" holds dates or durations'
WAY = 'turn them into numbers, for example days: (X["d"] - start) / pandas.Timedelta(days=1)'


def one(values, **kind):
    return pd.DataFrame({"d": pd.Series(values, **kind)})


@pytest.mark.parametrize(
    ("X", "error", "sentence"),
    [
        ([1.0, 2.0], DataError, "Expected 2D array, but X has 1 dimension; give rows and columns"),
        (pd.Series([1.0]), DataError, "Reshape your data: X.reshape(-1, 1) is one column"),
        (["a", "b"], DataError, "X has 1 dimension"),
        (3.0, DataError, "X has 0 dimensions"),
        (np.zeros((2, 2, 2)), DataError, "X has 3 dimensions; give rows and columns."),
        ([[[1], [2]], [[1], [2]]], DataError, "X has 3 dimensions"),
        ([], DataError, "X has 1 dimension"),
        (np.zeros((0, 3)), DataError, "X has 0 sample(s) (shape=(0, 3)); at least one row"),
        (np.zeros((3, 0)), DataError, "0 feature(s) (shape=(3, 0)) while a minimum of 1 is"),
        (pd.DataFrame({"a": []}), DataError, "X has 0 sample(s)"),
        ([[], []], DataError, "0 feature(s)"),
        (None, KindError, "X is a NoneType; give a table"),
        ("text", KindError, "X is a str; give a table"),
        ({"a": [1]}, KindError, "X is a dict; give a table: a data frame, or rows of cells."),
        ([[1, 2], [3]], DataError, "X is ragged: data row 1 has 2 cells, data row 2 has 1;"),
        ([[1, 2], 3], DataError, "X has rows that are no lists of cells"),
        (sparse.csr_matrix(np.eye(2)), KindError, "X is sparse; give a dense table"),
        (sparse.csr_array(np.eye(2)), KindError, "X is sparse"),
        (one(pd.arrays.SparseArray([0, 1])), KindError, 'column "d" is sparse; give dense'),
        (np.array([[1j]]), DataError, "Complex data not supported: X holds complex numbers"),
        ([[1j, 2]], DataError, "Complex data not supported"),
        (one([1j]), DataError, 'Complex data not supported: column "d"'),
        (np.array([[1j, 2]], dtype=object), DataError, 'not supported: column "x0"'),
        (np.array([[np.inf, 1]]), DataError, 'column "x0" is infinite in data row 1; give a fin'),
        ([[1, 2], [3, -np.inf]], DataError, 'column "x1" is infinite in data row 2'),
        (one([1.0, np.inf], dtype="Float64"), DataError, 'column "d" is infinite in data row 2'),
        ([[1], [10**400]], DataError, 'column "x0" holds a number too large for a 64-bit float in'),
        (one([DAY, None]), DataError, DATES + "; " + WAY),
        (one([DAY], dtype="datetime64[ns, UTC]"), DataError, WAY),
        (one([DAY - DAY]), DataError, DATES),
        (one([DAY.to_period("M")]), DataError, DATES),
        (one([None, DAY], dtype=object), DataError, DATES + ", the first in data row 2; "),
        (one(["a", DAY], dtype=object), DataError, DATES + ", the first in data row 2; "),
        (one([datetime.date(2024, 5, 1)], dtype=object), DataError, DATES),
        (one([datetime.time(1)], dtype=object), DataError, DATES),
        (one([DAY], dtype="timestamp[s][pyarrow]"), DataError, DATES),
        (one([datetime.date(2024, 5, 1)], dtype="date32[pyarrow]"), DataError, DATES),
        (np.array([["2024-05-01"]], dtype="M8[D]"), DataError, "X holds dates or durations; turn"),
        ([[1], [{"foo": "bar"}]], KindError, "column \"x0\" holds {'foo': 'bar'} (dict) in data r"),
        ([[[1, 2], 3], [4, 5]], KindError, 'column "x0" holds [1, 2] (list) in data row 1'),
        (one([[1], [2]]), KindError, 'column "d" holds [1] (list) in data row 1'),
        (one([b"a", b"b"]), KindError, "column \"d\" holds b'a' (bytes) in data row 1"),
        (np.array([[b"a"]]), KindError, "X is an array of |S1; give X.astype(str)."),
        (np.zeros((2, 2), dtype=[("a", int)]), KindError, "give a data frame."),
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            DataError,
            '2 columns are named "a"; rename all but one.',
        ),
    ],
)
def test_what_is_no_table_of_features_is_refused(X, error, sentence):
    with pytest.raises(error) as refusal:
        Features.fit(X)
    assert sentence in str(refusal.value)


def test_a_strange_cell_is_refused_in_the_words_scikit_learn_expects():
    X = rng().uniform(size=(5, 2)).astype(object)
    X[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        Features.fit(X)
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        Features.fit([["a", 1], ["b", 1]]).transform(X)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (MIXED.drop(columns=["age", "city"]), 'X lacks the columns "age", "city"; it has "member"'),
        (MIXED.rename(columns={"age": "Age"}), 'X lacks the column "age"; it has "Age", "member"'),
        (MIXED.assign(y=1), 'X has the column "y", unknown when the features were fitted; drop'),
        (
            np.zeros((2, 3)),
            "X has 3 columns; the features were fitted on 4 columns: "
            '"age", "member", "plan", "city".',
        ),
        (
            MIXED.assign(age="old"),
            'column "age" held numbers when the features were fitted, and now holds "old" in data '
            "row 1; give a number, or leave the cell missing.",
        ),
        (MIXED.assign(age=pd.Categorical(["old"] * 6)), 'now holds "old" in data row 1'),
        (MIXED.assign(age=[1, 2, np.inf] * 2), 'column "age" is infinite in data row 3'),
        (MIXED.assign(plan=DAY), 'column "plan" holds dates or durations'),
    ],
)
def test_another_table_is_refused(X, sentence):
    with pytest.raises(DataError) as refusal:
        Features.fit(MIXED).transform(X)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"tails": "fat"}, DataError, 'tails="fat": choose from robust, plain'),
        ({"max_levels": 0}, DataError, "max_levels=0 must be a whole number, 1 or more"),
        ({"max_levels": 2.5}, DataError, "max_levels=2.5"),
        ({"max_levels": True}, DataError, "max_levels=True"),
        ({"min_count": 0}, DataError, "min_count=0 must be a number above 0"),
        ({"min_count": "2"}, DataError, 'min_count="2"'),
        ({"sample_weight": [1, 2]}, DataError, "sample_weight has shape (2,); X has 3 rows, so g"),
        ({"sample_weight": [1, -1, 0]}, DataError, "sample_weight is -1.0 in data row 2; a weig"),
        ({"sample_weight": [1, 1, NAN]}, DataError, "sample_weight is nan in data row 3"),
        ({"sample_weight": [0, 0, 0]}, DataError, "sample_weight is zero in every row; give at"),
        ({"sample_weight": ["a", "b", "c"]}, KindError, "sample_weight holds what is no number"),
    ],
)
def test_wrong_options_are_refused(options, error, sentence):
    with pytest.raises(error) as refusal:
        Features.fit([[1.0], [2.0], [3.0]], **options)
    assert sentence in str(refusal.value)
