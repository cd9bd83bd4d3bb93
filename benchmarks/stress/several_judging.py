"""Goals over groups, classes and labels, and what became of a run: numpy alone, by definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.stress.judging import auroc
from benchmarks.stress.several_tables import Rows, SeveralTable

NEAR = 0.02  #: a constraint is kept within
BEHIND = 0.05  #: of the macro auroc, behind cross-entropy's: collapsed
PENALTY = 5.0  #: of a unit of violation
LEAST = 10  #: rows decided, in every group or of the class
GRID = 40  #: thresholds that are tried


@dataclass(frozen=True)
class SeveralAim:
    """A goal as text and as figures: what is gained, and (figure, bound from below?, bound)."""

    name: str
    text: str
    gain: str
    bounds: tuple[tuple[str, bool, float], ...] = ()


#: table -> floors of precision; table -> the class that is bounded: rare, or often taken for others
FLOORS = {"adult": (0.7, 0.6), "communities-crime": (0.7, 0.6), "compas": (0.6, 0.55)}
BOUNDED = {"page-blocks": 3, "satimage": 3, "thyroid-ann": 0, "winequality-white": 3}


def aims(table: str) -> tuple[SeveralAim, ...]:
    """The goals on a table."""
    if table in FLOORS:
        p, q = FLOORS[table]
        parity, equal = 'gap(positive_rate, by="group")', 'gap(recall, by="group")'
        text = f"maximize recall subject to precision >= {p}, {equal} <= 0.1"
        worst = f'maximize worst(recall, by="group") subject to precision >= {q}'
        return (
            SeveralAim(
                "parity",
                f"maximize f1 subject to {parity} <= 0.05",
                "f1",
                (("gap rate", False, 0.05),),
            ),
            SeveralAim(
                "equal recall",
                text,
                "recall",
                (("precision", True, p), ("gap recall", False, 0.1)),
            ),
            SeveralAim("worst group", worst, "worst recall", (("precision", True, q),)),
        )
    if table in BOUNDED:
        c = BOUNDED[table]
        floor = f"maximize accuracy subject to recall.of({c}) >= 0.8"
        precise = f"maximize macro(recall) subject to precision.of({c}) >= 0.7"
        return (
            SeveralAim("macro f1", "maximize macro(f1)", "macro f1"),
            SeveralAim("worst class", 'maximize worst(recall, by="class")', "worst recall"),
            SeveralAim("class recall", floor, "accuracy", ((f"recall {c}", True, 0.8),)),
            SeveralAim(
                "class precision", precise, "macro recall", ((f"precision {c}", True, 0.7),)
            ),
        )
    text = "maximize macro(recall) subject to macro(precision) >= 0.7"
    return (
        SeveralAim("labels f1", "maximize macro(f1)", "macro f1"),
        SeveralAim("labels recall", text, "macro recall", (("macro precision", True, 0.7),)),
    )


def _ratio(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / whole.sum()) if whole.sum() else np.nan


def _tables(kind: str, rows: Rows, decided: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(actual, decided) of each group, class or label, as booleans."""
    if kind == "groups":
        codes = range(int(rows.group.max()) + 1)
        return [(rows.y[rows.group == g] > 0, decided[rows.group == g]) for g in codes]
    if kind == "labels":
        return [(rows.y[:, k] > 0, decided[:, k]) for k in range(rows.y.shape[1])]
    return [(rows.y == k, decided == k) for k in range(int(rows.y.max()) + 1)]


def figure(name: str, kind: str, rows: Rows, decided: np.ndarray) -> float:
    """A figure by its name; an empty rate is not-a-number."""
    head, _, tail = name.partition(" ")
    if name == "accuracy":
        return float(np.mean(decided == rows.y))
    ways = {
        "recall": lambda y, d: _ratio(y & d, y),
        "precision": lambda y, d: _ratio(y & d, d),
        "rate": lambda y, d: float(d.mean()),
        "f1": lambda y, d: 2 * float((y & d).sum()) / max(float(y.sum() + d.sum()), 1),
    }
    if not tail:
        return ways[head](rows.y > 0, decided)
    tables = _tables(kind, rows, decided)
    if tail.isdigit():
        return ways[head](*tables[int(tail)])
    values = np.array([ways[tail](*t) for t in tables])
    if head == "macro":  # an empty precision is 0, as in scikit-learn
        return float(np.mean(np.nan_to_num(values)))
    return float(values.min() if head == "worst" else values.max() - values.min())


def merit(aim: SeveralAim, kind: str, rows: Rows, decided: np.ndarray) -> float:
    """What is gained, less what breaking the bounds costs; -1 at the least."""
    value = figure(aim.gain, kind, rows, decided)
    value -= PENALTY * sum(max(0.0, x) for x in excesses(aim, kind, rows, decided))
    return max(-1.0, value) if np.isfinite(value) else -1.0


def excesses(aim: SeveralAim, kind: str, rows: Rows, decided: np.ndarray) -> list[float]:
    """By how much each bound is broken; an empty rate breaks it by all of it."""
    found = []
    for name, floor, bound in aim.bounds:
        value = figure(name, kind, rows, decided)
        excess = bound - value if floor else value - bound
        found.append(bound if np.isnan(excess) else excess)
    return found


def decide(kind: str, scores: np.ndarray) -> np.ndarray:
    """By argmax, or where a score is not negative."""
    return scores.argmax(1) if kind == "classes" else scores >= 0


def offsets(table: SeveralTable, aim: SeveralAim, scores: np.ndarray) -> Iterator[np.ndarray]:
    """What may be added to scores before they are decided."""
    if table.kind != "classes":
        shares = np.concatenate([np.linspace(0, 1, GRID), 1 - np.geomspace(1e-3, 0.5, GRID)])
        yield from -np.unique(np.quantile(scores, shares))
        return
    share = np.bincount(table.train.y, minlength=table.size) / len(table.train.y)
    bounded = [int(name.split()[1]) for name, _, _ in aim.bounds]
    for power in (0.0, 0.25, 0.5, 0.75, 1.0):
        for more in np.linspace(-4, 4, 17) if bounded else (0.0,):
            yield -power * np.log(share) + more * np.isin(np.arange(table.size), bounded)


def tuned(table: SeveralTable, aim: SeveralAim, scores: np.ndarray) -> np.ndarray:
    """The offset of greatest merit on the tune rows."""
    return max(
        offsets(table, aim, scores),
        key=lambda o: merit(aim, table.kind, table.tune, decide(table.kind, scores + o)),
    )


def feasible(table: SeveralTable, aim: SeveralAim, scores: np.ndarray) -> bool:
    """Whether scores keep the bounds on the training rows, decided group by group or by offsets."""
    rows, kind = table.train, table.kind
    if kind == "groups":
        codes = range(table.size)
        cuts = [np.quantile(scores[rows.group == g], np.linspace(0, 1, GRID)) for g in codes]
        tries = (scores - np.array(cut)[rows.group] for cut in product(*cuts))
    else:
        tries = (scores + o for o in offsets(table, aim, scores))
    for shifted in tries:
        decided = decide(kind, shifted)
        if max(excesses(aim, kind, rows, decided), default=-1.0) > 0:
            continue
        if min(float(d.sum()) for _, d in _tables(kind, rows, decided)) >= LEAST:
            return True
    return False


def ranking(kind: str, rows: Rows, scores: np.ndarray) -> float:
    """The mean auroc of each group, class or label against the rest."""
    if kind == "groups":
        return float(
            np.mean([auroc(rows.y[rows.group == g], scores[rows.group == g]) for g in (0, 1)])
        )
    y = rows.y if kind == "labels" else np.eye(scores.shape[1], dtype=int)[rows.y]
    p = scores
    if kind == "classes":
        p = scores - np.log(np.exp(scores - scores.max(1, keepdims=True)).sum(1, keepdims=True))
        p = p - scores.max(1, keepdims=True)
    return float(np.mean([auroc(y[:, k], p[:, k]) for k in range(y.shape[1])]))


def judged(
    table: SeveralTable, aim: SeveralAim, own: tuple, plain: tuple, shift: float
) -> dict[str, object]:
    """The figures of scores (train, tune, test) less a threshold, beside cross-entropy's."""
    kind = table.kind
    if not all(np.isfinite(s).all() for s in own):
        return {"collapsed": True, "feasible": True, "kept": False, "own": -1.0, "tuned": -1.0}
    train, _, test = (decide(kind, s - shift) for s in own)
    level, here = ranking(kind, table.train, plain[0]), ranking(kind, table.train, own[0])
    usual = _tables(kind, table.train, decide(kind, plain[0] + tuned(table, aim, plain[1])))
    lost = [
        kind
        for (_, d), (_, e) in zip(_tables(kind, table.train, train), usual, strict=True)
        if (not d.any() and e.sum() >= LEAST) or (d.all() and not e.all())
    ]
    broken = excesses(aim, kind, table.train, train)
    return {
        "auroc": here,
        "collapsed": bool(here < level - BEHIND or lost),
        "feasible": feasible(table, aim, plain[0]) if aim.bounds else True,
        "kept": bool(max(broken) <= NEAR) if aim.bounds else None,
        "excess": [round(x, 4) for x in broken],
        "own": merit(aim, kind, table.test, test),
        "tuned": merit(aim, kind, table.test, decide(kind, own[2] + tuned(table, aim, own[1]))),
    }
