"""``ablation``: what each part of the exact penalty is there for; recall at precision .8.

A variant differs from the default in what its name says. None walks after the penalty, but for the
one that says so. Two kinds of figures. Where the penalty *ends*, at its own threshold: rows within
.02 of it in f (singular points), rows whose tie is broken, the precision that memberships promise
and that of decisions. And the model that is *kept*, the best iterate by hard decisions on training
rows: recall there and on test rows.

The variants that hold every multiplier at one finite value compare the ℓ₁ with the quadratic
penalty: the first can be exact at a finite value, the second leaves something broken at each.
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.exact.aims import AIMS, counted, rates
from benchmarks.exact.exactly import near, solved
from benchmarks.exact.rows import DRAWN, split
from benchmarks.exact.start import started
from benchmarks.exact.ways import by_net
from benchmarks.implicit.rows import Split
from benchmarks.implicit.running import Line
from benchmarks.implicit.training import scores
from setpoint.methods.exact.step_tie import exceeds, falls_short
from setpoint.training.checkpoint import load_state

NAME = "exact-ablation"
AIM = AIMS["FPOR"]
CELLS = (
    (DRAWN, "linear"),
    ("wilt", "linear"),
    ("mammography", "linear"),
    ("wilt", "perceptron"),
    ("phoneme", "perceptron"),
    ("mammography", "perceptron"),
)
BASE = "default: trim, inequalities, ℓ₁, threshold trained"
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    "no regulariser": {"regulariser": "none"},
    "relabel": {"regulariser": "relabel"},
    "equalities": {"relation": "equality"},
    "quadratic": {"power": 2},
    "threshold fixed": {"threshold": "fixed"},
    "with walks": {"walks": None},
    **{
        f"multipliers held at {mu:g}, {name}": {"power": p, "tie": mu, "price": mu, "growth": 1.0}
        for mu in (3.0, 30.0, 300.0)
        for p, name in ((1, "ℓ₁"), (2, "quadratic"))
    },
}
BROKEN = 1e-3  #: a tie of more is broken


def jobs(seeds: int, where: Path, *, quick: bool = False) -> list[tuple[Any, ...]]:
    """Every run."""
    return [
        (name, model, variant, seed, where)
        for name, model in (CELLS[:1] if quick else CELLS)
        for variant in VARIANTS
        for seed in range(seeds)
    ]


def work(name: str, model: str, variant: str, seed: int, where: Path) -> list[Line]:
    """One run."""
    rows, start = split(name, seed, where), started(name, model, seed, where)
    options = {k: v for k, v in {"walks": 0, **VARIANTS[variant]}.items() if v is not None}
    with tempfile.TemporaryDirectory() as place:
        held = Path(place) / "run.safetensors"
        found = solved(AIM, start, rows, seed, checkpoint=held, **options)
        *weights, s, tau = load_state(held)["solver"]["x"]
    kept = by_net(found.model, rows, found.threshold)
    about = {"table": name, "model": model, "variant": variant, "seed": seed}
    line: Line = {**about, **ended(start, rows, weights, s, float(tau))}
    for part in ("train", "test"):
        y = getattr(rows, part).y.numpy()
        at = rates(counted(y, kept.scores[part], found.threshold), int(y.sum()))
        line |= {f"{part} precision": at["precision"], f"{part} recall": at["recall"]}
    return [{**line, "origin": found.verdict.origin}]


def ended(start: nn.Module, rows: Split, weights: list[Tensor], s: Tensor, tau: float) -> Line:
    """The last iterate, at its own threshold."""
    net = copy.deepcopy(start)
    with torch.no_grad():
        for own, new in zip(net.parameters(), weights, strict=True):
            own.copy_(new)
    z, y = scores(net, rows.train.x), rows.train.y.numpy()
    f, held = torch.sigmoid(torch.from_numpy(z - tau)), s.double()
    broken = torch.where(rows.train.y > 0, exceeds(f, held, 0.5), falls_short(f, held, 0.5))
    at = rates(counted(y, z, tau), int(y.sum()))
    promised = float(held[y == 1].sum()), float(held[y == 0].sum())
    return {
        "near": near(z, tau),
        "ties": float((broken > BROKEN).double().mean()),
        "greatest tie": float(broken.max()),
        "promised precision": promised[0] / max(sum(promised), 1e-9),
        "promised recall": promised[0] / float(y.sum()),
        "own precision": at["precision"],
        "own recall": at["recall"],
    }


def select(lines: list[Line]) -> list[Line]:
    """In the order of the variants."""
    order = list(VARIANTS)
    found = [{k: v for k, v in x.items() if k != "job"} for x in lines]
    key = [(name, model) for name, model in CELLS]
    return sorted(
        found,
        key=lambda x: (key.index((x["table"], x["model"])), order.index(x["variant"]), x["seed"]),
    )
