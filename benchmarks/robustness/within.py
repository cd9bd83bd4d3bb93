"""``perceptual``: ours beside a penalty attack and a projected attack, with budgets counted.

A pass is one image through either network, forwards; gradients cost everybody as much again. The
others run with a budget above ours at its defaults, and with a large one beside ours with more
restarts and iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from benchmarks.robustness import models, perceptual
from benchmarks.robustness.judging import EPS, SLACK, Case, case, judged, succeeds
from setpoint.robustness.attacks.max_loss import max_loss

Line = dict[str, Any]
#: budget -> steps, searches, restarts of the penalty; steps, restarts of the projected attack
BUDGETS = {"above ours": ((20, 7, 1), (20, 1)), "large": ((60, 8, 2), (60, 3))}
MORE = {"above ours": {}, "large": {"restarts": 10, "iterations": 400}}


class Counted(nn.Module):
    """A network that counts the images that pass."""

    def __init__(self, net: nn.Module, tally: list[int]) -> None:
        super().__init__()
        self.net, self.tally = net, tally

    def forward(self, x: Tensor) -> Tensor:
        """As the network."""
        self.tally[0] += len(x)
        return self.net(x)


def run(console: Any) -> list[Line]:
    """Both tables, both budgets."""
    lines = []
    for table in models.TABLES:
        held, eps = case(table), EPS[table]["perceptual"]
        for budget in BUDGETS:
            new = [one(held, eps, way, budget) for way in ("ours", "penalty", "projected")]
            best = max(x["success"] for x in new[1:])
            good = new[0]["violated"] == 0 and new[0]["success"] > best
            new[0]["verdict"] = "ok" if good else "MISSED"
            lines += new
            for line in new:
                console.print(line, highlight=False, soft_wrap=True)
    return lines


def one(held: Case, eps: float, way: str, budget: str) -> Line:
    """One attack."""
    tally = [0]
    seen = Counted(models.Seen(models.model(f"{held.table}-seen")), tally)
    counted = Case(held.table, Counted(held.net, tally), held.x, held.y)

    def distance(x: Tensor, other: Tensor) -> Tensor:
        return ((seen(x) - seen(other)).square().sum(1) + 1e-24).sqrt()

    (steps, searches, restarts), (walks, again) = BUDGETS[budget]
    attacks: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: max_loss(counted.net, held.x, held.y, distance, eps, **MORE[budget]).x,
        "penalty": lambda: perceptual.penalty(counted, distance, eps, steps, searches, restarts).x,
        "projected": lambda: perceptual.projected(counted, distance, seen, eps, walks, again).x,
    }
    begun = time.process_time()
    points = attacks[way]()
    seconds = (time.process_time() - begun) / len(held.x)
    margins, far = judged(held, points, "perceptual")
    return {
        "table": held.table,
        "way": way,
        "budget": budget,
        "eps": eps,
        "images": len(held.x),
        "success": int(succeeds(margins, far, eps).sum()),
        "violated": int((far > eps * (1 + SLACK)).sum()),
        "passes": tally[0] / len(held.x),
        "seconds": seconds,
    }
