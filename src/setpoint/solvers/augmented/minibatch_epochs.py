"""Epochs of the augmented Lagrangian: gradient steps on batches, prices that follow.

At step t, with the batch's f_t, v_t = (c_t, e_t) and their gradients,

    v̂ ← v̂ + v_t(x) − v_t(x of the last step)      an estimate of v from earlier batches, moved to x
    w ← [λ + ρ v̂]₊                                what each costs; an equation's has a sign
    x ← Π(x − η_t · optimiser(∇f_t + Σⱼ wⱼ ∇v_tⱼ))
    v̂ ← v̂ + a_t (v_t − v̂),     λ ← [λ + (ρ / T) (η_t / η₀) v_t]₊      T steps renew λ once

The gradient of ½ρ ‖[v_t]₊‖² of one batch is biased, since the square of a mean is not the mean of
squares; w ∇v_t, with a w that hardly depends on the batch, is not. Without the move v̂ would lag
behind x, and the pair would swing the more the greater ρ is. λ integrates v_t, so that its noise
averages out. All rates fall together: λ must stay the slower one. Candidates are a mean of iterates
(Polyak) and the last, judged on all batches.

References
----------
Nocedal, Wright, Numerical Optimization, 2006, chapter 17; Cutkosky, Orabona, Momentum-based
variance reduction in non-convex SGD, 2019 (the move of v̂); Polyak, Juditsky, Acceleration of
stochastic approximation by averaging, 1992.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import lsq_linear
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.solvers.augmented.mean_functions import (
    LostError,
    MeanFunctions,
    MeanReading,
    Meter,
    at_bounds,
    checked,
    flat,
    gradients,
)
from setpoint.solvers.augmented.penalty_weight import NOISY_CHECKS, NOISY_GROWTH, natural
from setpoint.solvers.box_projection import project, started
from setpoint.solvers.kkt import DIRECT, ENTRIES

if TYPE_CHECKING:
    from setpoint.solvers.augmented.augmented_lagrangian import AugmentedLagrangian


# The shortest way back to the constraints, in the mean over all batches.
#
#     minimise ½ ‖d‖²  subject to  c + J d <= 0,  e + J d = 0;        d = −Jᵀ y,
#     y = argmin ½ ‖Jᵀ y‖² − vᵀ y   over  y >= 0 (an equation's has either sign)
#
# Steps of a falling rate end near the constraints, within noise. A step or two of this, over the
# constraints that are broken or nearly so, end on them; f changes by about λᵀ v. A coordinate
# that a bound would stop is left out.


RIDGE = 1e-12  #: relative, for constraints that depend on each other


def restored(
    whole: MeanFunctions, parts: Sequence[Tensor], at: MeanReading, slack: float
) -> list[Tensor] | None:
    """The parts after a step; None where it is not to be had.

    Parameters
    ----------
    whole : MeanFunctions
    parts : sequence of torch.Tensor
    at : MeanReading
        At the parts.
    slack : float
        Within which a constraint that is kept takes part.
    """
    rows = (at.equal | (at.v >= -slack)).nonzero().reshape(-1).tolist()
    size = sum(part.numel() for part in parts)
    if not rows or len(rows) > min(DIRECT, ENTRIES // max(size, 1)):
        return None
    slopes = whole.slopes(parts, torch.zeros_like(at.v), None, rows)[1:]
    v, equal = at.v[rows].cpu(), at.equal[rows].cpu()
    resting = at_bounds(parts, whole.box, 0.0).cpu()
    step = torch.zeros(size, dtype=torch.float64)
    for _ in range(2):  # the second time without what a bound stops
        step = _shortest(slopes, v, equal)
        stopped = (resting.low & (step < 0)) | (resting.high & (step > 0))
        if not bool(stopped.any()):
            break
        slopes = slopes * ~stopped
    moved = (flat(parts).double().cpu() + step).split([part.numel() for part in parts])
    back = [x.reshape(part.shape).to(part) for x, part in zip(moved, parts, strict=True)]
    project(back, whole.box)
    return back


def _shortest(slopes: Tensor, v: Tensor, equal: Tensor) -> Tensor:
    """D (n,) for gradients (k, n) and values (k,)."""
    gram = (slopes @ slopes.T).numpy()
    ridge = RIDGE * max(float(np.trace(gram)), np.finfo(float).tiny)
    root = np.linalg.cholesky(gram + ridge * np.eye(len(gram)))
    low = np.where(equal.numpy(), -np.inf, 0.0)
    paid = lsq_linear(root.T, np.linalg.solve(root, v.numpy()), (low, np.inf), method="bvls").x
    return -torch.as_tensor(paid) @ slopes


SEEN = 0.1  #: a, the share of v̂ that a batch renews at first
LEAST = 1e-3  #: a, at the least
RETURNS = 3  #: steps of the shortest way back, in the end
EXACT = 1e-9  #: a violation that calls for no more of them
RENEWALS = 50  #: of λ in a run, while the rate is at its full
CHECKS = 32  #: steps from one look at whether values are finite to the next, off the host


class Feed:
    """Batches, epoch by epoch, and all of them at once to judge by.

    Parameters
    ----------
    batches : iterable or callable
        Gone through once an epoch; a list or tuple in an order drawn anew each time. A callable
        gives a new batch at each call, ``steps`` of them an epoch, and as many more are drawn once
        to judge by; so it is with an iterable of unknown length where ``steps`` are given.
    steps : int or None
        Batches of an epoch; None takes all there are (100 of a callable).
    seed : int
    """

    def __init__(self, batches: Any, steps: int | None, seed: int) -> None:
        self.batches = batches
        self.steps = steps
        self.seed = seed
        if callable(batches):
            self.steps = steps or 100
            self.whole: Iterable[Any] = [batches() for _ in range(self.steps)]
        elif not isinstance(batches, Iterable):
            raise KindError(
                f"batches={type(batches).__name__}: an iterable of batches (a list, a DataLoader) "
                "or a callable that gives the next one"
            )
        elif isinstance(batches, Iterator):
            raise DataError(
                "batches can be gone through only once; give a list, a DataLoader, or a callable "
                "that gives the next batch"
            )
        else:
            self.whole = (
                batches if steps is None or _sized(batches) else list(islice(batches, steps))
            )

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of an epoch."""
        if callable(self.batches):
            return (self.batches() for _ in range(self.steps or 0))
        if isinstance(self.batches, list | tuple):
            rng = torch.Generator().manual_seed(self.seed + number)
            order = torch.randperm(len(self.batches), generator=rng).tolist()
            return islice((self.batches[k] for k in order), self.steps)
        return islice(iter(self.batches), self.steps)


def _sized(batches: Any) -> bool:
    """Whether it has an end that is known of; what streams without one is judged by a sample."""
    try:
        return len(batches) >= 0
    except TypeError:
        return False


class Epochs:
    """What is under way; it changes, and :meth:`state` is all of it."""

    kind, stuck = "epochs", False

    def __init__(
        self,
        solver: AugmentedLagrangian,
        whole: MeanFunctions,
        feed: Feed,
        meter: Meter,
        parts: Sequence[Tensor],
        feasibility: float,
        tolerance: float,
    ) -> None:
        self.solver, self.whole, self.feed, self.meter = solver, whole, feed, meter
        self.feasibility, self.tolerance = feasibility, tolerance
        self.leaves = [part.detach().clone().requires_grad_() for part in parts]
        project(self.leaves, whole.box)
        self.optimiser = started(solver.primal, self.leaves, ())
        self.number, self.step, self.ended = 0, 0, False
        self.asked = 1
        self.best: dict[str, Any] = {}
        at = whole.read(self.leaves, "the start")
        self.paid = torch.zeros_like(at.v).to(self.leaves[0])  # λ
        self.offer(at, self.leaves)
        self.steps = min(at.count, feed.steps or at.count)  # of an epoch
        self.equal, self.before = at.equal, at.worst
        self.level = at.v.to(self.leaves[0])  # v̂
        self.mean = [leaf.detach().clone() for leaf in self.leaves]
        self.last = [leaf.detach().clone() for leaf in self.leaves]  # where v̂ was renewed
        reach = solver.primal.learning_rate * self.total / 2
        self.rho = solver.rho * natural(whole, self.leaves, self.paid, reach)
        self.grown = 1.0
        none = self.paid[:0]
        self.steepest = 1 + float(whole.slopes(self.leaves, self.paid, none)[0].norm())
        self.alone = at.count == 1  # the one batch is the whole: nothing to estimate

    @property
    def total(self) -> int:
        """Steps of the whole run."""
        return self.steps * self.solver.epochs

    def advance(self) -> None:
        """Go through the batches once, then judge."""
        bad = torch.zeros((), dtype=torch.long, device=self.leaves[0].device)
        count = 0
        for count, batch in enumerate(self.feed.epoch(self.number), 1):
            fine = self._step(batch, f"epoch {self.number + 1}, batch {count}")
            bad = torch.where((bad == 0) & ~fine, count, bad)
            if bad.is_cpu or count % CHECKS == 0:
                self._fine(bad)
        self._fine(bad)
        if not count:
            raise DataError(
                f"batches gave none in epoch {self.number + 1}; it must be possible to go through "
                "them again and again"
            )
        self.number += 1
        if self.number % self.solver.every == 0 or self.number == self.solver.epochs:
            self.judge()

    def judge(self) -> None:
        """The mean of the iterates and the last as candidates; ρ grows where they break more."""
        when = f"the end of epoch {self.number}"
        at = self.whole.read(self.mean, when)
        self.offer(at, self.mean)
        self.offer(self.whole.read(self.leaves, when), self.leaves)
        if self.step * NOISY_CHECKS < self.asked * self.total:
            return  # not yet time to ask whether they come nearer
        self.asked += 1
        allowed = max(self.feasibility, NOISY_GROWTH.share * self.before)
        if at.worst > allowed and self.grown < NOISY_GROWTH.cap:
            growth = NOISY_GROWTH.step(self.solver.growth)
            self.rho = self.rho * growth
            self.grown *= growth
        self.before = at.worst

    def finish(self) -> None:
        """From the better of the last two candidates by the shortest way to the constraints."""
        when = "the end"
        read = [(self.whole.read(x, when), x) for x in (self.mean, self.leaves)]
        paid = self.paid.double().abs()
        at, parts = min(read, key=lambda p: p[0].f + float((paid * p[0].broken).sum()))
        for _ in range(RETURNS):
            moved = restored(self.whole, parts, at, 10 * self.feasibility)
            if moved is None:
                return
            try:
                parts, at = moved, self.whole.read(moved, when)
            except LostError:  # the way to the constraints leads out of where they have values
                return
            self.offer(at, parts)
            if at.worst <= EXACT:
                return

    def offer(self, at: MeanReading, parts: Sequence[Tensor]) -> None:
        """A candidate for the best; of equals the first stays."""
        rank = (-at.worst if at.worst > self.feasibility else 0.0, -at.f)
        if not self.best or rank > self.best["rank"]:
            x = [part.detach().clone() for part in parts]
            self.best = {"x": x, "f": at.f, "v": at.v, "worst": at.worst, "rank": rank}
            self.best["paid"] = self.paid.double()

    def count(self) -> str:
        """How far it has come."""
        return f"{self.number} of {self.solver.epochs} epochs"

    def ending(self) -> str:
        """How it ended by itself."""
        return f"done with {self.number} epochs"

    def _step(self, batch: Any, where: str) -> Tensor:
        """A step; whether its values were finite, which is not waited for."""
        solver = self.solver
        share = solver.primal.rate(self.step, self.total) / solver.primal.learning_rate
        f, c, e = self.meter(self.leaves, batch)
        v = torch.cat([c, e])
        if len(v) != len(self.level):
            raise DataError(
                f"{where} gave {len(v)} constraints, the first batch gave {len(self.level)}; "
                "every batch needs as many"
            )
        seen = v.detach()
        level = seen if self.alone else self._moved(batch, seen)
        charged = self._sided(self.paid + self.rho * level)
        slopes = gradients(f + (charged * v).sum(), self.leaves, keep=False)
        self.meter.gradients += 1
        fine = torch.isfinite(f.detach() + seen.sum() + sum(g.sum() for g in slopes))
        if fine.is_cpu and not bool(fine):
            checked(f.detach(), seen, where)
            raise LostError(f"the gradient is not finite at {where}")
        for leaf, slope, last in zip(self.leaves, slopes, self.last, strict=True):
            leaf.grad = slope
            last.copy_(leaf.detach())
        solver.primal.step(self.optimiser, self.step, self.total)
        project(self.leaves, self.whole.box)
        renewed = max(SEEN * share, min(LEAST, SEEN))
        self.level = level + renewed * (seen - level)
        period = max(self.total / RENEWALS, 1.0)
        self.paid = self._sided(self.paid + self.rho / period * share * seen)
        window = max(self.steps, self.total / 20)
        weight = max(1 / (self.step + 1), 1 / window)
        with torch.no_grad():
            for mean, leaf in zip(self.mean, self.leaves, strict=True):
                mean.lerp_(leaf, weight)
        self.step += 1
        return fine

    def _moved(self, batch: Any, seen: Tensor) -> Tensor:
        """v̂, moved along with x by what the batch says of the two points."""
        if not self.solver.corrected or not len(seen):
            return self.level
        with torch.no_grad():
            _, c, e = self.meter(self.last, batch)
        return self.level + (seen - torch.cat([c, e]))

    def _sided(self, paid: Tensor) -> Tensor:
        return torch.where(self.equal, paid, paid.clamp(min=0))

    def _fine(self, bad: Tensor) -> None:
        if int(bad):
            raise LostError(
                f"the objective, a constraint or a gradient is not finite at epoch "
                f"{self.number + 1}, batch {int(bad)}"
            )

    def state(self) -> dict[str, Any]:
        """To go on from."""
        return {
            "kind": self.kind,
            "number": self.number,
            "step": self.step,
            "x": [leaf.detach().clone() for leaf in self.leaves],
            "mean": [part.clone() for part in self.mean],
            "last": [part.clone() for part in self.last],
            "paid": self.paid.clone(),
            "level": self.level.clone(),
            "rho": self.rho.clone(),
            "grown": self.grown,
            "asked": self.asked,
            "before": self.before,
            "best": dict(self.best),
            "optimiser": deepcopy(self.optimiser.state_dict()),
            "evaluations": self.meter.evaluations,
            "gradients": self.meter.gradients,
        }

    def take_up(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for leaf, part in zip(self.leaves, state["x"], strict=True):
                leaf.copy_(part)
        for name in ("mean", "last"):
            pairs = zip(state[name], self.leaves, strict=True)
            setattr(self, name, [part.to(x, copy=True) for part, x in pairs])
        self.paid, self.level = (state[k].to(self.level, copy=True) for k in ("paid", "level"))
        self.number, self.step = int(state["number"]), int(state["step"])
        self.rho = state["rho"].to(self.level, copy=True)
        self.grown, self.asked = float(state["grown"]), int(state["asked"])
        self.before = float(state["before"])
        self.best = dict(state["best"])
        self.optimiser.load_state_dict(deepcopy(state["optimiser"]))  # it may be taken up again
        self.meter.evaluations += int(state["evaluations"])
        self.meter.gradients += int(state["gradients"])
