"""Published tables trained anew: "Bridging the Gap" (``python -m benchmarks.bridging``)."""

from __future__ import annotations

import numpy as np

from benchmarks.results.figures import difference, spread, table, values
from benchmarks.results.recording import Recording
from benchmarks.results.section import Finding, Section, how

SOFT, BCE, KEPT = "F1, soft set", "BCE", "BCE, kept by F1"
LOSSES = {
    "1": {
        "f1 mean": "F1, mean over τ",
        "f1 half": "F1 at ½",
        "f1 tuned": "F1, tuned threshold",
        "auroc": "AUROC",
    },
    "2": {
        "f1 mean": "F1, mean over τ",
        "f1 half": "F1 at ½",
        "f1 tuned": "F1, tuned threshold",
        "accuracy mean": "accuracy, mean over τ",
        "auroc": "AUROC",
    },
    "4": {
        "f1 mean": "F1",
        "f2 mean": "F2",
        "f3 mean": "F3",
        "precision mean": "precision",
        "recall mean": "recall",
    },
}
TITLES = {
    "1": "Table 1, tables of data",
    "2": "Table 2, two tasks of CIFAR-10 (a subset of 12,000 images)",
    "4": "Table 4, precision against recall: all figures means over τ",
}
#: the paper's own figures, by the mean over τ: F1 of its soft-set loss and of BCE
PUBLISHED = {
    "adult": ".63, .26",
    "mammography": ".63, .56",
    "cocktail-party-pairs": ".75, .70",
    "cifar10-transportation": ".91, .88",
    "cifar10-frog": ".73, .59",
}


def bridging(recording: Recording) -> Section:
    """The paper's tables 1, 2 and 4, and the differences that matter."""
    seeds = len(recording.distinct("seed"))
    parts = [
        "Tsoi et al., *Bridging the Gap*, NeurIPS 2022: a network trained on the metric, computed "
        "from soft decisions, and judged by the mean of the metric over thresholds τ = .1 … .9. "
        "[Protocol, options and what it says](results/soft-set.md), on an earlier run of the same "
        "seeds: after a change of rounding single networks are others, and means move by about "
        ".01.\n",
        how(recording, f"{seeds} seeds, ± s.e. over them; 64/16/20 splits. The image networks ran "
            "on a GPU, whose runs do not repeat to the digit."),
    ]  # fmt: skip
    for plan, title in TITLES.items():
        parts.append(f"\n**{title}**\n\n" + _figures(recording, plan))
    parts.append("\n**F1 by soft sets − BCE**, on the same splits\n\n" + _differences(recording))
    return Section("“Bridging the Gap”, trained anew", "\n".join(parts), _findings(recording))


def _figures(recording: Recording, plan: str) -> str:
    lines = recording.where(plan=plan)
    columns = LOSSES[plan]
    rows = []
    for name in dict.fromkeys(x["table"] for x in lines):
        n = next(x["n test"] for x in lines if x["table"] == name)
        published = f"; paper {PUBLISHED[name]}" if plan != "4" and name in PUBLISHED else ""
        first = f"{name} (n {n:,}{published})"
        for way in dict.fromkeys(x["way"] for x in lines):
            cells = [spread(values(lines, key, table=name, way=way)) for key in columns]
            rows.append([first, way, *cells])
            first = ""
    return table(["data", "loss", *columns.values()], rows)


def _differences(recording: Recording) -> str:
    lines = [*recording.where(plan="1"), *recording.where(plan="2")]
    rows = []
    for name in dict.fromkeys(x["table"] for x in lines):
        for base in (BCE, KEPT):
            pairs = [(k, k) for k in ("f1 mean", "f1 tuned")] + [("f1 half", "f1 tuned")]
            pairs += [("auroc", "auroc")]
            cells = [
                difference(
                    values(lines, a, table=name, way=SOFT), values(lines, b, table=name, way=base)
                )
                for a, b in pairs
            ]
            rows.append([name, base, *cells])
    head = ["F1, mean over τ", "F1, both tuned", "soft set at ½ − BCE tuned", "AUROC"]
    return table(["data", "minus", *head], rows)


def _findings(recording: Recording) -> tuple[Finding, ...]:
    lines = [*recording.where(plan="1"), *recording.where(plan="2")]
    names = dict.fromkeys(x["table"] for x in lines)

    def by_data(key: str, way: str):
        return np.array([values(lines, key, table=t, way=way).mean() for t in names])

    return tuple(
        Finding.of(
            "Soft-set F1 loss, 5 data sets and one split by time",
            "soft set",
            base,
            figure,
            by_data(key, SOFT),
            by_data(key, base),
        )
        for base in (BCE, KEPT)
        for figure, key in (
            ("F1, mean over τ", "f1 mean"),
            ("F1, both tuned", "f1 tuned"),
            ("AUROC", "auroc"),
        )
    )
