"""What comes through the door: kinds of arrays, names of columns, shards that do not fit."""

import numpy as np
import pandas as pd
import pytest
import torch

import setpoint as sp

Y = np.array([0, 1, 1, 0, 1, 0])
P = np.array([0, 1, 0, 1, 1, 0])
W = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 3.0])
S = np.array([0.1, 0.9, 0.4, 0.6, 0.7, 0.2])
A = np.array([False, False, True, False, False, True])


def test_numpy_and_tensors_mix():
    t = torch.as_tensor
    expected = sp.recall(Y, P, W)
    for y, p, w in [
        (Y, t(P), W),
        (t(Y), P, W),
        (Y, P, t(W)),
        (t(Y), t(P), W),
        (Y.tolist(), t(P), W),
    ]:
        assert float(sp.recall(y, p, w)) == pytest.approx(expected)
    assert float(sp.coverage(t(Y), t(P), abstained=A)) == pytest.approx(4 / 6)
    soft = t(S).requires_grad_()
    sp.f1.soft(Y, soft, W).backward()
    assert torch.isfinite(soft.grad).all()
    assert float(sp.auroc(Y, t(S), W)) == pytest.approx(sp.auroc(Y, S, W))


def test_integers_do_not_overflow():
    y, p = torch.tensor([5, 3], dtype=torch.uint8), torch.tensor([3, 5], dtype=torch.uint8)
    assert float(sp.mae(y, p, task="regression")) == 2.0
    big = torch.tensor([0, 0], dtype=torch.int32), torch.tensor([50_000, 50_000], dtype=torch.int32)
    assert float(sp.mse(*big, task="regression")) == 2.5e9
    rule = sp.tune("maximize f1", torch.as_tensor(Y), torch.tensor([1, 9, 4, 6, 7, 2]))
    assert rule.threshold == sp.tune("maximize f1", Y, S * 10).threshold


def test_pandas_kinds():
    assert sp.recall(pd.Series(Y, dtype="Int64"), pd.Series(P, dtype="Int64")) == sp.recall(Y, P)
    assert sp.recall(pd.Series(Y == 1, dtype="boolean"), P) == sp.recall(Y, P)
    text = pd.Series(np.where(Y == 1, "yes", "no"), dtype="string")
    assert sp.recall(text, P == 1, positive="yes") == sp.recall(Y, P)
    assert sp.recall(Y.astype(object), P.astype(object)) == sp.recall(Y, P)
    groups = pd.DataFrame({"sex": list("FMFMFM"), "age": [1, 2, 1, 2, 1, 2]})
    assert sp.gap(sp.recall, by="sex")(Y, P, group=groups) == sp.gap(sp.recall, by="age")(
        Y, P, group=groups
    )


def test_columns_of_a_data_frame_go_by_their_names():
    random = np.random.default_rng(0)
    y = random.choice(["cat", "dog", "owl"], 90)
    scores = pd.DataFrame(random.random((90, 3)), columns=["cat", "dog", "owl"])
    for name in scores:
        scores.loc[y == name, name] += 1
    turned = scores[["owl", "cat", "dog"]]
    rule = sp.tune("maximize macro(f1)", y, turned, task="multiclass")
    assert (
        rule.value == sp.tune("maximize macro(f1)", y, scores.to_numpy(), task="multiclass").value
    )
    assert rule.decide(turned).tolist() == rule.decide(scores).tolist()
    with pytest.raises(sp.DataError, match="name the columns like the classes"):
        rule.decide(scores.rename(columns={"owl": "fox"}))
    labels = pd.DataFrame({"news": Y, "sport": P})
    rule = sp.tune(
        "maximize macro(f1)", labels, pd.DataFrame({"sport": S, "news": 1 - S}), task="multilabel"
    )
    assert [name for name, _ in rule.thresholds] == ["news", "sport"]
    assert (
        rule.value
        == sp.tune("maximize macro(f1)", labels, np.c_[1 - S, S], task="multilabel").value
    )


def test_memberships_are_never_mapped_to_other_classes():
    probs = np.array([[0.2, 0.1, 0.7], [0.1, 0.2, 0.7], [0.6, 0.2, 0.2]])
    with pytest.raises(sp.DataError, match="say which column is which"):
        sp.recall.of(2).soft([0, 2, 0], probs, task="multiclass")
    task = sp.Task.multiclass([0, 1, 2])
    assert sp.recall.of(2).soft([0, 2, 0], probs, task=task) == pytest.approx(0.7)
    with pytest.raises(sp.DataError, match="3 columns for 2 classes"):
        sp.recall.of(1).soft([0, 1, 0], probs, task=sp.Task.multiclass([0, 1]))


def test_shards_that_mean_different_things_are_not_merged():
    mae = sp.balanced(sp.mae)
    low = mae.totals([1.0, 2.0], [1.0, 1.0], task="regression")
    high = mae.totals([10.0, 20.0], [1.0, 1.0], task="regression")
    with pytest.raises(sp.DataError, match="cannot be merged"):
        low + high
    a = sp.recall.totals(["a", "b"], ["a", "a"], positive="a")
    b = sp.recall.totals(["a", "b"], ["a", "a"], positive="b")
    with pytest.raises(sp.DataError, match="cannot be merged"):
        a + b
    ranked = sp.ndcg(2)
    one = ranked.totals([1, 0], [0.1, 0.2], query=[1, 1], task="ranking")
    two = ranked.totals([1, 0], [0.1, 0.2], task="ranking")
    with pytest.raises(sp.DataError, match="queries"):
        (one + two).value()


def test_a_positive_label_of_zero_judges_its_own_decisions():
    rule = sp.tune("maximize f1", Y, -S, positive=0)
    assert sp.evaluate(rule, Y, -S).value == pytest.approx(rule.value)
    assert rule.value == sp.tune("maximize f1", 1 - Y, -S).value


def test_numpy_labels_are_saved(tmp_path):
    y = np.array([3, 5, 7] * 10)
    scores = np.eye(3)[y // 2 - 1] + np.random.default_rng(0).random((30, 3))
    rule = sp.tune("maximize macro(f1)", y, scores, task=sp.Task.multiclass(np.unique(y)))
    assert sp.DecisionRule.load(rule.save(tmp_path / "a.json")) == rule
    rule = sp.tune("maximize f1", y, scores[:, 0], positive=np.int64(3))
    assert sp.DecisionRule.load(rule.save(tmp_path / "b.json")) == rule
    assert sp.recall.of(np.int64(3)) == sp.recall.of(3.0) == sp.recall.of(3)


def test_the_left_side_of_weighted_sums_keeps_small_weights():
    """1e10 beside 0.1: the negative predictive value of the light rows is still 1."""
    y, s = [1, 0, 0, 1], [0.9, 0.2, 0.1, 0.8]
    rule = sp.tune(
        "maximize recall subject to npv >= 0.999999", y, s, sample_weight=[1e10, 0.1, 0.2, 1]
    )
    assert rule.feasible
    assert rule.held[0].value == 1.0


def test_direction_of_products():
    assert (sp.recall * -1).better() == (-1 * sp.recall).better() == -1
    assert sp.metric("fpr * (-2)").better() == 1
    assert (sp.f1 * sp.accuracy * -1).better() == -1


def test_hash_and_equality_agree():
    assert sp.tp == sp.tp.normal()
    assert hash(sp.tp) == hash(sp.tp.normal())


def test_long_sums_stay_shallow():
    total = sum(sp.recall.of(i) for i in range(800))
    assert sp.metric(str(total)) == total


@pytest.mark.parametrize(
    "text",
    [
        'recall.on("marital status"="single")',
        'gap(recall, by="a\\"b")',
        'recall.of("it\'s")',
        'recall.on(age="65%{_")',
    ],
)
def test_odd_names_round_trip(text):
    metric = sp.metric(text)
    assert sp.metric(str(metric)) == metric
    latex = metric.latex().replace("\\{", "").replace("\\}", "")
    assert latex.count("{") == latex.count("}")


def test_names_without_quotes_after_an_equals_sign():
    assert sp.metric("gap(recall, by=region)") == sp.gap(sp.recall, by="region")
    assert sp.metric("recall.on(group=b)") == sp.recall.on(group="b")
    assert sp.metric("gap(recall, by=“region”)") == sp.gap(sp.recall, by="region")
