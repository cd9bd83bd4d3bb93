"""The section of docs/results.md: ``GoalLoss`` beside four libraries that train on goals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.results.figures import (
    difference,
    error,
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

TITLE = "Training on a goal: torch-btg, LibAUC, Cooper, humancompatible-train"
PLAIN = "cross-entropy"
OURS = "GoalLoss"
F1 = {
    "mean f1": "mean F1 over .1 … .9",
    "half f1": "F1 at ½",
    "tuned f1": "F1, tuned",
    "auroc": "AUROC",
}
RANKED = {
    "ap": "average precision",
    "one-way": "AUROC up to a false positive rate of .1 (standardized)",
    "two-way": "AUROC for false positive rates up to .3 and recalls from .7, share of the corner",
}
CONSTRAINED = {
    "floor": ("maximize recall subject to precision >= 0.8", "precision"),
    "cap": ("minimize fnr subject to fpr <= 0.01", "false positive rate"),
}
WHAT = {"ap": "average precision", "one-way": "one-way area", "two-way": "two-way area"}
WHAT |= {"floor": "floor of precision", "cap": "cap of the false positive rate"}
AT = {"own": "its own threshold", "tuned": "threshold tuned on the tune rows"}
MERIT = (
    "merit = max(−1, recall − 5 · (0.8 − precision)₊) under the floor, "
    "max(−1, recall − 50 · (fpr − 0.01)₊) under the cap; with nothing decided recall is 0 and the "
    "bound is kept. Setting by hindsight: of the same settings the best on the test rows, which no "
    "user could choose."
)
Where = Mapping[str, Any]


def training(recording: Recording) -> Section:
    """Three questions, the steps' times, and where ours is behind."""
    lines = recording.lines
    judged = [x for x in lines if x["part"] != "pace"]
    n = sorted({x["n test"] for x in judged})
    seeds, tables = (len(recording.distinct(key)) for key in ("seed", "table"))
    parts = [
        how(
            recording,
            f"{tables} tables, {seeds} seeds, {n[0]:,} to {n[-1]:,} test rows; 60/20/20 splits, at "
            "most 6,000 rows to train on. One perceptron 64–32, 1,200 steps of 256 rows, step "
            "sizes divided by ten after half and three quarters, the last step kept. `GoalLoss` "
            "and cross-entropy: Adam at 0.001 or 0.003, `GoalLoss` at its defaults. A peer has "
            "four to six settings of its own rates and surrogates, the best of 6 to 17 on seeds "
            "not used here. The tune rows choose for every split.",
        )
    ]
    findings: list[Finding] = []
    for make in (_f1, _ranked, _constrained):
        text, found = make(recording)
        parts.append(text)
        findings += found
    parts += [_paces(recording), _behind(recording)]
    return Section(TITLE, "\n".join(parts), tuple(findings))


def _part(recording: Recording, **where: Any) -> Recording:
    return Recording(recording.name, recording.about, tuple(recording.where(**where)))


def _by_table(part: Recording, key: str) -> str:
    """Ways down, tables across, and the mean over the tables."""
    tables = part.distinct("table")
    rows = [
        [
            way,
            *(spread(values(part.lines, key, table=t, way=way)) for t in tables),
            spread(over_tables(part.lines, key, way=way)),
        ]
        for way in part.distinct("way")
    ]
    return table(["", *tables, "mean ± s.e. over tables"], rows)


def _compared(
    question: str, figure: str, part: Recording, key: str, ours: str, others: list[str]
) -> list[Finding]:
    found = []
    for other in others:
        means = [over_tables(part.lines, key, way=way) for way in (ours, other)]
        found.append(Finding.of(question, ours, other, figure, *means))
    return found


def _f1(recording: Recording) -> tuple[str, list[Finding]]:
    part, findings = _part(recording, part="f1"), []
    ways = part.distinct("way")
    texts = [
        "\n**F1 over thresholds, in the loop of torch-btg's authors.** A network 32–16 with "
        "dropout, batches of 1,024, the epoch of the least own loss on the tune rows kept; Adam at "
        "0.001, 0.01 or 0.03 by the tune rows' mean F1, for everybody. torch-btg's F1 loss at its "
        "defaults; it calls `.cuda()` on every tensor, which is made the identity to run it on a "
        "CPU. Ours: soft-set as published, "
        '`GoalLoss("maximize f1", "soft-set", guard=False, thresholds="grid", '
        "cross_entropy=0.1)`.\n"
    ]
    rows = [[way, *(spread(over_tables(part.lines, key, way=way)) for key in F1)] for way in ways]
    texts.append(table(["mean over tables ± s.e.", *F1.values()], rows))
    ours = f"{OURS}, soft-set"
    others = [way for way in ways if way != ours]
    compared = []
    for key in ("mean f1", "tuned f1"):
        findings += _compared("F1 over thresholds", F1[key], part, key, ours, others)
        compared += _differences(part, key, F1[key], ours, others)
    texts.append(table(HEAD, compared))
    return "\n".join(texts), findings


HEAD = ["difference", "figure", "mean ± s.e. over tables", "tables ahead / even / behind"]


def _differences(
    part: Recording, key: str, figure: str, ours: str, others: list[str]
) -> list[list[str]]:
    rows = []
    for other in others:
        a, b = {"way": ours}, {"way": other}
        means = [over_tables(part.lines, key, **way) for way in (a, b)]
        counts = record_of(part.lines, key, a, b)
        rows.append([f"{ours} − {other}", figure, difference(*means), counts])
    return rows


def _ranked(recording: Recording) -> tuple[str, list[Finding]]:
    texts, findings, compared = [], [], []
    texts.append(
        "\n**Average precision and partial areas, beside LibAUC**, with its losses, optimizers and "
        "DualSampler on the sigmoid of the logits. Average precision: APLoss with SOAP, two "
        "margins and two step sizes. One-way: SOPAs with two weights and step sizes, SOPA at the "
        "range itself; two-way: SOTAs with two weights and step sizes, STACO at the range itself; "
        "half of these after a third of the steps by cross-entropy, as its tutorials recommend. "
        "Ours: the pairwise loss of the area itself.\n"
    )
    for aim, figure in RANKED.items():
        part = _part(recording, part="ranked", aim=aim)
        texts.append(f"\n**{figure}** on test, ± s.e.\n\n{_by_table(part, 'figure')}")
        ours = f"{OURS}, pairwise"
        others = [way for way in part.distinct("way") if way != ours]
        name = figure.partition(" (")[0].partition(", ")[0]
        findings += _compared("Networks for a ranking", name, part, "figure", ours, others)
        compared += _differences(part, "figure", name, ours, others)
    texts.append(table(HEAD, compared))
    return "\n".join(texts), findings


def _constrained(recording: Recording) -> tuple[str, list[Finding]]:
    texts, findings = [], []
    texts.append(
        "\n**A goal with a constraint, beside Cooper and humancompatible-train.** Ours: "
        "`GoalLoss(goal, method)` at its defaults. In both peers the goal is written by hand "
        "(`batch_rates.py`): the share of positives missed, and the bound as a mean over the "
        "batch, by hinges, sigmoids or as a ratio. Cooper: its multiplier moved by hard counts, by "
        "gradient ascent or its nuPI. humancompatible-train (Apache-2.0): ALM, SPBM and nuPI. "
        "Surrogate and step sizes by the tune rows, for each threshold apart: settings differ in "
        "how cautious they are, so the tune rows choose that too. Own threshold: a half, and ours "
        "`loss.threshold`, which reads recent training rows.\n"
    )
    for aim, (goal, bounded) in CONSTRAINED.items():
        for at, words in AT.items():
            part = _part(recording, part="constrained", aim=aim, at=at)
            rows = [_standing(part, way) for way in part.distinct("way")]
            head = ["", "merit ± s.e. over tables", "recall", f"{bounded}, mean"]
            head += ["bound kept, test", "training rows", "merit, setting by hindsight"]
            texts.append(f"\n`{goal}`, {words}\n\n" + table(head, rows))
            ours = f"{OURS}, costs"  # the default method
            others = [w for w in part.distinct("way") if not w.startswith(OURS)]
            question = f"`{goal}`, {words}"
            findings += _compared(question, "merit", part, "merit", ours, others)
    return "\n".join([*texts, MERIT]) + "\n", findings


def _standing(part: Recording, way: str) -> list[str]:
    known = [x["bounded"] for x in part.where(way=way) if x["bounded"] is not None]
    return [
        way,
        *(spread(over_tables(part.lines, key, way=way)) for key in ("merit", "recall")),
        number(float(np.mean(known))) if known else "–",
        *(share(values(part.lines, key, way=way)) for key in ("kept", "kept train")),
        number(float(over_tables(part.lines, "hindsight", way=way).mean())),
    ]


def _paces(recording: Recording) -> str:
    rows = []
    for x in recording.where(part="pace"):
        ratio = x["ms"] / x["plain ms"]
        what = WHAT.get(x["aim"], "F1 over thresholds, 1,024 rows")
        rows.append([what, x["way"], f"{x['ms']:.2f}", f"{ratio:.2f} ×"])
    rows.sort(key=lambda row: row[0])
    return (
        "\n**Milliseconds a step** (network, loss, gradient and update): medians over 200 rounds "
        "in which the ways of one library take a step in turn, cross-entropy among them; the ratio "
        "is to it.\n\n" + table(["", "way", "ms", "over cross-entropy"], rows)
    )


def _behind(recording: Recording) -> str:
    """Tables on which a way of ours is behind by more than two standard errors."""
    found = list(_losses(recording))
    if not found:
        return "\nOn no table is ours behind by more than two standard errors.\n"
    return (
        "\n**Where ours is behind** by more than two standard errors (over the seeds of a table, "
        "paired):\n\n" + table(["", "ours", "other", "table", "difference"], found)
    )


def _losses(recording: Recording) -> Iterator[list[str]]:
    for name, key, where in _questions():
        part = _part(recording, **where)
        ways = part.distinct("way")
        for a in (way for way in ways if way.startswith(OURS)):
            for b in (way for way in ways if not way.startswith(OURS)):
                for each in part.distinct("table"):
                    x, y = (values(part.lines, key, table=each, way=way) for way in (a, b))
                    mean, se = float((x - y).mean()), error(x - y)
                    if mean < -2 * se:
                        d = f"{number(mean, signed=True)} ± {number(se)}"
                        yield [name, a, b, each, d]


def _questions() -> Iterator[tuple[str, str, Where]]:
    for key in ("mean f1", "tuned f1"):
        yield F1[key], key, {"part": "f1"}
    for aim in RANKED:
        name = RANKED[aim].partition(" (")[0].partition(", ")[0]
        yield name, "figure", {"part": "ranked", "aim": aim}
    for aim, (goal, _) in CONSTRAINED.items():
        for at, words in AT.items():
            where = {"part": "constrained", "aim": aim, "at": at}
            yield f"`{goal}`, {words}", "merit", where
