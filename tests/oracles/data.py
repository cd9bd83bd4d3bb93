"""Small nasty data sets, drawn by hypothesis: ties, empty classes, weightless rows."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

CLASSES = ("a", "b", "c")
"""The declared classes of the multiclass rows, in the order of the columns of their scores."""

GROUPS = ("a", "b")
"""The names that may stand in the group column."""

EDGES = (-2.0, 0.0, 2.0)
"""The edges of the bins of a regression target: (-inf, -2), [-2, 0), [0, 2), [2, inf)."""

WEIGHTS = (0.0, 0.25, 1.0, 2.0, 3.5)
"""The weights that are drawn when they are not continuous."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One data set; a column the task has no use for is None, and weight None means all ones."""

    y: np.ndarray
    pred: np.ndarray | None = None
    scores: np.ndarray | None = None
    weight: np.ndarray | None = None
    group: np.ndarray | None = None
    query: np.ndarray | None = None
    abstained: np.ndarray | None = None


def _column(draw, values, n):
    """n draws from the strategy ``values``."""
    return draw(st.lists(values, min_size=n, max_size=n))


def _scores(draw, n):
    """n scores in [0, 1]: full of ties, all the same, or continuous."""
    eighths = st.integers(0, 8).map(lambda k: k / 8)
    kind = draw(st.sampled_from(("ties", "few ties", "constant", "continuous")))
    if kind == "constant":
        return np.full(n, draw(eighths))
    if kind == "few ties":
        return np.array(_column(draw, st.sampled_from((0.25, 0.5, 0.75)), n))
    if kind == "continuous":
        return np.array(_column(draw, st.integers(0, 10**6).map(lambda k: k / 10**6), n))
    return np.array(_column(draw, eighths, n))


def _score_matrix(draw, n, columns):
    """An (n, columns) matrix whose columns are drawn each on its own; rows need not sum to 1."""
    return np.column_stack([_scores(draw, n) for _ in range(columns)])


def _weight(draw, n):
    """None, or n weights whose sum is positive, some of them possibly 0."""
    kind = draw(st.sampled_from(("none", "coarse", "continuous")))
    if kind == "none":
        return None
    if kind == "continuous":
        return np.array(_column(draw, st.floats(0.1, 10.0), n))
    weight = np.array(_column(draw, st.sampled_from(WEIGHTS), n))
    if weight.sum() == 0:
        weight[draw(st.integers(0, n - 1))] = 1.0
    return weight


def _group(draw, n):
    """n group names; each of the two occurs at least once when there are two rows or more."""
    group = _column(draw, st.sampled_from(GROUPS), n)
    if n >= 2 and len(set(group)) == 1:
        other = "b" if group[0] == "a" else "a"
        group[draw(st.integers(0, n - 1))] = other
    return np.array(group)


@st.composite
def binary_rows(draw, max_rows=12):
    """Binary truth, decisions, scores, weights, groups and abstentions; a class may be empty."""
    n = draw(st.integers(1, max_rows))
    return Rows(
        y=np.array(_column(draw, st.integers(0, 1), n)),
        pred=np.array(_column(draw, st.integers(0, 1), n)),
        scores=_scores(draw, n),
        weight=_weight(draw, n),
        group=_group(draw, n),
        abstained=np.array(_column(draw, st.booleans(), n), dtype=bool),
    )


@st.composite
def multiclass_rows(draw, max_rows=12):
    """Labels among CLASSES, of which truth and decisions may miss some; scores (n, 3)."""
    n = draw(st.integers(1, max_rows))
    return Rows(
        y=np.array(_column(draw, st.sampled_from(CLASSES), n)),
        pred=np.array(_column(draw, st.sampled_from(CLASSES), n)),
        scores=_score_matrix(draw, n, len(CLASSES)),
        weight=_weight(draw, n),
    )


@st.composite
def multilabel_rows(draw, max_rows=12):
    """Truth and decisions as 0/1 matrices (n, L) for L = 2..4, and scores of the same shape."""
    n = draw(st.integers(1, max_rows))
    labels = draw(st.integers(2, 4))
    return Rows(
        y=np.array(_column(draw, st.integers(0, 1), n * labels)).reshape(n, labels),
        pred=np.array(_column(draw, st.integers(0, 1), n * labels)).reshape(n, labels),
        scores=_score_matrix(draw, n, labels),
        weight=_weight(draw, n),
    )


@st.composite
def ranking_rows(draw, max_rows=12):
    """Relevances 0..3 in one to four queries, whose rows may lie scattered; no weights."""
    n = draw(st.integers(1, max_rows))
    query = _column(draw, st.integers(0, 3), n)
    if draw(st.booleans()):
        query = sorted(query)
    return Rows(
        y=np.array(_column(draw, st.integers(0, 3), n)),
        scores=_scores(draw, n),
        query=np.array(query),
    )


@st.composite
def regression_rows(draw, max_rows=12):
    """Targets and predictions in [-5, 5], in steps of 1/2 (ties, edges hit) or of 1/1000."""
    n = draw(st.integers(1, max_rows))
    halves = st.integers(-10, 10).map(lambda k: k / 2)
    thousandths = st.integers(-5000, 5000).map(lambda k: k / 1000)
    values = draw(st.sampled_from((halves, thousandths)))
    return Rows(
        y=np.array(_column(draw, values, n)),
        pred=np.array(_column(draw, values, n)),
        weight=_weight(draw, n),
    )


ROWS = {
    "binary": binary_rows,
    "multiclass": multiclass_rows,
    "multilabel": multilabel_rows,
    "ranking": ranking_rows,
    "regression": regression_rows,
}
"""The strategy of each task."""
