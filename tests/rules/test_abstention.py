"""Abstaining rules equal brute force over all bands and all confidence thresholds."""

import json
import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch
from tests.oracles.tune import TOLERANCE, _choose

import setpoint as sp
from setpoint.rules.confidence_scores import CONFIDENCES, confidence

COVER = "maximize coverage subject to selective_risk <= 0.2"
NAN = float("nan")


def over(top, bottom):
    return (0.0, False) if bottom == 0 else (top / bottom, True)


# --- binary: all bands ---------------------------------------------------------------------------

# Every metric is a function of the rows above (positive), below (negative) and between (undecided):
# r holds masks y, above, below and weights w. Undecided rows count against recall and accuracy.
BINARY = {
    "coverage": lambda r: over(r.sum(r.kept), r.sum(r.all)),
    "selective_risk": lambda r: over(r.sum(r.wrong), r.sum(r.kept)),
    "accuracy": lambda r: over(r.sum(r.kept & ~r.wrong), r.sum(r.all)),
    "error_rate": lambda r: over(r.sum(r.wrong), r.sum(r.all)),
    "precision": lambda r: over(r.sum(r.above & r.y), r.sum(r.above)),
    "recall": lambda r: over(r.sum(r.above & r.y), r.sum(r.y)),
    "fpr": lambda r: over(r.sum(r.above & ~r.y), r.sum(~r.y)),
    "fnr": lambda r: over(r.sum(r.below & r.y), r.sum(r.y)),
    "specificity": lambda r: over(r.sum(r.below & ~r.y), r.sum(~r.y)),
    "npv": lambda r: over(r.sum(r.below & ~r.y), r.sum(r.below)),
    "positive_rate": lambda r: over(r.sum(r.above), r.sum(r.all)),
    "f1": lambda r: over(2 * r.sum(r.above & r.y), r.sum(r.above) + r.sum(r.y)),
    "jaccard": lambda r: over(r.sum(r.above & r.y), r.sum(r.above | r.y)),
    "cost(fp=1, fn=10)": lambda r: over(
        r.sum(r.above & ~r.y) + 10 * r.sum(r.below & r.y), r.sum(r.all)
    ),
}


class Read:
    """The rows under one choice of which are positive, negative, undecided."""

    def __init__(self, y, above, below, weight=None, group=None):
        self.y, self.above, self.below = y, above, below
        self.kept, self.wrong = above | below, (above & ~y) | (below & y)
        self.all = np.ones(y.size, bool)
        self.weight = np.ones(y.size) if weight is None else weight
        self.group = group

    def sum(self, mask):
        return math.fsum(self.weight[mask].tolist())

    def on(self, name):
        rows = self.group == name
        return Read(self.y[rows], self.above[rows], self.below[rows], self.weight[rows])


def least_group(metric):
    def value(r):
        parts = [BINARY[metric](r.on(name)) for name in np.unique(r.group)]
        return min(v for v, _ in parts), all(ok for _, ok in parts)

    return value


def bands(scores):
    """(low, high), low <= high, the highest high first and then the highest low."""
    cuts = [math.inf, *sorted({float(s) for s in scores}, reverse=True)]
    return [(low, high) for high, low in combinations_with_replacement(cuts, 2)]


class _Candidate:
    def __init__(self, objective, constraints, read):
        self.value, self.eligible = objective(read)
        excess = []
        for metric, op, bound in constraints:
            value, defined = metric(read)
            gap = bound - value if op == ">=" else value - bound
            excess.append(max(0.0, gap) / max(1.0, abs(bound)) if defined else math.inf)
        self.violation = max(excess, default=0.0)


def brute(objective, sense, constraints, reads):
    """(index, feasible, value) of the best of many ways to decide the rows."""
    candidates = [_Candidate(objective, constraints, r) for r in reads]
    index, feasible = _choose(candidates, sense)
    chosen = candidates[index]
    return index, feasible, chosen.value if chosen.eligible else None


def brute_band(objective, sense, constraints, y, scores, weight=None, group=None):
    tried = bands(scores)
    y = np.asarray(y) == 1
    reads = [Read(y, scores >= high, scores < low, weight, group) for low, high in tried]
    index, feasible, value = brute(objective, sense, constraints, reads)
    return tried[index], feasible, value


def problem(random, n_most=12):
    n = int(random.integers(3, n_most))
    y = random.integers(0, 2, n)
    y[:2] = (0, 1)
    scores = random.integers(0, random.integers(2, 9), n) / 8
    if random.random() < 0.3:
        scores = random.normal(size=n)
    weight = None if random.random() < 0.5 else random.choice([0.25, 0.5, 1.0, 2.0, 3.0], n)
    group = random.choice(["a", "b"], n)
    group[:2] = ("a", "b")
    return y, scores, weight, group


GOALS = [
    ("coverage", "max", [("selective_risk", "<=", (0.0, 0.1, 0.25, 0.4))]),
    ("selective_risk", "min", [("coverage", ">=", (0.3, 0.5, 0.8, 1.0))]),
    ("precision", "max", [("coverage", ">=", (0.5, 0.8, 1.0))]),
    ("recall", "max", [("selective_risk", "<=", (0.1, 0.3)), ("coverage", ">=", (0.4, 0.9))]),
    ("coverage", "max", [("precision", ">=", (0.6, 0.9)), ("npv", ">=", (0.6, 0.9))]),
    ("f1", "max", [("coverage", "<=", (0.5, 0.9))]),
    ("cost(fp=1, fn=10)", "min", [("coverage", ">=", (0.3, 0.7))]),
    ("accuracy", "max", [("selective_risk", "<=", (0.0, 0.2, 0.5))]),
    ("coverage", "max", [("fpr", "<=", (0.0, 0.3)), ("fnr", "<=", (0.0, 0.3))]),
    ("specificity", "max", [("coverage", ">=", (0.5,)), ("recall", ">=", (0.3, 0.7))]),
    ("coverage", "min", [("jaccard", ">=", (0.3, 0.7))]),
    ("error_rate", "min", [("coverage", ">=", (0.6,)), ("positive_rate", ">=", (0.2, 0.5))]),
]


@pytest.mark.parametrize(("objective", "sense", "held"), GOALS)
def test_bands_equal_brute_force(objective, sense, held):
    random = np.random.default_rng(len(objective) + 10 * len(held))
    seen = {True: 0, False: 0}
    for _ in range(30):
        y, scores, weight, _ = problem(random)
        limits = [(m, op, float(random.choice(bounds))) for m, op, bounds in held]
        text = ", ".join(f"{m} {op} {bound}" for m, op, bound in limits)
        goal = f"{sense}imize {objective} subject to {text}"
        rule = sp.tune(goal, y, scores, sample_weight=weight, kind="abstain")
        constraints = [(BINARY[m], op, bound) for m, op, bound in limits]
        band, feasible, value = brute_band(BINARY[objective], sense, constraints, y, scores, weight)
        assert rule.kind == "abstain"
        assert rule.search == "exact"
        assert rule.feasible == feasible
        assert rule.value == (None if value is None else pytest.approx(value, abs=1e-11))
        if weight is None:
            assert rule.band == band
        read = Read(y == 1, scores >= rule.band[1], scores < rule.band[0], weight)
        if rule.value is not None:
            assert BINARY[objective](read)[0] == pytest.approx(rule.value, abs=1e-11)
        for h, (metric, op, bound) in zip(rule.held, constraints, strict=True):
            side, defined = metric(read)
            assert h.value == (pytest.approx(side, abs=1e-11) if defined else None)
            gap = bound - side if op == ">=" else side - bound
            assert h.holds == (defined and gap <= TOLERANCE)
        seen[feasible] += 1
    assert seen[True] > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_bands_with_groups_equal_brute_force(weighted):
    random = np.random.default_rng(weighted)
    seen = {True: 0, False: 0}
    for _ in range(60):
        y, scores, weight, group = problem(random, 14)
        weight = random.choice([0.5, 1.0, 2.0], y.size) if weighted else None
        risk, floor = float(random.choice([0.1, 0.3])), float(random.choice([0.3, 0.6, 0.9]))
        rule = sp.tune(
            f"maximize coverage subject to selective_risk <= {risk}, "
            f'worst(coverage, by="group") >= {floor}',
            y,
            scores,
            sample_weight=weight,
            group=group,
        )
        held = [(BINARY["selective_risk"], "<=", risk), (least_group("coverage"), ">=", floor)]
        band, feasible, value = brute_band(
            BINARY["coverage"], "max", held, y, scores, weight, group
        )
        assert rule.feasible == feasible
        assert rule.value == pytest.approx(value, abs=1e-11)
        if not weighted:
            assert rule.band == band
        seen[feasible] += 1
    assert min(seen.values()) > 5


def test_reductions_over_the_two_classes():
    """worst over classes: the recall of the negatives counts those below the band."""
    random = np.random.default_rng(3)
    for _ in range(40):
        y, scores, weight, _ = problem(random)
        floor = float(random.choice([0.3, 0.5, 0.8]))
        goal = f'maximize worst(recall, by="class") subject to coverage >= {floor}'
        rule = sp.tune(goal, y, scores, sample_weight=weight, kind="abstain")

        def worst(r):
            a, b = BINARY["recall"](r), BINARY["specificity"](r)
            return min(a[0], b[0]), a[1] and b[1]

        held = [(BINARY["coverage"], ">=", floor)]
        _, feasible, value = brute_band(worst, "max", held, y, scores, weight)
        assert rule.feasible == feasible
        assert rule.value == pytest.approx(value, abs=1e-11)


def test_without_constraints():
    random = np.random.default_rng(4)
    for metric, sense in (("coverage", "max"), ("selective_risk", "min"), ("precision", "max")):
        for _ in range(10):
            y, scores, weight, _ = problem(random)
            rule = sp.tune(
                f"{sense}imize {metric}", y, scores, sample_weight=weight, kind="abstain"
            )
            band, feasible, value = brute_band(BINARY[metric], sense, [], y, scores, weight)
            assert (rule.feasible, rule.value) == (feasible, pytest.approx(value, abs=1e-11))
            if weight is None:
                assert rule.band == band


def test_a_band_is_never_worse_than_a_threshold():
    random = np.random.default_rng(5)
    for _ in range(30):
        y, scores, _, _ = problem(random, 30)
        goal = "maximize precision subject to recall >= 0.5"
        plain = sp.tune(goal, y, scores)
        rule = sp.tune(goal, y, scores, kind="abstain")
        assert rule.value >= plain.value - 1e-12


def test_many_scores_are_thinned_and_the_rule_says_so():
    random = np.random.default_rng(6)
    y = (random.random(4000) < 0.4).astype(int)
    scores = random.normal(size=4000) + 1.5 * y
    goal = "maximize coverage subject to selective_risk <= 0.1"
    rule = sp.tune(goal, y, scores)
    assert rule.search != "exact"
    assert "1," in rule.search
    low, high = rule.band
    read = Read(y == 1, scores >= high, scores < low)
    assert rule.feasible
    assert BINARY["selective_risk"](read)[0] <= 0.1
    assert BINARY["coverage"](read)[0] == pytest.approx(rule.value)
    # the best of the bands around each error count, by a plain search over pairs of quantiles
    cuts = np.quantile(scores, np.linspace(0, 1, 120))
    best = 0.0
    for i, a in enumerate(cuts):
        for b in cuts[i:]:
            kept = (scores >= b) | (scores < a)
            wrong = ((scores >= b) & (y == 0)) | ((scores < a) & (y == 1))
            if kept.any() and wrong.sum() <= 0.1 * kept.sum():
                best = max(best, kept.mean())
    assert rule.value >= best - 0.003


# --- what a rule does ----------------------------------------------------------------------------

RANDOM = np.random.default_rng(7)
Y = (RANDOM.random(300) < 0.4).astype(int)
S = RANDOM.normal(size=300) + 1.2 * Y
G = RANDOM.choice(["a", "b"], 300)
C = RANDOM.integers(0, 3, 300)
Z = 2 * RANDOM.normal(size=(300, 3)) + 2 * np.eye(3)[C]
TASK = sp.Task.multiclass(["x", "y", "z"], score="logit")
NAMES = np.array(TASK.classes)[C]
NORMS = (0.5, 1.0, 1.7)


def test_decisions_of_a_band():
    rule = sp.tune(COVER, Y, S)
    low, high = rule.band
    assert low < high
    edges = [
        low - 1,
        np.nextafter(low, -np.inf),
        low,
        (low + high) / 2,
        np.nextafter(high, -9),
        high,
    ]
    assert rule.decide([*edges, high + 1]).tolist() == [0, 0, -1, -1, -1, 1, 1]
    decided, undecided = rule.decide(S), rule.abstains(S)
    assert undecided.dtype == bool
    assert undecided.tolist() == ((low <= S) & (high > S)).tolist()
    assert (decided == -1).tolist() == undecided.tolist()
    assert sp.coverage(Y, decided == 1, abstained=undecided) == pytest.approx(rule.value)
    risk = sp.selective_risk(Y, decided == 1, abstained=undecided)
    assert risk == pytest.approx(rule.held[0].value)
    assert risk <= 0.2
    text = str(rule)
    assert f"{low:.6g}" in text
    assert f"{high:.6g}" in text


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_decisions_of_tensors(dtype):
    s = torch.as_tensor(S, dtype=dtype)
    rule = sp.tune(COVER, torch.as_tensor(Y), s)
    same = sp.tune(COVER, Y, s.numpy())
    assert rule.band == same.band
    decided, undecided = rule.decide(s), rule.abstains(s)
    assert isinstance(decided, torch.Tensor)
    assert isinstance(undecided, torch.Tensor)
    assert decided.tolist() == same.decide(s.numpy()).tolist()
    assert undecided.tolist() == same.abstains(s.numpy()).tolist()
    z = torch.as_tensor(Z, dtype=dtype)
    rule = sp.tune(COVER, NAMES, z, task=TASK)
    assert np.asarray(rule.abstains(z)).tolist() == rule.abstains(z.numpy()).tolist()
    assert list(rule.decide(z)) == list(rule.decide(z.numpy()))


def test_a_rule_that_decides_all_abstains_nowhere():
    rule = sp.tune("maximize f1", Y, S)
    assert not rule.abstains(S).any()
    assert rule.abstains(S).shape == S.shape
    z = sp.tune("maximize accuracy", NAMES, Z, task=TASK)
    assert not z.abstains(Z).any()
    assert z.abstains(torch.as_tensor(Z)).tolist() == [False] * 300
    labels = (RANDOM.random((50, 2)) < 0.5).astype(int)
    many = sp.tune("maximize macro(f1)", labels, RANDOM.normal(size=(50, 2)), task="multilabel")
    assert many.abstains(np.zeros((4, 2))).tolist() == [False] * 4


def rules():
    never = "maximize coverage subject to precision >= 1, fnr <= 0, coverage >= 0.99"
    return {
        "band": sp.tune(COVER, Y, S),
        "infeasible": sp.tune(never, Y, S),
        "all decided": sp.tune("maximize coverage", Y, S),
        "none above": sp.tune("minimize fpr subject to coverage >= 0.5", Y, S, kind="abstain"),
        "positive named": sp.tune(COVER, np.where(Y == 1, "yes", "no"), S, positive="yes"),
        "classes": sp.tune(COVER, NAMES, Z, task=TASK),
        "head": sp.tune(COVER, NAMES, Z, task=TASK, by="rl_geo_m", head=NORMS),
        "none": sp.tune("minimize coverage", NAMES, Z, task=TASK),
        "raw": sp.tune(COVER, C, Z, task=sp.Task.multiclass([0, 1, 2])),
    }


RULES = rules()


@pytest.mark.parametrize("name", RULES)
def test_json_round_trip(name, tmp_path):
    rule = RULES[name]
    read = sp.DecisionRule.from_json(json.loads(json.dumps(rule.to_json(), allow_nan=False)))
    assert read == rule
    loaded = sp.DecisionRule.load(rule.save(tmp_path / "rule.json"))
    assert loaded == rule
    scores = Z if rule.task.kind == "multiclass" else S
    assert list(loaded.decide(scores)) == list(rule.decide(scores))
    assert str(loaded) == str(rule)
    assert str(rule.goal) in str(rule)


@pytest.mark.parametrize(
    "change",
    [
        {"band": []},
        {"band": [0.1]},
        {"band": [0.5, 0.1]},
        {"band": ["a", "b"]},
        {"band": [0.1, None]},
        {"band": None},
        {"kind": "threshold"},
    ],
)
def test_a_damaged_band_is_refused(change):
    with pytest.raises(sp.FileError, match="damaged"):
        sp.DecisionRule.from_json(RULES["band"].to_json() | change)


@pytest.mark.parametrize(
    "change",
    [
        {"confidence": "sr_mx"},
        {"confidence": None},
        {"threshold": None},
        {"threshold": "x"},
        {"confidence": "rl_geo_m"},
    ],
)
def test_a_damaged_confidence_is_refused(change):
    """The last: a confidence that needs norms, without them, decides nothing."""
    with pytest.raises(sp.FileError, match="damaged"):
        sp.DecisionRule.from_json(RULES["classes"].to_json() | change)


def test_damaged_norms_are_refused():
    for norms in ([1.0, 2.0], [], ["a", "b", "c"], [1.0, 0.0, 1.0]):
        with pytest.raises(sp.FileError, match="damaged"):
            sp.DecisionRule.from_json(RULES["head"].to_json() | {"norms": norms})


def test_evaluate_on_other_rows():
    random = np.random.default_rng(8)
    y = random.integers(0, 2, 200)
    s = random.normal(size=200) + 1.2 * y
    weight = random.uniform(0.5, 2, 200)
    rule = RULES["band"]
    for w in (None, weight):
        found = sp.evaluate(rule, y, s, sample_weight=w)
        read = Read(y == 1, s >= rule.band[1], s < rule.band[0], w)
        assert found.value == pytest.approx(BINARY["coverage"](read)[0])
        assert found.kept[0].value == pytest.approx(BINARY["selective_risk"](read)[0])
        assert found.holds == (BINARY["selective_risk"](read)[0] <= 0.2)
    index = random.integers(0, 3, 200)
    z = 2 * random.normal(size=(200, 3)) + 2 * np.eye(3)[index]
    rule = RULES["classes"]
    found = sp.evaluate(rule, np.array(TASK.classes)[index], z)
    kept = confidence("sr_max", z)[0] >= rule.threshold
    assert found.value == pytest.approx(kept.mean())
    assert found.kept[0].value == pytest.approx((z.argmax(1) != index)[kept].mean())


def test_evaluate_where_nothing_is_decided():
    rule = RULES["band"]
    low, high = rule.band
    found = sp.evaluate(rule, [0, 1], [low, (low + high) / 2])
    assert found.value == 0
    assert found.kept[0].value is None
    assert not found.holds


# --- several classes: all confidence thresholds --------------------------------------------------


def multiclass_problem(random):
    n = int(random.integers(4, 25))
    index = random.integers(0, 3, n)
    index[:2] = (0, 1)
    z = np.round(
        2 * random.normal(size=(n, 3)) + 1.5 * np.eye(3)[index], int(random.integers(0, 3))
    )
    weight = None if random.random() < 0.5 else random.choice([0.5, 1.0, 2.0], n)
    group = random.choice(["a", "b"], n)
    group[:2] = ("a", "b")
    return index, z, weight, group


class Sure:
    """Rows of several classes, some of them undecided."""

    def __init__(self, actual, predicted, kept, weight, group):
        self.actual, self.predicted, self.kept = actual, predicted, kept
        self.weight = np.ones(actual.size) if weight is None else weight
        self.all = np.ones(actual.size, bool)
        self.group = group

    def sum(self, mask):
        return math.fsum(self.weight[mask].tolist())

    def on(self, name):
        r = self.group == name
        return Sure(self.actual[r], self.predicted[r], self.kept[r], self.weight[r], None)


SEVERAL = {
    "coverage": lambda r: over(r.sum(r.kept), r.sum(r.all)),
    "selective_risk": lambda r: over(r.sum(r.kept & (r.actual != r.predicted)), r.sum(r.kept)),
    "accuracy": lambda r: over(r.sum(r.kept & (r.actual == r.predicted)), r.sum(r.all)),
    'recall.of("x")': lambda r: over(
        r.sum(r.kept & (r.actual == 0) & (r.predicted == 0)), r.sum(r.actual == 0)
    ),
    'precision.of("y")': lambda r: over(
        r.sum(r.kept & (r.actual == 1) & (r.predicted == 1)), r.sum(r.kept & (r.predicted == 1))
    ),
    'fpr.of("z")': lambda r: over(
        r.sum(r.kept & (r.actual != 2) & (r.predicted == 2)), r.sum(r.actual != 2)
    ),
    'worst(coverage, by="group")': lambda r: (
        min(SEVERAL["coverage"](r.on(g))[0] for g in np.unique(r.group)),
        True,
    ),
}
CLASS_GOALS = [
    ("coverage", "max", [("selective_risk", "<=", 0.2)]),
    ("selective_risk", "min", [("coverage", ">=", 0.6)]),
    (
        "accuracy",
        "max",
        [("selective_risk", "<=", 0.3), ('worst(coverage, by="group")', ">=", 0.3)],
    ),
    ("coverage", "max", [('precision.of("y")', ">=", 0.7)]),
    ("coverage", "max", [('fpr.of("z")', "<=", 0.1), ('recall.of("x")', ">=", 0.2)]),
    ("coverage", "min", [('recall.of("x")', ">=", 0.5)]),
]


@pytest.mark.parametrize("by", CONFIDENCES)
@pytest.mark.parametrize(("objective", "sense", "held"), CLASS_GOALS)
def test_confidence_thresholds_equal_brute_force(by, objective, sense, held):
    random = np.random.default_rng(list(CONFIDENCES).index(by))
    head = NORMS if CONFIDENCES[by].needs_head else None
    text = ", ".join(f"{m} {op} {bound}" for m, op, bound in held)
    for _ in range(8):
        index, z, weight, group = multiclass_problem(random)
        rule = sp.tune(
            f"{sense}imize {objective} subject to {text}",
            np.array(TASK.classes)[index],
            z,
            sample_weight=weight,
            group=group,
            task=TASK,
            kind="abstain",
            by=by,
            head=head,
        )
        sure, predicted = confidence(by, z, head)
        tried = [math.inf, *sorted(set(sure.tolist()), reverse=True)]
        reads = [Sure(index, predicted, sure >= t, weight, group) for t in tried]
        limits = [(SEVERAL[m], op, bound) for m, op, bound in held]
        place, feasible, value = brute(SEVERAL[objective], sense, limits, reads)
        assert rule.feasible == feasible
        assert rule.value == (None if value is None else pytest.approx(value, abs=1e-11))
        assert rule.confidence == by
        if weight is None:
            assert rule.threshold == tried[place]
        kept = sure >= rule.threshold
        said = [TASK.classes[p] if k else None for p, k in zip(predicted, kept, strict=True)]
        assert list(rule.decide(z)) == said
        assert rule.abstains(z).tolist() == (~kept).tolist()


def test_the_confidence_that_is_gone_by():
    assert sp.tune(COVER, NAMES, Z, task=TASK).confidence == "sr_max"
    assert RULES["raw"].confidence == "rl_conf_m"
    p = np.exp(Z) / np.exp(Z).sum(1, keepdims=True)
    task = sp.Task.multiclass(["x", "y", "z"], score="probability")
    rule = sp.tune(COVER, NAMES, p, task=task)
    logits = sp.tune(COVER, NAMES, Z, task=TASK)
    assert rule.confidence == "sr_max"
    assert rule.value == logits.value
    assert rule.threshold == pytest.approx(logits.threshold, rel=1e-6)
    assert "sr_max >=" in str(rule)


def test_rl_geo_m_may_decide_for_another_class():
    rule = RULES["head"]
    u = Z / np.array(NORMS)
    kept = ~rule.abstains(Z)
    assert rule.norms == NORMS
    assert (u.argmax(1) != Z.argmax(1)).any()
    assert list(rule.decide(Z)[kept]) == [TASK.classes[i] for i in u.argmax(1)[kept]]
    weights = np.diag(NORMS)  # a last layer whose rows have these norms
    same = sp.tune(COVER, NAMES, Z, task=TASK, by="rl_geo_m", head=weights)
    assert (same.threshold, same.norms) == (rule.threshold, pytest.approx(NORMS))


def test_two_classes_as_a_multiclass_task():
    """Going by the margin of two logits is a band around 0 that is as wide above as below."""
    random = np.random.default_rng(9)
    y = random.integers(0, 2, 200)
    m = random.normal(size=200) + 1.0 * (2 * y - 1)
    z = np.stack([np.zeros(200), m], axis=1)
    rule = sp.tune(COVER, y, z, task=sp.Task.multiclass([0, 1]))
    best = 0.0
    for t in [*np.abs(m), math.inf]:
        kept = np.abs(m) >= t
        if kept.any() and np.mean((m > 0)[kept] != y[kept]) <= 0.2:
            best = max(best, kept.mean())
    assert rule.value == pytest.approx(best)
    band = sp.tune(COVER, y, m)
    assert band.value >= rule.value - 1e-12


# --- bad input -----------------------------------------------------------------------------------

LABELS = (RANDOM.random((20, 2)) < 0.5).astype(int)
LABEL_SCORES = RANDOM.normal(size=(20, 2))


def tune(goal=COVER, y=NAMES, s=Z, task=TASK, **more):
    return lambda: sp.tune(goal, y, s, task=task, **more)


RAW = sp.Task.multiclass(["x", "y", "z"])
# name, call, class, built-in class, part of the sentence
CASES = [
    ("an unknown confidence", tune(by="sr_mx"), sp.KindError, TypeError, "sr_max"),
    ("a confidence that is no word", tune(by=3), sp.KindError, TypeError, "3"),
    (
        "a softmax of raw scores",
        tune(by="sr_max", task=RAW),
        sp.KindError,
        TypeError,
        'score="logit"',
    ),
    ("an entropy of raw scores", tune(by="sr_ent", task=RAW), sp.KindError, TypeError, "raw"),
    ("doctor of raw scores", tune(by="sr_doctor", task=RAW), sp.KindError, TypeError, "raw"),
    ("no head", tune(by="rl_geo_m"), sp.KindError, TypeError, "pass head="),
    ("a head too many", tune(by="sr_max", head=NORMS), sp.KindError, TypeError, "leave head= out"),
    (
        "a head of another width",
        tune(by="rl_geo_m", head=(1.0, 2.0)),
        sp.DataError,
        ValueError,
        "head has 2 rows",
    ),
    (
        "a head with a zero",
        tune(by="rl_geo_m", head=(1.0, 0.0, 1.0)),
        sp.DataError,
        ValueError,
        "norm 0",
    ),
    (
        "a head with a hole",
        tune(by="rl_geo_m", head=(1.0, NAN, 1.0)),
        sp.DataError,
        ValueError,
        "norm nan",
    ),
    (
        "a head of a threshold",
        tune(goal="maximize accuracy", head=NORMS),
        sp.KindError,
        TypeError,
        'belongs to kind="abstain"',
    ),
    (
        "a confidence of a threshold",
        tune(goal="maximize f1", y=Y, s=S, task=None, by="sr_max"),
        sp.KindError,
        TypeError,
        'kind="abstain"',
    ),
    (
        "a confidence of a band",
        tune(y=Y, s=S, task=None, by="sr_max"),
        sp.KindError,
        TypeError,
        "leave by= out",
    ),
    ("a head of a band", tune(y=Y, s=S, task=None, head=[1.0]), sp.KindError, TypeError, "head"),
    (
        "a multilabel task",
        tune(
            y=LABELS, s=LABEL_SCORES, task="multilabel", kind="abstain", goal="maximize macro(f1)"
        ),
        sp.KindError,
        TypeError,
        "a multilabel task takes per-label",
    ),
    (
        "coverage of a multilabel task",
        tune(y=LABELS, s=LABEL_SCORES, task="multilabel"),
        sp.GoalError,
        ValueError,
        "about abstaining",
    ),
    (
        "a ranking task",
        tune(y=[0, 1], s=[0.1, 0.2], task="ranking", kind="abstain", goal="maximize ndcg(2)"),
        sp.KindError,
        TypeError,
        "a ranking task takes top-k",
    ),
    (
        "a threshold that abstains",
        tune(y=Y, s=S, task=None, kind="threshold"),
        sp.GoalError,
        ValueError,
        "about abstaining",
    ),
    ("offsets that abstain", tune(kind="offsets"), sp.GoalError, ValueError, "about abstaining"),
    (
        "a correlation of abstaining rows",
        tune(y=Y, s=S, task=None, goal="maximize mcc", kind="abstain"),
        sp.GoalError,
        ValueError,
        "not defined where rows abstain",
    ),
    (
        "a ranking metric",
        tune(y=Y, s=S, task=None, goal="maximize auroc", kind="abstain"),
        sp.GoalError,
        ValueError,
        "no operating point can change it",
    ),
    (
        "a metric nothing moves",
        tune(y=Y, s=S, task=None, goal="maximize prevalence", kind="abstain"),
        sp.GoalError,
        ValueError,
        "nothing to choose",
    ),
    (
        "one class only",
        tune(y=np.ones(300, int), s=S, task=None),
        sp.DataError,
        ValueError,
        "only the class 1",
    ),
    (
        "a group at decide",
        lambda: RULES["band"].decide(S, group=G),
        sp.KindError,
        TypeError,
        "takes no group",
    ),
    (
        "nan at abstains",
        lambda: RULES["band"].abstains([NAN]),
        sp.DataError,
        ValueError,
        "nan at row 0",
    ),
    (
        "a matrix for a band",
        lambda: RULES["band"].abstains(Z),
        sp.DataError,
        ValueError,
        "one-dimensional",
    ),
    (
        "a vector for classes",
        lambda: RULES["classes"].abstains(S),
        sp.DataError,
        ValueError,
        "one column per class",
    ),
]


@pytest.mark.parametrize(
    ("call", "ours", "builtin", "sentence"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_bad_input_is_answered_with_a_sentence(call, ours, builtin, sentence):
    with pytest.raises(ours) as caught:
        call()
    assert isinstance(caught.value, builtin)
    assert sentence in str(caught.value)
