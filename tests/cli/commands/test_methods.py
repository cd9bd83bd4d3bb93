"""`setpoint methods`: every method with its options, and what it says to a goal."""

import json

import setpoint as sp


def test_every_method_is_shown(run):
    result = run("methods", columns=140)
    assert result.exit_code == 0
    for name, method in sp.METHODS.items():
        assert name in result.stdout
        assert method.summary.split(",")[0][:30] in result.stdout
    assert "cross_entropy=0.5" in result.stdout


def test_a_goal_is_taken_or_refused_with_a_sentence(run):
    said = json.loads(run("methods", "maximize auroc", "--json").stdout)["methods"]
    refusals = {entry["name"]: entry["refusal"] for entry in said}
    assert refusals["pairwise"] is None
    assert refusals["cross-entropy"] is None
    assert "judges a ranking" in refusals["costs"]
    shown = run("methods", "maximize f1 subject to precision >= 0.5")
    assert shown.stdout.count("yes") == 6
    assert shown.exit_code == 0


def test_goals_of_groups_rankings_and_regressions_find_their_methods(run):
    for goal, takes in (
        ('maximize accuracy subject to gap(recall, by="sex") <= 0.05', {"implicit", "lagrangian"}),
        ("maximize ndcg(5)", {"implicit"}),
        ('minimize worst(mae, by="bin")', {"errors"}),
    ):
        said = json.loads(run("methods", goal, "--json").stdout)["methods"]
        assert takes <= {entry["name"] for entry in said if entry["refusal"] is None}


def test_a_wrong_goal_is_a_mistake(run):
    assert run("methods", "maximize recal").exit_code == 2
