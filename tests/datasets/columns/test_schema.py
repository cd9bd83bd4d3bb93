"""The schema: what the columns of a user's table are, and that later tables are held to it."""

import datetime
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.datasets import Features, Schema
from setpoint.datasets.columns.cell_values import numbers_of
from setpoint.datasets.columns.dates import PARTS, expand, read

N = 60
rng = np.random.default_rng(0)
DAYS = pd.date_range("2023-12-01", periods=N)
WORDS = ["red", "green", "blue"] * 20


def of(cells, name="x", **options):
    """The schema's word on one column; a second keeps the table of use."""
    schema = Schema.fit(
        pd.DataFrame({name: cells, "other": rng.normal(size=len(cells))}), **options
    )
    return schema.columns[0], schema


def gaps(cells):
    return [None if i % 7 == 3 else cell for i, cell in enumerate(cells)]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (rng.normal(size=N), "number"),
        (np.arange(N) / 2, "number"),  # a float is never an id
        (np.arange(N, dtype=float), "number"),
        (rng.integers(0, 5, N), "number"),
        (np.arange(N) ** 3, "number"),  # sorted, but not counted up
        (pd.array(gaps(range(N)), dtype="Int64").astype("Float64"), "number"),
        (gaps([1, 2.5] * 30), "number"),
        (["1,234", "12.5 ", "-3", "1e3"] * 15, "number"),
        ([str(v) for v in rng.normal(size=N)], "number"),
        (["?", *map(str, rng.normal(size=N - 1))], "number"),
        (rng.random(N) < 0.5, "truth"),
        (gaps([True, False] * 30), "truth"),
        (pd.array(gaps([True, False] * 30), dtype="boolean"), "truth"),
        (WORDS, "category"),
        (gaps(WORDS), "category"),
        (pd.Categorical([3, 1, 2] * 20), "category"),
        (["12,5", "7,25"] * 30, "category"),  # a decimal comma is not guessed
        (["007", "010", "123"] * 20, "category"),  # as numbers they would lose their zeros
        ([1, "a", 2.0] * 20, "category"),
        ([None, "yes"] * 30, "category"),  # a value or a gap: that is news
        (["03/04/2024", "04/03/2024"] * 30, "category"),
        (["03.04.2024", "04.03.2024"] * 30, "category"),  # the day may be the month
        (["2024-02-30", "2024-02-28"] * 30, "category"),
        (DAYS, "date"),
        (DAYS.tz_localize("Europe/Berlin"), "date"),
        (DAYS.to_period("D"), "date"),
        ([day.date() for day in DAYS], "date"),
        (gaps(DAYS.strftime("%Y-%m-%d")), "date"),
        (DAYS.strftime("%Y-%m-%d %H:%M"), "date"),
        (DAYS.strftime("%Y-%m-%dT%H:%M:%SZ"), "date"),
        (DAYS.strftime("%Y/%m/%d"), "date"),
        (DAYS.strftime("%d.%m.%Y"), "date"),
        (["0000-00-00", *DAYS.strftime("%Y-%m-%d")[1:]], "date"),
        ([*DAYS[:-1], "unknown"], "date"),
        ([None] * N, "ignored"),
        ([np.nan] * N, "ignored"),
        ([4.0] * N, "ignored"),
        (["a"] * N, "ignored"),
        ([True] * N, "ignored"),
        ([DAYS[0]] * N, "ignored"),
        (["1"] * N, "ignored"),
        (range(N), "ignored"),
        (range(1000 + N, 1000, -1), "ignored"),
        ([str(i) for i in range(N)], "ignored"),
        ([f"{i:x}-{i * i}" for i in range(N)], "ignored"),
        (pd.Categorical([f"{i:x}-{i * i}" for i in range(N)]), "ignored"),
        ([f"call number {i} was about a broken thing" for i in range(N)], "ignored"),
        (["one text that is said of half the rows"] * 30 + [f"{i} is mad" for i in range(30)],
         "ignored"),
    ],
)  # fmt: skip
def test_kinds(cells, kind):
    column, schema = of(cells)
    assert column.kind == kind, schema.notes
    if kind == "ignored":
        assert column.why
        assert any(column.why in note for note in schema.notes)
        assert "x" not in schema.apply(pd.DataFrame({"x": cells, "other": 1.0}))


def shuffled_ids():
    return rng.permutation(10**6 + np.arange(N) * 977)


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "CustomerID", "userId", "order key"])
def test_an_id_by_its_name(name):
    assert of(shuffled_ids(), name)[0].kind == "ignored"
    assert of([f"u{v}" for v in rng.integers(0, 60, N)], name)[0].kind == "ignored"
    assert of(rng.integers(0, 5, N), name)[0].kind == "number"  # few of them: rather a class
    assert of(shuffled_ids() / 7, name)[0].kind == "number"


@pytest.mark.parametrize("name", ["x", "paid", "humidity", "keyboard", "heat_index", "Android"])
def test_no_id_by_its_name(name):
    assert of(shuffled_ids(), name)[0].kind == "number"


def test_reasons_are_said_once_each():
    table = pd.DataFrame({"gone": [None] * N, "same": ["a"] * N, "id": range(N), "v": WORDS})
    schema = Schema.fit(table)
    assert schema.counts() == {"numeric": 0, "category": 1, "date": 0, "ignored": 3}
    assert [column.why for column in schema.columns] == [
        "all its values are missing",
        "it holds one value only (a)",
        "it counts the rows, like an id",
        "",
    ]
    assert schema.inputs == ("v",)
    assert len(schema.notes) == 3


def test_keep_and_drop():
    table = pd.DataFrame({"gone": [None] * N, "same": 1, "id": range(N), "v": WORDS,
                          "code": [f"{i:x}z" for i in range(N)], "day": [DAYS[0]] * N})  # fmt: skip
    keep = ["gone", "same", "id", "code", "day"]
    schema = Schema.fit(table, keep=keep, drop=["v"])
    assert [c.kind for c in schema.columns] == [
        "number", "number", "number", "ignored", "category", "date",
    ]  # fmt: skip
    made = schema.apply(table)
    assert made["gone"].isna().all()
    assert made["id"].tolist() == list(range(N))
    assert "v" not in made
    assert schema.columns[3].why == "dropped on request"


@given(st.lists(st.floats(-1e12, 1e12, allow_nan=False).map(lambda v: round(v, 3)), min_size=1))
def test_numbers_as_texts_are_the_numbers(values):
    for spell in ("{}", "{:,.3f}", " {:.3f} ", "{:e}"):
        texts = [spell.format(v) for v in values]
        assert np.array_equal(numbers_of(texts), [float(t.replace(",", "")) for t in texts])


@pytest.mark.parametrize(
    "text", ["", "1,23", "12,5", "1,2345", "1 234", "0x10", "1_000", "nan", "inf", "٣", "--1", "1e"]
)
def test_texts_that_are_no_numbers(text):
    assert np.isnan(numbers_of([text])).all()


def test_marks_of_missing_numbers():
    cells = ["?", *map(str, np.arange(1, N) / 4)]
    column, schema = of(cells)
    assert column.marks == ("?",)
    assert '"?" is taken as missing (1 row).' in schema.notes[0]
    made = schema.apply(pd.DataFrame({"x": ["?", "0.5", 7, None], "other": 0}))
    assert np.array_equal(made["x"], [np.nan, 0.5, 7, np.nan], equal_nan=True)
    with pytest.raises(sp.DataError, match='column "x" is "!" in data row 2'):
        schema.apply(pd.DataFrame({"x": ["1", "!"], "other": 0}))


@given(st.lists(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2199, 1, 1))))
def test_dates_are_taken_apart_as_by_datetime(moments):
    whole = [m.replace(microsecond=0) for m in moments]
    origin = datetime.datetime(2000, 1, 1)
    wanted = [
        [m.year, m.month, m.weekday(), m.hour, (m - origin).total_seconds() / 86400] for m in whole
    ]
    ways = {
        "iso": "%Y-%m-%dT%H:%M:%S",
        "slashes": "%Y/%m/%d %H:%M:%S",
        "points": "%d.%m.%Y %H:%M:%S",
    }
    for way, spell in ways.items():
        # strftime writes the year 999 without its zero; here all have four digits
        dates = read([m.strftime(spell) for m in whole], way)
        made = np.column_stack(expand(dates, np.datetime64("2000-01-01"), PARTS))
        assert np.allclose(made, np.reshape(wanted, (-1, 5)), rtol=0, atol=1e-9)


def test_a_date_becomes_columns():
    cells = ["2024-05-31 12:30", None, "2024-05-30 00:00"]
    made = of(cells * 10, "when")[1].apply(pd.DataFrame({"when": cells, "other": 0}))
    assert made.columns.tolist() == [
        "when (year)", "when (month)", "when (day of week)", "when (hour)", "when (days)", "other",
    ]  # fmt: skip
    assert made.iloc[0].tolist()[:4] == [2024, 5, 4, 12]
    assert made["when (days)"].tolist()[::2] == [36.5 / 24, 0]
    assert made.iloc[1, :5].isna().all()


def test_without_a_time_of_day_there_is_no_hour():
    assert "when (hour)" not in of(DAYS, "when")[1].names


def test_dates_may_come_in_another_form():
    texts = ["2024-05-13", "2024-06-01"]
    schema = of(["13.05.2024", "01.06.2024"] * 20, "when")[1]
    one = schema.apply(pd.DataFrame({"when": ["13.05.2024", "01.06.2024"], "other": 0}))
    for cells in (texts, pd.to_datetime(texts), [datetime.date(2024, 5, 13), DAYS[0].date()]):
        other = schema.apply(pd.DataFrame({"when": cells, "other": 0}))
        assert other.iloc[0].tolist() == one.iloc[0].tolist()


CELLS = {
    "number": st.one_of(
        st.none(), st.integers(-5, 5), st.sampled_from(["1", " 2.5", "1,000", "?"])
    ),
    "truth": st.one_of(st.none(), st.booleans()),
    "category": st.one_of(
        st.none(), st.sampled_from(["a", "b", "1"]), st.just(1), st.just(DAYS[0])
    ),
    "date": st.one_of(st.none(), st.sampled_from([*DAYS[:3], "2024-05-13"])),
}


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 8), st.integers(0, 7))
def test_rows_are_used_one_by_one(data, rows, start):
    """What becomes of a row does not depend on the rows it comes with."""
    seen = {"number": ["1,500", "2", "?"] + ["7"] * 57, "truth": [True, False] * 30,
            "category": WORDS, "date": DAYS.strftime("%Y-%m-%d")}  # fmt: skip
    schema = Schema.fit(pd.DataFrame(seen))
    assert [c.kind for c in schema.columns] == list(seen)
    table = pd.DataFrame(
        {k: pd.Series([data.draw(s) for _ in range(rows)], dtype=object) for k, s in CELLS.items()}
    )
    whole = schema.apply(table)
    part = schema.apply(table.iloc[start % rows :].convert_dtypes())
    for name in whole:
        a, b = whole[name].iloc[start % rows :].tolist(), part[name].tolist()
        assert [None if pd.isna(v) else v for v in a] == [None if pd.isna(v) else v for v in b]


def table_of_all():
    return pd.DataFrame(
        {
            "amount": rng.normal(size=N),
            "small": rng.normal(size=N).astype("float32"),
            "count": rng.integers(0, 9, N),
            "paid": rng.random(N) < 0.5,
            "plan": gaps(WORDS),
            "when": DAYS,
            "id": range(N),
        }
    )


def test_what_is_made_of_each_kind():
    table = table_of_all()
    made = Schema.fit(table).apply(table)
    kinds = {name: str(dtype) for name, dtype in made.dtypes.items() if "(" not in str(name)}
    assert kinds.pop("plan") == str(table["plan"].dtype)
    assert kinds == {
        "amount": "float64", "small": "float32", "count": "float64", "paid": "float64",
    }  # fmt: skip
    assert set(made["paid"]) == {0.0, 1.0}
    assert Features.fit(made).transform(made).shape[0] == N


def test_columns_are_found_by_name():
    table = table_of_all()
    schema = Schema.fit(table)
    wanted = schema.apply(table)
    other = table.drop(columns="id").iloc[:, ::-1].assign(note="new", more=1)
    pd.testing.assert_frame_equal(schema.apply(other), wanted)
    assert schema.strangers(other) == ("note", "more")
    assert schema.strangers(table) == ()


def test_new_categories_are_fine():
    table = table_of_all()
    schema = Schema.fit(table)
    assert schema.apply(table.assign(plan="gold"))["plan"].tolist() == ["gold"] * N


def test_an_array_of_numbers_is_used_as_it_is():
    for X in (rng.normal(size=(9, 3)), np.ones((4, 2), dtype="float32"), np.eye(3, dtype=int)):
        schema = Schema.fit(X)
        assert schema.apply(X) is X
        assert schema.counts()["numeric"] == X.shape[1]
        frame = pd.DataFrame(X).rename(columns=str)
        assert np.array_equal(schema.apply(frame), X)
        assert np.array_equal(schema.apply(X.astype(object)), X)
        with pytest.raises(sp.DataError, match=f"the model was fitted on {X.shape[1]}"):
            schema.apply(X[:, 1:])


def test_rows_of_cells_are_found_by_place():
    rows = [["a", 1.5], ["b", 2.5], ["a", None]]
    schema = Schema.fit(rows)
    assert [c.kind for c in schema.columns] == ["category", "number"]
    made = schema.apply(rows[::-1])
    assert made["x0"].tolist() == ["a", "b", "a"]
    with pytest.raises(sp.DataError, match="X has 1 column; the model was fitted on 2"):
        schema.apply([["a"]])


BASE = {"amount": [1.5, 2.5], "paid": [True, False], "plan": ["a", "b"], "when": DAYS[:2]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"amount": [1.0, "much"]}, 'column "amount" is "much" in data row 102'),
        ({"amount": [1.0, np.inf]}, 'column "amount" is infinite in data row 102'),
        ({"amount": ["1.0", "1e999"]}, 'column "amount" is infinite in data row 102'),
        ({"amount": ["1.0", "12,5"]}, '"12,5" in data row 102'),
        ({"amount": DAYS[:2]}, 'column "amount" holds dates'),
        ({"paid": [True, "perhaps"]}, '"perhaps" in data row 102.*give true or false'),
        ({"paid": [1, 2]}, '"2" in data row 102'),
        ({"when": ["2024-05-31", "soon"]}, '"soon" in data row 102.*give a date'),
        ({"when": [1, 2]}, '"1" in data row 101'),
    ],
)
def test_cells_of_another_kind(change, says):
    schema = Schema.fit(table_of_all()[list(BASE)])
    schema.apply(pd.DataFrame(BASE))
    with pytest.raises(sp.DataError, match=says):
        schema.apply(pd.DataFrame(BASE | change), first=100)


def test_columns_that_are_not_there():
    schema = Schema.fit(table_of_all())
    with pytest.raises(sp.DataError, match=r'no column "amount".*Did you mean "amout"'):
        schema.apply(table_of_all().rename(columns={"amount": "amout"}))
    doubled = pd.concat([table_of_all(), table_of_all()[["plan"]]], axis=1)
    with pytest.raises(sp.DataError, match='2 columns are named "plan"'):
        schema.apply(doubled)
    with pytest.raises(sp.DataError, match='2 columns are named "plan"'):
        Schema.fit(doubled)
    with pytest.raises(sp.DataError, match="0 sample"):
        schema.apply(table_of_all().head(0))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"keep": ["amuont"]}, sp.DataError, 'no column "amuont" .keep.. Did you mean "amount"'),
        ({"drop": ["zzz"]}, sp.DataError, 'no column "zzz" .drop.'),
        ({"drop": "amount"}, sp.KindError, 'drop=."amount".'),
        ({"drop": ["plan"], "keep": ["plan"]}, sp.DataError, "both in keep and in drop"),
        ({"y": [1, 2]}, sp.DataError, "60 rows and y 2"),
        ({"drop": ["amount", "small", "count", "paid", "plan", "when"]}, sp.DataError,
         "no column is of use"),
    ],
)  # fmt: skip
def test_bad_arguments(given, error, says):
    with pytest.raises(error, match=says):
        Schema.fit(table_of_all(), **given)


def test_tables_that_cannot_be_used():
    with pytest.raises(sp.DataError, match="infinite in data row 2"):
        Schema.fit(pd.DataFrame({"a": [1.0, np.inf]}))
    X = np.zeros((70_001, 2))
    X[70_000, 1] = -np.inf
    with pytest.raises(sp.DataError, match='"x1" is infinite in data row 70001'):
        Schema.fit(X)
    with pytest.raises(sp.KindError, match="keep and drop name columns"):
        Schema.fit(np.eye(3), drop=["x1"])
    with pytest.raises(sp.KindError, match="list"):
        Schema.fit(pd.DataFrame({"a": [[1], [2]]}))
    with pytest.raises(sp.DataError, match=r'2 columns are named "when .year."'):
        Schema.fit(pd.DataFrame({"when": DAYS, "when (year)": rng.normal(size=N)}))


def test_json_there_and_back():
    table = table_of_all().assign(text=["?", *map(str, rng.normal(size=N - 1))])
    schema = Schema.fit(table)
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    assert again.notes == schema.notes
    pd.testing.assert_frame_equal(again.apply(table), schema.apply(table))
    numbers = Schema.fit(np.eye(3))
    assert Schema.from_json(json.loads(json.dumps(numbers.to_json()))) == numbers


@pytest.mark.parametrize(
    "harm",
    [
        {"format": "setpoint features 1"},
        {"form": "rows"},
        {"columns": []},
        {"notes": "none"},
        {"columns": [{"name": "a"}]},
        {"columns": 2 * Schema.fit(np.eye(1)).to_json()["columns"]},
        *(
            {"columns": [{**Schema.fit(np.eye(1)).to_json()["columns"][0], key: value}]}
            for key, value in [("kind", "image"), ("way", "words"), ("marks", [1]), ("name", 3),
                               ("clock", "yes"), ("kind", "date")]
        ),
    ],
)  # fmt: skip
def test_damaged_json(harm):
    with pytest.raises(sp.FileError):
        Schema.from_json({**Schema.fit(np.eye(2)).to_json(), **harm})


def test_memory_stays_within_two_copies():
    n = 20_000
    columns = {f"n{j}": rng.normal(size=n) for j in range(8)}
    table = pd.DataFrame(columns | {f"c{j}": rng.choice(["red", "green"], n) for j in range(4)})
    table["when"] = pd.date_range("2000", periods=n, freq="h").strftime("%Y-%m-%d %H:%M")
    size = table.memory_usage(deep=True).sum()
    schema = Schema.fit(table.head(100))
    for work in (Schema.fit, schema.apply):
        tracemalloc.start()
        made = work(table)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 * size
        del made
