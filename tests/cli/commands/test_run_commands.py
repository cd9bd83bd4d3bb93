"""Runs after the fit: evaluate, monitor, explain and compare, held to the library."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.cli.tables import QUICK, people

import setpoint as sp
from setpoint._core.notes import Note, NoteCode
from setpoint.cli.commands import explain
from setpoint.cli.commands.compare import comparable
from setpoint.cli.files.saved_run import SavedRun
from setpoint.fit.conclusion.stack import MemberFate, MemberOutcome

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="session")
def other_folder(run_folder, tmp_path_factory):
    """A second run on the same table, for another goal."""
    from typer.testing import CliRunner

    from setpoint.cli.app import app

    out = tmp_path_factory.mktemp("other") / "run"
    goal = "maximize precision subject to recall >= 0.5"
    args = ["fit", run_folder[1], "--target", "fraud", "--goal", goal, "--out", out, *QUICK]
    result = CliRunner().invoke(app, [*map(str, args), "--no-compare"], prog_name="setpoint")
    assert result.exit_code in (0, 3), result.output
    return out


def scored(folder, table):
    clf = sp.load(folder)
    return clf, clf.predict_proba(table.drop(columns="fraud"))[:, 1]


# --- evaluate -------------------------------------------------------------------------------------


def test_evaluate_is_the_evaluation_and_a_fresh_certificate(run, run_folder, new_rows):
    path, table = new_rows(800)
    result = run("evaluate", run_folder[0], path, "--json")
    data = json.loads(result.stdout)
    clf, scores = scored(run_folder[0], table)
    found = sp.evaluate(clf.rule_, table["fraud"], scores)
    assert data["sentence"] == str(found)
    proof = sp.certify(clf.rule_.goal, clf.rule_, table["fraud"], scores)
    assert data["verdict"] == proof.verdict
    assert data["tested"]["findings"][0]["bound"] == pytest.approx(proof.findings[0].bound)
    assert result.exit_code == (0 if found.holds else 3)
    said = " ".join(run("evaluate", run_folder[0], path).stdout.split())
    assert f"Promise {data['promise']}" in said
    assert "fraud = 1" in said


def test_a_promise_that_is_broken(run, run_folder, new_rows):
    labels = people(800, 7)["fraud"].to_numpy()
    path, _ = new_rows(800, fraud=np.random.default_rng(0).permutation(labels))
    result = run("evaluate", run_folder[0], path)
    assert result.exit_code == 3
    assert "Promise broken, beyond chance" in " ".join(result.stdout.split())
    watched = run("monitor", run_folder[0], path)
    assert watched.exit_code == 3
    assert "BROKEN" in watched.stdout


def test_rows_of_the_fit_prove_nothing(run, run_folder):
    result = run("evaluate", run_folder[0], run_folder[1])
    assert "these rows were part of the fit" in " ".join(result.stdout.split())
    watched = run("monitor", run_folder[0], run_folder[1])
    assert watched.exit_code == 2
    assert "is the table of the fit" in watched.stderr


def test_nor_do_they_where_all_of_them_were_trained_on(run, tmp_path):
    """Without a proof the certify rows go back into training, and scores are others."""
    path, out = tmp_path / "known.csv", tmp_path / "r"
    people(300).to_csv(path, index=False)
    goal = "maximize recall subject to precision >= 0.95"
    args = ("--target", "fraud", "--goal", goal, *QUICK, "--no-compare", "--out", out)
    assert run("fit", path, *args).exit_code == 3
    assert set(pd.read_csv(out / "splits.csv")["part"]) == {"train"}
    data = json.loads(run("evaluate", out, path, "--json").stdout)
    assert data["verdict"] is None
    assert "these rows were part of the fit" in data["promise"]


def test_labels_under_another_name_and_scores_of_none(run, run_folder, new_rows):
    path, table = new_rows(300)
    table.rename(columns={"fraud": "truth"}).to_csv(path, index=False)
    missing = run("evaluate", run_folder[0], path)
    assert missing.exit_code == 2
    assert 'there is no column "fraud" (label)' in missing.stderr
    assert run("evaluate", run_folder[0], path, "--label", "truth").exit_code in (0, 3)
    refused = run("evaluate", run_folder[0], path, "--label", "truth", "--score", "amount")
    assert refused.exit_code == 2
    assert "a run scores the rows itself" in refused.stderr


# --- monitor --------------------------------------------------------------------------------------


def test_monitor_is_the_monitor_of_the_certificate(run, run_folder, new_rows, tmp_path):
    state = tmp_path / "state.json"
    watching = sp.Monitor(sp.load(run_folder[0]).certificate_)
    for seed in (7, 8):
        path, table = new_rows(400, seed)
        options = ("--state", state, "--json")
        data = json.loads(run("monitor", run_folder[0], path, *options).stdout)
        report = watching.update(table["fraud"], scored(run_folder[0], table)[1])
        assert data["sentence"] == str(report)
        assert data["rows"] == report.rows


def test_monitor_needs_a_promise(run, new_rows, tmp_path):
    path = tmp_path / "known.csv"
    people(200).to_csv(path, index=False)
    args = ("--target", "fraud", "--goal", "maximize f1", *QUICK, "--no-compare")
    assert run("fit", path, *args, "--out", tmp_path / "r").exit_code == 0
    result = run("monitor", tmp_path / "r", new_rows(100)[0])
    assert result.exit_code == 2
    assert "has no certificate" in result.stderr


# --- explain --------------------------------------------------------------------------------------


def test_explain_says_what_and_why(run, run_folder):
    result = run("explain", run_folder[0])
    assert (result.exit_code, result.stderr) == (0, "")
    flat = " ".join(result.stdout.split())
    for said in (
        "Verdict PROVEN.",
        "Which models",
        "trees decides alone",
        "linear only to compare with",
        "Assumption",
        "one point of precision",
        "Checks passed",
        "random_state 0",
        "scikit-learn",
    ):
        assert said in flat, said
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_explain_as_json(run, run_folder):
    data = json.loads(run("explain", run_folder[0], "--json").stdout)
    clf = sp.load(run_folder[0])
    weights = {m["name"]: m["weight"] for m in data["members"]}
    assert weights == {"linear": None, "trees": 1.0}
    assert data["status"] == clf.report_.verdict["status"]
    assert data["data"]["fingerprint"] == clf.run_.fingerprint
    assert data["comparison"]["sentence"] == clf.comparison_.sentence


REASON = "the stack with it differs by -0.004 [-0.010, +0.002]"
FATES = {
    "trees": (0.7, MemberFate.STACKED, "", "in the stack"),
    "linear": (0.3, MemberFate.STACKED, "", "in the stack"),
    "mlp": (0.0, MemberFate.NO_WEIGHT, "", "no weight: what it says adds nothing to the others"),
    "mlp + soft-set": (None, MemberFate.LEFT_OUT, REASON, f"left out, {REASON}"),
    "extra trees": (None, MemberFate.TOO_LATE, "", "not fitted: the time limit came first"),
}


@pytest.mark.parametrize("order", [list(FATES), list(FATES)[::-1]])
def test_explain_tells_each_member_its_own_fate(run_folder, order):
    """`mlp` had the note on `mlp + soft-set`, whose name holds its own."""
    saved = SavedRun.open(run_folder[0])
    weights = {name: FATES[name][0] for name in order if FATES[name][0] is not None}
    outcomes = [
        MemberOutcome(name=name, weight=FATES[name][0], fate=FATES[name][1], reason=FATES[name][2])
        for name in order
    ]
    said = Note(NoteCode.DRIVEN_LEFT_OUT, f"mlp + soft-set: left out, {REASON}")
    about = {
        **saved.about,
        "plan": {**saved.about["plan"], "members": [[name, "always"] for name in order]},
        "stack": {"names": list(weights), "weights": list(weights.values()), "constant": [0.0]},
        "members": [outcome.to_json() for outcome in outcomes],
        "notes": [said.to_json()],
    }
    told = explain.members(replace(saved, about=about))
    assert [m["name"] for m in told] == order
    assert {m["name"]: m["fate"] for m in told} == {name: FATES[name][3] for name in order}
    assert {m["name"]: m["outcome"] for m in told} == {n: str(FATES[n][1]) for n in order}


def test_members_of_a_run_that_version_1_saved(run_folder):
    """Their fates were not written down; weights and reasons say what can be known."""
    saved = SavedRun.open(run_folder[0])
    about = {key: value for key, value in saved.about.items() if key != "members"}
    assert [m["fate"] for m in explain.members(replace(saved, about=about))] == [
        *("decides alone", "only to compare with"),
    ]
    names = ["trees", "mlp", "mlp + soft-set", "linear"]
    about["plan"] = {**about["plan"], "members": [[name, "always"] for name in names]}
    about["plan"]["members"][-1][1] = "for the referee"
    about["stack"] = {"names": names[:2], "weights": [1.0, 0.0], "constant": [0.0]}
    fates = [MemberFate.ALONE, MemberFate.NO_WEIGHT, MemberFate.LEFT_OUT, MemberFate.COMPARED]
    assert [m.fate for m in replace(saved, about=about).members] == fates
    about["finished"] = False
    assert replace(saved, about=about).members[2].fate is MemberFate.NOT_FITTED


# --- compare --------------------------------------------------------------------------------------


def test_two_runs_side_by_side(run, run_folder, other_folder):
    result = run("compare", run_folder[0], other_folder, columns=120)
    assert (result.exit_code, result.stderr) == (0, "")
    for said in ("precision >= 0.6", "recall >= 0.5", "PROVEN", "fingerprint", "Comparable"):
        assert said in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120
    data = json.loads(run("compare", run_folder[0], other_folder, "--json").stdout)
    assert data["comparable"] is (data["runs"][0]["certificate"].endswith("150 rows"))
    assert data["same_rows"] is None


def test_other_rows_are_not_comparable(run, run_folder, tmp_path):
    path = tmp_path / "known.csv"
    people(300, 5).to_csv(path, index=False)
    args = ("--target", "fraud", "--goal", "maximize f1", *QUICK, "--no-compare")
    assert run("fit", path, *args, "--out", tmp_path / "r").exit_code == 0
    runs = SavedRun.open(run_folder[0]), SavedRun.open(tmp_path / "r")
    assert comparable(runs)[0] is False
    assert "the tables differ" in " ".join(
        run("compare", run_folder[0], tmp_path / "r").stdout.split()
    )


def test_the_same_rows_decide(run, run_folder, other_folder, new_rows):
    path, table = new_rows(500)
    result = run("compare", run_folder[0], other_folder, path, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["same_rows"]["comparison"]
    values = []
    for folder in (run_folder[0], other_folder):
        decided = sp.load(folder).predict(table.drop(columns="fraud"))
        values.append(float(sp.recall(table["fraud"].to_numpy(), decided)))
    assert [c["value"] for c in found["contenders"]] == pytest.approx(values)
    (gap,) = found["differences"]
    assert gap["value"] == pytest.approx(values[0] - values[1])
    assert gap["low"] <= gap["value"] <= gap["high"]
    said = "".join(run("compare", run_folder[0], other_folder, path).stdout.split())
    assert "".join(json.loads(result.stdout)["same_rows"]["sentence"].split()) in said


def test_a_run_is_as_good_as_its_copy(run, run_folder, new_rows, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run_folder[0], copy)
    data = json.loads(run("compare", run_folder[0], copy, new_rows()[0], "--json").stdout)
    assert data["comparable"] is True
    assert "Not separable on these rows" in data["same_rows"]["sentence"]
    assert data["same_rows"]["comparison"]["differences"][0]["value"] == 0


def test_rows_that_a_run_has_used_are_no_fair_judge(run, run_folder, other_folder):
    data = json.loads(run("compare", run_folder[0], other_folder, run_folder[1], "--json").stdout)
    assert "has used some of these rows" in data["same_rows"]["caution"]


def test_options_of_rows_without_rows(run, run_folder, other_folder):
    result = run("compare", run_folder[0], other_folder, "--goal", "maximize f1")
    assert result.exit_code == 2
    assert "belong to DATA" in result.stderr
