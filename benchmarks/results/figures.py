"""From figures run by run to the cells of a table: means, standard errors, paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.portfolio.judge import corrected

Line = Mapping[str, Any]
TEST_TO_TRAIN = 0.25  #: rows of the test part over those given, in 60/20/20 splits


def values(lines: Iterable[Line], key: str, **where: Any) -> np.ndarray:
    """One figure of the lines that match, sorted by table, model and seed so that ways pair up."""
    chosen = [x for x in lines if all(x.get(k) == v for k, v in where.items())]
    order = sorted(chosen, key=lambda x: (x.get("table", ""), x.get("model", ""), x["seed"]))
    return np.array([x[key] for x in order], float)


def error(x: np.ndarray) -> float:
    """The standard error of the mean of independent values."""
    return float(x.std(ddof=1) / np.sqrt(x.size)) if x.size > 1 else float("nan")


def number(x: float, digits: int = 3, *, signed: bool = False) -> str:
    """A figure without the zero before the point, as in ``.812`` and ``−.015``."""
    if not np.isfinite(x):
        return "–"
    text = f"{abs(x):.{digits}f}"
    # what rounds to zero has no sign
    sign = "" if not float(text) else "−" if x < 0 else "+" if signed else ""
    return sign + (text.removeprefix("0") if text.startswith("0.") else text)


def spread(x: np.ndarray, digits: int = 3) -> str:
    """Mean ± standard error."""
    return f"{number(float(x.mean()), digits)} ± {number(error(x), digits)}"


def share(x: np.ndarray) -> str:
    """How many of how many."""
    return f"{int(x.sum())} of {x.size}"


def over_tables(lines: Sequence[Line], key: str, **where: Any) -> np.ndarray:
    """The mean of a figure for each table: splits of one table are no independent evidence."""
    tables = dict.fromkeys(x["table"] for x in lines)
    found = [values(lines, key, table=t, **where) for t in tables]
    return np.array([x.mean() for x in found if x.size])


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """Mean of a − b over the tables ± its standard error; both table by table."""
    d = a - b
    return f"{number(float(d.mean()), signed=True)} ± {number(error(d))}"


def record_of(lines: Sequence[Line], key: str, a: Mapping, b: Mapping) -> str:
    """Tables on which a is ahead of b, even with it and behind it, by corrected 95 % intervals.

    The interval is that of :func:`benchmarks.portfolio.judge.corrected` over the splits of a table.
    """
    ahead, even, behind = 0, 0, []
    for table in dict.fromkeys(x["table"] for x in lines):
        x, y = (values(lines, key, table=table, **way) for way in (a, b))
        if not x.size:
            continue
        mean, half = corrected(x - y, TEST_TO_TRAIN)
        if mean - half > 1e-9:
            ahead += 1
        elif mean + half < -1e-9:
            behind.append(table)
        else:
            even += 1
    lost = f" ({', '.join(behind)})" if behind else ""
    return f"{ahead} / {even} / {len(behind)}{lost}"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"
