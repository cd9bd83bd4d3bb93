"""`setpoint metrics`: every row of the table is shown, and every example can be meant."""

import json
import re

import pytest

import setpoint as sp
from setpoint.cli.commands.metrics import ROOMS, describe, example_goals, example_of
from setpoint.expressions.rows.task import KINDS


def test_every_metric_is_shown(run):
    result = run("metrics", columns=200)
    assert result.exit_code == 0
    for row in sp.METRICS.values():
        assert re.search(rf"^ {row.name}\b", result.stdout, re.MULTILINE), row.name
        for alias in row.aliases:
            assert alias in result.stdout


def test_rooms_hold_the_whole_table():
    shown = [row.name for module in ROOMS.values() for row in module.ROWS]
    assert sorted(shown) == sorted(sp.METRICS)


def test_json_lists_all(run):
    result = run("metrics", "--json")
    listed = json.loads(result.stdout)["metrics"]
    assert [entry["name"] for entry in listed] == list(sp.METRICS)
    assert all(entry["formula"] and entry["says"] and entry["examples"] for entry in listed)


@pytest.mark.parametrize("name", sp.METRICS)
def test_every_example_goal_can_be_meant(name):
    for text in example_goals(example_of(sp.METRICS[name])):
        goal = sp.Goal.parse(text)
        assert str(goal) == text
        kinds = []
        for kind in KINDS:
            try:
                sp.check(goal, kind)
            except sp.GoalError:
                continue
            kinds.append(kind)
        assert kinds, text


@pytest.mark.parametrize("name", sp.METRICS)
def test_every_metric_is_described(run, name):
    result = run("metrics", name)
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    entry = json.loads(run("metrics", name, "--json").stdout)
    assert entry["name"] == name
    span = example_of(sp.METRICS[name]).interval()
    assert entry["range"] == [str(x) if abs(x) == float("inf") else x for x in span]


def test_details_of_one(run):
    flat = " ".join(run("metrics", "recall").stdout.split())
    for said in (
        "Metric recall",
        "Formula TP / (TP + FN)",
        "Also written tpr, sensitivity",
        "Range [0, 1], higher is better",
        "Tested against scikit-learn: recall_score",
        r"\frac{\#[\text{actual and decided}]}{\#[\text{actual}]}",
        "maximize precision subject to recall >= 0.9",
    ):
        assert said in flat


def test_alias_finds_its_metric(run):
    assert json.loads(run("metrics", "tpr", "--json").stdout)["name"] == "recall"


def test_an_expression_is_described(run):
    result = run("metrics", "0.5*recall+0.5*precision", "--json")
    entry = json.loads(result.stdout)
    assert entry["expression"] == "0.5 * recall + 0.5 * precision"
    assert entry["made_of"] == {"recall": "TP / (TP + FN)", "precision": "TP / (TP + FP)"}
    assert entry["range"] == [0, 1]
    assert "0.5 * recall" in run("metrics", "0.5*recall+0.5*precision").stdout


def test_a_factory_with_arguments_is_described(run):
    entry = json.loads(run("metrics", "cost(fp=1, fn=20)", "--json").stdout)
    assert entry["expression"] == "cost(fp=1, fn=20)"
    assert entry["example_goals"] == ["minimize cost(fp=1, fn=20)"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("recal", 'unknown metric "recal": did you mean recall?\n  recal\n  ^^^^^'),
        ("recall +", "expected a metric or a number"),
        ("3", "a number alone is no metric"),
    ],
)
def test_mistakes(run, text, sentence):
    result = run("metrics", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_overflows(run, columns):
    result = run("metrics", columns=columns)
    assert max(map(len, result.stdout.splitlines())) <= columns


def test_prevalence_has_no_goal():
    assert describe(sp.METRICS["prevalence"])["example_goals"] == []
