"""The sections of docs/results.md: recording -> section, as those of the peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.exact import report
from benchmarks.exact.aims import AIMS
from benchmarks.exact.rows import TABLES
from benchmarks.exact.start import MODELS
from benchmarks.exact.ways import LAGRANGIAN, PLAIN, TREES, TRIM, WEIGHTED
from benchmarks.results.recording import Recording
from benchmarks.results.section import Finding, Section, how

PAPER = (
    "Peng et al., *Exact reformulation and optimization for direct metric optimization in binary "
    "imbalanced classification*, arXiv 2507.15240."
)
ABOUT = {
    "table1": f"{PAPER} 56/19/25 splits by seed, stratified: to train, to choose thresholds, to "
    "test; monks-3 by its published parts (a quarter of the training rows chooses thresholds), "
    "ade-corpus-v2 by article, its sentences as frozen embeddings (MiniLM, 384 numbers). Linear "
    "heads: cross-entropy is logistic regression to convergence. Perceptrons 32–32: cross-entropy "
    "is the epoch of the least log loss on the rows that choose thresholds; “trained on” goes on "
    "from there for as many steps on all rows as exact takes. Exact at its defaults, all rows at "
    "once, from cross-entropy, which is its iterate 0. Lagrangian from there too, 6 "
    "configurations, the step kept by train rows as exact's is, the configuration by tune rows. "
    "LightGBM at its defaults. Seeds: {n}.",
    "ablation": "Goal: maximize recall subject to precision >= 0.8. Tables: the small draw of the "
    "generator below, wilt and mammography with linear heads, wilt, phoneme and mammography with "
    "perceptrons. Variants differ from the default in what they say; none walks after the penalty "
    "but the one that does. Where multipliers are held, so is the regulariser's weight. Seeds: "
    "{n}.",
    "scale": "Goal: maximize recall subject to precision >= 0.8, 2 % positives of two kinds, 20 "
    "features, a linear head that can have the one or the other; 56/19/25. Exact starts from "
    "cross-entropy to convergence, its threshold made ½, in a plain loop of Adam, batches of "
    "4,096: at least 1,500 of them for the eliminated form and for cross-entropy beside it, 10 "
    "epochs for the table.",
}


def table1(recording: Recording) -> Section:
    """The paper's table, and merits in the summary."""
    findings = []
    for model in MODELS:
        ours = _merits(recording, TRIM, model)
        for other in (PLAIN, WEIGHTED, LAGRANGIAN, TREES):
            theirs = _merits(recording, other, "linear" if other == TREES else model)
            question = f"Hard metrics, three goals, {model}, threshold by tune rows"
            findings.append(Finding.of(question, TRIM, other, "merit", ours, theirs))
    return _section(recording, "table1", findings)


def ablation(recording: Recording) -> Section:
    """What each part is there for."""
    return _section(recording, "ablation", [])


def scale(recording: Recording) -> Section:
    """Millions of rows."""
    return _section(recording, "scale", [])


def _merits(recording: Recording, way: str, model: str) -> np.ndarray:
    """A table's mean merit over the goals and seeds, for each table."""
    held: list[Any] = [*recording.lines]
    found = []
    for name in TABLES:
        mine = [
            report.merits(x, "tune test").mean()
            for goal in AIMS
            for x in report.pick(held, goal=goal, table=name, model=model, way=way)
        ]
        if mine:
            found.append(np.mean(mine))
    return np.array(found)


def _section(recording: Recording, name: str, findings: list[Finding]) -> Section:
    found = np.unique(np.hstack([x["seed"] for x in recording.lines if "seed" in x]))
    text = how(recording, ABOUT[name].format(n=found.size))
    title = SECTIONS[f"exact-{name}"][1]
    return Section(title, f"{text}\n{report.REPORTS[name](recording.lines)}", tuple(findings))


#: recording -> its section and title; made by ``python -m benchmarks.exact NAME --record``
SECTIONS: dict[str, tuple[Callable[[Recording], Section], str]] = {
    "exact-table1": (table1, "Three goals on six tables"),
    "exact-ablation": (ablation, "What each part of the penalty is there for"),
    "exact-scale": (scale, "One and ten million rows"),
}
