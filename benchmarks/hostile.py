"""Training under hostile conditions: runs that end finite, of all our methods and of LibAUC's AUCM.

The same network, data, seeds and conditions for everybody (``peers/hostile.py``): rare positives,
one class only, constant features, logits of 1e4, bfloat16, batches of one row. A run is lost when
it raises, or when the loss or a parameter is not finite.

Target: none of ours is lost. LibAUC runs in its own environment and is reported.
"""

from __future__ import annotations

import logging

import torch
from rich.console import Console

from benchmarks.harness import Check, new_table, one_thread, verdict
from benchmarks.harness import verdict_cell as cell
from benchmarks.peers import NOT_INSTALLED, hostile, libauc
from setpoint.losses import GoalLoss
from setpoint.methods import Costs, CrossEntropy, Pairwise, SoftSet

HELD = "maximize recall subject to precision >= 0.9"
OURS = {
    "soft-set f1": ("maximize f1", SoftSet()),
    "soft-set f1, grid": ("maximize f1", SoftSet(thresholds="grid")),
    "soft-set mcc": ("maximize mcc", SoftSet()),
    "costs f1": ("maximize f1", Costs()),
    "costs constrained": (HELD, Costs()),
    "cross-entropy, balanced": ("maximize f1", CrossEntropy("balanced")),
    "pairwise auroc": ("maximize auroc", Pairwise()),
    "pairwise average precision": ("maximize average_precision", Pairwise()),
}
RIVAL = "AUCM"
FEW = 64  # rows of the peer's speed measurement, which is not used here


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Train under every condition and count; one record for each loss."""
    del repeats, rows
    one_thread()
    logger = logging.getLogger("setpoint")
    level = logger.level
    logger.setLevel(logging.ERROR)  # that batches hold no positives is the point
    try:
        sides = {"ours": hostile.outcomes({k: _setup(*v) for k, v in OURS.items()})}
    finally:
        logger.setLevel(level)
    peer = libauc(FEW, 1)
    if peer is None:
        console.print(NOT_INSTALLED)
    else:
        sides["LibAUC"] = {k: v for k, v in peer["training"].items() if RIVAL in k}
    return _report(console, sides)


def _setup(goal: str, method: object) -> hostile.Setup:
    def setup(model: torch.nn.Module):
        loss = GoalLoss(goal, method, guard=False)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        remembered = [loss.totals, loss.prices, loss.multipliers]
        return lambda logits, target, index: loss(logits, target), optimizer, remembered

    return setup


def _report(console: Console, sides: dict[str, dict]) -> list[dict]:
    table = new_table(
        f"Training under hostile conditions: runs of {hostile.SEEDS} that end finite",
        "conditions: " + "; ".join(f"{i} {x}" for i, x in enumerate(hostile.CONDITIONS)),
        ("whose", "loss"),
        (*(str(i) for i in range(len(hostile.CONDITIONS))), "all", ""),
    )
    records, ends = [], set()
    for whose, found in sides.items():
        for name, conditions in found.items():
            finite = [counts.get("finite", 0) for counts in conditions.values()]
            runs = hostile.SEEDS * len(finite)
            lost = runs - sum(finite)
            word = verdict([Check(lost, 0.0 if whose == "ours" else None)])
            table.add_row(whose, name, *map(str, finite), f"{sum(finite)}/{runs}", cell(word))
            records.append(
                {
                    "whose": whose,
                    "loss": name,
                    "runs": runs,
                    "finite": sum(finite),
                    "ends": conditions,
                    "verdict": word,
                }
            )
            ends |= {f"{name}: {end}" for x in conditions.values() for end in x if end != "finite"}
    console.print(table)
    for end in sorted(ends):
        console.print(f"  {end}", highlight=False)
    return records
