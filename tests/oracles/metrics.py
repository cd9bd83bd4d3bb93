"""The value every metric must have, from scikit-learn or from a brute force written here.

Conventions: an empty rate (0/0) has the value 0; a reference gives NaN where the metric is not
laid down for those rows (an area under the ROC with one class only): pass such rows over.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sklearn import metrics as sk
from tests.oracles.data import CLASSES, EDGES, Rows

__all__ = ["CLASSES", "EDGES", "ORACLES", "TOLERANCE", "Oracle"]

TOLERANCE = 1e-12
"""How far a point may miss the bound of, say, precision_at_recall and still qualify."""


@dataclass(frozen=True)
class Oracle:
    """One metric in the text language, and its value computed independently."""

    text: str
    task: str
    reference: Callable[[Rows], float]
    uses: str
    note: str


def _quiet(function, *args, **kwargs):
    """Call scikit-learn without its warnings on empty classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def _over(numerator, denominator):
    """numerator / denominator, 0 where the denominator is 0."""
    return 0.0 if denominator == 0 else float(numerator / denominator)


def _mean(values):
    """Plain mean."""
    return sum(values) / len(values)


def _weights(rows):
    """The weights, ones where none are given."""
    return np.ones(len(rows.y)) if rows.weight is None else rows.weight


# --- Counting --------------------------------------------------------------------------------


def _count(truth, decided, weight):
    """(tp, fp, fn, tn): the sums of the weights of the rows of each kind."""
    tp = fp = fn = tn = 0.0
    for actual, positive, w in zip(truth, decided, weight, strict=True):
        if actual and positive:
            tp += float(w)
        elif positive:
            fp += float(w)
        elif actual:
            fn += float(w)
        else:
            tn += float(w)
    return tp, fp, fn, tn


def _tpr(tp, fp, fn, tn):
    """tp / (tp + fn)."""
    return _over(tp, tp + fn)


def _tnr(tp, fp, fn, tn):
    """tn / (tn + fp)."""
    return _over(tn, tn + fp)


def _fpr(tp, fp, fn, tn):
    """fp / (fp + tn)."""
    return _over(fp, fp + tn)


def _fnr(tp, fp, fn, tn):
    """fn / (fn + tp)."""
    return _over(fn, fn + tp)


def _ppv(tp, fp, fn, tn):
    """tp / (tp + fp)."""
    return _over(tp, tp + fp)


def _fdr(tp, fp, fn, tn):
    """fp / (tp + fp)."""
    return _over(fp, tp + fp)


def _positive_rate(tp, fp, fn, tn):
    """(tp + fp) / (tp + fp + fn + tn)."""
    return _over(tp + fp, tp + fp + fn + tn)


def _prevalence(tp, fp, fn, tn):
    """(tp + fn) / (tp + fp + fn + tn)."""
    return _over(tp + fn, tp + fp + fn + tn)


def _accuracy(tp, fp, fn, tn):
    """(tp + tn) / (tp + fp + fn + tn)."""
    return _over(tp + tn, tp + fp + fn + tn)


def _cost(tp, fp, fn, tn):
    """(1 fp + 10 fn) / (tp + fp + fn + tn)."""
    return _over(1 * fp + 10 * fn, tp + fp + fn + tn)


def _g_mean(tp, fp, fn, tn):
    """sqrt(tpr * tnr)."""
    return math.sqrt(_tpr(tp, fp, fn, tn) * _tnr(tp, fp, fn, tn))


def _youden(tp, fp, fn, tn):
    """tpr + tnr - 1."""
    return _tpr(tp, fp, fn, tn) + _tnr(tp, fp, fn, tn) - 1


def _arithmetic(formula):
    """A reference from a formula of (tp, fp, fn, tn)."""
    return lambda rows: float(formula(*_count(rows.y == 1, rows.pred == 1, _weights(rows))))


# --- Binary decisions ------------------------------------------------------------------------


def _sk_binary(function, **kwargs):
    """A reference that hands truth, decisions and weights to scikit-learn."""

    def reference(rows):
        value = float(_quiet(function, rows.y, rows.pred, sample_weight=rows.weight, **kwargs))
        return 0.0 if math.isnan(value) else value

    return reference


def _coverage(rows):
    """Weight of the rows not abstained / total weight."""
    kept = sum(w for w, out in zip(_weights(rows), rows.abstained, strict=True) if not out)
    return _over(kept, _weights(rows).sum())


def _selective_risk(rows):
    """Weight of the wrong rows among those kept / weight of those kept."""
    kept = wrong = 0.0
    for i, w in enumerate(_weights(rows)):
        if not rows.abstained[i]:
            kept += w
            wrong += w * (rows.y[i] != rows.pred[i])
    return _over(wrong, kept)


# --- Groups ----------------------------------------------------------------------------------


def _on_group(formula, name):
    """The formula of (tp, fp, fn, tn) on the rows of one group."""

    def reference(rows):
        mine = rows.group == name
        return formula(*_count(rows.y[mine] == 1, rows.pred[mine] == 1, _weights(rows)[mine]))

    return reference


def _by_group(formula, combine):
    """Combine the values of the formula on every group that the group column holds."""
    return lambda rows: combine([_on_group(formula, name)(rows) for name in set(rows.group)])


def _gap(values):
    """Largest minus smallest."""
    return max(values) - min(values)


def _ratio(values):
    """Smallest over largest, 0 where the largest is 0."""
    return _over(min(values), max(values))


# --- Binary scores ---------------------------------------------------------------------------


def _curve(y, scores, weight):
    """(tp, fp, fn, tn) at +inf and at every distinct score, from the highest down."""
    thresholds = [math.inf, *sorted(set(scores.tolist()), reverse=True)]
    return [_count(y == 1, scores >= threshold, weight) for threshold in thresholds]


def _both_sides(y, weight):
    """Whether the positives and the negatives each have positive weight."""
    return weight[y == 1].sum() > 0 and weight[y != 1].sum() > 0


def _area(y, scores, weight, **kwargs):
    """Area under the ROC by scikit-learn; NaN where a class has no weight."""
    filled = np.ones(len(y)) if weight is None else weight
    if not _both_sides(y, filled):
        return math.nan
    return float(_quiet(sk.roc_auc_score, y, scores, sample_weight=weight, **kwargs))


def _clipped(corners, axis, bound, keep_below):
    """A polygon cut by a line that is parallel to an axis (Sutherland and Hodgman)."""
    kept = []
    for one, other in pairwise([*corners, corners[0]]):
        sides = [(p[axis] <= bound) if keep_below else (p[axis] >= bound) for p in (one, other)]
        if sides[0]:
            kept.append(one)
        if sides[0] != sides[1]:
            share = (bound - one[axis]) / (other[axis] - one[axis])
            kept.append(tuple(a + share * (b - a) for a, b in zip(one, other, strict=True)))
    return kept


def _shoelace(corners):
    """The area of a polygon."""
    if len(corners) < 3:
        return 0.0
    return abs(sum(a * d - b * c for (a, b), (c, d) in pairwise([*corners, corners[0]]))) / 2


def _two_way_area(limit, floor, standardized):
    """The polygon under the ROC inside fpr <= limit and tpr >= floor, and under the diagonal."""

    def reference(rows):
        weight = _weights(rows)
        if not _both_sides(rows.y, weight):
            return math.nan
        curve = [(_fpr(*c), _tpr(*c)) for c in _curve(rows.y, rows.scores, weight)]

        def inside(points):
            under = [(0.0, 0.0), *points, (1.0, 1.0), (1.0, 0.0)]
            part = _clipped(under, 0, limit, keep_below=True)
            part = _clipped(part, 1, floor, keep_below=False) if part else part
            return _shoelace(part)

        area = inside(curve)
        if not standardized:
            return area
        chance, whole = inside([]), limit * (1 - floor)
        return (1 + (area - chance) / (whole - chance)) / 2

    return reference


def _raw_area(limit):
    """Area under the ROC polygon for fpr in [0, limit], its end interpolated linearly."""

    def reference(rows):
        weight = _weights(rows)
        if not _both_sides(rows.y, weight):
            return math.nan
        points = [(_fpr(*c), _tpr(*c)) for c in _curve(rows.y, rows.scores, weight)]
        area = 0.0
        for (x0, y0), (x1, y1) in pairwise(points):
            if x0 >= limit or x1 == x0:
                continue
            end = min(x1, limit)
            y_end = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
            area += (end - x0) * (y0 + y_end) / 2
        return area

    return reference


def _average_precision(y, scores, weight):
    """Average precision by scikit-learn, 0 where the positives have no weight."""
    filled = np.ones(len(y)) if weight is None else weight
    if filled[y == 1].sum() == 0:
        return 0.0
    return float(_quiet(sk.average_precision_score, y, scores, sample_weight=weight))


def _auprc_from(start):
    """1 / (1 - r0) * sum_k max(0, R_k - max(R_{k-1}, r0)) * P_k, thresholds from the top down."""

    def reference(rows):
        total, last = 0.0, 0.0
        for counts in _curve(rows.y, rows.scores, _weights(rows))[1:]:
            recall = _tpr(*counts)
            total += max(0.0, recall - max(last, start)) * _ppv(*counts)
            last = recall
        return total / (1 - start)

    return reference


def _best_at(objective, constraint, op, bound, best, nothing):
    """Best objective over the thresholds where the constraint holds and both are defined.

    ``objective`` and ``constraint`` give the (numerator, denominator) of a rate.
    """

    def reference(rows):
        found = []
        for counts in _curve(rows.y, rows.scores, _weights(rows)):
            top, bottom = objective(*counts)
            limit_top, limit_bottom = constraint(*counts)
            if bottom == 0 or limit_bottom == 0:
                continue
            miss = limit_top / limit_bottom - bound
            if op == ">=":
                miss = -miss
            if miss <= TOLERANCE:
                found.append(top / bottom)
        return best(found) if found else nothing

    return reference


def _recall_parts(tp, fp, fn, tn):
    return tp, tp + fn


def _precision_parts(tp, fp, fn, tn):
    return tp, tp + fp


def _fpr_parts(tp, fp, fn, tn):
    return fp, fp + tn


def _fnr_parts(tp, fp, fn, tn):
    return fn, fn + tp


def _membership(scores, k):
    """The share in which each row is among the top k; ties at the border share what is left."""
    share = []
    for score in scores:
        above = sum(other > score for other in scores)
        tied = sum(other == score for other in scores)
        share.append(min(1.0, max(0.0, (k - above) / tied)))
    return np.array(share)


def _precision_at(k):
    """sum(w s y) / sum(w s) with the membership s in the top k rows."""

    def reference(rows):
        ws = _weights(rows) * _membership(rows.scores, k)
        return _over((ws * (rows.y == 1)).sum(), ws.sum())

    return reference


def _recall_at(k):
    """sum(w s y) / sum(w y) with the membership s in the top k rows."""

    def reference(rows):
        wy = _weights(rows) * (rows.y == 1)
        return _over((wy * _membership(rows.scores, k)).sum(), wy.sum())

    return reference


# --- Several classes -------------------------------------------------------------------------


def _sk_classes(function, average, **kwargs):
    """A reference averaged over the declared classes by scikit-learn."""
    return lambda rows: float(
        _quiet(
            function,
            rows.y,
            rows.pred,
            labels=list(CLASSES),
            average=average,
            sample_weight=rows.weight,
            zero_division=0,
            **kwargs,
        )
    )


def _each_class(function, rows):
    """The values of the declared classes, each against the rest, by scikit-learn."""
    return _quiet(
        function,
        rows.y,
        rows.pred,
        labels=list(CLASSES),
        average=None,
        sample_weight=rows.weight,
        zero_division=0,
    ).tolist()


def _of_class(function, name):
    """The value of one class."""
    return lambda rows: _each_class(function, rows)[CLASSES.index(name)]


def _by_class(function, combine):
    """Combine the values of all declared classes."""
    return lambda rows: combine(_each_class(function, rows))


def _macro_specificity(rows):
    """Mean over the declared classes of tn / (tn + fp), each class against the rest."""
    values = [_tnr(*_count(rows.y == c, rows.pred == c, _weights(rows))) for c in CLASSES]
    return _mean(values)


def _macro_scores(value):
    """Mean over the declared classes of a value of the scores, each class against the rest."""

    def reference(rows):
        values = [
            value((rows.y == c).astype(int), rows.scores[:, j], rows.weight)
            for j, c in enumerate(CLASSES)
        ]
        return _mean(values)

    return reference


# --- Several labels --------------------------------------------------------------------------


def _sk_labels(function, average):
    """A reference averaged over the labels by scikit-learn."""
    return lambda rows: float(
        _quiet(
            function,
            rows.y,
            rows.pred,
            average=average,
            sample_weight=rows.weight,
            zero_division=0,
        )
    )


def _each_label(function, rows):
    """The values of the labels, each on its own column, by scikit-learn."""
    return [
        float(
            _quiet(
                function,
                rows.y[:, j],
                rows.pred[:, j],
                sample_weight=rows.weight,
                zero_division=0,
            )
        )
        for j in range(rows.y.shape[1])
    ]


def _macro_label_scores(value):
    """Mean over the labels of a value of the scores of each."""

    def reference(rows):
        labels = range(rows.y.shape[1])
        return _mean([value(rows.y[:, j], rows.scores[:, j], rows.weight) for j in labels])

    return reference


# --- Ranking ---------------------------------------------------------------------------------


def _per_query(value):
    """Mean over the queries, each counting once, of value(relevance, scores)."""

    def reference(rows):
        values = []
        for name in sorted(set(rows.query.tolist())):
            mine = rows.query == name
            values.append(value(rows.y[mine], rows.scores[mine]))
        return _mean(values)

    return reference


def _ndcg(k, gain=float):
    """Discounted gains of the top k / the best they could be; ties averaged; 0 if all gains are."""

    def value(relevance, scores):
        gains = np.array([gain(r) for r in relevance], dtype=float)
        if gains.sum() == 0:
            return 0.0
        if len(gains) == 1:
            return 1.0  # gain / log2(2) over itself; scikit-learn refuses a single document
        return float(_quiet(sk.ndcg_score, [gains], [scores], k=k))

    return _per_query(value)


def _query_precision_at(k):
    """sum(s rel) / min(k, rows), rel being 1 where relevance > 0."""
    return _per_query(
        lambda relevance, scores: _over(
            (_membership(scores, k) * (relevance > 0)).sum(), min(k, len(scores))
        )
    )


def _query_recall_at(k):
    """sum(s rel) / sum(rel), 0 without relevant rows."""
    return _per_query(
        lambda relevance, scores: _over(
            (_membership(scores, k) * (relevance > 0)).sum(), (relevance > 0).sum()
        )
    )


_query_average_precision = _per_query(
    lambda relevance, scores: _average_precision((relevance > 0).astype(int), scores, None)
)


# --- Regression ------------------------------------------------------------------------------


def _sk_regression(function):
    """A reference that hands target, prediction and weights to scikit-learn."""
    return lambda rows: float(_quiet(function, rows.y, rows.pred, sample_weight=rows.weight))


def _r2(rows):
    """1 - sum w (y - p)^2 / sum w (y - mean y)^2, 0 where y does not vary on weighty rows."""
    if len(set(rows.y[_weights(rows) > 0].tolist())) == 1:
        return 0.0
    return float(_quiet(sk.r2_score, rows.y, rows.pred, sample_weight=rows.weight))


def _mean_absolute(error, weight):
    """sum w |e| / sum w."""
    return float((weight * np.abs(error)).sum() / weight.sum())


def _root_mean_square(error, weight):
    """sqrt(sum w e^2 / sum w)."""
    return math.sqrt((weight * error**2).sum() / weight.sum())


def _by_bin(value, combine):
    """Combine the values on the bins of y between EDGES that hold any weight."""

    def reference(rows):
        weight, bins = _weights(rows), np.digitize(rows.y, EDGES)
        values = []
        for b in range(len(EDGES) + 1):
            mine = bins == b
            if weight[mine].sum() > 0:
                values.append(value((rows.y - rows.pred)[mine], weight[mine]))
        return combine(values)

    return reference


# --- The table -------------------------------------------------------------------------------


def _note(function, kwargs):
    """The note of a row that scikit-learn computes."""
    given = ", ".join(f"{name}={value!r}" for name, value in kwargs.items())
    return f"scikit-learn: {function.__name__}({given})"


def _ready(text, function, **kwargs):
    """A row of binary decisions that scikit-learn computes (NaN read as 0)."""
    reference = _sk_binary(function, **kwargs)
    return Oracle(text, "binary", reference, "decisions", _note(function, kwargs))


def _formula(text, formula):
    """A row of binary decisions from a formula of (tp, fp, fn, tn)."""
    return Oracle(text, "binary", _arithmetic(formula), "decisions", "brute force")


def _brute(text, task, uses, reference):
    """A row computed by brute force."""
    return Oracle(text, task, reference, uses, "brute force")


def _multiclass(text, function, average, **kwargs):
    """A row of multiclass decisions averaged by scikit-learn."""
    reference = _sk_classes(function, average, **kwargs)
    given = {"labels": CLASSES, "average": average, "zero_division": 0, **kwargs}
    return Oracle(text, "multiclass", reference, "decisions", _note(function, given))


def _each_multiclass(text, function, reference):
    """A row of multiclass decisions from the values of the single classes."""
    given = {"labels": CLASSES, "average": None, "zero_division": 0}
    return Oracle(text, "multiclass", reference, "decisions", _note(function, given))


def _multilabel(text, function, average):
    """A row of multilabel decisions averaged by scikit-learn."""
    given = {"average": average, "zero_division": 0}
    reference = _sk_labels(function, average)
    return Oracle(text, "multilabel", reference, "decisions", _note(function, given))


BINARY_DECISIONS = [
    _formula("tp", lambda tp, fp, fn, tn: tp),
    _formula("fp", lambda tp, fp, fn, tn: fp),
    _formula("fn", lambda tp, fp, fn, tn: fn),
    _formula("tn", lambda tp, fp, fn, tn: tn),
    _ready("accuracy", sk.accuracy_score),
    _ready("balanced_accuracy", sk.balanced_accuracy_score),
    _ready("precision", sk.precision_score, zero_division=0),
    _ready("ppv", sk.precision_score, zero_division=0),
    _ready("recall", sk.recall_score, zero_division=0),
    _ready("tpr", sk.recall_score, zero_division=0),
    _ready("sensitivity", sk.recall_score, zero_division=0),
    _ready("specificity", sk.recall_score, pos_label=0, zero_division=0),
    _ready("tnr", sk.recall_score, pos_label=0, zero_division=0),
    _formula("fpr", _fpr),
    _formula("fnr", _fnr),
    _ready("npv", sk.precision_score, pos_label=0, zero_division=0),
    _formula("fdr", _fdr),
    _ready("f1", sk.f1_score, zero_division=0),
    _ready("f_beta(0.5)", sk.fbeta_score, beta=0.5, zero_division=0),
    _ready("f_beta(2)", sk.fbeta_score, beta=2, zero_division=0),
    _ready("jaccard", sk.jaccard_score, zero_division=0),
    _ready("mcc", sk.matthews_corrcoef),
    _formula("g_mean", _g_mean),
    _ready("kappa", sk.cohen_kappa_score, labels=[0, 1]),
    _formula("positive_rate", _positive_rate),
    _formula("prevalence", _prevalence),
    _formula("cost(fp=1, fn=10)", _cost),
    _formula("youden", _youden),
    _brute("coverage", "binary", "decisions", _coverage),
    _brute("error_rate", "binary", "decisions", _arithmetic(lambda *c: 1 - _accuracy(*c))),
    _brute(
        "false_omission_rate",
        "binary",
        "decisions",
        _arithmetic(lambda tp, fp, fn, tn: _over(fn, fn + tn)),
    ),
    _brute("selective_risk", "binary", "decisions", _selective_risk),
]

ARITHMETIC = [
    _formula("0.65 * accuracy + 0.35 * recall", lambda *c: 0.65 * _accuracy(*c) + 0.35 * _tpr(*c)),
    _formula("1 - fpr", lambda *c: 1 - _fpr(*c)),
    _formula(
        "(tp + tn) / (tp + tn + fp + fn)",
        lambda tp, fp, fn, tn: _over(tp + tn, tp + tn + fp + fn),
    ),
    _formula(
        "2 * tp / (2 * tp + fp + fn)",
        lambda tp, fp, fn, tn: _over(2 * tp, 2 * tp + fp + fn),
    ),
    _formula("(precision * recall) ** 0.5", lambda *c: math.sqrt(_ppv(*c) * _tpr(*c))),
    _formula("precision / recall", lambda *c: _over(_ppv(*c), _tpr(*c))),
    _formula("min(precision, recall)", lambda *c: min(_ppv(*c), _tpr(*c))),
    _formula("max(fpr, fnr)", lambda *c: max(_fpr(*c), _fnr(*c))),
    _formula("abs(precision - recall)", lambda *c: abs(_ppv(*c) - _tpr(*c))),
]

GROUPED = [
    _brute('recall.on(group="b")', "binary", "decisions", _on_group(_tpr, "b")),
    _brute('precision.on(group="a")', "binary", "decisions", _on_group(_ppv, "a")),
    _brute('gap(recall, by="group")', "binary", "decisions", _by_group(_tpr, _gap)),
    _brute(
        'gap(positive_rate, by="group")', "binary", "decisions", _by_group(_positive_rate, _gap)
    ),
    _brute(
        'least(positive_rate, by="group")', "binary", "decisions", _by_group(_positive_rate, min)
    ),
    _brute('greatest(precision, by="group")', "binary", "decisions", _by_group(_ppv, max)),
    _brute('worst(recall, by="group")', "binary", "decisions", _by_group(_tpr, min)),
    _brute('worst(fpr, by="group")', "binary", "decisions", _by_group(_fpr, max)),
    _brute(
        'ratio(positive_rate, by="group")',
        "binary",
        "decisions",
        _by_group(_positive_rate, _ratio),
    ),
]

BINARY_SCORES = [
    Oracle(
        "auroc",
        "binary",
        lambda rows: _area(rows.y, rows.scores, rows.weight),
        "scores",
        "scikit-learn: roc_auc_score(), NaN where a class has no weight",
    ),
    Oracle(
        "auroc(max_fpr=0.3)",
        "binary",
        lambda rows: _area(rows.y, rows.scores, rows.weight, max_fpr=0.3),
        "scores",
        "scikit-learn: roc_auc_score(max_fpr=0.3), NaN where a class has no weight",
    ),
    _brute("auroc(max_fpr=0.3, standardized=False)", "binary", "scores", _raw_area(0.3)),
    _brute("auroc(max_fpr=0.3, min_tpr=0.6)", "binary", "scores", _two_way_area(0.3, 0.6, True)),
    _brute("auroc(max_fpr=0.7, min_tpr=0.2)", "binary", "scores", _two_way_area(0.7, 0.2, True)),
    _brute("auroc(min_tpr=0.5)", "binary", "scores", _two_way_area(1.0, 0.5, True)),
    _brute(
        "auroc(max_fpr=0.4, min_tpr=0.9, standardized=False)",
        "binary",
        "scores",
        _two_way_area(0.4, 0.9, False),
    ),
    Oracle(
        "average_precision",
        "binary",
        lambda rows: _average_precision(rows.y, rows.scores, rows.weight),
        "scores",
        "scikit-learn: average_precision_score(), 0 without positives",
    ),
    _brute("auprc(min_recall=0.5)", "binary", "scores", _auprc_from(0.5)),
    _brute(
        "precision_at_recall(0.8)",
        "binary",
        "scores",
        _best_at(_precision_parts, _recall_parts, ">=", 0.8, max, 0.0),
    ),
    _brute(
        "recall_at_precision(0.7)",
        "binary",
        "scores",
        _best_at(_recall_parts, _precision_parts, ">=", 0.7, max, 0.0),
    ),
    _brute(
        "tpr_at_fpr(0.2)",
        "binary",
        "scores",
        _best_at(_recall_parts, _fpr_parts, "<=", 0.2, max, 0.0),
    ),
    _brute(
        "fnr_at_fpr(0.2)",
        "binary",
        "scores",
        _best_at(_fnr_parts, _fpr_parts, "<=", 0.2, min, 1.0),
    ),
    _brute("precision_at_k(3)", "binary", "scores", _precision_at(3)),
    _brute("recall_at_k(3)", "binary", "scores", _recall_at(3)),
]

MULTICLASS = [
    Oracle(
        "accuracy",
        "multiclass",
        _sk_binary(sk.accuracy_score),
        "decisions",
        "scikit-learn: accuracy_score()",
    ),
    Oracle(
        "balanced_accuracy",
        "multiclass",
        _sk_binary(sk.balanced_accuracy_score),
        "decisions",
        "scikit-learn: balanced_accuracy_score()",
    ),
    _multiclass("macro(f1)", sk.f1_score, "macro"),
    _multiclass("micro(f1)", sk.f1_score, "micro"),
    _multiclass("weighted(f1)", sk.f1_score, "weighted"),
    _multiclass("macro(precision)", sk.precision_score, "macro"),
    _multiclass("macro(recall)", sk.recall_score, "macro"),
    _multiclass("weighted(recall)", sk.recall_score, "weighted"),
    _multiclass("macro(jaccard)", sk.jaccard_score, "macro"),
    _multiclass("micro(precision)", sk.precision_score, "micro"),
    _multiclass("macro(f_beta(2))", sk.fbeta_score, "macro", beta=2),
    _each_multiclass('recall.of("b")', sk.recall_score, _of_class(sk.recall_score, "b")),
    _each_multiclass('precision.of("a")', sk.precision_score, _of_class(sk.precision_score, "a")),
    _each_multiclass('f1.of("c")', sk.f1_score, _of_class(sk.f1_score, "c")),
    _each_multiclass('worst(recall, by="class")', sk.recall_score, _by_class(sk.recall_score, min)),
    _each_multiclass('worst(f1, by="class")', sk.f1_score, _by_class(sk.f1_score, min)),
    _each_multiclass('gap(recall, by="class")', sk.recall_score, _by_class(sk.recall_score, _gap)),
    _brute("macro(specificity)", "multiclass", "decisions", _macro_specificity),
    Oracle(
        "macro(auroc)",
        "multiclass",
        _macro_scores(_area),
        "scores",
        "scikit-learn: roc_auc_score() of each class against the rest, NaN where one has no side",
    ),
    Oracle(
        "macro(average_precision)",
        "multiclass",
        _macro_scores(_average_precision),
        "scores",
        "scikit-learn: average_precision_score() of each class against the rest",
    ),
]

MULTILABEL = [
    _multilabel("macro(f1)", sk.f1_score, "macro"),
    _multilabel("micro(f1)", sk.f1_score, "micro"),
    _multilabel("weighted(f1)", sk.f1_score, "weighted"),
    _multilabel("macro(recall)", sk.recall_score, "macro"),
    _multilabel("micro(jaccard)", sk.jaccard_score, "micro"),
    _multilabel("macro(jaccard)", sk.jaccard_score, "macro"),
    _multilabel("weighted(precision)", sk.precision_score, "weighted"),
    Oracle(
        "accuracy",
        "multilabel",
        _sk_binary(sk.accuracy_score),
        "decisions",
        "scikit-learn: accuracy_score(), the share of rows right in every label",
    ),
    Oracle(
        "recall.of(0)",
        "multilabel",
        lambda rows: _each_label(sk.recall_score, rows)[0],
        "decisions",
        "scikit-learn: recall_score(zero_division=0) of column 0",
    ),
    Oracle(
        'worst(recall, by="class")',
        "multilabel",
        lambda rows: min(_each_label(sk.recall_score, rows)),
        "decisions",
        "scikit-learn: least recall_score(zero_division=0) of the columns",
    ),
    Oracle(
        "hamming_loss",
        "multilabel",
        _sk_binary(sk.hamming_loss),
        "decisions",
        "scikit-learn: hamming_loss()",
    ),
    Oracle(
        "macro(auroc)",
        "multilabel",
        _macro_label_scores(_area),
        "scores",
        "scikit-learn: roc_auc_score() of each column, NaN where one has one side only",
    ),
    Oracle(
        "macro(average_precision)",
        "multilabel",
        _macro_label_scores(_average_precision),
        "scores",
        "scikit-learn: average_precision_score() of each column, 0 without positives",
    ),
]

RANKING = [
    Oracle("ndcg(3)", "ranking", _ndcg(3), "scores", "scikit-learn: ndcg_score(k=3) per query"),
    Oracle("ndcg(5)", "ranking", _ndcg(5), "scores", "scikit-learn: ndcg_score(k=5) per query"),
    Oracle("ndcg(10)", "ranking", _ndcg(10), "scores", "scikit-learn: ndcg_score(k=10) per query"),
    Oracle(
        'ndcg(3, gain="exponential")',
        "ranking",
        _ndcg(3, gain=lambda r: 2.0**r - 1),
        "scores",
        "scikit-learn: ndcg_score(2**relevance - 1, k=3) per query",
    ),
    _brute('precision_at_k(2, by="query")', "ranking", "scores", _query_precision_at(2)),
    _brute('recall_at_k(2, by="query")', "ranking", "scores", _query_recall_at(2)),
    Oracle(
        'average_precision(by="query")',
        "ranking",
        _query_average_precision,
        "scores",
        "scikit-learn: average_precision_score(relevance > 0) per query, 0 without relevant rows",
    ),
    Oracle(
        "mean_average_precision",
        "ranking",
        _query_average_precision,
        "scores",
        "scikit-learn: average_precision_score(relevance > 0) per query, 0 without relevant rows",
    ),
]

REGRESSION = [
    Oracle(
        "mae",
        "regression",
        _sk_regression(sk.mean_absolute_error),
        "decisions",
        "scikit-learn: mean_absolute_error()",
    ),
    Oracle(
        "mse",
        "regression",
        _sk_regression(sk.mean_squared_error),
        "decisions",
        "scikit-learn: mean_squared_error()",
    ),
    Oracle(
        "rmse",
        "regression",
        _sk_regression(sk.root_mean_squared_error),
        "decisions",
        "scikit-learn: root_mean_squared_error()",
    ),
    Oracle(
        "r2",
        "regression",
        _r2,
        "decisions",
        "scikit-learn: r2_score(), 0 where y does not vary",
    ),
    _brute("balanced(mae)", "regression", "decisions", _by_bin(_mean_absolute, _mean)),
    _brute('worst(mae, by="bin")', "regression", "decisions", _by_bin(_mean_absolute, max)),
    _brute("balanced(rmse)", "regression", "decisions", _by_bin(_root_mean_square, _mean)),
]

ORACLES = [
    *BINARY_DECISIONS,
    *ARITHMETIC,
    *GROUPED,
    *BINARY_SCORES,
    *MULTICLASS,
    *MULTILABEL,
    *RANKING,
    *REGRESSION,
]
"""Every metric with its reference."""
