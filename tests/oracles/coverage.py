"""Populations whose truth is known, and what certificates say of rows drawn from them.

A law is a finite list of cells (label, decision, group, weight) with probabilities, so that every
metric of the population is a sum over cells, computed here without the library. A scenario asks for
a little more than the truth: each PROVEN of it is false, and at most a share δ of them may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom

import setpoint as sp

EDGE = 1e-9
"""How far beyond the truth the bound of a broken promise lies."""

WITHIN = 1e-12
"""How far within it the bound of a promise that just holds lies (rounding, no more)."""

SLACK = 1e-7
"""What the search for a bound may be off by."""

ALARM = 1e-4
"""A simulation fails when so many false statements, or more, have less than this probability."""


def compatible(count, draws, delta):
    """Whether a procedure of which a share ≤ δ is false can make so many false statements."""
    return count == 0 or binom.sf(count - 1, draws, delta) >= ALARM


def generator(*words):
    """A generator of random numbers whose seed is the words."""
    return np.random.default_rng([crc32(str(word).encode()) for word in words])


# --- laws ------------------------------------------------------------------------------------

CLASSES = (0, 1, 2)

SPANS = {
    "threshold": {0: (0.0, 0.5), 1: (0.5, 1.0), -1: (0.0, 0.0)},
    "band": {0: (0.0, 0.35), 1: (0.65, 1.0), -1: (0.45, 0.55)},
}
"""Where the scores of a decision lie: cut at 0.5, or a band from 0.4 to 0.6 (-1: undecided)."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as the library takes them."""

    y: np.ndarray
    scores: np.ndarray
    options: dict[str, np.ndarray]

    def take(self, where):
        """The rows that are marked."""
        options = {name: column[where] for name, column in self.options.items()}
        return Rows(self.y[where], self.scores[where], options)


@dataclass(frozen=True, eq=False)
class Law:
    """Cells of a population; a column its rows do not have is None.

    ``score`` gives each cell one score (ties); otherwise scores are spread over the span of the
    decision. ``labels`` repeats label and score: that many labels which are always alike.
    """

    p: np.ndarray
    y: np.ndarray
    decided: np.ndarray
    group: np.ndarray | None = None
    weight: np.ndarray | None = None
    score: np.ndarray | None = None
    spans: str = "threshold"
    labels: int = 0

    @property
    def mass(self):
        return self.p if self.weight is None else self.p * self.weight

    def draw(self, random, n):
        """n independent rows, in the order of their draw."""
        cell = np.searchsorted(np.cumsum(self.p)[:-1], random.random(n), side="right")
        columns = {"group": self.group, "sample_weight": self.weight}
        options = {name: c[cell] for name, c in columns.items() if c is not None}
        y, scores = self.y[cell], self._scores(random, cell)
        if self.labels:
            y, scores = (np.repeat(c[:, None], self.labels, 1) for c in (y, scores))
        return Rows(y, scores, options)

    def _scores(self, random, cell):
        decided = self.decided[cell]
        if self.score is not None:
            return self.score[cell]
        if self.spans == "classes":
            return random.random((cell.size, len(CLASSES))) + 1.5 * np.eye(len(CLASSES))[decided]
        low, high = np.array([SPANS[self.spans][d] for d in (0, 1, -1)])[decided].T
        return low + (high - low) * random.random(cell.size)

    def at_prevalence(self, prevalence):
        """The law with another share of positives: recall and fpr stay as they are."""
        share = self.p[self.y == 1].sum()
        factor = np.where(self.y == 1, prevalence / share, (1 - prevalence) / (1 - share))
        return replace(self, p=self.p * factor)


def cells(table, **more):
    """A law from rows (probability, label, decision, group, weight); the last may be left out."""
    names = ("p", "y", "decided", "group", "weight")
    columns = dict(zip(names, map(np.array, zip(*table, strict=True)), strict=False))
    assert np.isclose(columns["p"].sum(), 1.0)
    return Law(**columns, **more)


def _four(prevalence, recall, fpr):
    negative = 1 - prevalence
    return (
        (prevalence * recall, 1, 1),
        (prevalence * (1 - recall), 1, 0),
        (negative * fpr, 0, 1),
        (negative * (1 - fpr), 0, 0),
    )


def binary(prevalence, recall, fpr, **more):
    """Two classes, one threshold."""
    return cells(_four(prevalence, recall, fpr), **more)


def grouped(*groups):
    """Groups a, b, … of (share, prevalence, recall, fpr)."""
    named = zip("abcd", groups, strict=False)
    return cells([(q * p, y, d, g) for g, (q, *law) in named for p, y, d in _four(*law)])


def weighted(prevalence, recall, fpr, heavy):
    """Weights 0.5 and 4; ``heavy`` is the share of heavy rows by (label, decision)."""
    four = [(p, y, d, heavy[y, d]) for p, y, d in _four(prevalence, recall, fpr)]
    light_and_heavy = [((p * (1 - h), 0.5), (p * h, 4.0)) for p, _, _, h in four]
    pairs = zip(four, light_and_heavy, strict=True)
    law = [(p, y, d, w) for (_, y, d, _), parts in pairs for p, w in parts]
    return replace(cells([row[:3] for row in law]), weight=np.array([row[3] for row in law]))


def tied(prevalence, positives, negatives):
    """Five scores and no other; given the probability of each by label."""
    sides = ((1, prevalence, positives), (0, 1 - prevalence, negatives))
    values = (0.1, 0.3, 0.5, 0.7, 0.9)
    law = [(q * p, y, s) for y, q, side in sides for p, s in zip(side, values, strict=True)]
    table = [(p, y, int(s >= 0.5)) for p, y, s in law]
    return cells(table, score=np.array([s for _, _, s in law]))


def abstaining(*groups):
    """Groups of equal size, of (hits, errors); the rest is left undecided. A third is positive."""
    table = [
        (by_label * p / len(groups), y, d, g)
        for g, (hits, errors) in zip("abcd", groups, strict=False)
        for y, by_label in ((1, 1 / 3), (0, 2 / 3))
        for d, p in ((y, hits), (1 - y, errors), (-1, 1 - hits - errors))
    ]
    return cells(table, spans="band")


def classes(confusion):
    """Three classes: joint probabilities of truth (rows) and decision (columns)."""
    table = [(p, y, d) for y, row in enumerate(confusion) for d, p in enumerate(row)]
    return cells(table, spans="classes")


# --- truth -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Masses of true and false positives, false and true negatives."""

    tp: float
    fp: float
    fn: float
    tn: float

    @property
    def all(self):
        return self.tp + self.fp + self.fn + self.tn


def table(law, where=True, label=1):
    """The masses of a law, or of part of it, of one class against the rest."""
    actual, decided = law.y == label, law.decided == label
    events = (actual & decided, ~actual & decided, actual & ~decided, ~actual & ~decided)
    return Table(*(float(law.mass[event & where].sum()) for event in events))


def f_beta(t, beta):
    hits = (1 + beta**2) * t.tp
    return hits / (hits + t.fp + beta**2 * t.fn)


def mcc(t):
    sides = (t.tp + t.fp) * (t.tp + t.fn) * (t.tn + t.fp) * (t.tn + t.fn)
    return (t.tp * t.tn - t.fp * t.fn) / sides**0.5


def kappa(t):
    chance = ((t.tp + t.fp) * (t.tp + t.fn) + (t.tn + t.fp) * (t.tn + t.fn)) / t.all**2
    return ((t.tp + t.tn) / t.all - chance) / (1 - chance)


RATES = {
    "precision": lambda t: t.tp / (t.tp + t.fp),
    "recall": lambda t: t.tp / (t.tp + t.fn),
    "fpr": lambda t: t.fp / (t.fp + t.tn),
    "fnr": lambda t: t.fn / (t.tp + t.fn),
    "specificity": lambda t: t.tn / (t.fp + t.tn),
    "npv": lambda t: t.tn / (t.tn + t.fn),
    "accuracy": lambda t: (t.tp + t.tn) / t.all,
    "positive_rate": lambda t: (t.tp + t.fp) / t.all,
    "f1": lambda t: f_beta(t, 1),
    "jaccard": lambda t: t.tp / (t.tp + t.fp + t.fn),
    "f_beta(2)": lambda t: f_beta(t, 2),
    "f_beta(0.5)": lambda t: f_beta(t, 0.5),
    "cost(fp=1, fn=10)": lambda t: (t.fp + 10 * t.fn) / t.all,
    "youden": lambda t: RATES["recall"](t) - RATES["fpr"](t),
    "balanced_accuracy": lambda t: (RATES["recall"](t) + RATES["specificity"](t)) / 2,
    "g_mean": lambda t: (RATES["recall"](t) * RATES["specificity"](t)) ** 0.5,
    "precision + recall": lambda t: RATES["precision"](t) + RATES["recall"](t),
    "recall - specificity": lambda t: RATES["recall"](t) - RATES["specificity"](t),
    "min(precision, recall)": lambda t: min(RATES["precision"](t), RATES["recall"](t)),
    "mcc": mcc,
    "kappa": kappa,
    "micro(f1)": lambda t: f_beta(t, 1),
    "hamming_loss": lambda t: (t.fp + t.fn) / t.all,
}
"""Metrics of one table of masses."""


def by_group(law, rate):
    return [RATES[rate](table(law, law.group == g)) for g in sorted(set(law.group))]


def by_class(law, rate):
    return [RATES[rate](table(law, label=c)) for c in CLASSES]


def coverages(law):
    kept = law.decided >= 0
    groups = [law.group == g for g in sorted(set(law.group))]
    return [law.mass[g & kept].sum() / law.mass[g].sum() for g in groups]


def selective_risk(law):
    kept = law.decided >= 0
    return law.mass[kept & (law.y != law.decided)].sum() / law.mass[kept].sum()


def share(values):
    return min(values) / max(values)


OTHERS = {
    'gap(recall, by="group")': lambda law: np.ptp(by_group(law, "recall")),
    'gap(precision, by="group")': lambda law: np.ptp(by_group(law, "precision")),
    'worst(recall, by="group")': lambda law: min(by_group(law, "recall")),
    'ratio(positive_rate, by="group")': lambda law: share(by_group(law, "positive_rate")),
    "macro(f1)": lambda law: np.mean(by_class(law, "f1")),
    "macro(recall)": lambda law: np.mean(by_class(law, "recall")),
    'worst(recall, by="class")': lambda law: min(by_class(law, "recall")),
    "selective_risk": selective_risk,
    'worst(coverage, by="group")': lambda law: min(coverages(law)),
}
"""Metrics of groups, of several classes and of abstaining rules."""


# --- rules that nobody tuned -----------------------------------------------------------------


@cache
def _rule(spans, labels):
    y, scores = np.tile([0, 1], 20), np.linspace(0, 1, 40)
    if labels:
        y, scores = (np.repeat(c[:, None], labels, 1) for c in (y, scores))
        rule = sp.tune("maximize macro(f1)", y, scores, task=sp.Task.multilabel(range(labels)))
        halves = tuple((c, 0.5) for c, _ in rule.thresholds)
        return replace(rule, point=replace(rule.point, thresholds=halves))
    if spans == "classes":
        task, y = sp.Task.multiclass(CLASSES, score="logit"), np.tile(CLASSES, 9)
        return sp.tune("maximize accuracy", y, np.eye(3)[y], task=task, kind="argmax")
    if spans == "band":
        rule = sp.tune("maximize coverage subject to selective_risk <= 0.9", y, scores)
        return replace(rule, point=replace(rule.point, band=(0.4, 0.6)))
    rule = sp.tune("maximize accuracy", y, scores)
    return replace(rule, point=replace(rule.point, threshold=0.5))


def rule_for(law):
    """The rule that decides as the cells say, chosen on no rows and with no memory of any."""
    return replace(_rule(law.spans, law.labels), chosen_on=None, touched=[])


# --- scenarios -------------------------------------------------------------------------------

PURE = ("precision recall fpr fnr specificity npv accuracy positive_rate f1 jaccard").split()


@dataclass(frozen=True, eq=False)
class Scenario:
    """A promise about a law, kept or broken by a hair.

    ``draws`` is the size of the long simulation; ``objective`` is the accuracy unless given, and
    where it is the metric of the promise the interval around it is looked at as well; ``besides``
    are other constraints; ``wide`` is the law that the promise is about, where rows come from
    another one; ``sort`` hands the rows over by label and score, as a file may hold them.
    """

    name: str
    metric: str
    op: str
    law: Law
    n: int
    draws: int
    confidence: float = 0.95
    objective: str = "maximize accuracy"
    besides: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    wide: Law | None = None
    sort: bool = False

    @property
    def delta(self):
        return 1 - self.confidence

    @property
    def quick(self):
        """The size of the short simulation."""
        return max(10, self.draws // 30)

    @property
    def pure(self):
        """Whether it is one plain rate: quick, where the label planner has nothing to plan."""
        return self.metric in PURE and not self.options and not self.besides

    @property
    def truth(self):
        law = self.wide or self.law
        found = RATES[self.metric](table(law)) if self.metric in RATES else OTHERS[self.metric](law)
        return float(found)

    @property
    def sign(self):
        return 1 if self.op == ">=" else -1

    @property
    def distance(self):
        """From the truth to a perfect value."""
        return abs((1.0 if self.op == ">=" else 0.0) - self.truth)

    @property
    def hopeless(self):
        """A goal of which nothing can be proven, for its bound alone."""
        return self.goal(0.8 * self.distance)

    def goal(self, beyond=EDGE):
        """The promise, with its bound so far beyond the truth (within it, where negative)."""
        first = f"{self.metric} {self.op} {self.truth + self.sign * beyond!r}"
        return sp.Goal.parse(f"{self.objective} subject to {', '.join((first, *self.besides))}")

    def certificate(self, random, goal):
        """The certificate of one draw."""
        rows = self.law.draw(random, self.n)
        if self.sort:
            rows = rows.take(np.lexsort((rows.scores, rows.y))[::-1])
        options = {**rows.options, **self.options}
        rule = rule_for(self.law)
        return sp.certify(goal, rule, rows.y, rows.scores, self.confidence, **options)


@dataclass
class Tally:
    """How often each statement was made of a scenario."""

    draws: int = 0
    proven: int = 0
    refuted: int = 0
    wrong: int = 0  #: the bound lies beyond the truth
    outside: int = 0  #: the interval of the objective lies beside it


def simulate(scenario, draws, goal):
    """Certificates of many draws; the seeds are the names of scenario and goal."""
    random = generator(scenario.name, goal)
    truth, sign = scenario.truth, scenario.sign
    looked_at = scenario.objective.endswith(scenario.metric)
    tally = Tally()
    for _ in range(draws):
        found = scenario.certificate(random, goal)
        low, high = found.interval
        tally.draws += 1
        tally.proven += found.verdict == "PROVEN"
        tally.refuted += found.verdict == "REFUTED"
        tally.wrong += bool(sign * (found.findings[0].bound - truth) > SLACK)
        tally.outside += looked_at and not low - SLACK <= truth <= high + SLACK
    return tally


PLAIN = binary(0.5, 0.6, 0.2)
RARE = binary(0.1, 0.7, 0.04)
HALF = binary(0.5, 0.8, 0.05)
EVEN = binary(0.5, 0.6, 0.4)
TIED = tied(0.4, (0.1, 0.15, 0.2, 0.25, 0.3), (0.4, 0.25, 0.15, 0.12, 0.08))
ALIKE = grouped(*[(0.25, 0.5, 0.7, 0.2)] * 4)
THIRDS = grouped(*[(1 / 3, 0.5, 0.7, 0.2)] * 3)
ONE_WORST = grouped((0.25, 0.5, 0.7, 0.2), *[(0.25, 0.5, 0.95, 0.2)] * 3)
UNEQUAL = grouped((0.5, 0.5, 0.9, 0.2), (0.5, 0.5, 0.75, 0.2))
TWO_LOWEST = grouped((0.4, 0.5, 0.8, 0.1), *[(0.3, 0.5, 0.8, 0.3)] * 2)
SELECTED = grouped((0.6, 0.3, 0.8, 0.2), (0.4, 0.2, 0.8, 0.15))
SELECTED3 = grouped((0.4, 0.3, 0.8, 0.3), *[(0.3, 0.2, 0.8, 0.2)] * 2)
THREE = classes(((0.42, 0.05, 0.03), (0.06, 0.2, 0.04), (0.04, 0.03, 0.13)))
ONE_LABEL = replace(PLAIN, labels=5)
BANDS = abstaining((0.5, 0.1), (0.6, 0.1))
MIXED = {(1, 1): 0.2, (0, 1): 0.5, (1, 0): 0.3, (0, 0): 0.3}
SKEWED = {(1, 1): 0.9, (0, 1): 0.5, (1, 0): 0.02, (0, 0): 0.5}
LITTLE = binary(0.04, 0.03, 0.03)

GAP, RATIO = 'gap(recall, by="group")', 'ratio(positive_rate, by="group")'
WORST, COST = 'worst(recall, by="group")', "cost(fp=1, fn=10)"
LABELWISE = "maximize macro(recall)"
FOUR, FIVE = {"weight_bound": 4.0}, {"weight_bound": 5.0}


def _shifted(name, metric, low, high, at, draws):
    """A promise for a range of prevalences, about rows half of which are positive."""
    more = {"options": {"prevalence": (low, high)}, "wide": HALF.at_prevalence(at)}
    return Scenario(name, metric, ">=", HALF, 200, draws, 0.9, **more)


SCENARIOS = (
    # one rate
    Scenario("precision, 30 rows", "precision", ">=", PLAIN, 30, 750),
    Scenario("precision, 100 rows", "precision", ">=", PLAIN, 100, 500, 0.9),
    Scenario("precision, 1000 rows", "precision", ">=", RARE, 1000, 400),
    Scenario("precision, 10000 rows", "precision", ">=", RARE, 10_000, 100),
    Scenario("precision, hardly anything decided", "precision", ">=", LITTLE, 30, 2000),
    Scenario("recall", "recall", ">=", RARE, 300, 500, objective="maximize recall"),
    Scenario("fpr", "fpr", "<=", RARE, 500, 200),
    Scenario("fnr", "fnr", "<=", PLAIN, 100, 500),
    Scenario("specificity, 30 rows", "specificity", ">=", PLAIN, 30, 500),
    Scenario("npv", "npv", ">=", PLAIN, 100, 400),
    Scenario("accuracy", "accuracy", ">=", PLAIN, 60, 600),
    Scenario("positive_rate from above", "positive_rate", "<=", RARE, 300, 200),
    Scenario("positive_rate from below", "positive_rate", ">=", PLAIN, 30, 900),
    Scenario("f1, 100 rows", "f1", ">=", PLAIN, 100, 300, objective="maximize f1"),
    Scenario("f1, 1000 rows", "f1", ">=", RARE, 1000, 200),
    Scenario("jaccard", "jaccard", ">=", PLAIN, 100, 400, 0.9),
    # near 0 and 1
    Scenario("fpr 0.001, 3000 rows", "fpr", "<=", binary(0.001, 0.5, 0.001), 3000, 450),
    Scenario("precision 0.999", "precision", ">=", binary(0.5, 1.0, 0.001001), 6100, 90),
    Scenario("recall 0.99 of few", "recall", ">=", binary(0.05, 0.99, 0.3), 6000, 300),
    # ties
    Scenario("precision of five scores", "precision", ">=", TIED, 100, 600),
    Scenario("f1 of five scores", "f1", ">=", TIED, 30, 600),
    # means of bounded rows
    Scenario("f_beta(2), 30 rows", "f_beta(2)", ">=", PLAIN, 30, 750),
    Scenario("f_beta(2), 400 rows", "f_beta(2)", ">=", RARE, 400, 300),
    Scenario("f_beta(0.5)", "f_beta(0.5)", ">=", PLAIN, 100, 150, objective="maximize f_beta(0.5)"),
    Scenario("cost", COST, "<=", RARE, 100, 200),
    Scenario("cost of rare misses", COST, "<=", binary(0.1, 0.98, 0.1), 200, 100),
    Scenario(
        "weighted precision",
        "precision",
        ">=",
        weighted(0.5, 0.6, 0.2, MIXED),
        100,
        200,
        options=FOUR,
    ),
    Scenario(
        "weighted recall", "recall", ">=", weighted(0.5, 0.9, 0.2, SKEWED), 60, 200, options=FIVE
    ),
    Scenario("weighted f1", "f1", ">=", weighted(0.3, 0.7, 0.1, MIXED), 100, 150, options=FOUR),
    Scenario("f_beta(2) of sorted rows", "f_beta(2)", ">=", PLAIN, 100, 400, sort=True),
    Scenario("cost of sorted rows", COST, "<=", PLAIN, 100, 120, sort=True),
    Scenario("f_beta(2) of five scores", "f_beta(2)", ">=", TIED, 100, 300),
    Scenario("f_beta(2) of five scores, sorted", "f_beta(2)", ">=", TIED, 100, 300, sort=True),
    Scenario("cost of five scores, sorted", COST, ">=", TIED, 60, 700, sort=True),
    # several rates
    Scenario("youden", "youden", ">=", PLAIN, 60, 90),
    Scenario("balanced_accuracy, few positives", "balanced_accuracy", ">=", RARE, 300, 90),
    Scenario("g_mean", "g_mean", ">=", PLAIN, 100, 1100),
    Scenario("recall against specificity", "recall - specificity", ">=", PLAIN, 60, 90),
    Scenario("two rates of the same rows", "precision + recall", ">=", PLAIN, 100, 1100),
    Scenario("lesser of two rates", "min(precision, recall)", ">=", EVEN, 100, 400),
    Scenario("lesser of two from above", "min(precision, recall)", "<=", EVEN, 100, 2000, 0.9),
    Scenario("mcc", "mcc", ">=", PLAIN, 100, 300),
    Scenario("mcc of few positives", "mcc", ">=", RARE, 300, 300),
    Scenario("mcc from above, below 0", "mcc", "<=", binary(0.5, 0.3, 0.5), 100, 300, 0.9),
    Scenario("kappa", "kappa", ">=", RARE, 300, 300),
    # groups
    Scenario("gap of two groups", GAP, "<=", UNEQUAL, 160, 80),
    Scenario("gap of three groups", 'gap(precision, by="group")', "<=", TWO_LOWEST, 200, 30, 0.9),
    Scenario("a gap where there is none", GAP, ">=", THIRDS, 90, 30, 0.9),
    Scenario("ratio of two groups", RATIO, ">=", SELECTED, 160, 80),
    Scenario("ratio of three groups", RATIO, ">=", SELECTED3, 200, 30, 0.9),
    Scenario("worst of four groups", WORST, ">=", ONE_WORST, 200, 400),
    Scenario("worst of four equal groups", WORST, ">=", ALIKE, 200, 600, 0.9),
    Scenario("worst of four from above", WORST, "<=", ALIKE, 200, 1100, 0.9),
    # several classes and labels
    Scenario("macro(f1) of three classes", "macro(f1)", ">=", THREE, 100, 500),
    Scenario("macro(recall) of three classes", "macro(recall)", ">=", THREE, 100, 750),
    Scenario("worst class", 'worst(recall, by="class")', ">=", THREE, 100, 400),
    Scenario(
        "micro(f1) of labels alike", "micro(f1)", ">=", ONE_LABEL, 60, 150, objective=LABELWISE
    ),
    Scenario(
        "hamming_loss of labels alike",
        "hamming_loss",
        "<=",
        ONE_LABEL,
        60,
        200,
        objective=LABELWISE,
    ),
    # several constraints, of which the first is broken
    Scenario(
        "one of three", "precision", ">=", PLAIN, 200, 200, besides=("recall >= 0.3", "fpr <= 0.5")
    ),
    # another share of positives
    _shifted("precision at other prevalences", "precision", 0.05, 0.2, 0.05, 50),
    _shifted("f1 at another prevalence", "f1", 0.1, 0.1, 0.1, 90),
    _shifted("npv at other prevalences", "npv", 0.3, 0.7, 0.7, 50),
    # abstaining rules
    Scenario(
        "selective_risk", "selective_risk", "<=", BANDS, 100, 500, objective="maximize coverage"
    ),
    Scenario(
        "coverage of each group",
        'worst(coverage, by="group")',
        ">=",
        BANDS,
        100,
        400,
        objective="minimize selective_risk",
    ),
)
"""Promises of all kinds; ``goal()`` breaks them by a hair, ``goal(-WITHIN)`` keeps them by one."""

NAMED = {scenario.name: scenario for scenario in SCENARIOS}

ALL_AT_THE_EDGE = Scenario(
    "three constraints, all by a hair",
    "precision",
    ">=",
    PLAIN,
    200,
    400,
    besides=(f"recall >= {0.6 - WITHIN!r}", f"specificity >= {0.8 - WITHIN!r}"),
)
"""A wrong word about one of them is a wrong word about the promise."""

NO_GAP = Scenario("no gap", GAP, "<=", THIRDS, 90, 30, 0.9)
"""Equal groups, of which some pair looks unequal more often than a given pair does."""


# --- monitors --------------------------------------------------------------------------------

BATCHES = (1, 9, 20, 40, 80, 160, 320, 640, 1280)
"""Sizes of the batches that a monitor is fed; one may stop after each."""

_WATCHED = (
    "precision, 100 rows",
    "precision of five scores",
    "recall",
    "fpr",
    "f1, 100 rows",
    "f_beta(2), 400 rows",
    "cost",
    "weighted precision",
    "youden",
    "gap of two groups",
    "ratio of two groups",
    "worst of four equal groups",
    "selective_risk",
    "micro(f1) of labels alike",
)

WATCHED = {
    **{name: (NAMED[name], "all") for name in _WATCHED},
    "precision of flagged rows": (NAMED["precision, 100 rows"], "flagged"),
    "three constraints": (ALL_AT_THE_EDGE, "all"),
}
"""Promises that a monitor watches, and the labels it gets."""


def watch(scenario, runs, beyond, labels="all", batches=BATCHES):
    """How many monitors ever say "broken", and how many ever say "re-certified"."""
    goal = scenario.goal(beyond)
    random = generator(scenario.name, goal, labels)
    certificate = scenario.certificate(random, goal)
    broken = again = 0
    for _ in range(runs):
        monitor, said = sp.Monitor(certificate, labels=labels), set()
        for n in batches:
            rows = scenario.law.draw(random, n)
            rows = rows.take(rows.scores >= 0.5) if labels == "flagged" else rows
            if rows.y.size:
                said.add(monitor.update(rows.y, rows.scores, **rows.options).status)
        assert "not monitorable" not in said
        broken += "broken" in said
        again += "re-certified" in said
    return broken, again


# --- rules chosen with proof -----------------------------------------------------------------


@dataclass(frozen=True)
class Normals:
    """Scores N(0, 1) of negatives and N(shift, 1) of positives, rounded down to steps."""

    prevalence: float
    shift: float
    step: float = 0.0

    def draw(self, random, n):
        y = (random.random(n) < self.prevalence).astype(int)
        scores = random.normal(size=n) + self.shift * y
        return y, np.floor(scores / self.step) * self.step if self.step else scores

    def table(self, threshold):
        """The masses at score >= threshold."""
        if self.step and np.isfinite(threshold):
            threshold = np.ceil(threshold / self.step - EDGE) * self.step
        recall, fpr = float(ndtr(self.shift - threshold)), float(ndtr(-threshold))
        tp, fn, fp, tn = (p for p, _, _ in _four(self.prevalence, recall, fpr))
        return Table(tp, fp, fn, tn)


@dataclass(frozen=True, eq=False)
class Proof:
    """A goal whose threshold is chosen and proven on the same rows, in the order of others."""

    name: str
    law: Normals
    reference: Normals
    promises: tuple[tuple[str, str, float], ...]
    n: int
    reference_rows: int
    draws: int
    objective: str = "recall"
    confidence: float = 0.9

    @property
    def delta(self):
        return 1 - self.confidence

    def goal(self):
        held = ", ".join(f"{m} {op} {bound!r}" for m, op, bound in self.promises)
        return sp.Goal.parse(f"maximize {self.objective} subject to {held}")

    def excesses(self, found, threshold):
        """For each promise, how far its bound and the truth lie beyond what was asked."""
        t = self.law.table(threshold)
        for finding, (metric, op, asked) in zip(found.findings, self.promises, strict=True):
            sign, truth = (1 if op == ">=" else -1), RATES[metric](t)
            yield sign * (finding.bound - truth), sign * (truth - asked)


@dataclass
class ProofTally:
    """What was said of rules chosen with proof."""

    draws: int = 0
    proven: int = 0
    false: int = 0
    refuted: int = 0  #: of a rule that keeps its promises
    wrong: int = 0  #: the bound of the first promise lies beyond the truth
    outside: int = 0  #: the interval of the objective lies beside it


def simulate_proofs(proof, draws):
    """Rules chosen with proof on many draws, the reference rows drawn anew for each."""
    random = generator(proof.name, "proofs")
    goal, tally = proof.goal(), ProofTally()
    for _ in range(draws):
        y, scores = proof.law.draw(random, proof.n)
        reference = proof.reference.draw(random, proof.reference_rows)
        rule = sp.tune(goal, y, scores, prove=proof.confidence, reference=reference)
        tally.draws += 1
        tally.proven += rule.proven
        if not np.isfinite(rule.threshold):  # it decides nothing, or everything
            tally.false += rule.proven
            continue
        found = rule.certificate
        beyond = list(proof.excesses(found, rule.threshold))
        kept = all(truth >= 0 for _, truth in beyond)
        tally.false += rule.proven and not kept
        tally.refuted += found.verdict == "REFUTED" and kept
        tally.wrong += beyond[0][0] > SLACK
        low, high = found.interval
        truth = RATES[proof.objective](proof.law.table(rule.threshold))
        tally.outside += not low - SLACK <= truth <= high + SLACK
    return tally


APART = Normals(0.1, 2.0)
FLAT = Normals(0.3, 0.0)
NEAR = Normals(0.4, 1.5)
STEPS = Normals(0.3, 1.0, step=0.5)
FLOOR = (("precision", ">=", 0.8),)
FLAT_FLOOR = (("precision", ">=", 0.3 + EDGE),)
STEP_FLOOR = (("precision", ">=", RATES["precision"](STEPS.table(1.0)) + EDGE),)
MEETING = brentq(lambda t: RATES["precision"](NEAR.table(t)) - 0.75, -4.0, 6.0)
NEVER_BOTH = (
    ("precision", ">=", 0.75),
    ("recall", ">=", RATES["recall"](NEAR.table(MEETING)) + EDGE),
)

PROOFS = (
    Proof("two normals", APART, APART, FLOOR, 500, 300, 120),
    Proof("two normals, other reference", APART, Normals(0.5, 3.0), FLOOR, 500, 300, 120),
    Proof("no threshold is right", FLAT, FLAT, FLAT_FLOOR, 200, 150, 150),
    Proof("no threshold, hopeful reference", FLAT, Normals(0.5, 2.0), FLAT_FLOOR, 200, 150, 150),
    Proof("no threshold, reversed reference", FLAT, Normals(0.3, -1.0), FLAT_FLOOR, 200, 150, 80),
    Proof("scores of few values", STEPS, STEPS, STEP_FLOOR, 200, 150, 300),
    Proof("two constraints, never both", NEAR, NEAR, NEVER_BOTH, 150, 150, 60, "accuracy"),
)
"""Floors that some thresholds break, or all of them; the reference may come from anywhere."""


@dataclass(frozen=True, eq=False)
class Blind:
    """Scores that know nothing: every rule of its kind has the same truth, just short of asked."""

    name: str
    goal: str
    rows: Callable[..., tuple[Any, ...]]
    draws: int
    options: dict[str, Any] = field(default_factory=dict)
    confidence: float = 0.9

    @property
    def delta(self):
        return 1 - self.confidence

    def proven(self, draws, n=60, reference_rows=40):
        """How many rules are proven; all of them are false."""
        random, count = generator(self.name, "blind"), 0
        for _ in range(draws):
            y, scores, *group = self.rows(random, n)
            reference = self.rows(random, reference_rows)
            more = {**self.options, **({"group": group[0]} if group else {})}
            if "weight_bound" in more:
                more["sample_weight"] = random.choice([0.5, more["weight_bound"]], n)
            rule = sp.tune(self.goal, y, scores, prove=self.confidence, reference=reference, **more)
            count += rule.proven
        return count


def coins(random, n):
    return random.integers(0, 2, n), random.normal(size=n)


def coins_in_groups(random, n, groups="ab"):
    return *coins(random, n), random.choice(list(groups), n)


def dice(random, n):
    return random.integers(0, 3, n), random.normal(size=(n, 3))


def twin_coins(random, n):
    y, scores = coins(random, n)
    return np.column_stack([y, y]), np.column_stack([scores, scores])


LOGITS = sp.Task.multiclass(CLASSES, score="logit")
HALF_AND = repr(0.5 + EDGE)

BLIND = (
    Blind("threshold", f"maximize recall subject to accuracy >= {HALF_AND}", coins, 100),
    Blind("band", f"maximize coverage subject to selective_risk <= {0.5 - EDGE!r}", coins, 200),
    Blind(
        "threshold per group",
        f"maximize recall subject to precision >= {HALF_AND}",
        coins_in_groups,
        120,
        {"kind": "per-group"},
    ),
    Blind(
        "worst of two groups",
        f'maximize recall subject to worst(precision, by="group") >= {HALF_AND}',
        coins_in_groups,
        50,
    ),
    Blind(
        "weighted rows",
        f"maximize recall subject to precision >= {HALF_AND}",
        coins,
        80,
        {"weight_bound": 4.0},
    ),
    Blind(
        "confidence of classes",
        f"maximize coverage subject to selective_risk <= {2 / 3 - EDGE!r}",
        dice,
        200,
        {"task": LOGITS},
    ),
    Blind(
        "threshold per label",
        f"maximize micro(recall) subject to micro(precision) >= {HALF_AND}",
        twin_coins,
        40,
        {"task": "multilabel"},
    ),
)
"""Every kind of rule that can be chosen with proof, where nothing is to be proven."""


def certify_tuned_rows(draws, n=200):
    """Of thresholds tuned per group on coins: how many are proven on these rows, and on fresh ones.

    The memory of the rule is wiped on purpose. Every rule is right half of the time and no more.
    """
    random, same, fresh = generator("the same rows"), 0, 0
    goal = f"maximize recall subject to accuracy >= {HALF_AND}"
    for _ in range(draws):
        y, scores, group = coins_in_groups(random, n, "abcd")
        rule = sp.tune("maximize accuracy", y, scores, group=group, kind="per-group")
        wiped = replace(rule, chosen_on=None, touched=[])
        same += sp.certify(goal, wiped, y, scores, group=group).proven
        y, scores, group = coins_in_groups(random, n, "abcd")
        fresh += sp.certify(goal, rule, y, scores, group=group).proven
    return same, fresh
