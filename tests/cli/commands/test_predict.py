"""`setpoint predict`: the library's decisions, chunk by chunk, in the label's own words."""

import errno
import json
import os

import numpy as np
import pandas as pd
import pytest
from tests.cli.tables import GOAL, QUICK, people

import setpoint as sp
from setpoint.cli.jobs import predict_job as deciding

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def predict(run, run_folder, tmp_path):
    """Decide a file; the result, and what was written."""

    def call(path, *options, out="decisions.csv", folder=run_folder[0]):
        target = tmp_path / out
        result = run("predict", folder, path, "--out", target, *options)
        read = pd.read_parquet if out.endswith("parquet") else pd.read_csv
        return result, read(target) if target.exists() else None

    return call


@pytest.mark.parametrize("rows", [7, 100, 100_000])
def test_decisions_are_those_of_the_library_whatever_the_chunks(
    predict, run_folder, new_rows, monkeypatch, rows
):
    monkeypatch.setattr(deciding, "ROWS", rows)
    path, table = new_rows()
    result, found = predict(path)
    assert (result.exit_code, result.stderr) == (0, "")
    clf = sp.load(run_folder[0])
    X = table.drop(columns="fraud")
    assert list(found) == ["row", "score", "decision"]
    assert found["row"].tolist() == list(range(1, 301))
    assert found["decision"].tolist() == clf.predict(X).tolist()
    assert found["score"].to_numpy() == pytest.approx(clf.predict_proba(X)[:, 1], abs=1e-12)


def test_the_screen_counts_and_compares(predict, new_rows):
    path, _ = new_rows()
    result, found = predict(path)
    flat = " ".join(result.stdout.split())
    many = int((found["decision"] == 1).sum())
    assert f"Decided fraud = 1: {many} of 300 rows" in flat
    assert "of the certify rows" in flat
    assert 'passed over: "fraud"' in flat
    assert "CAUTION" not in flat


def test_rows_unlike_those_of_the_fit_are_told(predict, new_rows):
    path, _ = new_rows(amount=3.0)
    result, _ = predict(path)
    assert result.exit_code == 0
    assert "CAUTION" in result.stdout
    data = json.loads(predict(path, "--json", "--force")[0].stdout)
    assert data["drift"]["far"] is True
    assert data["decided"]["decision"] == {"1": 300}


def test_ids_stay_the_texts_they_are(predict, new_rows):
    path, table = new_rows(code=[f"{i:04d}" for i in range(300)])
    result, _ = predict(path, "--id", "code", "--id", "account", "--no-score")
    assert result.exit_code == 0, result.stderr
    lines = (path.parent / "decisions.csv").read_text().splitlines()
    assert lines[0] == "code,account,decision"
    assert lines[1].startswith(f"0000,{table['account'][0]},")


def test_all_columns_are_copied(predict, new_rows):
    path, table = new_rows()
    result, found = predict(path, "--all")
    assert result.exit_code == 0, result.stderr
    pd.testing.assert_frame_equal(found[list(table)], table)
    assert list(found)[-2:] == ["score", "decision"]


def test_parquet_in_and_out(predict, new_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(deciding, "ROWS", 64)
    path, table = new_rows()
    table.to_parquet(tmp_path / "new.parquet")
    _, text = predict(path)
    result, found = predict(tmp_path / "new.parquet", "--id", "account", out="d.parquet")
    assert result.exit_code == 0, result.stderr
    assert found["account"].tolist() == table["account"].tolist()
    assert found["decision"].tolist() == text["decision"].tolist()


def test_columns_in_any_order_unknown_categories_and_gaps(predict, run_folder, new_rows):
    path, table = new_rows()
    odd = table[list(table)[::-1]].drop(columns="account").assign(more=1)
    odd.loc[:20, "sex"] = "unheard of"
    odd.loc[5:9, ["age", "day", "amount"]] = None
    odd.to_csv(path, index=False)
    result, found = predict(path)
    assert result.exit_code == 0, result.stderr
    assert len(found) == 300
    assert 'passed over: "fraud", "more"' in " ".join(result.stdout.replace("\n", " ").split())


def test_a_row_that_is_wrong_is_named_by_its_place_in_the_file(predict, new_rows, monkeypatch):
    monkeypatch.setattr(deciding, "ROWS", 50)
    path, table = new_rows()
    bad = table.astype({"amount": object})
    bad.loc[170, "amount"] = "much"
    bad.to_csv(path, index=False)
    result, found = predict(path)
    assert result.exit_code == 2
    assert 'column "amount" is "much" in data row 171' in result.stderr
    assert found is None
    assert [p.name for p in path.parent.iterdir()] == ["new.csv"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="amount"), 'there is no column "amount", on which the model was'),
        (lambda t: t.rename(columns={"amount": "Amount"}), 'Did you mean "Amount"?'),
        (lambda t: t[["fraud"]], "there are no columns"),
        (lambda t: t.head(0), "has a header but no rows"),
    ],
)
def test_tables_that_cannot_be_decided(predict, new_rows, change, said):
    path, table = new_rows()
    change(table).to_csv(path, index=False)
    result, found = predict(path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert found is None


def test_names_that_clash(predict, new_rows):
    path, _ = new_rows(score=1)
    assert predict(path)[0].exit_code == 0
    result, _ = predict(path, "--all", "--force")
    assert result.exit_code == 2
    assert 'has a column "score" already' in result.stderr
    assert "leave --id out" in predict(path, "--all", "--id", "age", "--force")[0].stderr
    assert 'no column "ages" (--id)' in predict(path, "--id", "ages", "--force")[0].stderr


def test_places_that_are_not_written(run, run_folder, new_rows, tmp_path):
    path, _ = new_rows()
    folder = run_folder[0]
    for out, said in (
        (path, "is the file the rows come from"),
        (tmp_path / "d.txt", "must end in .csv or .parquet"),
        (tmp_path / "no" / "d.csv", "there is no folder"),
        (folder / "d.csv", "lies in the run, which is sealed"),
    ):
        result = run("predict", folder, path, "--out", out, "--force")
        assert result.exit_code == 2, out
        assert said in result.stderr
    (tmp_path / "mine.csv").write_text("mine")
    assert "exists; say --force" in run("predict", folder, path, "-o", tmp_path / "mine.csv").stderr
    assert (tmp_path / "mine.csv").read_text() == "mine"


@pytest.mark.parametrize("out", ["d.csv", "d.parquet"])
def test_a_full_disk_leaves_nothing(predict, new_rows, monkeypatch, out):
    path, _ = new_rows()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result, found = predict(path, out=out)
    assert result.exit_code == 2
    assert "No space left on device. Nothing was written." in result.stderr
    assert found is None
    assert [p.name for p in path.parent.iterdir()] == ["new.csv"]


# --- other kinds of rules -------------------------------------------------------------------------


@pytest.fixture
def fitted(run, tmp_path):
    def call(goal, *options, table=None, target="fraud"):
        path, out = tmp_path / "known.csv", tmp_path / "other"
        (people(300) if table is None else table).to_csv(path, index=False)
        args = ("--target", target, "--goal", goal, "--out", out, *QUICK, "--no-compare")
        result = run("fit", path, *args, *options)
        assert result.exit_code in (0, 3), result.stderr
        return out

    return call


def test_the_highest_scores_are_those_of_the_whole_file(predict, fitted, new_rows, monkeypatch):
    monkeypatch.setattr(deciding, "ROWS", 40)
    folder, (path, _) = fitted("maximize precision_at_k(25)"), new_rows()
    result, found = predict(path, folder=folder)
    assert result.exit_code == 0, result.stderr
    assert found["decision"].sum() == 25
    taken = found["decision"] == 1
    assert found["score"][taken].min() >= found["score"][~taken].max()


def test_a_threshold_for_each_group_is_found_by_name(predict, fitted, new_rows):
    goal = 'maximize recall subject to gap(recall, by="sex") <= 0.5'
    folder, (path, table) = fitted(goal, "--kind", "per-group"), new_rows()
    result, found = predict(path, folder=folder)
    assert result.exit_code == 0, result.stderr
    cuts = dict(sp.load(folder).rule_.thresholds)
    by_hand = found["score"] >= table["sex"].map(cuts)
    assert found["decision"].tolist() == by_hand.astype(int).tolist()
    path, _ = new_rows(sex=["f"] * 10 + ["x"] * 290)
    result, _ = predict(path, "--force", folder=folder)
    assert result.exit_code == 2
    assert 'the group "x" in column "sex", data row 11, has no threshold' in result.stderr


def test_what_is_not_decided_is_left_empty(predict, fitted, new_rows):
    folder = fitted("maximize coverage subject to selective_risk <= 0.05")
    result, found = predict(new_rows()[0], folder=folder)
    assert result.exit_code == 0, result.stderr
    low, high = sp.load(folder).rule_.band
    empty = (found["score"] >= low) & (found["score"] < high)
    assert found["decision"].isna().tolist() == empty.tolist()
    assert f"{int(empty.sum())} left empty, undecided" in " ".join(result.stdout.split())


def test_one_class_against_the_rest_in_words(predict, fitted, new_rows):
    table = people(300).assign(fraud=lambda t: t["fraud"].map({0: "no", 1: "yes"}))
    table.loc[:20, "fraud"] = "maybe"
    folder = fitted(GOAL, "--positive", "yes", table=table)
    _, found = predict(new_rows()[0], folder=folder)
    assert set(found["decision"]) == {"yes", "not yes"}


def test_several_classes_have_a_score_each(predict, fitted, new_rows):
    table = people(300).assign(animal=lambda t: pd.cut(t["amount"], 3, labels=["a", "b", "c"]))
    folder = fitted("maximize accuracy", table=table.drop(columns="fraud"), target="animal")
    _, found = predict(new_rows()[0], folder=folder)
    scores = found[["score_a", "score_b", "score_c"]].to_numpy()
    assert scores.sum(1) == pytest.approx(np.ones(300))
    offsets = sp.load(folder).rule_.offsets
    assert found["decision"].tolist() == ["abc"[i] for i in (scores + np.array(offsets)).argmax(1)]
