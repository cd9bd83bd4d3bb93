"""Rules: decisions, words, files."""

import json
import math

import numpy as np
import pytest
import torch

import setpoint as sp

RANDOM = np.random.default_rng(0)
N = 300
Y = (RANDOM.random(N) < 0.3).astype(int)
S = RANDOM.normal(size=N) + 1.5 * Y
G = RANDOM.choice(["a", "b"], N)
C = RANDOM.integers(0, 3, N)
M = RANDOM.normal(size=(N, 3)) + np.eye(3)[C]
L = (RANDOM.random((N, 2)) < 0.4).astype(int)
LS = RANDOM.normal(size=(N, 2)) + L
Q = np.sort(RANDOM.integers(0, 20, N))


def rules():
    multi = sp.Task.multiclass(["x", "y", "z"])
    return {
        "threshold": sp.tune("maximize recall subject to precision >= 0.8", Y, S),
        "infeasible": sp.tune("maximize recall subject to precision >= 0.95, recall >= 0.95", Y, S),
        "nothing": sp.tune("minimize fpr", Y, S),
        "per-group": sp.tune("maximize accuracy", Y, S, group=G, kind="per-group"),
        "per-label": sp.tune("maximize macro(f1)", L, LS, task="multilabel"),
        "offsets": sp.tune("maximize macro(f1)", np.array(list("xyz"))[C], M, task=multi),
        "argmax": sp.tune("maximize macro(f1)", C, M, task="multiclass", kind="argmax"),
        "top-k": sp.tune("maximize precision_at_k(20) subject to recall >= 0.1", Y, S),
        "queries": sp.tune('maximize precision_at_k(2, by="query")', Y, S, query=Q, task="ranking"),
    }


RULES = rules()


@pytest.mark.parametrize("name", RULES)
def test_json_round_trip(name, tmp_path):
    rule = RULES[name]
    text = json.dumps(rule.to_json(), allow_nan=False)
    assert sp.DecisionRule.from_json(json.loads(text)) == rule
    assert sp.DecisionRule.load(rule.save(tmp_path / "rule.json")) == rule


@pytest.mark.parametrize("name", RULES)
def test_words(name):
    rule = RULES[name]
    assert str(rule.goal) in str(rule)
    assert ("NOT FEASIBLE" in rule.sentence()) == (not rule.feasible)


def test_deciding_nothing_is_plus_infinity_and_a_string_in_json():
    rule = RULES["nothing"]
    assert rule.threshold == math.inf
    assert rule.to_json()["threshold"] == "inf"
    assert not rule.decide(S).any()


def test_an_empty_rate_is_not_feasible():
    rule = sp.tune("maximize precision", Y, S)
    assert rule.decide(S).any()
    rule = sp.tune("minimize fpr subject to precision >= 0.5", Y, S)
    assert rule.decide(S).any()


def test_the_highest_of_equal_thresholds_wins():
    assert sp.tune("maximize accuracy", [0, 1, 0, 1], [0.1, 0.5, 0.5, 0.9]).threshold == 0.9


def test_decisions_of_tensors_are_tensors():
    for name, scores, more in [
        ("threshold", S, {}),
        ("per-group", S, {"group": G}),
        ("per-label", LS, {}),
        ("argmax", M, {}),
        ("top-k", S, {}),
    ]:
        rule = RULES[name]
        for dtype in (torch.float64, torch.float32):
            decided = rule.decide(torch.as_tensor(scores, dtype=dtype), **more)
            assert isinstance(decided, torch.Tensor)
            if dtype == torch.float64:
                assert decided.tolist() == np.asarray(rule.decide(scores, **more)).tolist()


def test_tensors_can_be_tuned_on():
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        s = torch.as_tensor(S, dtype=dtype)
        rule = sp.tune("maximize f1", torch.as_tensor(Y), s)
        same = sp.tune("maximize f1", Y, s.double().numpy())
        assert rule.threshold == same.threshold
        assert sp.f1(Y, rule.decide(s).numpy()) == pytest.approx(rule.value)


def test_text_labels():
    y = np.where(Y == 1, "fraud", "fine")
    rule = sp.tune("maximize f1", y, S, positive="fraud")
    assert rule.threshold == sp.tune("maximize f1", Y, S).threshold
    assert sp.f1(y, rule.decide(S), positive="fraud") == pytest.approx(rule.value)
    assert sp.f1(y, np.where(rule.decide(S), "fraud", "fine"), positive="fraud") == rule.value


def test_top_k_takes_exactly_k_even_with_ties():
    rule = sp.tune("maximize precision_at_k(3)", [0, 1, 0, 1, 1], [0.5, 0.5, 0.5, 0.5, 0.5])
    assert rule.decide([0.5] * 5).sum() == 3
    assert rule.value == pytest.approx(0.6)


def test_top_k_by_query_takes_k_of_each():
    decided = RULES["queries"].decide(S, query=Q)
    sizes = [min(2, np.sum(Q == q)) for q in np.unique(Q)]
    assert [decided[Q == q].sum() for q in np.unique(Q)] == sizes
    assert sp.metric('precision_at_k(2, by="query")')(Y, S, query=Q) == RULES["queries"].value


def test_an_infeasible_rule_says_how_far_and_what_is_reachable():
    rule = sp.tune(
        "maximize recall subject to precision >= 0.999", [0, 1, 0, 1], [0.9, 0.5, 0.4, 0.3]
    )
    assert not rule.feasible
    (held,) = rule.held
    assert held.reachable == pytest.approx(0.5)
    assert held.short == pytest.approx(0.499)
    assert not held.alone
    assert "precision >= 0.999 is reached by no candidate, the nearest is 0.5" in rule.sentence()


def test_binding_constraints():
    rule = sp.tune("maximize recall subject to precision >= 0.8, fpr <= 0.9", Y, S)
    assert rule.binding == ("precision >= 0.8",)


def test_operating_point_goals_are_lowered():
    a = sp.tune("maximize recall_at_precision(0.8)", Y, S)
    b = sp.tune("maximize recall subject to precision >= 0.8", Y, S)
    assert (a.threshold, a.value) == (b.threshold, b.value)
    assert sp.recall_at_precision(0.8)(Y, S) == pytest.approx(b.value)
    assert sp.fnr_at_fpr(0.1)(Y, S) == sp.tune("minimize fnr subject to fpr <= 0.1", Y, S).value


def test_the_frontier_holds_the_rule_and_is_bounded():
    rule = RULES["threshold"]
    frontier = rule.frontier
    assert rule.threshold in frontier.thresholds
    assert len(frontier.thresholds) <= 400
    index = frontier.thresholds.index(rule.threshold)
    assert frontier.values[index] == rule.value
    assert frontier.sides[0][index] == rule.held[0].value
    best = max(v for v, ok in zip(frontier.values, frontier.feasible, strict=True) if ok)
    assert best <= rule.value


def test_a_group_column_by_name():
    rule = sp.tune(
        "maximize accuracy", Y, S, group={"sex": G, "age": G[::-1]}, kind="per-group", by="sex"
    )
    assert rule.by == "sex"
    assert rule.decide(S, group={"sex": G}).tolist() == rule.decide(S, group=G).tolist()
    with pytest.raises(sp.DataError, match="sex"):
        rule.decide(S, group={"age": G})


def test_top_k_with_constraints_on_the_same_k():
    rule = sp.tune(
        "maximize recall_at_k(20) subject to precision_at_k(20) >= 0.5, fpr <= 0.2", Y, S
    )
    decided = rule.decide(S)
    assert rule.held[0].value == pytest.approx(sp.precision(Y, decided))
    assert rule.held[1].value == pytest.approx(sp.fpr(Y, decided))
    assert rule.feasible == all(h.holds for h in rule.held)


def test_gradients_in_weights_do_no_harm():
    weight = torch.ones(N, requires_grad=True)
    assert float(sp.f1(torch.as_tensor(Y), torch.as_tensor(S > 1), weight)) == sp.f1(Y, S > 1)


def test_of_tied_scores_a_top_k_rule_takes_the_first_rows():
    y, scores = [1, 0, 0, 1, 0], [0.9, 0.5, 0.5, 0.5, 0.1]
    rule = sp.tune("maximize precision_at_k(2)", y, scores)
    assert rule.decide(scores).tolist() == [True, True, False, False, False]
    assert rule.value == sp.precision_at_k(2)(y, scores)


# --- the kind of scores ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "task", "y", "way"),
    [
        ("maximize f1", sp.Task.binary(score="probability"), [0, 1, 1], "sigmoid"),
        (
            "maximize accuracy",
            sp.Task.multiclass(range(2), score="probability"),
            [0, 1, 1],
            "softmax",
        ),
        (
            "maximize micro(f1)",
            sp.Task.multilabel(range(2), score="probability"),
            [[0, 1], [1, 0], [1, 1]],
            "sigmoid",
        ),
    ],
)
def test_a_rule_of_probabilities_refuses_logits(goal, task, y, way):
    p = np.array([[0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    p = p[:, 0] if task.kind == "binary" else p
    rule = sp.tune(goal, y, p, task=task)
    again = sp.DecisionRule.from_json(rule.to_json())
    logits = np.log(p / (1 - p))
    name = task.kind
    for use in (
        again.decide,
        lambda z: sp.evaluate(again, y, z),
        lambda z: sp.certify(goal, again, y, z),
    ):
        with pytest.raises(sp.KindError) as caught:
            use(logits)
        said = str(caught.value)
        assert f"scores hold {logits[logits < 0].ravel()[0]:.6g}" in said
        assert f"pass {way}(logits), or tune again on logits" in said
        assert f'(task=Task.{name}(…, score="logit"))' in said
    assert again.decide(p).shape == rule.decide(p).shape


def test_a_rule_of_logits_cannot_tell_and_says_nothing():
    for score in ("logit", "raw"):
        rule = sp.tune("maximize f1", [0, 1, 1], [-2.0, 1, 3], task=sp.Task.binary(score=score))
        assert rule.decide([0.1, 0.9]).tolist() == [False, False]
