"""The tables in Markdown, from the lines of the chosen runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.implicit.ways import IMPLICIT, ORDER
from benchmarks.results.figures import error, table

Lines = Sequence[Any]


def ways_of(lines: Lines) -> list[str]:
    """In the order of the line-up; others as they come."""
    found = dict.fromkeys(x["way"] for x in lines)
    return [w for w in ORDER if w in found] + [w for w in found if w not in ORDER]


def by_seed(lines: Lines, key: str, **where: Any) -> dict[int, float]:
    """A figure of the lines that match."""
    return {x["seed"]: x[key] for x in lines if all(x[k] == v for k, v in where.items())}


def percent(x: np.ndarray) -> str:
    """Mean ± standard error, in points."""
    return f"{100 * x.mean():.1f} ± {100 * error(x):.1f}" if x.size else "–"


def mean(lines: Lines, key: str, **where: Any) -> str:
    """A cell."""
    return percent(np.array(list(by_seed(lines, key, **where).values()), float))


def paired(lines: Lines, key: str, a: str, b: str, **where: Any) -> str:
    """Mean of a − b over the splits both have ± its standard error, in points."""
    x, y = (by_seed(lines, key, way=way, **where) for way in (a, b))
    both = sorted(set(x) & set(y))
    d = np.array([x[s] - y[s] for s in both])
    return f"{signed(100 * d.mean())} ± {100 * error(d):.1f}" if d.size else "–"


def signed(x: float) -> str:
    """With one digit after the point; what rounds to zero has no sign."""
    text = f"{abs(x):.1f}"
    return text if text == "0.0" else ("−" if x < 0 else "+") + text


def curve(lines: Lines) -> str:
    """Mean precision, then the paired differences."""
    tables = list(dict.fromkeys(x["table"] for x in lines))
    ways = ways_of(lines)
    rows = [[t, *(mean(lines, "test", table=t, way=w) for w in ways)] for t in tables]
    text = "Mean precision over recalls .95 to 1, test rows, % (± s.e.)\n\n"
    text += table(["", *ways], rows)
    if IMPLICIT not in ways:
        return text
    others = [w for w in ways if w != IMPLICIT]
    rows = [[t, *(paired(lines, "test", IMPLICIT, w, table=t) for w in others)] for t in tables]
    head = [f"− {w}" for w in others]
    return text + "\nimplicit − each, same splits, points (± s.e.)\n\n" + table(["", *head], rows)


def point(lines: Lines) -> str:
    """Miss rates by model, table and rate; differences; what a carried threshold keeps."""
    parts, ways = [], ways_of(lines)
    others = [w for w in ways if w != IMPLICIT]
    for model in dict.fromkeys(x["model"] for x in lines):
        own = [x for x in lines if x["model"] == model]
        keys = sorted({(x["table"], x["fpr"]) for x in own})
        rows, apart = [], []
        for name, rate in keys:
            where = {"table": name, "fpr": rate}
            first = [name, f"{100 * rate:g} %"]
            rows.append([*first, *(mean(own, "fnr", way=w, **where) for w in ways)])
            apart.append([*first, *(paired(own, "fnr", IMPLICIT, w, **where) for w in others)])
        title = f"**{model}**: miss rate at the point of the test rows' ROC curve, % (± s.e.)"
        parts.append(f"{title}\n\n" + table(["table", "at", *ways], rows))
        if IMPLICIT in ways:
            title = f"**{model}**: implicit − each, points (± s.e.); below 0: fewer misses"
            head = ["table", "at", *(f"− {w}" for w in others)]
            parts.append(f"{title}\n\n" + table(head, apart))
    return "\n".join([*parts, carried(lines)])


def carried(lines: Lines) -> str:
    """Means over the tables with the threshold of the validation rows, and how often it fails."""
    ways, rows = ways_of(lines), []
    for model, rate in dict.fromkeys((x["model"], x["fpr"]) for x in lines):
        cells = []
        for way in ways:
            found = [x for x in lines if (x["model"], x["fpr"], x["way"]) == (model, rate, way)]
            missed, false = (
                100 * np.mean([x[f"{key} carried"] for x in found]) for key in ("fnr", "fpr")
            )
            above = sum(x["fpr carried"] > rate for x in found)
            cells.append(f"{missed:.1f} at {false:.2f} ({above} of {len(found)})")
        rows.append([model, f"{100 * rate:g} %", *cells])
    title = "Threshold carried from validation to test rows: miss rate at the false positive rate "
    title += "there, %, means over the tables (and how often that is above its bound)"
    return f"{title}\n\n" + table(["model", "at most", *ways], rows)


def images(lines: Lines) -> str:
    """Partial AUROC, then the paired differences."""
    ways = ways_of(lines)
    keys = list(dict.fromkeys((x["table"], x["fpr"]) for x in lines))
    rows = [
        [t, f"{100 * r:g} %", *(mean(lines, "test", table=t, fpr=r, way=w) for w in ways)]
        for t, r in keys
    ]
    text = "Partial AUROC up to a false positive rate, test images, % (± s.e.)\n\n"
    text += table(["", "up to", *ways], rows)
    if IMPLICIT not in ways:
        return text
    others = [w for w in ways if w != IMPLICIT]
    rows = [
        [t, f"{100 * r:g} %"] + [paired(lines, "test", IMPLICIT, w, table=t, fpr=r) for w in others]
        for t, r in keys
    ]
    head = ["", "up to", *(f"− {w}" for w in others)]
    return text + "\nimplicit − each, same splits, points (± s.e.)\n\n" + table(head, rows)


def fairness(lines: Lines) -> str:
    """Accuracy and gaps."""
    rows = []
    for name, rate in dict.fromkeys((x["table"], x["constraint"]) for x in lines):
        for way in sorted({x["way"] for x in lines}, key=_without_group_first):
            where = {"table": name, "constraint": rate, "way": way}
            found = [x for x in lines if all(x[k] == v for k, v in where.items())]
            known = [x for x in found if x["accuracy"] is not None]
            if not known:
                continue
            met = sum(x["tune gap"] <= 0.05 + 1e-9 for x in known)
            cells = [mean(known, key, **where) for key in ("accuracy", "tune gap", "gap")]
            above = sum(x["gap"] > 0.05 for x in known)
            lot = percent(np.array([x["lot"] for x in known]))
            n = len(found)
            rows.append([name, rate, way, *cells, f"{met} of {n}", f"{above} of {n}", lot])
    head = ["", "gap of", "way", "accuracy, test", "gap, validation", "gap, test"]
    head += ["bound met on validation", "above 5 % on test", "decided by lot"]
    return "Accuracy and gaps in % (± s.e.)\n\n" + table(head, rows)


def _without_group_first(way: str) -> tuple[bool, bool, bool, str]:
    return "each group" in way, "no bound" not in way, "fairlearn" in way, way


REPORTS = {"curve": curve, "point": point, "images": images, "fairness": fairness}
