"""Peers side by side: the sections of ``python -m benchmarks.peers``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.peers.training import page as training
from benchmarks.results.figures import (
    difference,
    number,
    over_tables,
    record_of,
    share,
    spread,
    table,
    values,
)
from benchmarks.results.recording import Recording
from benchmarks.results.section import Finding, Section, how

CONSTRAINED = "maximize recall subject to precision >= 0.8"
MERIT = "merit = max(−1, recall − 5 · (0.8 − precision)₊)"
SPLITS = "60/20/20 splits, tables of more than 10,000 rows drawn down to that."


def sizes(recording: Recording) -> str:
    """Rows and seeds in words."""
    n = sorted({x["n test"] for x in recording.lines})
    seeds = len(recording.distinct("seed"))
    tables = len(recording.distinct("table"))
    return f"{tables} tables, {seeds} seeds, {n[0]:,} to {n[-1]:,} test rows; {SPLITS}"


def by_table(recording: Recording, key: str, rows: Mapping[str, dict[str, Any]]) -> str:
    """One figure: ways down, tables across, and the mean over the tables."""
    tables = recording.distinct("table")
    made = []
    for name, where in rows.items():
        cells = [spread(values(recording.lines, key, table=t, **where)) for t in tables]
        made.append([name, *cells, spread(over_tables(recording.lines, key, **where))])
    return table(["", *tables, "mean ± s.e. over tables"], made)


def thresholds(recording: Recording) -> Section:
    """scikit-learn's tuned classifiers."""
    parts = [
        how(
            recording,
            sizes(recording),
            "The same two models at their defaults for everybody, nothing tuned but the threshold. "
            "“Tune rows”: chosen on the 20 % kept apart; “5 folds”: on out-of-fold scores of the "
            "80 % (scikit-learn's TunedThresholdClassifierCV at its defaults). The constrained "
            "goal is given to it as a score: recall where the floor holds, else precision − 0.8.",
        )
    ]
    findings = []
    for goal, key in ((CONSTRAINED, "merit"), ("maximize f1", "f1")):
        parts.append(f"\n**{goal}**: {MERIT if key == 'merit' else 'F1'} on test, ± s.e.\n")
        lines = recording.where(goal=goal)
        part = Recording(recording.name, recording.about, tuple(lines))
        rows = {
            f"{model}, {way}": {"model": model, "way": way}
            for model in part.distinct("model")
            for way in part.distinct("way")
        }
        parts.append(by_table(part, key, rows))
        compared = []
        for kind in ("tune rows", "5 folds"):
            ours, theirs = f"setpoint.tune, {kind}", f"scikit-learn, {kind}"
            for model in part.distinct("model"):
                a, b = ({"model": model, "way": way} for way in (ours, theirs))
                means = [over_tables(lines, key, **way) for way in (a, b)]
                broken = [share(values(lines, "broken", **way)) for way in (a, b)]
                row = [f"{model}, {kind}", difference(*means), record_of(lines, key, a, b)]
                compared.append(row + (broken if key == "merit" else []))
            means = [over_tables(lines, key, way=way) for way in (ours, theirs)]
            question = f"Threshold by {kind}: `{goal}`"
            figure = "merit" if key == "merit" else "F1"
            findings.append(Finding.of(question, "`tune`", "scikit-learn tuned", figure, *means))
        more = ["floor broken, ours", "scikit-learn"] if key == "merit" else []
        head = ["setpoint.tune − scikit-learn", "mean ± s.e.", "tables ahead / even / behind"]
        parts.append("\n" + table([*head, *more], compared))
    return Section("scikit-learn: tuned classifiers", "\n".join(parts), tuple(findings))


def proving(recording: Recording) -> Section:
    """MAPIE's risk control."""
    lines = recording.lines
    rows = [
        [
            way,
            *(share(values(lines, key, way=way)) for key in ("returned", "broken", "refuted")),
            spread(over_tables(lines, "recall", way=way)),
            f"{values(lines, 'seconds', way=way).mean():.2f}",
        ]
        for way in recording.distinct("way")
    ]
    n = sorted({x["n"] for x in lines})
    text = how(
        recording,
        sizes(recording),
        f"Two untuned models, precision >= 0.8 to be proven at 90 % on {n[0]:,} to {n[-1]:,} rows. "
        "Ours gets out-of-fold scores of the training rows as reference, which takes its time; "
        "MAPIE has no place for them. Refuted: the test rows reject the promise at 5 %.",
    )
    head = ["", "threshold returned", "floor broken on test", "refuted", "recall, none as 0", "s"]
    ours, theirs = "setpoint.tune(prove=0.9)", "MAPIE, defaults"
    findings = [
        Finding.of(
            "Choosing with proof at 90 %",
            "`tune(prove=0.9)`",
            name,
            figure,
            *(over_tables(lines, key, way=way) for way in (ours, name)),
        )
        for name in (theirs, "MAPIE, fixed sequence")
        for figure, key in (("share returned", "returned"), ("recall", "recall"))
    ]
    return Section("MAPIE: risk control", text + "\n" + table(head, rows), tuple(findings))


def fairness(recording: Recording) -> Section:
    """Equal opportunity by fairlearn's threshold optimizer."""
    lines = recording.lines
    rows = []
    for name in recording.distinct("table"):
        for way in recording.distinct("way"):
            where = {"table": name, "way": way}
            figures = [spread(values(lines, key, **where)) for key in ("accuracy", "gap")]
            lot = number(float(values(lines, "lot", **where).mean()))
            rows.append([name, way, *figures, share(values(lines, "broken", **where)), lot])
    text = how(
        recording,
        sizes(recording),
        'Goal: maximize accuracy subject to gap(recall, by="group") <= 0.05; both models together. '
        "fairlearn: true positive rate parity with accuracy as the objective; its rules decide "
        "some rows by lot, ours none.",
    )
    head = ["table", "", "accuracy", "gap of recall", "gap above 0.05", "rows decided by lot"]
    ours = 'setpoint.tune(kind="per-group")'
    findings = []
    if recording.about.get("peer"):
        for other in ("fairlearn, tol=None", "fairlearn, tol=0.05"):
            for figure, key, sign in (("accuracy", "accuracy", 1), ("− gap of recall", "gap", -1)):
                pair = [sign * over_tables(lines, key, way=way) for way in (ours, other)]
                findings.append(
                    Finding.of("Equal opportunity", "per-group rule", other, figure, *pair)
                )
    return Section("fairlearn: equal opportunity", text + "\n" + table(head, rows), tuple(findings))


RANKED = {"auroc": "AUROC", "ap": "average precision", "f1": "F1, tuned threshold"}


def ranking(recording: Recording) -> Section:
    """LibAUC's losses."""
    parts = [
        how(
            recording,
            sizes(recording),
            "One perceptron 64–64, 1,200 steps of 256 rows for everybody, the last step kept. "
            "Nothing was tuned: LibAUC with its default step sizes and its sampler, the others "
            "with Adam at 0.001 on shuffled rows. Thresholds from the tune rows.",
        )
    ]
    ways = {way: {"way": way} for way in recording.distinct("way")}
    for key, name in RANKED.items():
        parts.append(f"\n**{name}** on test, ± s.e.\n\n" + by_table(recording, key, ways))
    pairs = (
        ("auroc", "GoalLoss auroc, pairwise", "LibAUC AUCM, PESG mode adam"),
        ("ap", "GoalLoss average_precision, pairwise", "LibAUC AP, SOAP"),
        ("f1", "GoalLoss f1, soft-set", "LibAUC AP, SOAP"),
        ("auroc", "GoalLoss auroc, pairwise", "cross-entropy"),
        ("ap", "GoalLoss average_precision, pairwise", "cross-entropy"),
        ("f1", "GoalLoss f1, soft-set", "cross-entropy"),
    )
    rows, findings = [], []
    for key, a, b in pairs:
        if b not in ways:
            continue
        means = [over_tables(recording.lines, key, way=way) for way in (a, b)]
        counts = record_of(recording.lines, key, {"way": a}, {"way": b})
        rows.append([f"{a} − {b}", RANKED[key], difference(*means), counts])
        findings.append(Finding.of("Networks by ranking losses", a, b, RANKED[key], *means))
    head = ["difference", "figure", "mean ± s.e. over tables", "tables ahead / even / behind"]
    parts.append("\n" + table(head, rows))
    return Section("LibAUC: ranking losses", "\n".join(parts), tuple(findings))


def lagrangian(recording: Recording) -> Section:
    """Cooper's Lagrangian."""
    lines = recording.lines
    parts = [
        how(
            recording,
            sizes(recording),
            f"Goal: {CONSTRAINED}. The network, steps and schedule are those of the table before. "
            "In Cooper the goal is written by hand (sigmoids for the gradient, hard counts for the "
            "multiplier); two step sizes of the multiplier, no other choice was tried.",
        )
    ]
    for at, words in (("½", "at the threshold ½ it was trained for"), ("tuned", "tuned threshold")):
        rows = []
        for way in recording.distinct("way"):
            where = {"way": way, "at": at}
            precision = [x["precision"] for x in lines if x["way"] == way and x["at"] == at]
            known = np.array([x for x in precision if x is not None], float)
            rows.append(
                [
                    way,
                    *(spread(over_tables(lines, key, **where)) for key in ("merit", "recall")),
                    number(float(known.mean())),
                    share(values(lines, "broken", **where)),
                ]
            )
        head = ["", "merit ± s.e. over tables", "recall", "precision, mean", "floor broken"]
        parts.append(f"\n**Test rows, {words}**\n\n" + table(head, rows))
    findings = []
    others = [way for way in recording.distinct("way") if way.startswith("Cooper")]
    for other in [*others, "cross-entropy"]:
        for at in ("½", "tuned"):
            means = [
                over_tables(lines, "merit", way=way, at=at) for way in ("GoalLoss, costs", other)
            ]
            question = f"A constrained goal as the loss, threshold {at}"
            findings.append(Finding.of(question, "GoalLoss, costs", other, "merit", *means))
    return Section(
        "Cooper: a Lagrangian by hand", "\n".join(parts) + f"\n{MERIT}.\n", tuple(findings)
    )


#: recording -> its section, title and what makes it
SECTIONS: dict[str, tuple[Callable[[Recording], Section], str]] = {
    "peers-thresholds": (thresholds, "scikit-learn: tuned classifiers"),
    "peers-proving": (proving, "MAPIE: risk control"),
    "peers-fairness": (fairness, "fairlearn: equal opportunity"),
    "peers-ranking": (ranking, "LibAUC: ranking losses"),
    "peers-lagrangian": (lagrangian, "Cooper: a Lagrangian by hand"),
    "peers-training": (training.training, training.TITLE),
}
