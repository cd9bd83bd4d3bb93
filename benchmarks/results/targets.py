"""What is held to a target: speed, safety, bias. One line a benchmark, misses by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.results.figures import number, table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how

WHAT = {
    "tune": "`tune` of a million rows: time over `numpy.argsort`, memory over the scores, answers",
    "imports": "`import setpoint`: time against the packages it needs",
    "steps": "a training step by `GoalLoss` against cross-entropy",
    "pairs": "losses over all pairs: speed-up over the pairs written out, exact gradients, LibAUC",
    "bias": "the angle between the mean gradient of small batches and that of all rows",
    "hostile": "training runs under hostile conditions that end finite",
    "certify": "`certify` of a million rows and a monitor's update",
    "f1bounds": "lower bounds of F1: mean and coverage",
    "power": "choosing with proof: returned, broken, recall",
    "offsets": "class offsets on fresh rows",
    "selective": "selection scores at every scale of the logits",
    "solver": "`sp.solve` beside PyGRANSO: objective, violation, 3 or 8 times faster",
    "robustness-max": "misclassified within ε: the union of the others less 1 %, 20 times cheaper "
    "than PyGRANSO",
    "robustness-min": "radii: the others' medians, 99 % found, 20 times cheaper than PyGRANSO",
    "robustness-perceptual": "no violation, more found than a penalty and a projected attack",
    "restoration-table": "one of ours above every baseline by more than two s.e. on inpainting, "
    "nonlinear and blind tasks, selected within 0.3 dB of the oracle",
    "selective_proof": "a promised selective risk on real tables, and alarms after a change",
}


def _name(line: Mapping[str, Any]) -> str:
    words = [str(v) for k, v in line.items() if isinstance(v, str) and k != "verdict"]
    return " ".join(words) or "a line"


def targets(recordings: list[Recording]) -> Section:
    """Held and missed targets of every recorded benchmark."""
    rows = []
    for r in recordings:
        judged = [x for x in r.lines if x.get("verdict") in ("ok", "MISSED")]
        lost = [_name(x) for x in judged if x["verdict"] == "MISSED"]
        held = f"{len(judged) - len(lost)} of {len(judged)}" if judged else "none stated"
        rows.append([f"`{r.about['command']}`", WHAT.get(r.name, ""), held, "; ".join(lost) or "–"])
    text = "Ratios are measured side by side, interleaved, on one thread.\n\n"
    return Section(
        "Targets", text + table(["command", "what is measured", "targets held", "missed"], rows)
    )


def pairs(recording: Recording) -> Section:
    """Losses over pairs beside LibAUC's."""
    lines = [x for x in recording.lines if "speed_up" in x]
    rows = [
        [
            x["loss"],
            f"{1e3 * x['seconds_median']:.2f}",
            f"{x['speed_up']:.0f} ×",
            f"{x['rival_over_ours']:.0f} × ({x['rival']})" if x.get("rival") else "not installed",
        ]
        for x in lines
    ]
    text = how(recording, "Forward and backward of 8,192 rows, 10 % positive.")
    head = ["loss", "ms", "faster than written out", "faster than LibAUC"]
    return Section("Losses over all pairs", text + "\n" + table(head, rows))


def hostile(recording: Recording) -> Section:
    """Runs that end finite."""
    rows = [[x["whose"], x["loss"], f"{x['finite']} of {x['runs']}"] for x in recording.lines]
    text = how(
        recording,
        "Rare positives, one class only, constant features, logits of 1e4, bfloat16, batches of "
        "one row; five runs each.",
    )
    return Section(
        "Training under hostile conditions", text + "\n" + table(["", "loss", "finite"], rows)
    )


def bias(recording: Recording) -> Section:
    """Angles of batch gradients."""
    rows = [
        [x["batch"], x["batches"], number(x["running_totals"], 2), number(x["naive"], 2)]
        for x in recording.lines
    ]
    text = how(
        recording,
        "Degrees between the mean gradient of the batches of one epoch and that of all 40,000 "
        "rows, soft F1 at 2.3 % positives; the greatest of three epochs.",
    )
    head = ["rows a batch", "batches", "running totals", "each batch's own F1"]
    return Section("Bias of small batches", text + "\n" + table(head, rows))
