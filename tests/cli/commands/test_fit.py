"""`setpoint fit`: what it prints is what it wrote, and what it wrote is what the library finds."""

import collections
import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score, recall_score
from tests.cli.tables import GOAL, QUICK, people

import setpoint as sp
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.duration import seconds_of
from setpoint.cli.inputs.fit_table import Uses, read_given
from setpoint.cli.words import in_words
from setpoint.goals import Goal

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def fit(run, tmp_path):
    """Fit on a table quickly; the result, and the folder."""

    def call(table, *options, goal=GOAL, target="fraud", model=QUICK):
        path = tmp_path / "table.csv"
        if table is not None:
            table.to_csv(path, index=False)
        out = tmp_path / "run"
        given = ("--target", target, "--goal", goal, "--out", out)
        return run("fit", path, *given, *model, *options), out

    return call


def test_the_screen_tells_the_whole_story(run_folder):
    _, _, result = run_folder
    flat = " ".join(result.stdout.split())
    for said in (
        f"Goal {GOAL}",
        "known.csv: 600 rows, 5 columns",
        "fraud = 1 is positive (",
        "Plan train 450 (",
        "Operating point score >=",
        "never used before",
        "Certificate PROVEN at 95%: precision >= 0.6",
        "Referee",
        "lightgbm + tuned threshold",
        "Price",
        'column "account" is ignored',
        "Report",
        "predict",
    ):
        assert said in flat, said
    plan, outcome = result.stdout.index("Plan"), result.stdout.index("Operating point")
    assert plan < outcome
    assert result.stderr == ""
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_figures_are_those_of_scikit_learn(run_folder):
    folder, table, _ = run_folder
    rows, split = pd.read_csv(table), pd.read_csv(folder / "splits.csv")
    kept = rows[split["part"] == "certify"]
    decided = sp.load(folder).predict(kept.drop(columns="fraud"))
    found = {f["name"]: f["value"] for f in SavedRun.open(folder).figures}
    assert found["recall"] == pytest.approx(recall_score(kept["fraud"], decided), abs=1e-12)
    assert found["precision"] == pytest.approx(precision_score(kept["fraud"], decided), abs=1e-12)


def test_the_folder_is_whole_and_names_its_file(run_folder):
    folder, _, _ = run_folder
    names = {p.name for p in folder.iterdir()}
    assert {"report.html", "report.json", "rule.json", "models", "manifest.json"} <= names
    assert "work" not in names
    facts = SavedRun.open(folder).facts
    assert (facts["source"], facts["target"], facts["positive"]) == ("known.csv", "fraud", "1")
    assert any("setpoint predict" in line for line in facts["usage"])


def test_json_is_one_object_of_what_was_written(fit):
    result, out = fit(people(), "--json", "--no-compare")
    assert result.stderr == ""
    data = json.loads(result.stdout)
    run = SavedRun.open(out)
    assert data["status"] == run.status
    assert data["figures"][0]["value"] == run.figures[0]["value"]
    assert data["comparison"] is None
    assert data["data"]["rows"] == 400
    assert data["data"]["positive"] == 1
    assert data["written"]["run"] == str(out)
    assert result.exit_code == (0 if data["status"] == "PROVEN" else 3)


def test_a_goal_out_of_reach(fit):
    noise = people().assign(amount=np.random.default_rng(3).normal(size=400))
    result, out = fit(noise, "--no-compare", goal="maximize recall subject to precision >= 0.999")
    assert result.exit_code == 3
    assert "PROVEN at 95%" not in result.stdout.replace("NOT PROVEN", "")
    assert SavedRun.open(out).status in ("NOT PROVEN", "REFUTED", "NOT FEASIBLE")
    if SavedRun.open(out).status == "NOT FEASIBLE":
        assert "nearest reachable" in result.stdout


def test_without_a_limit_there_is_nothing_to_prove(fit):
    result, out = fit(people(), "--no-compare", goal="maximize f1")
    assert result.exit_code == 0, result.stderr
    assert SavedRun.open(out).status == "NO CONSTRAINT"
    assert "the goal sets no limit" in " ".join(result.stdout.split())


def test_columns_with_a_role_are_no_features(tmp_path):
    table = people().assign(
        w=1.0, part=np.where(np.arange(400) % 4 == 0, "certify", "train"), who=np.arange(400) // 2
    )
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    uses = Uses(
        ("fraud",), weight="w", split="part", together="who", drop=("age",), groups=("sex",)
    )
    given = read_given(path, Goal.parse(GOAL), uses)
    assert list(given.X) == ["account", "amount", "sex", "day"]
    assert set(given.more) == {"sample_weight", "split", "together", "group"}
    said = " ".join(given.notes)
    for name in ("w", "part", "who"):
        assert f'column "{name}" (--' in said
    assert 'dropped on request: "age"' in said


def test_labels_and_cells_are_read_once_and_each_file_is_hashed_once(fit):
    """What is known already is handed on; a check that is repeated here is time on every fit."""
    from setpoint._core import files
    from setpoint.datasets import class_labels
    from setpoint.fit import pipeline

    watched = {
        function.__code__: name
        for name, function in {
            "labels": class_labels.read_labels,
            "cells": pipeline.fingerprint_of,
            "hashes": files.digest,
            "verified": files.verify,
        }.items()
    }
    calls = collections.Counter()

    def count(frame, event, _):
        if event == "call" and frame.f_code in watched:
            calls[watched[frame.f_code]] += 1

    sys.setprofile(count)
    try:
        result, out = fit(people(), "--no-compare")
    finally:
        sys.setprofile(None)
    assert result.exit_code in (0, 3), result.stderr
    written = [p for p in out.rglob("*") if p.is_file() and p.name != "manifest.json"]
    assert calls == {"labels": 1, "cells": 1, "hashes": len(written)}


def test_your_own_parts_are_used(fit):
    part = np.where(np.arange(400) % 4 == 0, "certify", "train")
    result, out = fit(people().assign(part=part), "--split", "part", "--no-compare")
    assert result.exit_code in (0, 3), result.stderr
    split = pd.read_csv(out / "splits.csv")
    assert (split["part"] == "certify").tolist() == (part == "certify").tolist()


def test_a_column_that_counts_the_rows_can_be_kept(tmp_path):
    path = tmp_path / "t.csv"
    people().assign(number=np.arange(400)).to_csv(path, index=False)
    goal = Goal.parse(GOAL)
    kinds = {c.name: c.kind for c in read_given(path, goal, Uses(("fraud",))).schema.columns}
    assert kinds["number"] == "ignored"
    kept = read_given(path, goal, Uses(("fraud",), keep=("number",)))
    assert {c.name: c.kind for c in kept.schema.columns}["number"] == "number"


def test_labels_in_words_and_one_against_the_rest(fit):
    words = people().assign(fraud=lambda t: t["fraud"].map({0: "no", 1: "yes"}))
    words.loc[:40, "fraud"] = "maybe"
    result, out = fit(words, "--positive", "yes", "--no-compare")
    assert result.exit_code in (0, 3), result.stderr
    decided = set(sp.load(out).predict(words.drop(columns="fraud")).tolist())
    assert decided <= {"yes", "not yes"}
    assert "yes" in decided


def test_several_classes(fit):
    table = people().assign(animal=lambda t: pd.cut(t["amount"], 3, labels=["owl", "cat", "dog"]))
    table = table.drop(columns="fraud")
    result, out = fit(table, "--no-compare", goal="maximize macro(f1)", target="animal")
    assert result.exit_code == 0, result.stderr
    assert set(sp.load(out).classes_.tolist()) == {"owl", "cat", "dog"}


def test_several_labels(fit):
    table = people().assign(old=lambda t: (t["age"].fillna(50) > 50).astype(int))
    options = ("--task", "multilabel", "--no-compare")
    result, out = fit(table, *options, goal="maximize macro(f1)", target="fraud,old")
    assert result.exit_code == 0, result.stderr
    assert SavedRun.open(out).target == ("fraud", "old")


def test_truth_values_turned_round(fit):
    table = people().assign(fraud=lambda t: t["fraud"] == 1)
    result, out = fit(table, "--positive", "false", "--no-compare")
    assert result.exit_code in (0, 3), result.stderr
    assert "fraud = False is positive" in result.stdout
    assert SavedRun.open(out).facts["positive"] == "False"


@pytest.mark.parametrize("ending", ["parquet", "feather", "tsv"])
def test_other_kinds_of_files(run, tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    table = people(200)
    if ending == "tsv":
        table.to_csv(path, index=False, sep="\t")
    else:
        getattr(table, f"to_{ending}")(path)
    options = ("--target", "fraud", "--goal", "maximize f1", *QUICK, "--no-compare")
    result = run("fit", path, *options, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr


def test_times():
    assert [seconds_of(t) for t in ("90", "1.5m", "2 h", "1h 30m", "45s")] == [
        90,
        90,
        7200,
        5400,
        45,
    ]
    assert in_words(3601) == "1 h 0 min"
