"""The rows behind a bound: named by metric and group, and counted as one counts them by hand."""

import numpy as np
import pytest

import setpoint as sp


def rows(seed=0, n=900):
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.4).astype(int)
    return y, random.normal(size=n) + 2 * y, random.choice(["f", "m"], n)


def shares(y, decided):
    """(rows that count, rows they are counted among) of each metric, from its definition."""
    yes, no = y == 1, y == 0
    return {
        "recall": (decided & yes, yes),
        "fpr": (decided & no, no),
        "precision": (decided & yes, decided),
        "specificity": (~decided & no, no),
        "accuracy": (decided == yes, yes | no),
        "positive_rate": (decided, yes | no),
        "f1": (decided & yes, decided | yes),
    }


@pytest.mark.parametrize(
    ("body", "metrics"),
    [
        ('gap(recall, by="sex") <= 0.9', ["recall"]),
        ('ratio(precision, by="sex") >= 0.1', ["precision"]),
        ('worst(fpr, by="sex") <= 0.9', ["fpr"]),
        ('worst(f1, by="sex") >= 0.1', ["f1"]),
        ('gap(accuracy, by="sex") <= 0.9', ["accuracy"]),
        ('gap(positive_rate, by="sex") <= 0.9', ["positive_rate"]),
    ],
)
def test_groups_are_named_and_counted(body, metrics):
    y, scores, sex = rows()
    goal = f"maximize accuracy subject to {body}"
    rule = sp.tune(goal, y, scores, group={"sex": sex})
    fresh = rows(1)
    proof = sp.certify(goal, rule, *fresh[:2], group={"sex": fresh[2]})
    evidence = {e.name: (e.k, e.n) for e in proof.findings[0].evidence}
    known = shares(fresh[0], fresh[1] >= rule.threshold)
    expected = {}
    for metric in metrics:
        inside, among = known[metric]
        for value in ("f", "m"):
            own = fresh[2] == value
            name = f"{metric}, sex={value}"
            expected[name] = (int((inside & among & own).sum()), int((among & own).sum()))
    assert evidence == expected
    assert {e.part for e in proof.findings[0].evidence} == {"sex=f", "sex=m"}
    assert "[" not in proof.findings[0].sentence()


def test_what_is_taken_off_is_named_by_its_opposite():
    y, scores, _ = rows()
    goal = "maximize recall subject to precision - fpr >= 0.05"
    rule = sp.tune(goal, y, scores)
    fresh = rows(1)
    proof = sp.certify(goal, rule, *fresh[:2])
    known = shares(fresh[0], fresh[1] >= rule.threshold)
    evidence = {e.name: (e.k, e.n) for e in proof.findings[0].evidence}
    for name in ("specificity", "precision"):
        inside, among = known[name]
        assert evidence[name] == (int((inside & among).sum()), int(among.sum()))


def test_classes_are_named():
    random = np.random.default_rng(0)
    names = np.array(["cat", "dog", "owl"])

    def drawn():
        codes = random.integers(0, 3, 600)
        scores = random.normal(size=(600, 3))
        scores[np.arange(600), codes] += 1.5
        return names[codes], scores

    goal = "maximize accuracy subject to macro(precision) >= 0.3"
    task = sp.Task.multiclass(list(names))
    y, scores = drawn()
    rule = sp.tune(goal, y, scores, task=task)
    y, scores = drawn()
    decided = rule.decide(scores)
    proof = sp.certify(goal, rule, y, scores)
    evidence = {e.name: (e.k, e.n) for e in proof.findings[0].evidence}
    for name in names:
        counted = int(((decided == name) & (y == name)).sum())
        assert evidence[f"precision, class={name}"] == (counted, int((decided == name).sum()))


def test_figures_of_out_of_fold_rows_say_so_as_data():
    y, scores, _ = rows()
    goal = "maximize recall subject to precision >= 0.5"
    rule = sp.tune(goal, y, scores)
    fresh = rows(1)
    proof = sp.certify(goal, rule, *fresh[:2], out_of_fold=True)
    assert proof.findings[0].out_of_fold
    assert sp.Certificate.from_json(proof.to_json()) == proof
    other = rows(2)
    assert not sp.certify(goal, rule, *other[:2]).findings[0].out_of_fold
