"""A new check is one function with its name, and one row of a table."""

import importlib
import json
import pkgutil

import numpy as np
import pytest

import setpoint as sp
from setpoint.reports import checks
from setpoint.reports.checks import CheckName, CheckRow, table

GOAL = "maximize recall subject to precision >= 0.6"
SP900 = CheckName("SP900", "Rows enough for a toy")


def toy(y, out_of_fold):
    """Ask for a look at a table of more than 100 rows."""
    if len(y) <= 100:
        return SP900.passed(f"{len(y)} rows.")
    return SP900.look(f"{len(y)} rows, {len(out_of_fold.y)} with a score out of fold.")


@pytest.fixture
def row(monkeypatch):
    """Add the one row of the table."""

    def add(needs_table):
        new = CheckRow(SP900, lambda rows: toy(rows.target, rows.out_of_fold), needs_table)
        monkeypatch.setattr(table, "CHECKS", (*table.CHECKS, new))

    return add


def drawn(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def classifier():
    return sp.GoalClassifier(GOAL, "linear", epochs=2, compare=False)


def codes(clf):
    return [check["code"] for check in clf.report_.to_json()["checks"]]


@pytest.mark.parametrize("needs_table", [True, False])
def test_it_stands_in_every_form_of_the_report(row, tmp_path, needs_table):
    row(needs_table)
    clf = classifier().fit(*drawn())
    report = clf.report_
    assert codes(clf) == [row.name.code for row in table.CHECKS]
    assert codes(clf)[-1] == "SP900"
    sentence = f"200 rows, {len(clf.run_.scored[-1].y)} with a score out of fold."
    assert f"SP900 look: {sentence}" in " ".join(str(report).split())
    assert all(text in report.html() for text in ("SP900", SP900.title, sentence))
    assert f"SP900 {SP900.title}: {sentence}" in report.card()
    clf.save(tmp_path / "run")
    saved = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))["checks"]
    assert saved[-1]["code"] == "SP900"


def test_it_is_left_out_where_it_does_not_apply(row):
    """Rows of more than two dimensions are not a table of columns."""
    X, y = drawn()
    images = X[:, None, :]
    row(needs_table=True)
    without = codes(classifier().fit(images, y))
    assert {"SP104", "SP105"} <= set(without)
    assert not {"SP101", "SP102", "SP103", "SP900"} & set(without)
    row(needs_table=False)
    assert codes(classifier().fit(images, y)) == [*without, "SP900"]


def test_every_check_of_the_room_has_its_row():
    names = {
        value
        for module in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}.")
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, CheckName)
    }
    assert {row.name for row in table.CHECKS} == names
    codes_of_rows = [row.name.code for row in table.CHECKS]
    assert codes_of_rows == sorted(set(codes_of_rows))
    assert {"SP101", "SP102", "SP103", "SP104", "SP105"} <= set(codes_of_rows)
