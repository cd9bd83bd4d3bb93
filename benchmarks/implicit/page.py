"""The sections of docs/results.md: recording -> section, as those of the peers."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.implicit import report
from benchmarks.implicit.ways import IMPLICIT, LAGRANGIAN, PLAIN, QUANTILE, WEIGHTED
from benchmarks.results.figures import over_tables
from benchmarks.results.recording import Recording
from benchmarks.results.section import Finding, Section, how

PROTOCOL = (
    "50/25/25 splits, the same for everybody, as are first weights and the number of steps; "
    "configuration and step of each way are the best on validation rows. ± s.e. over {n} splits."
)
LATER = (
    "“implicit, .3 cross-entropy” (a share of it in the loss) was added after the other figures "
    "had been seen."
)
GRIDS = {
    "curve": "All rows in each of 250 to 400 steps. Configurations tried a split: cross-entropy 3, "
    "weighted cross-entropy 8 (weights 1 to 1,000 times the class ratio), Lagrangian 8, quantile "
    f"6, implicit 6, with cross-entropy 3. {LATER}",
    "point": "Configurations tried a split: linear, all rows in each of 300 steps: cross-entropy "
    "3, weighted 14 (weights .0001 to 100 times the class ratio), Lagrangian 8, quantile 6, "
    "implicit 6, with cross-entropy 3, warm start 3; perceptrons 64–32, 1,500 steps of 1,024 rows: "
    "3, 8, 4, 4, 4, 1 and 2. Warm start: half of the steps cross-entropy. covtype_2v4 with 57,253 "
    f"of its negatives. {LATER}",
    "images": "Configurations tried a split: cross-entropy 2, weighted 3, Lagrangian 4, pairwise "
    "2, implicit 4, warm start 2; 800 steps of 512 images on a GPU, whose runs do not repeat to "
    "the digit. Pairwise: positives against the highest-scoring share of the negatives.",
    "fairness": "Goal: maximize accuracy subject to a gap of at most 0.05 between two groups. "
    "Linear models; the sensitive column is no feature. Every bound is held on validation rows, "
    "except that of ExponentiatedGradient, which holds on training rows. What fairlearn decides "
    "by lot counts by expectation.",
}


def curve(recording: Recording) -> Section:
    """Mean precision at high recall."""
    lines = recording.lines
    findings = [
        Finding.of(
            "Precision over recalls .95 to 1, linear",
            IMPLICIT,
            other,
            "mean precision",
            *(over_tables(lines, "test", way=way) for way in (IMPLICIT, other)),
        )
        for other in (PLAIN, WEIGHTED, LAGRANGIAN, QUANTILE)
    ]
    return _section(recording, "curve", findings)


def point(recording: Recording) -> Section:
    """Miss rates at a false positive rate."""
    lines, findings = recording.lines, []
    for model in ("linear", "perceptron"):
        for other in (PLAIN, WEIGHTED, LAGRANGIAN, QUANTILE):
            pair = [-over_tables(lines, "fnr", way=w, model=model) for w in (IMPLICIT, other)]
            question = f"Misses at a false positive rate, {model}"
            findings.append(Finding.of(question, IMPLICIT, other, "− miss rate", *pair))
    return _section(recording, "point", findings)


def images(recording: Recording) -> Section:
    """Partial AUROC of images."""
    return _section(recording, "images", [])


def fairness(recording: Recording) -> Section:
    """Gaps between groups."""
    return _section(recording, "fairness", [])


def _section(recording: Recording, name: str, findings: list[Finding]) -> Section:
    n = len(recording.distinct("seed"))
    text = how(recording, PROTOCOL.format(n=n), GRIDS[name])
    title = SECTIONS[f"implicit-{name}"][1]
    return Section(title, f"{text}\n{report.REPORTS[name](recording.lines)}", tuple(findings))


#: recording -> its section and title; made by ``python -m benchmarks.implicit NAME --record``
SECTIONS: dict[str, tuple[Callable[[Recording], Section], str]] = {
    "implicit-curve": (curve, "Precision where nearly all positives are found"),
    "implicit-point": (point, "Misses at a false positive rate"),
    "implicit-images": (images, "Partial AUROC of images"),
    "implicit-fairness": (fairness, "Accuracy under a bound on the gap between groups"),
}
