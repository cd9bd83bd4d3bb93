"""Populations whose truth is known, and what certificates say of rows drawn from them.

A law is a finite list of cells (label, decision, group, weight) with probabilities, so every metric
of the population is a sum over cells, computed here without the library. A scenario asks for a
little more than the truth: each PROVEN of it is false, and at most a share δ of them may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from zlib import crc32

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

import setpoint as sp

EDGE = 1e-9
"""How far beyond the truth the bound of a broken promise lies."""

ALARM = 1e-4
"""A simulation fails when so many false statements, or more, have at most this probability."""

SPANS = {
    "threshold": {1: (0.5, 1.0), 0: (0.0, 0.5)},
    "band": {1: (0.65, 1.0), 0: (0.0, 0.35), -1: (0.45, 0.55)},
}
"""Where the scores of a decision lie: score >= 0.5, or a band from 0.4 to 0.6."""

CLASSES = (0, 1, 2)


def compatible(count, draws, delta):
    """Whether so many false statements can come from a procedure that makes a share ≤ δ of them."""
    return count <= 0 or binom.sf(count - 1, draws, delta) >= ALARM


def generator(*words):
    """A generator whose seed is the words."""
    return np.random.default_rng([crc32(str(word).encode()) for word in words])


# --- laws ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as the library takes them."""

    y: np.ndarray
    scores: np.ndarray
    options: dict


@dataclass(frozen=True, eq=False)
class Law:
    """Cells of a population; what a row does not have is None."""

    p: np.ndarray
    y: np.ndarray
    decided: np.ndarray
    group: np.ndarray | None = None
    weight: np.ndarray | None = None
    score: np.ndarray | None = None
    spans: str = "threshold"
    labels: int = 0
    _cumulative: np.ndarray = field(init=False)

    def __post_init__(self):
        assert np.isclose(self.p.sum(), 1.0)
        object.__setattr__(self, "_cumulative", np.cumsum(self.p)[:-1])

    @property
    def mass(self):
        return self.p if self.weight is None else self.p * self.weight

    def draw(self, random, n):
        """n independent rows, in the order of their draw."""
        cell = np.searchsorted(self._cumulative, random.random(n), side="right")
        options = {}
        if self.group is not None:
            options["group"] = self.group[cell]
        if self.weight is not None:
            options["sample_weight"] = self.weight[cell]
        return Rows(self._truth(cell), self._scores(random, cell), options)

    def _truth(self, cell):
        return np.repeat(self.y[cell][:, None], self.labels, 1) if self.labels else self.y[cell]

    def _scores(self, random, cell):
        decided = self.decided[cell]
        if self.spans == "classes":
            scores = random.random((cell.size, len(CLASSES)))
            scores[np.arange(cell.size), decided] += 1.5
            return scores
        if self.score is not None:
            return self.score[cell]
        ends = np.array([SPANS[self.spans].get(d, (0.0, 0.0)) for d in (0, 1, -1)])
        low, high = ends[decided].T
        scores = low + (high - low) * random.random(cell.size)
        return np.repeat(scores[:, None], self.labels, 1) if self.labels else scores


def cells(table, **more):
    """A law of rows (probability, label, decision, group, weight); columns may be left out."""
    names = ("p", "y", "decided", "group", "weight")
    columns = {n: np.array(c) for n, c in zip(names, zip(*table, strict=True), strict=False)}
    columns["p"] = columns["p"] / columns["p"].sum()
    return Law(**columns, **more)


def binary(prevalence, recall, fpr, **more):
    """Two classes, one threshold."""
    return cells(_four(prevalence, recall, fpr), **more)


def _four(prevalence, recall, fpr):
    negative = 1 - prevalence
    return [
        (prevalence * recall, 1, 1),
        (prevalence * (1 - recall), 1, 0),
        (negative * fpr, 0, 1),
        (negative * (1 - fpr), 0, 0),
    ]


def grouped(*groups):
    """Groups a, b, … of (share, prevalence, recall, fpr)."""
    return cells(
        [
            (share * p, y, d, name)
            for name, (share, *law) in zip("abcdefgh", groups, strict=False)
            for p, y, d in _four(*law)
        ]
    )


def weighted(prevalence, recall, fpr, heavy):
    """Weights 0.5 and 4; ``heavy`` is the share of heavy rows by (label, decision)."""
    return cells(
        [
            (p * share, y, d, "a", w)
            for p, y, d in _four(prevalence, recall, fpr)
            for w, share in ((4.0, heavy[y, d]), (0.5, 1 - heavy[y, d]))
        ]
    )


def tied(prevalence, positives, negatives):
    """Scores 0.1, 0.3, …, 0.9 and nothing else; given the probabilities of each by label."""
    values = (0.1, 0.3, 0.5, 0.7, 0.9)
    table = [
        (p * share, y, int(s >= 0.5), s)
        for y, share, law in ((1, prevalence, positives), (0, 1 - prevalence, negatives))
        for s, p in zip(values, law, strict=True)
    ]
    return replace(cells([row[:3] for row in table]), score=np.array([row[3] for row in table]))


def abstaining(*groups):
    """Groups of (share, hits, errors): the rest is left undecided; a third is positive."""
    return cells(
        [
            (share * by_label * q, y, d, name)
            for name, (share, hits, errors) in zip("abcd", groups, strict=False)
            for y, by_label in ((1, 1 / 3), (0, 2 / 3))
            for d, q in ((y, hits), (1 - y, errors), (-1, 1 - hits - errors))
        ],
        spans="band",
    )


def classes(confusion):
    """Three classes: joint probabilities of truth (rows) and decision (columns)."""
    return cells(
        [(p, y, d) for y, row in enumerate(confusion) for d, p in enumerate(row)], spans="classes"
    )


# --- truth -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Masses of true positives, false positives, false negatives and true negatives."""

    tp: float
    fp: float
    fn: float
    tn: float


def table(law, where=True, label=1):
    """The four masses of a law, or of part of it, or of one class against the rest."""
    actual, decided = law.y == label, law.decided == label

    def mass(event):
        return float(law.mass[event & where].sum())

    return Table(
        mass(actual & decided),
        mass(~actual & decided),
        mass(actual & ~decided),
        mass(~actual & ~decided),
    )


def f_beta(t, beta):
    square = beta * beta
    return (1 + square) * t.tp / ((1 + square) * t.tp + t.fp + square * t.fn)


RATES = {
    "precision": lambda t: t.tp / (t.tp + t.fp),
    "recall": lambda t: t.tp / (t.tp + t.fn),
    "fpr": lambda t: t.fp / (t.fp + t.tn),
    "fnr": lambda t: t.fn / (t.tp + t.fn),
    "specificity": lambda t: t.tn / (t.fp + t.tn),
    "npv": lambda t: t.tn / (t.tn + t.fn),
    "accuracy": lambda t: (t.tp + t.tn) / (t.tp + t.fp + t.fn + t.tn),
    "positive_rate": lambda t: (t.tp + t.fp) / (t.tp + t.fp + t.fn + t.tn),
    "f1": lambda t: f_beta(t, 1),
    "jaccard": lambda t: t.tp / (t.tp + t.fp + t.fn),
    "f_beta(2)": lambda t: f_beta(t, 2),
    "f_beta(0.5)": lambda t: f_beta(t, 0.5),
    "cost(fp=1, fn=10)": lambda t: (t.fp + 10 * t.fn) / (t.tp + t.fp + t.fn + t.tn),
    "youden": lambda t: RATES["recall"](t) - RATES["fpr"](t),
    "balanced_accuracy": lambda t: (RATES["recall"](t) + RATES["specificity"](t)) / 2,
    "g_mean": lambda t: (RATES["recall"](t) * RATES["specificity"](t)) ** 0.5,
    "precision + recall": lambda t: RATES["precision"](t) + RATES["recall"](t),
    "recall - specificity": lambda t: RATES["recall"](t) - RATES["specificity"](t),
    "min(precision, recall)": lambda t: min(RATES["precision"](t), RATES["recall"](t)),
    "micro(f1)": lambda t: f_beta(t, 1),
    "hamming_loss": lambda t: t.fp + t.fn,
}
"""Metrics of one table of masses."""


def by_group(law, rate):
    """A rate in each group."""
    return [RATES[rate](table(law, law.group == g)) for g in sorted(set(law.group))]


def by_class(law, rate):
    """A rate of each class against the rest."""
    return [RATES[rate](table(law, label=c)) for c in CLASSES]


def _errors(law):
    kept = law.decided >= 0
    return law.mass[kept & (law.y != law.decided)].sum() / law.mass[kept].sum()


def _coverages(law):
    groups = sorted(set(law.group))
    return [law.mass[(law.group == g) & (law.decided >= 0)].sum() * len(groups) for g in groups]


OTHERS = {
    'gap(recall, by="group")': lambda law: np.ptp(by_group(law, "recall")),
    'gap(precision, by="group")': lambda law: np.ptp(by_group(law, "precision")),
    'worst(recall, by="group")': lambda law: min(by_group(law, "recall")),
    'ratio(positive_rate, by="group")': lambda law: (
        min(by_group(law, "positive_rate")) / max(by_group(law, "positive_rate"))
    ),
    "macro(f1)": lambda law: np.mean(by_class(law, "f1")),
    "macro(recall)": lambda law: np.mean(by_class(law, "recall")),
    'worst(recall, by="class")': lambda law: min(by_class(law, "recall")),
    "selective_risk": _errors,
    'worst(coverage, by="group")': lambda law: min(_coverages(law)),
}
"""Metrics of groups, of several classes and of abstaining rules (groups of equal size)."""


def truth_of(metric, law):
    """The metric of the population."""
    if metric in RATES:
        return float(RATES[metric](table(law)))
    return float(OTHERS[metric](law))


def at_prevalence(law, prevalence):
    """The law with another share of positives: recall and fpr stay as they are."""
    share = law.p[law.y == 1].sum()
    factor = np.where(law.y == 1, prevalence / share, (1 - prevalence) / (1 - share))
    return replace(law, p=law.p * factor)


# --- rules -----------------------------------------------------------------------------------


@cache
def rule_of(spans, labels=0):
    """A rule that nobody tuned: the cells of a law say what it decides."""
    y = np.tile([0, 1], 20)
    scores = np.linspace(0, 1, 40)
    if labels:
        many = sp.Task.multilabel(range(labels))
        rule = sp.tune("maximize macro(f1)", *_repeated(labels, y, scores), task=many)
        cuts = tuple((label, 0.5) for label, _ in rule.thresholds)
        return replace(rule, thresholds=cuts, chosen_on=None)
    if spans == "classes":
        task = sp.Task.multiclass(CLASSES, score="logit")
        y, scores = np.tile(CLASSES, 10), np.eye(3)[np.tile(CLASSES, 10)]
        rule = sp.tune("maximize accuracy", y, scores, task=task, kind="argmax")
        return replace(rule, chosen_on=None)
    if spans == "band":
        rule = sp.tune("maximize coverage subject to selective_risk <= 0.9", y, scores)
        return replace(rule, band=(0.4, 0.6), chosen_on=None)
    return replace(sp.tune("maximize accuracy", y, scores), threshold=0.5, chosen_on=None)


def _repeated(labels, *columns):
    return [np.repeat(column[:, None], labels, 1) for column in columns]


def rule_for(law):
    """The rule of a law, without a memory."""
    return replace(rule_of(law.spans, law.labels), touched=[])


# --- scenarios -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scenario:
    """A promise that is just broken, or that just holds.

    ``draws`` and ``quick`` are the sizes of the long and of the short simulation, ``holds`` that of
    the long one of the promise that just holds; ``besides`` are constraints that hold with room;
    ``wide`` is the law that the promise is about, where that is not the one that is drawn from.
    """

    name: str
    metric: str
    op: str
    law: Law
    n: int
    draws: int = 2000
    quick: int = 250
    holds: int = 500
    confidence: float = 0.95
    options: dict = field(default_factory=dict)
    besides: tuple[str, ...] = ()
    objective: str = ""
    wide: Law | None = None

    @property
    def delta(self):
        return 1 - self.confidence

    @property
    def truth(self):
        return truth_of(self.metric, self.wide or self.law)

    @property
    def sign(self):
        return 1 if self.op == ">=" else -1

    def asked(self, holds=False):
        return self.truth + self.sign * (-1e-12 if holds else EDGE)

    def goal(self, holds=False):
        first = f"{self.metric} {self.op} {self.asked(holds)!r}"
        objective = self.objective or "maximize accuracy"
        return sp.Goal.parse(f"{objective} subject to {', '.join((first, *self.besides))}")

    def certificate(self, random, goal):
        rows = self.law.draw(random, self.n)
        options = {**rows.options, **self.options}
        return sp.certify(
            goal, rule_for(self.law), rows.y, rows.scores, self.confidence, **options
        )


@dataclass
class Tally:
    """How often each statement was made."""

    draws: int = 0
    proven: int = 0
    refuted: int = 0
    wrong: int = 0
    outside: int = 0
    exact: int = 0

    def __str__(self):
        return (
            f"{self.draws} draws: {self.proven} proven, {self.refuted} refuted, "
            f"{self.wrong} bounds beyond the truth, {self.outside} intervals beside it"
        )


def simulate(scenario, draws, holds=False):
    """Certificates of many draws; the seed is the name of the scenario."""
    random = generator(scenario.name, "holds" if holds else "broken")
    goal, truth = scenario.goal(holds), scenario.truth
    interval = scenario.objective.endswith(scenario.metric)
    tally = Tally()
    for _ in range(draws):
        found = scenario.certificate(random, goal)
        first = found.findings[0]
        tally.draws += 1
        tally.proven += found.verdict == "PROVEN"
        tally.refuted += found.verdict == "REFUTED"
        tally.exact += first.exact
        tally.wrong += bool(scenario.sign * (first.bound - truth) > 1e-7)
        low, high = found.interval
        tally.outside += interval and not low - 1e-7 <= truth <= high + 1e-7
    return tally


PLAIN = binary(0.5, 0.6, 0.2)
RARE = binary(0.1, 0.7, 0.04)
TIED = tied(0.4, (0.1, 0.15, 0.2, 0.25, 0.3), (0.4, 0.25, 0.15, 0.12, 0.08))
HEAVY = {(1, 1): 0.2, (0, 1): 0.5, (1, 0): 0.3, (0, 0): 0.3}
CONFUSION = ((0.42, 0.05, 0.03), (0.06, 0.2, 0.04), (0.04, 0.03, 0.13))
HALF = binary(0.5, 0.8, 0.05)

SCENARIOS = (
    # --- pure rates ---
    Scenario("precision, 30 rows", "precision", ">=", PLAIN, 30),
    Scenario("precision, 100 rows", "precision", ">=", PLAIN, 100, confidence=0.9),
    Scenario("precision, 1000 rows", "precision", ">=", RARE, 1000, 1000, 100),
    Scenario("precision, 10000 rows", "precision", ">=", RARE, 10_000, 400, 40, 100),
    Scenario("recall", "recall", ">=", RARE, 300, objective="maximize recall"),
    Scenario("fpr", "fpr", "<=", RARE, 500, 1000, 150),
    Scenario("fnr", "fnr", "<=", PLAIN, 100),
    Scenario("specificity, 30 rows", "specificity", ">=", PLAIN, 30),
    Scenario("npv", "npv", ">=", PLAIN, 100),
    Scenario("accuracy", "accuracy", ">=", PLAIN, 60, objective="maximize accuracy"),
    Scenario("positive_rate from above", "positive_rate", "<=", RARE, 300),
    Scenario("positive_rate from below", "positive_rate", ">=", PLAIN, 30),
    Scenario("f1, 100 rows", "f1", ">=", PLAIN, 100, objective="maximize f1"),
    Scenario("f1, 1000 rows", "f1", ">=", RARE, 1000, 1000, 100),
    Scenario("jaccard", "jaccard", ">=", PLAIN, 100, confidence=0.9),
    # --- near 0 and 1 ---
    Scenario("fpr 0.001, 3000 rows", "fpr", "<=", binary(0.001, 0.5, 0.001), 3000),
    Scenario("precision 0.999", "precision", ">=", binary(0.5, 1.0, 0.001001), 6100, 600, 60, 100),
    Scenario("recall 0.99 of few", "recall", ">=", binary(0.05, 0.99, 0.3), 6000, 600, 60, 100),
    # --- ties ---
    Scenario("precision of five scores", "precision", ">=", TIED, 100),
    Scenario("f1 of five scores", "f1", ">=", TIED, 30),
    # --- bets ---
    Scenario("f_beta(2), 30 rows", "f_beta(2)", ">=", PLAIN, 30),
    Scenario("f_beta(2), 400 rows", "f_beta(2)", ">=", RARE, 400),
    Scenario("f_beta(0.5)", "f_beta(0.5)", ">=", PLAIN, 100, objective="maximize f_beta(0.5)"),
    Scenario("cost", "cost(fp=1, fn=10)", "<=", RARE, 100),
    Scenario("cost of rare misses", "cost(fp=1, fn=10)", "<=", binary(0.1, 0.98, 0.1), 200),
    Scenario(
        "weighted precision",
        "precision",
        ">=",
        weighted(0.5, 0.6, 0.2, HEAVY),
        100,
        options={"weight_bound": 4.0},
    ),
    Scenario(
        "weighted recall, skewed",
        "recall",
        ">=",
        weighted(0.5, 0.9, 0.2, {(1, 1): 0.9, (1, 0): 0.02, (0, 1): 0.5, (0, 0): 0.5}),
        60,
        options={"weight_bound": 5.0},
    ),
    Scenario(
        "weighted f1",
        "f1",
        ">=",
        weighted(0.3, 0.7, 0.1, HEAVY),
        100,
        options={"weight_bound": 4.0},
    ),
    # --- two rates and more ---
    Scenario("youden", "youden", ">=", PLAIN, 60),
    Scenario("balanced_accuracy, few positives", "balanced_accuracy", ">=", RARE, 300),
    Scenario("g_mean", "g_mean", ">=", PLAIN, 100),
    Scenario("recall against specificity", "recall - specificity", ">=", PLAIN, 60),
    Scenario("two rates of the same rows", "precision + recall", ">=", PLAIN, 100),
    Scenario("lesser of two rates", "min(precision, recall)", ">=", binary(0.5, 0.6, 0.4), 100),
    Scenario(
        "lesser of two rates from above",
        "min(precision, recall)",
        "<=",
        binary(0.5, 0.6, 0.4),
        100,
        confidence=0.9,
    ),
    # --- groups ---
    Scenario(
        "gap of two groups",
        'gap(recall, by="group")',
        "<=",
        grouped((0.5, 0.5, 0.9, 0.2), (0.5, 0.5, 0.75, 0.2)),
        160,
    ),
    Scenario(
        "gap of three groups, precision",
        'gap(precision, by="group")',
        "<=",
        grouped((0.4, 0.5, 0.8, 0.1), (0.3, 0.5, 0.8, 0.3), (0.3, 0.5, 0.8, 0.3)),
        200,
        confidence=0.9,
    ),
    Scenario(
        "gap where there is none",
        'gap(recall, by="group")',
        ">=",
        grouped(*[(0.25, 0.5, 0.7, 0.2)] * 4),
        200,
        confidence=0.9,
    ),
    Scenario(
        "no gap at all",
        'gap(recall, by="group")',
        "<=",
        grouped(*[(0.25, 0.5, 0.7, 0.2)] * 4),
        200,
        confidence=0.9,
    ),
    Scenario(
        "ratio of two groups",
        'ratio(positive_rate, by="group")',
        ">=",
        grouped((0.6, 0.3, 0.8, 0.2), (0.4, 0.2, 0.8, 0.15)),
        160,
    ),
    Scenario(
        "ratio of three groups, two lowest",
        'ratio(positive_rate, by="group")',
        ">=",
        grouped((0.4, 0.3, 0.8, 0.3), (0.3, 0.2, 0.8, 0.2), (0.3, 0.2, 0.8, 0.2)),
        200,
        confidence=0.9,
    ),
    Scenario(
        "worst of four groups",
        'worst(recall, by="group")',
        ">=",
        grouped((0.25, 0.5, 0.7, 0.2), *[(0.25, 0.5, 0.95, 0.2)] * 3),
        200,
    ),
    Scenario(
        "worst of four equal groups",
        'worst(recall, by="group")',
        ">=",
        grouped(*[(0.25, 0.5, 0.7, 0.2)] * 4),
        200,
        confidence=0.9,
    ),
    Scenario(
        "worst of four equal groups from above",
        'worst(recall, by="group")',
        "<=",
        grouped(*[(0.25, 0.5, 0.7, 0.2)] * 4),
        200,
        confidence=0.9,
    ),
    # --- several classes and labels ---
    Scenario("macro(f1) of three classes", "macro(f1)", ">=", classes(CONFUSION), 100),
    Scenario("macro(recall) of three classes", "macro(recall)", ">=", classes(CONFUSION), 100),
    Scenario("worst class", 'worst(recall, by="class")', ">=", classes(CONFUSION), 100),
    Scenario(
        "micro(f1) of five labels that are one",
        "micro(f1)",
        ">=",
        binary(0.5, 0.6, 0.2, labels=5),
        60,
        objective="maximize macro(recall)",
    ),
    Scenario(
        "hamming_loss of five labels that are one",
        "hamming_loss",
        "<=",
        binary(0.5, 0.6, 0.2, labels=5),
        60,
        objective="maximize macro(recall)",
    ),
    # --- several constraints, one of them broken ---
    Scenario(
        "one broken of three",
        "precision",
        ">=",
        PLAIN,
        200,
        besides=("recall >= 0.3", "fpr <= 0.5"),
    ),
    # --- another share of positives ---
    Scenario(
        "precision at other prevalences",
        "precision",
        ">=",
        HALF,
        200,
        options={"prevalence": (0.05, 0.2)},
        wide=at_prevalence(HALF, 0.05),
    ),
    Scenario(
        "f1 at another prevalence",
        "f1",
        ">=",
        HALF,
        200,
        options={"prevalence": 0.1},
        wide=at_prevalence(HALF, 0.1),
    ),
    Scenario(
        "npv at other prevalences",
        "npv",
        ">=",
        HALF,
        200,
        options={"prevalence": (0.3, 0.7)},
        wide=at_prevalence(HALF, 0.7),
        confidence=0.9,
    ),
    # --- abstaining rules ---
    Scenario(
        "selective_risk of a band",
        "selective_risk",
        "<=",
        abstaining((0.5, 0.5, 0.1), (0.5, 0.6, 0.1)),
        100,
        objective="maximize coverage",
    ),
    Scenario(
        "coverage of each group",
        'worst(coverage, by="group")',
        ">=",
        abstaining((0.5, 0.5, 0.1), (0.5, 0.7, 0.1)),
        100,
        objective="minimize selective_risk",
    ),
)
"""Promises just broken; by default 2000 draws in the long simulation and 250 in the short one."""

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


# --- two normals: rules chosen with proof ----------------------------------------------------


@dataclass(frozen=True)
class Normals:
    """Scores N(0, 1) of negatives and N(shift, spread²) of positives."""

    prevalence: float
    shift: float
    spread: float = 1.0

    def draw(self, random, n):
        y = (random.random(n) < self.prevalence).astype(int)
        noise = random.normal(size=n)
        return y, np.where(y == 1, self.shift + self.spread * noise, noise)

    def table(self, threshold):
        """The masses at score >= threshold."""
        recall = float(ndtr((self.shift - threshold) / self.spread))
        fpr = float(ndtr(-threshold))
        return Table(*(p for p, _, _ in np.array(_four(self.prevalence, recall, fpr))[[0, 2, 1, 3]]))
