"""Choosing thresholds by trying all of them."""

import math
from dataclasses import dataclass
from itertools import product

TOLERANCE = 1e-12
"""Differences up to this count as none."""


@dataclass(frozen=True)
class Tuned:
    """The chosen threshold; ``violation`` is 0 where every constraint is met outright."""

    threshold: float
    feasible: bool
    value: float
    violation: float


@dataclass(frozen=True)
class TunedGroups:
    """The best that one threshold per group can do; which thresholds do it is left open."""

    feasible: bool
    value: float
    violation: float


@dataclass(frozen=True)
class _Candidate:
    value: float
    eligible: bool
    violation: float


def thresholds(scores):
    """+inf (nothing is decided positive), then the distinct scores from the highest down."""
    return [math.inf, *sorted({float(s) for s in scores}, reverse=True)]


def counts_at(threshold, y, scores, weight=None):
    """(tp, fp, fn, tn) as sums of weights, decided positive when score >= threshold."""
    tp = fp = fn = tn = 0.0
    for i in range(len(y)):
        w = 1.0 if weight is None else float(weight[i])
        decided = scores[i] >= threshold
        if y[i] == 1 and decided:
            tp += w
        elif y[i] == 1:
            fn += w
        elif decided:
            fp += w
        else:
            tn += w
    return tp, fp, fn, tn


def scaled_violation(constraint, counts):
    """max(0, violation) / max(1, |bound|); infinite where the metric is undefined."""
    metric, op, bound = constraint
    value, defined = metric(counts) if isinstance(counts, dict) else metric(*counts)
    if not defined:
        return math.inf
    if op == ">=":
        violation = bound - value
    elif op == "<=":
        violation = value - bound
    elif op == "==":
        violation = abs(value - bound)
    else:
        raise ValueError(f"no such operator: {op!r}")
    return max(0.0, violation) / max(1.0, abs(bound))


def _candidate(objective, constraints, counts):
    value, eligible = objective(counts) if isinstance(counts, dict) else objective(*counts)
    violations = [scaled_violation(constraint, counts) for constraint in constraints]
    return _Candidate(float(value), bool(eligible), max(violations, default=0.0))


def _keep_lowest(indices, key):
    """The indices whose key is the lowest, up to TOLERANCE."""
    lowest = min(key(i) for i in indices)
    return [i for i in indices if key(i) == lowest or key(i) - lowest <= TOLERANCE]


def _choose(candidates, sense):
    """(index, feasible) of the chosen candidate; the first of equals wins."""
    if sense not in ("max", "min"):
        raise ValueError(f"no such sense: {sense!r}")
    sign = -1.0 if sense == "max" else 1.0
    eligible = [i for i in range(len(candidates)) if candidates[i].eligible]
    if not eligible:
        return 0, False
    feasible = [i for i in eligible if candidates[i].violation <= TOLERANCE]
    rest = feasible or _keep_lowest(eligible, lambda i: candidates[i].violation)
    best = _keep_lowest(rest, lambda i: sign * candidates[i].value)
    return best[0], bool(feasible)


def brute_tune(objective, sense, constraints, y, scores, weight=None):
    """Choose the threshold with the best objective among those that keep every constraint.

    ``objective`` and the metric of a constraint ``(metric, op, bound)`` map (tp, fp, fn, tn) to
    (value, defined); ``sense`` is "max" or "min". A constraint holds when it is defined and
    violation <= 1e-12 * max(1, |bound|). Among equals (1e-12) the highest threshold is chosen.
    Where nothing is feasible: the least max_j violation_j / max(1, |bound_j|), then the better
    objective, then the highest threshold. A candidate with an undefined objective is passed
    over; where all are, the threshold is +inf and the value what the objective gives there.
    """
    tried = thresholds(scores)
    candidates = [
        _candidate(objective, constraints, counts_at(t, y, scores, weight)) for t in tried
    ]
    index, feasible = _choose(candidates, sense)
    chosen = candidates[index]
    return Tuned(tried[index], feasible, chosen.value, chosen.violation)


def brute_groups(objective, sense, constraints, y, scores, group, weight=None):
    """Do as brute_tune with one threshold per group, over the full product of thresholds.

    The callables take a dict from group to (tp, fp, fn, tn) and give (value, defined).
    """
    names = sorted({str(g) for g in group})
    tables = []
    for name in names:
        rows = [i for i in range(len(y)) if str(group[i]) == name]
        part_y, part_scores = [y[i] for i in rows], [scores[i] for i in rows]
        part_weight = None if weight is None else [weight[i] for i in rows]
        tables.append(
            [counts_at(t, part_y, part_scores, part_weight) for t in thresholds(part_scores)]
        )
    candidates = [
        _candidate(objective, constraints, dict(zip(names, choice, strict=True)))
        for choice in product(*tables)
    ]
    index, feasible = _choose(candidates, sense)
    return TunedGroups(feasible, candidates[index].value, candidates[index].violation)


def _ratio(numerator, denominator):
    """(numerator / denominator, True), or (0, False) where the denominator is 0."""
    if denominator == 0:
        return 0.0, False
    return numerator / denominator, True


def recall(tp, fp, fn, tn):
    """tp / (tp + fn)."""
    return _ratio(tp, tp + fn)


def precision(tp, fp, fn, tn):
    """tp / (tp + fp)."""
    return _ratio(tp, tp + fp)


def f1(tp, fp, fn, tn):
    """2 tp / (2 tp + fp + fn)."""
    return _ratio(2 * tp, 2 * tp + fp + fn)


def f_beta_2(tp, fp, fn, tn):
    """5 tp / (5 tp + fp + 4 fn)."""
    return _ratio(5 * tp, 5 * tp + fp + 4 * fn)


def accuracy(tp, fp, fn, tn):
    """(tp + tn) / (tp + fp + fn + tn)."""
    return _ratio(tp + tn, tp + fp + fn + tn)


def balanced_accuracy(tp, fp, fn, tn):
    """Mean of the defined ones of tp / (tp + fn) and tn / (tn + fp)."""
    rates = [_ratio(tp, tp + fn), _ratio(tn, tn + fp)]
    defined = [value for value, is_defined in rates if is_defined]
    return _ratio(sum(defined), len(defined))


def mcc(tp, fp, fn, tn):
    """(tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))."""
    return _ratio(
        tp * tn - fp * fn,
        math.sqrt(tp + fp) * math.sqrt(tp + fn) * math.sqrt(tn + fp) * math.sqrt(tn + fn),
    )


def specificity(tp, fp, fn, tn):
    """tn / (tn + fp)."""
    return _ratio(tn, tn + fp)


def fpr(tp, fp, fn, tn):
    """fp / (fp + tn)."""
    return _ratio(fp, fp + tn)


def fnr(tp, fp, fn, tn):
    """fn / (fn + tp)."""
    return _ratio(fn, fn + tp)


def npv(tp, fp, fn, tn):
    """tn / (tn + fn)."""
    return _ratio(tn, tn + fn)


def jaccard(tp, fp, fn, tn):
    """tp / (tp + fp + fn)."""
    return _ratio(tp, tp + fp + fn)


def g_mean(tp, fp, fn, tn):
    """sqrt(tp / (tp + fn) * tn / (tn + fp)), undefined where one of the two is."""
    tpr, tpr_defined = _ratio(tp, tp + fn)
    tnr, tnr_defined = _ratio(tn, tn + fp)
    if not (tpr_defined and tnr_defined):
        return 0.0, False
    return math.sqrt(tpr * tnr), True


def positive_rate(tp, fp, fn, tn):
    """(tp + fp) / (tp + fp + fn + tn), always defined."""
    return _ratio(tp + fp, tp + fp + fn + tn)[0], True


def cost_1_10(tp, fp, fn, tn):
    """(fp + 10 fn) / (tp + fp + fn + tn), always defined."""
    return _ratio(fp + 10 * fn, tp + fp + fn + tn)[0], True


METRICS12 = {
    "recall": recall,
    "precision": precision,
    "f1": f1,
    "f_beta(2)": f_beta_2,
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "mcc": mcc,
    "specificity": specificity,
    "fpr": fpr,
    "fnr": fnr,
    "npv": npv,
    "jaccard": jaccard,
    "g_mean": g_mean,
    "positive_rate": positive_rate,
    "cost(fp=1, fn=10)": cost_1_10,
}
"""Metric text to callable (tp, fp, fn, tn) -> (value, defined)."""

SENSES = dict.fromkeys(METRICS12, "max") | {
    "fpr": "min",
    "fnr": "min",
    "cost(fp=1, fn=10)": "min",
}
"""The sense in which each of METRICS12 gets better (positive_rate has none: "max" is a choice)."""


def pooled(metric):
    """The metric of the sums over all groups, as a callable for brute_groups."""
    return lambda table: metric(*(sum(cell) for cell in zip(*table.values(), strict=True)))


def on_group(metric, name):
    """The metric on one group, as a callable for brute_groups; undefined where it is absent."""
    return lambda table: metric(*table[name]) if name in table else (0.0, False)


def gap(metric):
    """Largest minus smallest value over the groups, undefined where one of them is."""

    def between(table):
        found = [metric(*cells) for cells in table.values()]
        values = [value for value, _ in found]
        return max(values) - min(values), all(defined for _, defined in found)

    return between
