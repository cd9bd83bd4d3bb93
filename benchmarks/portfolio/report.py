"""The records of :mod:`benchmarks.portfolio` as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.portfolio.judge import corrected
from benchmarks.portfolio.strategies import OURS, Record
from benchmarks.portfolio.tables import P0

Cell = tuple[str, str]  #: table, goal


def report(records: list[Record], against: str | None = None) -> str:
    """Everything, as far as the records go."""
    runs = Runs.of(records)
    parts = [_about(runs), _floors(runs), _merits(runs)]
    base = against or runs.best_single()
    if OURS in runs.strategies and base is not None:
        parts += [_overall(runs, base), _cells(runs, base)]
    parts += [_broken(runs), _proofs(runs), _errors(records)]
    return "\n".join(part for part in parts if part)


@dataclass(frozen=True)
class Runs:
    """Records by strategy, cell and split."""

    by: dict[str, dict[Cell, dict[int, Record]]]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Runs:
        """Sort them."""
        by: dict[str, dict[Cell, dict[int, Record]]] = {}
        for r in records:
            cells = by.setdefault(r["strategy"], {})
            cells.setdefault((r["table"], r["goal"]), {})[r["split"]] = r
        return cls(by)

    @property
    def strategies(self) -> list[str]:
        """Ours last; provers, which may decide nothing, are not among them."""
        return sorted((s for s in self.by if not s.startswith("MAPIE")), key=lambda s: s == OURS)

    @property
    def cells(self) -> list[Cell]:
        """Those that every strategy has."""
        held = [set(self.by[s]) for s in self.strategies]
        return sorted(set.intersection(*held), key=lambda c: (c[0].lower(), c[1])) if held else []

    def merits(self, strategy: str, cell: Cell) -> np.ndarray:
        """Split by split, of the splits that every strategy has."""
        seeds = set.intersection(*(set(self.by[s][cell]) for s in self.strategies))
        return np.array([self.by[strategy][cell][seed]["merit"] for seed in sorted(seeds)])

    def mean(self, strategy: str, cells: Sequence[Cell]) -> float:
        """Of the means of the cells."""
        return float(np.mean([self.merits(strategy, c).mean() for c in cells]))

    def by_table(self, strategy: str) -> np.ndarray:
        """Mean merit of each table: those of the goals on one table hang together."""
        tables = dict.fromkeys(t for t, _ in self.cells)
        return np.array([self.mean(strategy, [c for c in self.cells if c[0] == t]) for t in tables])

    def best_single(self) -> str | None:
        """The one strategy of greatest mean merit that is not ours."""
        singles = [s for s in self.strategies if s != OURS]
        return max(singles, key=lambda s: self.mean(s, self.cells), default=None)

    def each(self, strategy: str, goal: str | None = None) -> list[Record]:
        """All records of a strategy, or those of a goal."""
        cells = self.by[strategy].items()
        return [r for (_, g), held in cells if goal in (None, g) for r in held.values()]


def _about(runs: Runs) -> str:
    cells = runs.cells
    splits = {len(runs.merits(runs.strategies[0], c)) for c in cells} if cells else {0}
    return (
        f"{len(cells)} cells ({len({t for t, _ in cells})} tables × {len({g for _, g in cells})} "
        f"goals), {' or '.join(map(str, sorted(splits)))} splits.\n"
    )


def _floors(runs: Runs) -> str:
    tables = list(dict.fromkeys(t for t, _ in runs.cells))
    rows = []
    for t in tables:
        record = next(r for r in runs.each(runs.strategies[0]) if r["table"] == t)
        n, positive = record["n"] + record["n test"], record["positives"] / record["n test"]
        rows.append([t, f"{n:,}", f"{positive:.1%}", f"{P0[t]:g}"])
    return _table("p₀ of G1", ["table", "rows", "positive", "p₀"], rows)


def _merits(runs: Runs) -> str:
    goals = sorted({g for _, g in runs.cells})
    rows = []
    for s in sorted(runs.strategies, key=lambda s: -runs.mean(s, runs.cells)):
        tables = runs.by_table(s)
        parts = [runs.mean(s, [c for c in runs.cells if c[1] == g]) for g in goals]
        seconds = float(np.mean([r["seconds"] for r in runs.each(s)]))
        rows.append([_bold(s), f"{tables.mean():.4f} ± {_error(tables):.4f}"])
        rows[-1] += [f"{p:.3f}" for p in parts] + [f"{seconds:.1f}"]
    return _table(
        "Mean merit (± s.e. over the tables); seconds a fit, one thread",
        ["strategy", "all cells", *goals, "s"],
        rows,
    )


def _overall(runs: Runs, base: str) -> str:
    d = runs.by_table(OURS) - runs.by_table(base)
    best = np.mean(
        [
            max(runs.merits(s, c).mean() for s in runs.strategies if s not in (OURS,))
            for c in runs.cells
        ]
    )
    return (
        f"Best single strategy overall: {base}, {runs.mean(base, runs.cells):.4f}. "
        f"Ours {runs.mean(OURS, runs.cells):.4f}, minus it {d.mean():+.4f} ± {_error(d):.4f} "
        f"(s.e. over {d.size} tables). The best single one of each cell, picked after the fact on "
        f"test: {best:.4f}.\n"
    )


def _cells(runs: Runs, base: str) -> str:
    rows, lost, won = [], [], []
    for cell in runs.cells:
        mine, other = runs.merits(OURS, cell), runs.merits(base, cell)
        record = next(iter(runs.by[OURS][cell].values()))
        mean, half = corrected(mine - other, record["n test"] / record["n"])
        # differences that are the same in every split have an interval of length 0
        mark = "LOST" if mean + half < -1e-9 else "won" if mean - half > 1e-9 else ""
        (lost if mark == "LOST" else won if mark else []).append(f"{cell[0]} {cell[1]} {mean:+.3f}")
        singles = [s for s in runs.strategies if s != OURS]
        after = max(singles, key=lambda s: runs.merits(s, cell).mean())
        proven = np.mean([bool(r.get("proven")) for r in runs.by[OURS][cell].values()])
        rows.append(
            [*cell, f"{mine.mean():.3f}", f"{other.mean():.3f}", f"{mean:+.3f} ± {half:.3f}"]
        )
        rows[-1] += [mark, f"{after} {runs.merits(after, cell).mean():.3f}", f"{proven:.0%}"]
    table = _table(
        f"Cells: ours − {base}, Nadeau–Bengio 95 % interval over the splits",
        ["table", "goal", "ours", base, "difference", "", "best after the fact", "PROVEN"],
        rows,
    )
    listed = "; ".join(lost) or "none"
    return f"{table}\nLost beyond the interval: {len(lost)} ({listed}). Won: {len(won)}.\n"


def _broken(runs: Runs) -> str:
    goals = sorted({g for _, g in runs.cells} - {"G2"})

    def share(strategy: str, key: str, goal: str | None = None) -> str:
        found = [r for r in runs.each(strategy, goal) if r["goal"] != "G2"]
        return f"{np.mean([r[key] for r in found]):.1%}" if found else ""

    rows = [
        [_bold(s), share(s, "broken"), *(share(s, "broken", g) for g in goals), share(s, "beyond")]
        for s in runs.strategies
    ]
    return _table(
        "Constraint broken on test (G1, G3, G4); beyond noise: binomial test at 5 %",
        ["strategy", "broken", *goals, "beyond noise"],
        rows,
    )


def _proofs(runs: Runs) -> str:
    rows = []
    for s in [s for s in sorted(runs.by) if s.startswith("MAPIE") or s == OURS]:
        found = [r for r in runs.each(s) if r["goal"] != "G2"]
        proven = [r for r in found if r.get("proven")]
        goals = [[r for r in found if r["goal"] == g] for g in ("G1", "G3", "G4")]
        rows.append([_bold(s), f"{len(found)}", _share(found, "proven")])
        rows[-1] += [_share(part, "proven") for part in goals]
        rows[-1] += [_share(proven, "broken"), _share(proven, "beyond")]
    return _table(
        "Proofs: PROVEN (of MAPIE: a threshold returned), and of those, broken on test",
        ["prover", "runs", "PROVEN", "G1", "G3", "G4", "broken on test", "beyond chance"],
        rows,
    )


def _errors(records: list[Record]) -> str:
    failed = [r for r in records if "error" in r]
    lines = [f"- {r['table']} split {r['split']} {r['goal']}: {r['error']}" for r in failed]
    return f"\n{len(failed)} fits failed:\n" + "\n".join(lines[:20]) + "\n" if failed else ""


def _share(records: list[Record], key: str) -> str:
    n, k = len(records), sum(bool(r.get(key)) for r in records)
    return f"{k / n:.1%} ({k} of {n})" if n else "–"


def _error(x: np.ndarray) -> float:
    return float(x.std(ddof=1) / np.sqrt(x.size)) if x.size > 1 else float("nan")


def _bold(strategy: str) -> str:
    return f"**{strategy}**" if strategy == OURS else strategy


def _table(title: str, head: list[str], rows: list[list[Any]]) -> str:
    if not rows:
        return ""
    lines = [f"| {' | '.join(map(str, cells))} |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join([f"\n**{title}**\n", *lines, ""])
