"""`setpoint demo`: it ends soon, its numbers are the library's, and it hides nothing."""

import json
import math
import time
from dataclasses import replace

import pytest
from sklearn.metrics import precision_score, recall_score

import setpoint as sp
from setpoint.cli import demo as demo_module
from setpoint.cli.experiment import GOALS, Experiment, Part, Told
from setpoint.cli.experiment import run as run_experiment


@pytest.fixture(scope="module")
def found():
    return run_experiment()


@pytest.fixture
def quick(monkeypatch, found):
    """The demo without training again."""
    monkeypatch.setattr(demo_module, "run", lambda: found)


def test_true_run_ends_soon(process):
    start = time.monotonic()
    result = process("demo")
    assert time.monotonic() - start < 60
    assert (result.returncode, result.stderr) == (0, "")
    for said in (
        *GOALS.values(),
        "NOT FEASIBLE",
        "pooled and split anew",
        "● the rule",
        "Try next",
    ):
        assert said in " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_has_finite_numbers_only(run, quick):
    result = run("demo", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)

    def walk(x):
        if isinstance(x, dict):
            x = list(x.values())
        if isinstance(x, list):
            for y in x:
                walk(y)
        elif isinstance(x, float):
            assert math.isfinite(x)

    walk(data)
    assert [g["goal"] for g in data["goals"]] == list(GOALS.values())
    assert [g["feasible"] for g in data["goals"]] == [True, True, True, False]
    assert len({g["threshold"] for g in data["goals"]}) == len(GOALS)
    assert sum(p["rows"] for p in data["parts"].values()) == 4839
    assert 0 < data["other_splits"]["broke_on_test"] < data["other_splits"]["splits"]


def test_test_values_are_those_of_scikit_learn(found):
    told = next(t for t in found.told if t.name == "recall")
    decided = found.test.scores >= told.rule.threshold
    assert told.tested.value == pytest.approx(recall_score(found.test.y, decided), abs=1e-15)
    (kept,) = told.tested.kept
    assert kept.value == pytest.approx(precision_score(found.test.y, decided), abs=1e-15)


def test_tune_values_are_those_of_the_rule(found):
    for told in found.told:
        assert told.tuned.value == told.rule.value
        assert [k.value for k in told.tuned.kept] == [h.value for h in told.rule.held]


def test_files_are_written_and_rules_read_back(run, quick, found, tmp_path):
    out = tmp_path / "new" / "demo"
    result = run("demo", "--out", out)
    assert result.exit_code == 0, result.stderr
    names = sorted(p.name for p in out.iterdir())
    assert names == sorted([*(f"{g}.{k}" for g in GOALS for k in ("json", "svg")), "scores.csv"])
    for told in found.told:
        assert sp.DecisionRule.load(out / f"{told.name}.json") == told.rule
        assert (out / f"{told.name}.svg").read_bytes().startswith(b"<?xml")
    again = run("tune", out / "scores.csv", "--goal", GOALS["recall"], "--json")
    rule = json.loads(again.stdout)["rule"]
    assert rule["threshold"] == next(t for t in found.told if t.name == "recall").rule.threshold


def test_existing_files_are_kept_unless_forced(run, quick, tmp_path):
    (tmp_path / "f1.svg").write_text("mine")
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 2
    assert "exists; say --force" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["f1.svg"]
    assert run("demo", "--out", tmp_path, "--force").exit_code == 0


def test_out_that_is_a_file(run, quick, tmp_path):
    (tmp_path / "demo").write_text("mine")
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 2
    assert "cannot make the folder" in result.stderr


def test_a_constraint_that_breaks_on_test_is_told(run, monkeypatch, found):
    told = next(t for t in found.told if t.name == "recall")
    worse = Part(1 - found.test.y, found.test.scores)  # every decision is turned into a mistake
    broke = Told(told.name, told.rule, told.tuned, sp.evaluate(told.rule, worse.y, worse.scores))
    assert broke.broke() == ["precision >= 0.9"]
    monkeypatch.setattr(demo_module, "run", lambda: replace(found, told=(broke,)))
    flat = " ".join(run("demo").stdout.split())
    assert "held on tune," in flat
    assert "broke on test" in flat
    assert "precision >= 0.9 held on tune and broke on test." in flat


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_overflows(run, quick, columns):
    result = run("demo", columns=columns)
    assert max(map(len, result.stdout.splitlines())) <= columns


def test_experiment_is_the_same_twice(found):
    again = run_experiment()
    assert isinstance(again, Experiment)
    assert again.to_json() == found.to_json()
