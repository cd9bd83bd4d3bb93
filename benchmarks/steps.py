"""What a goal costs in training: one step with our losses against one with torch's own.

Step
    zero_grad, forward of a small network (20 → 64 → 32 → 1, ReLU), loss, backward and Adam on a
    batch of 1024 rows, a tenth of them positive. The network is small on purpose: a larger one
    hides any loss. Target: 1.35 × the step with ``binary_cross_entropy_with_logits`` for a loss
    with its defaults and for soft-set. The methods as published, others, several thresholds, and
    ten classes beside ``cross_entropy``, are reported.

Loss
    Forward and backward of the loss alone on 8192 rows. Targets: 3 × the fused cross-entropy, 6 ×
    with nine thresholds.

One thread; the cases run in turn, call by call, after enough calls for the running totals to have
been looked at. A ratio is the median over the rounds, as everywhere; beside it stands that of the
10th percentiles, which a busy machine disturbs less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console

from benchmarks.harness import Check, Timing, interleave, new_table, one_thread, verdict
from benchmarks.harness import verdict_cell as cell
from setpoint import Task
from setpoint.losses import GoalLoss

BATCH, ROWS, FEATURES, CLASSES = 1024, 8192, 20, 10
WARM = 210  # calls of each case before it is timed
CALLS = 60  # calls of each case in each round
F1, BINARY, SEVERAL = "maximize f1", "torch's binary", "torch's multiclass"
BOUNDED = "maximize recall subject to precision >= 0.9"
PARTIAL = "maximize auroc(max_fpr=0.1)"
BARE = {"guard": False}

#: name -> goal, options, most that a step and the loss alone may cost
LOSSES: dict[str, tuple[str, dict[str, Any], float | None, float | None]] = {
    "default": (F1, {}, 1.35, None),
    "default, precision >= 0.9": (BOUNDED, {}, 1.35, None),
    "soft-set": (F1, {"method": "soft-set"}, 1.35, None),
    "soft-set, as published": (F1, {"method": "soft-set", **BARE}, None, 3.0),
    "soft-set, nine thresholds, as published": (
        F1,
        {"method": "soft-set", "thresholds": "grid", **BARE},
        None,
        6.0,
    ),
    "costs, as published": (F1, {"method": "costs", **BARE}, None, None),
    "cross-entropy, balanced": (
        F1,
        {"method": "cross-entropy", "class_weight": "balanced"},
        None,
        None,
    ),
    "costs, precision >= 0.9, as published": (BOUNDED, {"method": "costs", **BARE}, None, None),
    "implicit, ten thresholds": (PARTIAL, {"method": "implicit", "points": 10}, None, None),
    "implicit, precision >= 0.9": (BOUNDED, {"method": "implicit"}, None, None),
    "lagrangian, precision >= 0.9": (BOUNDED, {"method": "lagrangian"}, None, None),
}


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Measure whole steps, then the losses alone; the rows of both."""
    del rows
    one_thread()
    return _steps(console, repeats) + _alone(console, repeats)


def _steps(console: Console, repeats: int) -> list[dict]:
    cases = {BINARY: _step(F.binary_cross_entropy_with_logits)}
    limits: dict[str, tuple[str, float | None]] = {}
    for name, (goal, options, limit, _) in LOSSES.items():
        cases[name] = _step(GoalLoss(goal, **options))
        limits[name] = BINARY, limit
    macro = GoalLoss("maximize macro(f1)", task=Task.multiclass(range(CLASSES)))
    cases[SEVERAL] = _step(F.cross_entropy, CLASSES)
    cases[f"soft-set, macro, {CLASSES} classes"] = _step(macro, CLASSES)
    limits[f"soft-set, macro, {CLASSES} classes"] = SEVERAL, None
    title = f"A training step, batch of {BATCH}, µs"
    return _report(console, "step", title, cases, limits, repeats)


def _alone(console: Console, repeats: int) -> list[dict]:
    torch.manual_seed(0)
    logits = torch.randn(ROWS, requires_grad=True)
    target = (torch.rand(ROWS) < 0.1).float()

    def call(loss: Callable[..., torch.Tensor]) -> Callable[[], None]:
        def forward_backward() -> None:
            logits.grad = None
            loss(logits, target).backward()

        return forward_backward

    cases = {BINARY: call(F.binary_cross_entropy_with_logits)}
    limits: dict[str, tuple[str, float | None]] = {}
    for name, (goal, options, _, limit) in LOSSES.items():
        cases[name] = call(GoalLoss(goal, **options))
        limits[name] = BINARY, limit
    title = f"The loss alone, forward and backward of {ROWS} rows, µs"
    return _report(console, "loss", title, cases, limits, repeats)


def _step(loss: Callable[..., torch.Tensor], classes: int | None = None) -> Callable[[], None]:
    """One training step of a network of its own on a fixed batch."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, classes or 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.randn(BATCH, FEATURES)
    if classes:
        target = torch.randint(classes, (BATCH,))
    else:
        target = (torch.rand(BATCH) < 0.1).float()

    def step() -> None:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss(outputs if classes else outputs.squeeze(1), target).backward()
        optimizer.step()

    return step


def _timed(call: Callable[[], None]) -> Callable[[], float]:
    """Time one call; garbage is not collected first, which would empty the caches."""

    def measure() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return measure


def _report(
    console: Console,
    part: str,
    title: str,
    cases: dict[str, Callable[[], None]],
    limits: dict[str, tuple[str, float | None]],
    repeats: int,
) -> list[dict]:
    for case in cases.values():
        for _ in range(WARM):
            case()
    times = interleave({k: _timed(case) for k, case in cases.items()}, CALLS * repeats)
    table = new_table(
        title,
        "ratio: to torch's loss in the same round, median; p10: of the 10th percentiles",
        ("loss",),
        ("median", "p10", "ratio", "ratio p10", "limit", ""),
    )
    records = []
    for name, timing in times.items():
        low = _low(timing)
        record: dict[str, Any] = {part: name, **timing.figures(), "seconds_p10": low}
        cells, word = ("–", "–", "–"), None
        if name in limits:
            base, limit = limits[name]
            check = Check(timing.ratio_to(times[base]), limit)
            word = verdict([check])
            ratio = low / _low(times[base])
            record |= {"base": base, "ratio": check.value, "ratio_p10": ratio, "limit": limit}
            cells = check.cell(), f"{ratio:.2f}", "–" if limit is None else f"{limit:.2f}"
        records.append({**record, "verdict": word})
        table.add_row(name, f"{1e6 * timing.median:.0f}", f"{1e6 * low:.0f}", *cells, cell(word))
    console.print(table)
    return records


def _low(timing: Timing) -> float:
    """The 10th percentile of the rounds."""
    return sorted(timing.seconds)[len(timing.seconds) // 10]
