"""The verdict: the right word, and a sentence that says what it means."""

import numpy as np
import pytest
from tests.reports import cases

import setpoint as sp
from setpoint.reports import ScoredRows, make_report

PLAIN = {"plan": None, "comparison": None, "diagnosis": None}


def verdict(**given):
    return make_report(**{"facts": cases.facts(), **given}).verdict


def test_proven():
    found = cases.binary(**PLAIN).verdict
    assert found["status"] == "PROVEN"
    assert found["headline"] == (
        "The model keeps what was asked: of the rows it flags, at least 80% have wilted = yes."
    )
    assert "Proven at 95% confidence on 3,000 rows" in found["detail"]
    assert "It finds " in found["detail"]


def test_not_proven_for_want_of_rows():
    y, s = cases.rows(2000, 1)
    fresh = cases.rows(150, 2)
    rule = sp.tune("maximize recall subject to precision >= 0.7", y, s)
    proof = sp.certify(rule.goal, rule, *fresh)
    assert proof.verdict == "NOT PROVEN"
    scored = [ScoredRows("certify", *fresh)]
    found = verdict(goal=rule.goal, rule=rule, scored=scored, certificate=proof)
    assert found["status"] == "NOT PROVEN"
    value = proof.findings[0].value
    word = "are too few to prove it" if value >= 0.7 else "falls short"
    assert word in found["headline"]


def test_not_proven_without_rows_kept_apart():
    found = cases.binary(certify=False, **PLAIN).verdict
    assert found["status"] == "NOT PROVEN"
    assert "No rows were kept apart" in found["headline"]
    assert "helped to choose the rule" in found["detail"]


def test_refuted():
    y, s = cases.rows(3000, 1)
    rule = sp.tune("maximize recall subject to precision >= 0.8", y, s)
    bad_y, bad_s = cases.rows(3000, 2, shift=0.0)
    proof = sp.certify(rule.goal, rule, bad_y, bad_s)
    assert proof.verdict == "REFUTED"
    scored = [ScoredRows("certify", bad_y, bad_s)]
    found = verdict(goal=rule.goal, rule=rule, scored=scored, certificate=proof)
    assert found["status"] == "REFUTED"
    assert found["headline"].startswith("The model does not keep what was asked")
    assert "REFUTED: precision ≥ 0.8" in found["detail"]


def test_not_feasible():
    goal = "maximize recall subject to precision >= 0.999, recall >= 0.9"
    report = cases.binary(goal, certify=False, **{**PLAIN, "diagnosis": cases.Diagnosis()})
    assert report.verdict["status"] == "NOT FEASIBLE"
    assert "out of reach" in report.verdict["headline"]
    page = report.html()
    assert "Why it is out of reach, and what is not" in page
    assert 'class="verdict bad"' in page


def test_no_constraint():
    found = cases.binary("maximize f1", certify=False, **PLAIN).verdict
    assert found["status"] == "NO CONSTRAINT"
    assert "nothing to prove" in found["headline"]


def test_unfinished_is_said_at_the_top():
    report = cases.binary(facts=cases.facts(finished=False), n=600, **PLAIN)
    assert "stopped before its plan was done" in report.verdict["detail"]
    assert "<strong>Unfinished.</strong>" in report.html()


def test_a_proof_of_another_rule_is_not_a_proof_of_this_one():
    y, s = cases.rows(3000, 1)
    fresh_y, fresh_s = cases.rows(3000, 2)
    proven = sp.tune(cases.GOAL, fresh_y, fresh_s, prove=0.95, reference=(y, s))
    assert proven.proven
    other = sp.tune(cases.GOAL, y, s)
    report = make_report(
        goal=cases.GOAL,
        rule=other,
        scored=[ScoredRows("certify", fresh_y, fresh_s)],
        facts=cases.facts(),
        certificate=proven.certificate,
    )
    assert report.verdict["status"] == "NOT PROVEN"
    assert "This is not the rule in use" in report.html()
    # and the figures are of the rule in use
    recall = report.record["figures"][0]["items"][0]
    assert recall["value"] == pytest.approx((fresh_s[fresh_y] >= other.threshold).mean())


def test_the_words_go_with_the_metric():
    y, s = cases.rows(2000, 3, share=0.4)
    goals = {
        "maximize precision subject to recall >= 0.5": "it finds at least 50% of all rows with",
        "maximize recall subject to fpr <= 0.2": "it wrongly flags at most 20% of the other rows",
        "maximize recall subject to f1 >= 0.3": "its f1 is at least 0.3",
        'maximize recall subject to gap(recall, by="g") <= 0.9': 'gap(recall, by="g") is at most',
    }
    for goal, words in goals.items():
        group = {"g": np.arange(2000) % 2} if "gap" in goal else None
        rule = sp.tune(goal, y, s, group=group)
        scored = [ScoredRows("out-of-fold", y, s, group)]
        assert words in verdict(goal=goal, rule=rule, scored=scored)["headline"]
