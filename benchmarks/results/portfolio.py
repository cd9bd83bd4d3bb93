"""The section of ``python -m benchmarks.portfolio``, and how its records are kept small.

The records of one (table, strategy, goal) are folded into one line: fields that are the same in
every split are kept once, the others become lists over the splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.portfolio.report import Runs, report
from benchmarks.portfolio.strategies import OURS
from benchmarks.results.recording import Recording
from benchmarks.results.section import Finding, Section, how

Record = dict[str, Any]
KEY = ("table", "strategy", "goal")
KEPT = (
    *("table", "split", "strategy", "goal", "n", "n test", "positives"),
    *("merit", "broken", "beyond", "proven", "seconds", "error"),
)


def fold(records: Iterable[Mapping[str, Any]]) -> list[Record]:
    """One line for each table, strategy and goal."""
    groups: dict[tuple, list[Mapping[str, Any]]] = {}
    for r in records:
        groups.setdefault(tuple(r[k] for k in KEY), []).append(r)
    lines = []
    for key, held in groups.items():
        held = sorted(held, key=lambda r: r["split"])
        fields = [k for k in KEPT if k not in KEY and any(k in r for r in held)]
        line = dict(zip(KEY, key, strict=True))
        lines.append(line | {k: _once([r.get(k) for r in held], k) for k in fields})
    return lines


def _once(values: list[Any], field: str) -> Any:
    return values[0] if field != "split" and len(set(values)) == 1 else values


def unfold(lines: Iterable[Mapping[str, Any]]) -> list[Record]:
    """The records again; a field that a record did not have is None and left out."""
    records = []
    for line in lines:
        for i in range(len(line["split"])):
            record = {k: v[i] if isinstance(v, list) else v for k, v in line.items()}
            records.append({k: v for k, v in record.items() if v is not None})
    return records


def portfolio(recording: Recording) -> Section:
    """The report of the benchmark itself, as the section."""
    records = unfold(recording.lines)
    runs = Runs.of(records)
    base = runs.best_single()
    findings: tuple[Finding, ...] = ()
    if OURS in runs.strategies and base is not None:
        pair = runs.by_table(OURS), runs.by_table(base)
        question = "The default, `GoalClassifier(goal)`, four goals"
        findings = (Finding.of(question, "defaults", f"best single, {base}", "merit", *pair),)
    text = how(
        recording,
        "80/20 splits; defaults only, one call a goal. G1 maximize recall subject to precision >= "
        "p₀, G2 maximize f1, G3 maximize precision subject to recall >= 0.9, G4 minimize fnr "
        "subject to fpr <= 0.02. Merit = max(−1, gain − penalty × violation) on test, the penalty "
        "5, for G4 50. “60/20”: trained on three quarters, threshold on the rest; “cv”: threshold "
        "on out-of-fold scores; TTCV: scikit-learn's TunedThresholdClassifierCV of LightGBM.",
    )
    splits = sorted({r["split"] for r in records})
    text += (
        f"\n\nSplits {splits[0]} to {splits[-1]}. The defaults were chosen on splits 0 to 4, and "
        "an earlier setting was measured on 5 to 9 (docs/decisions/0016); differences below .015 "
        "are noise. “TTCV merit” is told the penalties of this benchmark as its scorer.\n"
    )
    return Section("The default job", text + "\n" + report(records), findings)
