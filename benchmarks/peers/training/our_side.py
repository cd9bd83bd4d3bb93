"""Our side: cross-entropy and ``GoalLoss`` with its defaults, in the same loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.peers.networks import shuffled
from benchmarks.peers.training import early_stopping, loop
from benchmarks.peers.training.batch_rates import CAP, FLOOR
from benchmarks.peers.training.ranges import MAX_FPR, MIN_TPR, ONE_WAY_FPR
from setpoint.losses import GoalLoss

PLAIN = "cross-entropy"
RATES = (1e-3, 3e-3)  #: of Adam
CONSTRAINED = {
    "floor": f"maximize recall subject to precision >= {FLOOR}",
    "cap": f"minimize fnr subject to fpr <= {CAP}",
}
METHODS = ("costs", "soft-set")  #: of a goal with a constraint
#: as published, for fixed thresholds; the options are those of "Bridging the Gap", trained anew
SOFT = {"thresholds": "grid", "cross_entropy": 0.1, "guard": False}
RANKED = {
    "ap": "maximize average_precision",
    "one-way": f"maximize auroc(max_fpr={ONE_WAY_FPR})",
    "two-way": f"maximize auroc(max_fpr={MAX_FPR}, min_tpr={MIN_TPR})",
}


def plain(rate: float) -> loop.Setup:
    """Cross-entropy."""
    return lambda model, y: loop.cross_entropy(model, y, rate)


def pairwise(text: str, rate: float) -> loop.Setup:
    """A ranking goal at its defaults."""

    def setup(model, y):
        del y
        loss = GoalLoss(text, "pairwise")
        return loop.by_adam(lambda z, y, index: loss(z, y), model, rate)

    return setup


def guarded(aim: str, method: str, rate: float) -> loop.Setup:
    """A goal with a constraint, at its defaults; its own threshold."""

    def setup(model, y):
        del y
        loss = GoalLoss(CONSTRAINED[aim], method)
        return loop.by_adam(
            lambda z, y, index: loss(z, y), model, rate, threshold=lambda: loss.threshold
        )

    return setup


def ways() -> loop.Ways:
    """Everything that runs in the plain loop."""
    made: dict[tuple[str, str], Callable[[float], loop.Setup]] = {("", PLAIN): plain}
    for aim, text in RANKED.items():
        made[aim, "GoalLoss, pairwise"] = partial(pairwise, text)
    for aim in CONSTRAINED:
        for method in METHODS:
            made[aim, f"GoalLoss, {method}"] = partial(guarded, aim, method)
    return {
        name: {f"{rate:g}": (make(rate), shuffled) for rate in RATES} for name, make in made.items()
    }


def soft_f1():
    """Soft-set over nine thresholds; on other rows the value of those rows alone."""
    loss = GoalLoss("maximize f1", "soft-set", **SOFT)
    value = GoalLoss("maximize f1", "soft-set", memory=0, warmup=0, **SOFT)
    return loss, value


def run(folder: Path) -> dict[str, float]:
    """The plain loop."""
    return loop.everybody(folder, ways())


def run_f1(folder: Path) -> dict[str, float]:
    """The loop of torch-btg's authors."""
    losses = {"GoalLoss, soft-set": soft_f1, PLAIN: early_stopping.cross_entropy}
    return early_stopping.everybody(folder, losses)
