"""Every kind of rule: what it decides, its words, its margin, its file."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import setpoint as sp
from setpoint.expressions import take_in
from setpoint.rules.abstention import Abstention, ConfidenceThreshold, ScoreBand
from setpoint.rules.class_offsets import Argmax, ClassOffsets
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.rule import ABSENT
from setpoint.rules.table import RULES, kind_for, needs_group, rule_from_json
from setpoint.rules.threshold_blocks import GroupThresholds, LabelThresholds
from setpoint.rules.top_k import TopK

BINARY = sp.Task.binary(score="probability")
CLASSES = sp.Task.multiclass(["x", "y", "z"], score="logit")
LABELS = sp.Task.multilabel(["cat", "dog"])
RANKING = sp.Task("ranking")
TASKS = {"binary": BINARY, "multiclass": CLASSES, "multilabel": LABELS}

S = [0.2, 0.6, 0.4, 0.9]
M = [[2.0, 1.0, 0.0], [1.0, 1.4, 1.0], [0.0, 0.0, 5.0]]

#: rule, arguments of decide, decisions, words
CASES = {
    "threshold": (
        OneThreshold(task=BINARY, threshold=0.6),
        (S,),
        [False, True, False, True],
        "score >= 0.6",
    ),
    "nothing": (
        OneThreshold(task=BINARY, threshold=math.inf),
        (S,),
        [False] * 4,
        "nothing decided positive",
    ),
    "per-group": (
        GroupThresholds(task=BINARY, thresholds=(("a", 0.1), ("inf", 0.7)), by="inf"),
        (S, ["a", "a", "inf", "inf"]),
        [True, True, False, True],
        "a: score >= 0.1, inf: score >= 0.7",
    ),
    "per-label": (
        LabelThresholds(task=LABELS, thresholds=(("cat", 0.5), ("dog", -math.inf))),
        ([[0.4, 0.1], [0.5, 0.2]],),
        [[False, True], [True, True]],
        "cat: score >= 0.5, dog: score >= -inf",
    ),
    "offsets": (
        ClassOffsets(task=CLASSES, offsets=(0.0, -0.5, 0.25)),
        (M,),
        ["x", "z", "z"],
        "argmax of scores with y -0.5, z +0.25",
    ),
    "argmax": (
        ClassOffsets(task=CLASSES, offsets=(0.0, 0.0, 0.0)),
        (M,),
        ["x", "y", "z"],
        "argmax of scores",
    ),
    "top-k": (
        TopK(task=BINARY, k=2),
        (S,),
        [False, True, False, True],
        "the 2 highest scores",
    ),
    "queries": (
        TopK(task=RANKING, k=1, by="query"),
        (S, None, [1, 1, 2, 2]),
        [False, True, False, True],
        "the 1 highest scores of each query",
    ),
    "no band": (
        ScoreBand(task=BINARY, band=(math.inf, math.inf)),
        (S,),
        [0, 0, 0, 0],
        "positive nowhere, negative everywhere",
    ),
    "band": (
        ScoreBand(task=BINARY, band=(0.3, 0.6)),
        (S,),
        [0, 1, -1, 1],
        "positive where score >= 0.6, negative where score < 0.3",
    ),
    "confidence": (
        ConfidenceThreshold(task=CLASSES, threshold=1.0, confidence="rl_conf_m"),
        (M,),
        ["x", None, "z"],
        "argmax of scores where rl_conf_m >= 1",
    ),
    "norms": (
        ConfidenceThreshold(
            task=CLASSES, threshold=0.5, confidence="rl_geo_m", norms=(1.0, 1.0, 4.0)
        ),
        (M,),
        ["x", None, "z"],
        "argmax of scores where rl_geo_m >= 0.5",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_decisions_and_words(name):
    rule, given, decided, words = CASES[name]
    assert rule.decide(*given).tolist() == decided
    assert rule.describe() == words


@pytest.mark.parametrize("name", CASES)
def test_json_round_trip(name):
    rule = CASES[name][0]
    data = json.loads(json.dumps(rule.to_json(), allow_nan=False))
    assert set(data) == {"task", "kind", *ABSENT}
    assert rule_from_json(data) == rule
    assert rule_from_json(data).same_as(rule)


@pytest.mark.parametrize("name", CASES)
def test_rules_are_the_same_whatever_groups_their_tasks_declare(name):
    rule = CASES[name][0]
    declared = replace(rule, task=replace(rule.task, groups={"sex": ["f", "m"]}))
    assert declared != rule
    assert declared.same_as(rule)
    assert [n for n, case in CASES.items() if case[0].same_as(rule)] == [name]


@pytest.mark.parametrize("name", CASES)
def test_columns_hold_what_is_decided(name):
    rule, given, decided, _ = CASES[name]
    y = {"binary": [0, 1, 0, 1], "ranking": [0, 1, 0, 1]}.get(rule.task.kind)
    y = y or {"multiclass": ["x", "y", "z"], "multilabel": [[0, 1], [1, 0]]}[rule.task.kind]
    group = {"inf": given[1]} if name == "per-group" else None
    query = given[2] if len(given) > 2 else None
    columns = take_in(rule.task, y, scores=given[0], group=group, query=query).on_host()
    held = rule.decided_columns(columns)
    assert (held.abstained is not None) == rule.may_abstain
    plain = np.asarray(held.decided)
    if rule.task.kind == "multiclass":
        plain = np.array(rule.task.classes)[plain]
    kept = np.ones(len(plain), bool) if held.abstained is None else ~held.abstained
    assert plain[kept].tolist() == np.asarray(decided, dtype=object)[kept].tolist()
    assert rule.abstains(given[0]).tolist() == (~kept).tolist()


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("queries", "top-k")])
def test_a_margin_has_the_sign_of_the_decision(name):
    rule, given, decided, _ = CASES[name]
    margin = rule.margin(np.asarray(given[0]), *given[1:2])
    if rule.task.kind == "multiclass":  # the largest is decided
        sure = [c is not None for c in decided]
        best = np.array(rule.task.classes)[margin.argmax(1)]
        if not rule.takes_head or not rule.norms:
            assert best[sure].tolist() == np.array(decided, dtype=object)[sure].tolist()
        return
    assert np.isfinite(margin).all()
    assert ((margin > 0) == (np.asarray(decided) > 0)).all()


@pytest.mark.parametrize(
    ("cls", "numbers"),
    [
        (OneThreshold, {"threshold": None}),
        (OneThreshold, {"threshold": math.nan}),
        (OneThreshold, {"threshold": True}),
        (GroupThresholds, {"thresholds": (), "by": "sex"}),
        (GroupThresholds, {"thresholds": (("a", 0.5),), "by": None}),
        (LabelThresholds, {"thresholds": (("a", 0.5),)}),
        (ClassOffsets, {"offsets": (0.0,)}),
        (TopK, {"k": 0}),
        (TopK, {"k": 1.5}),
        (ScoreBand, {"band": (0.5,)}),
        (ScoreBand, {"band": (0.6, 0.5)}),
        (ConfidenceThreshold, {"threshold": 0.5, "confidence": "hope"}),
        (ConfidenceThreshold, {"threshold": 0.5, "confidence": "rl_geo_m"}),
    ],
)
def test_numbers_that_cannot_be_are_refused(cls, numbers):
    with pytest.raises(sp.FileError, match=f'"{cls.kind}" lacks its numbers'):
        cls(task=CLASSES if cls is ConfidenceThreshold else TASKS[cls.tasks[0]], **numbers)


def test_an_unknown_kind_in_a_file():
    data = {**CASES["threshold"][0].to_json(), "kind": "oracle"}
    with pytest.raises(sp.FileError, match='unknown kind of rule "oracle"; known are'):
        rule_from_json(data)


def test_every_kind_is_a_row_by_its_own_name():
    assert {name: rule.kind for name, rule in RULES.items()} == {name: name for name in RULES}
    assert not [rule for rule in RULES.values() if not rule.tasks]


@pytest.mark.parametrize(
    ("goal", "task", "kind", "rule"),
    [
        ("maximize f1", "binary", None, OneThreshold),
        ("maximize f1", "binary", "per-group", GroupThresholds),
        ("maximize precision_at_k(5)", "binary", None, TopK),
        ("maximize precision_at_k(5)", "ranking", None, TopK),
        ("maximize coverage subject to selective_risk <= 0.1", "binary", None, Abstention),
        ("maximize coverage subject to selective_risk <= 0.1", "multiclass", None, Abstention),
        ("maximize accuracy", "multiclass", None, ClassOffsets),
        ("maximize accuracy", "multiclass", "argmax", Argmax),
        ("maximize macro(f1)", "multilabel", None, LabelThresholds),
    ],
)
def test_the_kind_for_a_goal(goal, task, kind, rule):
    assert kind_for(sp.Goal.parse(goal), task, kind) is rule


@pytest.mark.parametrize(
    ("goal", "task", "kind", "error", "words"),
    [
        ("minimize mae", "regression", None, sp.GoalError, "has no operating point"),
        ("maximize f1", "binary", "offsets", sp.KindError, "a binary task takes"),
        ("maximize f1", "binary", "treshold", sp.KindError, "did you mean threshold"),
        ("maximize f1", "binary", "top-k", sp.GoalError, "goes with a goal on precision_at_k"),
        ("maximize precision_at_k(5)", "binary", "threshold", sp.GoalError, "precision_at_k"),
    ],
)
def test_a_kind_that_does_not_suit(goal, task, kind, error, words):
    with pytest.raises(error, match=words):
        kind_for(sp.Goal.parse(goal), task, kind)


def test_searching_again_looks_for_rules_alike():
    assert CASES["argmax"][0].search_again().rule is Argmax
    assert CASES["offsets"][0].search_again().rule is ClassOffsets
    assert CASES["per-group"][0].search_again().by == "inf"
    again = CASES["norms"][0].search_again()
    assert (again.rule, again.by, again.head) == (Abstention, "rl_geo_m", [1.0, 1.0, 4.0])


def test_what_users_name_and_what_needs_a_group():
    assert needs_group("per-group")
    assert not any(needs_group(kind) for kind in (None, "threshold", "nonsense"))


def test_a_rule_passes_where_a_decision_rule_does():
    y = np.arange(60) % 2
    s = y * 0.5 + np.linspace(0, 0.4, 60)
    point = OneThreshold(task=BINARY, threshold=0.5)
    assert sp.certify("maximize recall subject to precision >= 0.5", point, y, s).point.same_as(
        point
    )
    with pytest.raises(sp.KindError, match="a DecisionRule is needed"):
        sp.evaluate("score >= 0.5", y, s)
