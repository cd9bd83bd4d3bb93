"""Labels: what is positive is declared, and the sentence for each label that says too little."""

import numpy as np
import pandas as pd
import pytest

from setpoint._core.errors import DataError
from setpoint.datasets import Labelled, labelled, read_table
from setpoint.datasets.labels import plain_positive, spells


def rows(values):
    return pd.DataFrame({"amount": np.arange(len(values)), "fraud": values})


# values, positive given, y expected, positive and negatives as they stand in the table
TAKEN = [
    ([0, 1, 1], None, [0, 1, 1], 1, (0,)),
    ([1.0, 0.0], None, [1, 0], 1.0, (0.0,)),
    ([True, False], None, [1, 0], True, (False,)),
    (pd.array([True, False], dtype="boolean"), None, [1, 0], True, (False,)),
    (pd.Categorical([0, 1]), None, [0, 1], 1, (0,)),
    ([0, 1], 0, [1, 0], 0, (1,)),
    ([0, 1], True, [0, 1], 1, (0,)),
    ([0, 1], np.int64(1), [0, 1], 1, (0,)),
    (["yes", "no"], "yes", [1, 0], "yes", ("no",)),
    (pd.Categorical(["a", "b"], categories=["a", "b", "c"]), "b", [0, 1], "b", ("a",)),
    ([2, 0, 1, 1], 1, [0, 0, 1, 1], 1, (0, 2)),
    (["c", "a", "b"], "a", [0, 1, 0], "a", ("b", "c")),
    # text, as it comes from a command line
    ([0, 1], "1", [0, 1], 1, (0,)),
    ([0, 1], "0", [1, 0], 0, (1,)),
    ([0, 1], "1.0", [0, 1], 1, (0,)),
    ([0.0, 1.0], "1.0", [0, 1], 1.0, (0.0,)),
    ([0.0, 1.0], "1", [0, 1], 1.0, (0.0,)),
    ([0, 1, 2], "2", [0, 0, 1], 2, (0, 1)),
    ([-1, 1], "-1", [1, 0], -1, (1,)),
    ([2**53, 2**53 + 1], str(2**53 + 1), [0, 1], 2**53 + 1, (2**53,)),
    ([True, False], "true", [1, 0], True, (False,)),
    ([True, False], "False", [0, 1], False, (True,)),
    ([True, False], "1", [1, 0], True, (False,)),
    (["0", "1"], "1", [0, 1], "1", ("0",)),
    ([1, "1"], "1", [0, 1], "1", (1,)),
    (pd.to_datetime(["2020-01-01", "2021-01-01"]), "2021-01-01 00:00:00", [0, 1],
     pd.Timestamp("2021-01-01"), (pd.Timestamp("2020-01-01"),)),
]  # fmt: skip


@pytest.mark.parametrize(("values", "given", "y", "positive", "negatives"), TAKEN)
def test_label_taken(values, given, y, positive, negatives):
    found = labelled(rows(values), "fraud", positive=given)
    assert isinstance(found, Labelled)
    assert found.y.dtype == np.int8
    assert found.y.tolist() == y
    assert (found.positive, found.negatives) == (positive, negatives)
    assert type(found.positive) is type(positive)
    assert found.features.columns.tolist() == ["amount"]


REFUSED = [
    (["no", "yes"], None,
     'column "fraud" holds "no", "yes": say which one is positive, for example positive="yes".'),
    (["good", "bad"], None,
     'column "fraud" holds "bad", "good": say which one is positive, for example positive="good".'),
    (["good", "bad", "good"], None,
     'column "fraud" holds "bad", "good": say which one is positive, for example positive="bad".'),
    (["ok", "ok", "fraud", "Fraud", "Fraud"], None,
     'column "fraud" has 3 values ("Fraud", "fraud", "ok"); a binary task needs two. '
     'Say positive="fraud" to set it against the rest.'),
    ([i / 7 for i in range(30)], None,
     'column "fraud" (label) holds 30 different numbers, and a label has few: '
     "are the label and the score swapped?"),
    (["0", "1"], None,
     'column "fraud" holds "0", "1": say which one is positive, for example positive="1".'),
    ([-1, 1], None,
     'column "fraud" holds -1, 1: say which one is positive, for example positive=1.'),
    ([1, "a"], None,
     'column "fraud" holds 1, "a": say which one is positive, for example positive=1.'),
    ([0, 1, 2], None,
     'column "fraud" has 3 values (0, 1, 2); a binary task needs two. '
     "Say positive=2 to set it against the rest."),
    (["a", "b", "c"], None,
     'column "fraud" has 3 values ("a", "b", "c"); a binary task needs two. '
     'Say positive="c" to set it against the rest.'),
    (range(20), None,
     'column "fraud" has 20 values (0, 1, 2, 3, 4, 5, 6, 7, …); a binary task needs two. '
     "Say positive=19 to set it against the rest."),
    (["no", "yes"], "yse",
     'positive="yse" does not occur in column "fraud", which holds "no", "yes". '
     'Did you mean positive="yes"?'),
    (["no", "yes"], "Yes",
     'positive="Yes" does not occur in column "fraud", which holds "no", "yes". '
     'Did you mean positive="yes"?'),
    (["0", "1"], 1,
     'positive=1 does not occur in column "fraud", which holds "0", "1". '
     'Did you mean positive="1"?'),
    ([0, 1], 2, 'positive=2 does not occur in column "fraud", which holds 0, 1.'),
    ([0, 1], "true", 'positive="true" does not occur in column "fraud", which holds 0, 1.'),
    ([0, 1], "nan", 'positive="nan" does not occur in column "fraud", which holds 0, 1.'),
    ([0, 0, 0], None,
     'column "fraud" (label) holds only 0, in all 3 rows; give rows of both kinds.'),
    (["no", "no"], "yes",
     'column "fraud" (label) holds only "no", in all 2 rows; give rows of both kinds.'),
    ([0, None, 1, None], None,
     'column "fraud" (label) has 2 missing values, the first in data row 2; '
     "give each row a value or drop it."),
    (["yes", "no", None], "yes",
     'column "fraud" (label) has 1 missing value, the first in data row 3; '
     "give each row a value or drop it."),
    ([], None, 'column "fraud" (label) has no rows.'),
    ([[1], [2]], None,
     'column "fraud" (label) holds list values; '
     "a label is one number, text or truth value a row."),
]  # fmt: skip


@pytest.mark.parametrize(("values", "given", "sentence"), REFUSED)
def test_label_refused(values, given, sentence):
    with pytest.raises(DataError) as caught:
        labelled(rows(values), "fraud", positive=given)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("values", "positive", "with_signs"),
    [
        ([0, 1], 1, 1),
        ([0.0, 1.0], 1.0, 1.0),
        ([False, True], True, True),
        ([0], 1, 1),  # a batch of negatives alone
        ([1], 1, 1),
        ([-1, 1], None, 1),
        ([-1], None, None),
        ([0, 1, 2], None, None),
        (["0", "1"], None, None),
    ],
)
def test_values_whose_positive_is_plain(values, positive, with_signs):
    assert plain_positive(values) == positive
    assert type(plain_positive(values)) is type(positive)
    assert plain_positive(values, signs=True) == with_signs


@pytest.mark.parametrize(
    ("stated", "value", "same"),
    [
        ("1.0", True, True),
        (" True", True, True),
        ("false", True, False),
        (1, True, True),
        (str(2**53 + 1), 2**53, False),
        (1, pd.Timestamp("2021-01-01"), False),
        ("Yes", "yes", False),
        (1, "1", False),
    ],
)
def test_a_stated_label_and_a_value(stated, value, same):
    assert spells(stated, value) is same


def test_label_column_missing():
    with pytest.raises(DataError) as caught:
        labelled(rows([0, 1]), "frad")
    assert str(caught.value) == (
        'there is no column "frad" (label). Did you mean "fraud"? '
        'The columns are "amount", "fraud".'
    )


def test_the_way_out_of_a_sentence_works():
    assert labelled(rows(["no", "yes"]), "fraud", positive="yes").y.tolist() == [0, 1]
    assert labelled(rows([0, 1, 2]), "fraud", positive=1).y.tolist() == [0, 1, 0]


def test_record_is_frozen_and_prints_short():
    found = labelled(rows([0, 1]), "fraud")
    with pytest.raises(AttributeError):
        found.positive = 0
    assert repr(found) == "Labelled(positive=1, negatives=(0,))"


def test_table_is_not_changed():
    table = rows([0, 1])
    labelled(table, "fraud")
    assert table.columns.tolist() == ["amount", "fraud"]


@pytest.mark.parametrize(
    ("text", "given"),
    [("0\n1\n", None), ("true\nfalse\n", None), ("yes\nno\n", "yes"), ("1.0\n0.0\n", "1")],
)
def test_from_a_file_to_a_label(tmp_path, text, given):
    lines = ["x,fraud", *(f"{i},{value}" for i, value in enumerate(text.split()))]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    found = labelled(read_table(tmp_path / "a.csv"), "fraud", positive=given)
    positive = [value in ("1", "1.0", "true", "yes") for value in text.split()]
    assert found.y.tolist() == positive
