"""Ranking by query (``python -m benchmarks.ranking --record``)."""

from __future__ import annotations

from typing import Any

from benchmarks.results.figures import difference, spread, table, values
from benchmarks.results.recording import Recording
from benchmarks.results.section import Finding, Section, how

FIGURES = {"p5": "precision@5", "ndcg5": "ndcg@5", "ndcg5 exp": "ndcg@5, exponential gain"}
BESIDE = {"same": ("squared error", "logistic"), "LightGBM": ("squared error", "LambdaRank")}
OWN = {"p5": "implicit precision@5", "ndcg5": "implicit ndcg@5"}


def by_query(recording: Recording) -> Section:
    """Each table and split, then paired differences."""
    parts = [
        "Networks trained with one implicit threshold for every query and rank, beside pointwise "
        "losses of the same networks and LightGBM. Step size, epoch, leaves and rounds of "
        "everybody are chosen on validation queries. Random splits share queries, so that their "
        "s.e. is an optimistic one.\n",
        how(recording, "mean ± s.e. over seeds or splits"),
    ]
    for data, split in dict.fromkeys((x["table"], x["split"]) for x in recording.lines):
        lines = recording.where(table=data, split=split)
        kind = "its own split, seeds" if split == "own" else "random splits of the queries"
        parts.append(f"\n**{data}**, {kind}\n\n" + _figures(lines))
        parts.append("\n" + _differences(lines))
    return Section("Ranking by query", "\n".join(parts), _findings(recording))


def _figures(lines: Any) -> str:
    rows = []
    for model, way in dict.fromkeys((x["model"], x["way"]) for x in lines):
        cells = [spread(values(lines, key, model=model, way=way)) for key in FIGURES]
        rows.append([model, way, *cells])
    return table(["model", "trained on", *FIGURES.values()], rows)


def _differences(lines: Any) -> str:
    others = [(m, w) for m in ("same", "LightGBM") for w in BESIDE[m]]
    rows = []
    for model in ("linear", "MLP"):
        for key, own in OWN.items():
            mine = values(lines, key, model=model, way=own)
            cells = [
                difference(mine, values(lines, key, model=model if m == "same" else m, way=way))
                for m, way in others
            ]
            rows.append([f"{model}, {own}", FIGURES[key], *cells])
    heads = ["− squared error", "− logistic", "− LightGBM squared error", "− LambdaRank"]
    return table(["ours", "figure", *heads], rows)


def _findings(recording: Recording) -> tuple[Finding, ...]:
    lines = recording.where(table="letor-ohsumed", split="random")
    found = []
    for key, own in OWN.items():
        mine = values(lines, key, model="MLP", way=own)
        for model, way in (("MLP", "squared error"), ("LightGBM", "LambdaRank")):
            other = values(lines, key, model=model, way=way)
            names = f"MLP, {own}", f"{model}, {way}", FIGURES[key]
            found.append(Finding.of("Ranking by query, letor-ohsumed", *names, mine, other))
    return tuple(found)
