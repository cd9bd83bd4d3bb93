"""The text language: what round trips, and what each mistake is answered with."""

import itertools
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.expressions import from_json, to_json

FIXED = [name for name, what in sp.NAMES.items() if isinstance(what, sp.metrics.binary.Expression)]
FORMS = [
    *FIXED,
    "f_beta(2)",
    "f_beta(0.5)",
    "cost(fp=5, fn=400)",
    "cost(fp=1, fn=10, tp=-2)",
    "precision_at_recall(0.9)",
    "recall_at_precision(0.95)",
    "tpr_at_fpr(0.001)",
    "fnr_at_fpr(0.01)",
    "precision_at_k(100)",
    'precision_at_k(5, by="query")',
    "recall_at_k(3)",
    "auroc(max_fpr=0.05)",
    "auroc(min_tpr=0.5)",
    "auroc(max_fpr=0.3, min_tpr=0.7)",
    "auroc(max_fpr=0.3, min_tpr=0.7, standardized=false)",
    "auroc(max_fpr=0.05, standardized=false)",
    "auprc(min_recall=0.95)",
    'average_precision(by="query")',
    "ndcg(10)",
    'ndcg(10, gain="exponential")',
    "macro(f1)",
    "micro(f_beta(2))",
    "weighted(recall)",
    'recall.of("cat")',
    "recall.of(3)",
    'recall.on(group="b")',
    'recall.on(race="x", sex="F")',
    'gap(recall, by="group")',
    'worst(recall, by="class")',
    'worst(fpr, by="sex")',
    'ratio(positive_rate, by="group")',
    "balanced(mae)",
    'worst(mae, by="bin")',
    "min(precision, recall)",
    "max(fpr, fnr)",
    "abs(precision - recall)",
    "0.65 * accuracy + 0.35 * recall",
    "1 - fpr",
    "-recall",
    "2 * tp / (2 * tp + fp + fn)",
    "(precision * recall) ** 0.5",
    "precision / recall / f1",
    "precision / (recall / f1)",
    "precision - (recall - f1)",
    "precision * (recall + f1) - 3",
    "recall ** (-2)",
    "(recall - 0.5).of(1)",
    'macro(gap(recall, by="group"))',
    '"a\\"b" and more'.join(["recall.of(", ")"]).replace(" and more", ""),
]
HELD = [
    "",
    " subject to precision >= 0.9",
    " subject to fpr <= 0.001, recall >= 0.5",
    ' subject to recall - precision == 0, gap(recall, by="sex") <= 0.05, npv >= precision',
]
GOALS = [
    f"{sense} {form}{held}"
    for (form, sense), held in itertools.product(
        zip(FORMS, itertools.cycle(["maximize", "minimize"])), HELD
    )
]


def test_two_hundred_goals_are_held():
    assert len(set(GOALS)) >= 200


@pytest.mark.parametrize("text", GOALS)
def test_goals_round_trip(text):
    goal = sp.Goal.parse(text)
    assert str(goal) == str(sp.Goal.parse(str(goal)))
    assert goal == sp.Goal.parse(str(goal))
    assert hash(goal) == hash(sp.Goal.parse(str(goal)))
    assert eval(repr(goal), {"Goal": sp.Goal}) == goal
    assert sp.Goal.from_json(json.loads(json.dumps(goal.to_json()))) == goal
    assert pickle.loads(pickle.dumps(goal)) == goal
    data = json.dumps(to_json(goal.objective), allow_nan=False)
    assert from_json(json.loads(data)) == goal.objective
    assert str(from_json(json.loads(data))) == str(goal.objective)
    normal = goal.objective.normal()
    assert from_json(json.loads(json.dumps(to_json(normal), allow_nan=False))) == normal
    assert goal.latex().count("{") == goal.latex().count("}")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (
            "maximise recall such that precision ≥ 90%",
            "maximize recall subject to precision >= 0.9",
        ),
        (
            "max recall s.t. precision >= .9 and fpr <= 1e-2",
            "maximize recall subject to precision >= 0.9, fpr <= 0.01",
        ),
        ("MAXIMIZE tpr SUBJECT TO ppv >= 0.9", "maximize recall subject to precision >= 0.9"),
        ("maximize recall st 0.9 <= precision", "maximize recall subject to precision >= 0.9"),
        ("minimize fnr subject to 5% >= fpr", "minimize fnr subject to fpr <= 0.05"),
        ("maximize recall.on(group='b')", 'maximize recall.on(group="b")'),
        ("maximize precision ^ 2", "maximize precision ** 2"),
        ("maximize f_beta(1)", "maximize f1"),
    ],
)
def test_other_spellings(text, same):
    assert sp.Goal.parse(text) == sp.Goal.parse(same)


# text, sentence, the part that is pointed at
WRONG = [
    ("maximize recal", 'unknown metric "recal": did you mean recall?', "recal"),
    ("maximize f1 subject to precison >= 0.9", 'unknown metric "precison": did you mean precision?', "precison"),
    ("maximize Recall", 'unknown metric "Recall": did you mean recall?', "Recall"),
    ("maximize zzz", 'unknown metric "zzz": `setpoint metrics` lists them all', "zzz"),
    ("maximise", "say what to maximise", ""),
    ("", 'a goal begins with "maximize" or "minimize"', ""),
    ("recall subject to precision >= 0.9", 'a goal begins with "maximize" or "minimize"', "recall"),
    ("optimize recall", 'a goal begins with "maximize" or "minimize"', "optimize"),
    ("maximize recall subject precision >= 0.9", 'after "subject" stands "to"', "precision"),
    ("maximize recall subject to", "expected a metric or a number, found the end", ""),
    ("maximize recall subject to precision", "a constraint compares two sides with >=, <= or ==; found the end", ""),
    ("maximize recall subject to precision > 0.9", '">" is not a comparison here; write >=', ">"),
    ("maximize recall subject to precision < 0.9", '"<" is not a comparison here; write <=', "<"),
    ("maximize recall subject to precision = 0.9", '"=" is not a comparison here; write >= or <= (== for exactly)', "="),
    ("maximize recall subject to precision => 0.9", '"=" is not a comparison here; write >=', "="),
    ("maximize recall subject to precision >= 0,7", "a comma joins constraints; write a decimal point, as in 0.7", ""),
    ("maximize f2", 'unknown metric "f2": did you mean f_beta(2)?', "f2"),
    ("maximize recall and precision", 'cannot read "and" here; to want both, say min(a, b) or a weighted sum', "and"),
    ("maximize 10 ** 400 * recall", "10 ** 400 is no number to use here", "400"),
    ("maximize " + "(" * 60 + "recall" + ")" * 60, "nested more than 50 deep; simplify it", "("),
    ("maximize recall subject to 0.1 <= fpr <= 0.2", "a range is two constraints; write: metric >= a, metric <= b", "<="),
    ("maximize recall where precision >= 0.9", 'cannot read "where" here; constraints follow after "subject to"', "where"),
    ("maximize recall subject to fpr <= 0.1 npv >= 0.2", 'cannot read "npv" after a constraint; join them by a comma', "npv"),
    ("maximize recall subject to precision >= 0.9,", "expected a metric or a number, found the end", ""),
    ("maximize recall subject to precision >= 0.9 and", "expected a metric or a number, found the end", ""),
    ("maximize recall, precision", 'cannot read "," here; constraints follow after "subject to"', ","),
    ("maximize f_beta", "f_beta takes arguments; write f_beta(2)", "f_beta"),
    ("maximize f_beta()", "f_beta: missing a required argument: 'beta'; write f_beta(2)", "f_beta()"),
    ("maximize f_beta(-1)", "f_beta(-1): beta is a positive number", "f_beta(-1)"),
    ("maximize f_beta(2, 3)", "f_beta: too many positional arguments; write f_beta(2)", "f_beta(2, 3)"),
    ("maximize f1(2)", "f1 takes no such argument; write f1", "f1(2)"),
    ("maximize recall()", "recall() is empty; write recall, or pass y_true and y_pred", "recall()"),
    ("maximize recall(beta=2)", 'recall has no option "beta": it takes none', "recall(beta=2)"),
    ("maximize auroc(maxfpr=0.1)", 'auroc has no option "maxfpr": did you mean max_fpr?', "auroc(maxfpr=0.1)"),
    ("maximize auroc(min_tpr=1)", "auroc(min_tpr=1): min_tpr is a number in [0, 1)", "auroc(min_tpr=1)"),
    ("maximize auroc(max_fpr=0)", "auroc(max_fpr=0): max_fpr is a number in (0, 1]", "auroc(max_fpr=0)"),
    ("maximize auprc(min_recall=1)", "auprc(min_recall=1): min_recall is a number in [0, 1)", "auprc(min_recall=1)"),
    ("maximize tpr_at_fpr(1.5)", "tpr_at_fpr(1.5): the argument is a rate, a number in [0, 1]", "tpr_at_fpr(1.5)"),
    ("maximize precision_at_k(0)", "precision_at_k(0): k is a whole number, at least 1", "precision_at_k(0)"),
    ("maximize precision_at_k(2.5)", "precision_at_k(2.5): k is a whole number, at least 1", "precision_at_k(2.5)"),
    ('maximize precision_at_k(5, by="x")', 'precision_at_k(by="x"): only by="query" is known here', 'precision_at_k(5, by="x")'),
    ("maximize gap(recall)", "gap: missing a required argument: 'by'; write gap(recall, by=\"group\")", "gap(recall)"),
    ('maximize gap(recall, by="query")', 'gap(…, by="query"): ranking metrics take by="query" themselves', 'gap(recall, by="query")'),
    ("maximize macro(3)", "macro(…) takes a metric; got 3", "macro(3)"),
    ("maximize macro f1", "macro takes arguments; write macro(f1)", "macro"),
    ("maximize micro(macro(f1))", "micro(macro(f1)): a micro average takes a metric of one class", "micro(macro(f1))"),
    ("maximize min(recall)", "min(…) takes two or more metrics; got recall", "min(recall)"),
    ('maximize ndcg(5, gain="square")', 'ndcg(gain="square"): gain is "linear" or "exponential"', 'ndcg(5, gain="square")'),
    ("maximize (recall + precision", 'expected ")" to close the parenthesis, found the end', ""),
    ("maximize recall + ", "expected a metric or a number, found the end", ""),
    ("maximize recall * * precision", 'expected a metric or a number, found "*"', "*"),
    ("maximize recall $ precision", "cannot read '$'", "$"),
    ("maximize recall.of()", 'of(…) takes one class, for example recall.of("cat")', "of()"),
    ('maximize recall.on("b")', 'on(…) takes columns, for example recall.on(group="b")', 'on("b")'),
    ('maximize recall.off("b")', 'after a dot stands of("class") or on(group="value")', "off"),
    ('maximize recall.on(group="b', "cannot read a quote that is never closed", '"'),
    ('maximize recall.on(decided="b")', '"decided" is a word of the language, not a group column', 'on(decided="b")'),
    ("maximize 3", "the objective is a number; name a metric", "maximize"),
    ("maximize recall / 0", "a division by zero", "/"),
    ("maximize recall ** precision", "an exponent is a number", "precision"),
    ("minimize cost()", "cost() needs at least one cost that is not 0, for example cost(fp=1, fn=10)", "cost()"),
    ("minimize cost(fp=1, fx=2)", "cost: got an unexpected keyword argument 'fx'; write cost(fp=1, fn=10)", "cost(fp=1, fx=2)"),
    ("minimize cost(fp=1, fp=2)", '"fp" is given twice', "fp"),
    ("minimize cost(fp=1, 2)", "a plain argument cannot follow a named one", "2"),
    ('maximize "recall"', 'expected a metric or a number, found the text "recall"', '"recall"'),
    ('maximize f1 subject to fpr >= "0.9"', 'expected a metric or a number, found the text "0.9"', '"0.9"'),
]  # fmt: skip


def test_forty_wrong_goals_are_held():
    assert len({text for text, *_ in WRONG}) >= 40


@pytest.mark.parametrize(("text", "sentence", "part"), WRONG)
def test_wrong_goals_are_answered_at_the_place(text, sentence, part):
    with pytest.raises(sp.GoalSyntaxError) as caught:
        sp.Goal.parse(text)
    error = caught.value
    assert error.sentence == sentence
    assert text[error.start : error.stop] == part
    assert isinstance(error, ValueError)
    lines = str(error).split("\n")
    assert lines[0] == sentence
    assert lines[2].index("^") == 2 + error.start
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# --- expressions made at random ------------------------------------------------------------------

leaf = st.sampled_from(
    [form for form in FORMS if form[0] not in '0123456789(-"' and "/" not in form]
)
number = st.floats(-100, 100, allow_nan=False).map(lambda x: round(x, 4))


def combine(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(number, st.sampled_from("+-*"), inner).map(lambda t: f"{t[0]} {t[1]} ({t[2]})"),
        inner.map(lambda x: f"-({x})"),
        inner.map(lambda x: f"({x}) ** 2"),
        st.tuples(inner, inner).map(lambda t: f"min({t[0]}, {t[1]})"),
    )


@settings(max_examples=300, deadline=None)
@given(text=st.recursive(leaf, combine, max_leaves=6))
def test_any_expression_round_trips(text):
    expression = sp.metric(text)
    again = sp.metric(str(expression))
    assert again == expression
    assert str(again) == str(expression)
    assert hash(again) == hash(expression)
    assert expression.normal() == expression


def read_or_refused(text):
    """Any other exception than ours fails the test."""
    try:
        goal = sp.Goal.parse(text)
    except sp.GoalError:
        return
    assert sp.Goal.parse(str(goal)) == goal


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_sentence(text):
    read_or_refused("maximize " + text)


@settings(max_examples=300, deadline=None)
@given(
    words=st.lists(
        st.sampled_from(
            [*"()+-*/.,=%", ">=", "**", "recall", "of", "0.5", '"a"', "by", "macro", "and"]
        ),
        max_size=12,
    )
)
def test_any_row_of_words_is_read_or_refused_with_a_sentence(words):
    read_or_refused("maximize " + " ".join(words))
