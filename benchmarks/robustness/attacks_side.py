"""torchattacks and foolbox on the images of a table, in their environment, on one thread.

``python -m benchmarks.robustness.attacks_side FORM TABLE NORM COUNT FILE.npz`` writes the points of
each attack and its CPU seconds. Everything is run twice: at its defaults, and with a budget that is
large beside ours.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.robustness import projected_l1
from benchmarks.robustness.judging import EPS, Case, case, judged, radii, succeeds

import foolbox  # isort: skip
import torchattacks  # isort: skip

STEPS = {"default": 10, "large": 100}
RESTARTS = {"default": 1, "large": 5}  #: those that go to each of nine classes have one alone
SIZES = (0.03, 0.1, 0.3, 1.0)  #: FMN's longest step
Attack = Callable[[], Tensor]


class Double(nn.Module):
    """The network in float64 for points in float32, which is what FAB can work in."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        """Logits, rounded at the end alone."""
        return self.net(x.double()).float()


def max_loss(held: Case, norm: str) -> dict[str, Attack]:
    """Attacks at a given eps."""
    eps, big = EPS[held.table][norm], norm.replace("l", "L")
    found: dict[str, Attack] = {}
    for size, steps in STEPS.items():
        once = {"norm": big, "eps": eps, "steps": steps, "n_restarts": 1, "n_classes": 10}
        more = {**once, "n_restarts": RESTARTS[size]}
        if norm == "l1":
            found[f"FAB {size}"] = lambda m=more: fab_l1(held, m, targeted=False)
            found[f"FAB-T {size}"] = lambda m=once: fab_l1(held, m, targeted=True)
            found[f"projected {size}"] = lambda s=steps, m=more: projected_l1.attack(
                held, eps, s, m["n_restarts"]
            )
            continue
        plain = {k: v for k, v in more.items() if k != "n_classes"}
        makers = {
            "APGD-CE": lambda m=plain: torchattacks.APGD(held.net, loss="ce", **m),
            "APGD-T": lambda m=once: torchattacks.APGDT(held.net, **m),
            "FAB": lambda m=more: torchattacks.FAB(Double(held.net), **m),
            "FAB-T": lambda m=once: torchattacks.FAB(Double(held.net), multi_targeted=True, **m),
        }
        for name, make in makers.items():
            x = held.x.float() if name.startswith("FAB") else held.x
            found[f"{name} {size}"] = lambda make=make, x=x: make()(x, held.y)
    return found


def fab_l1(held: Case, more: dict, *, targeted: bool) -> Tensor:
    """FAB's runs one by one: the call that joins them has no branch for ℓ₁ and stops."""
    fab = torchattacks.FAB(Double(held.net), multi_targeted=targeted, **more)
    best, left = held.x.clone(), torch.arange(len(held.x))
    run = fab.attack_single_run_targeted if targeted else fab.attack_single_run
    torch.manual_seed(0)
    for turn in range(more["n_restarts"]):
        for k in range(2, 11) if targeted else (None,):
            if not len(left):
                return best
            fab.target_class, some = k, Case(held.table, held.net, held.x[left], held.y[left])
            with torch.no_grad():
                points = run(some.x.float(), some.y.clone(), use_rand_start=turn > 0)
            new = torch.from_numpy(succeeds(*judged(some, points, "l1"), more["eps"]))
            best[left[new]], left = points[new].to(best), left[~new]
    return best


def min_radius(held: Case, norm: str) -> dict[str, Attack]:
    """Attacks that look for the nearest point."""
    model = foolbox.PyTorchModel(held.net, bounds=(0, 1), device="cpu")
    label = foolbox.criteria.Misclassification(held.y)
    kinds = {
        "l2": {"DDN": foolbox.attacks.DDNAttack, "FMN": foolbox.attacks.L2FMNAttack},
        "linf": {"FMN": foolbox.attacks.LInfFMNAttack},
        "l1": {"FMN": foolbox.attacks.L1FMNAttack},
    }[norm]

    def run(made: Any) -> Tensor:
        return made(model, held.x, label, epsilons=None)[1]

    found: dict[str, Attack] = {}
    for name, kind in kinds.items():
        found[f"{name} default"] = lambda k=kind: run(k())
        if name == "DDN":
            found["DDN large"] = lambda k=kind: run(k(steps=1000))
        else:  # its default step is too long for these images: the best of four, image by image
            found["FMN large"] = lambda k=kind: nearest(
                held, norm, [run(k(steps=300, max_stepsize=s)) for s in SIZES]
            )
    return found


def nearest(held: Case, norm: str, tries: list[Tensor]) -> Tensor:
    """The nearest success of several, image by image."""
    far = np.stack([radii(*judged(held, points, norm)) for points in tries])
    return torch.stack(tries)[torch.from_numpy(far.argmin(0)), torch.arange(len(held.x))]


def main() -> None:
    """Run all, write all."""
    form, table, norm, count, file = sys.argv[1:]
    torch.set_num_threads(1)
    held, out = case(table, int(count)), {}
    for name, attack in {"max": max_loss, "min": min_radius}[form](held, norm).items():
        torch.manual_seed(0)
        begun = time.process_time()
        points = attack()
        out[f"{name}|seconds"] = time.process_time() - begun
        out[name] = points.detach().numpy()
        margins, far = judged(held, points, norm)
        good = succeeds(margins, far, EPS[table][norm]) if form == "max" else margins >= 0
        print(table, norm, name, int(good.sum()), round(out[f"{name}|seconds"], 2), flush=True)
    np.savez(file, **out)


if __name__ == "__main__":
    main()
