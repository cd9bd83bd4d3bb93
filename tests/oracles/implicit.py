"""Thresholds that follow the scores: the value f(s, h(s)) and its gradient, found in two ways.

With memberships mᵢₜ = σ(κ (sᵢ − λₜ)) and totals TPₜ = Σ w y m, FPₜ = Σ w (1 − y) m, FNₜ = P − TPₜ,
TNₜ = N − FPₜ, the thresholds λ = h(s) solve equations between rates. A problem says its cost
(minimised), its equations and how to solve them for given scores. Then

- ``slope``: central differences of s ↦ f(s, h(s)), the equations solved anew at each s (numpy);
- ``gradient``: ∂f/∂s − ∂f/∂λ (∂g/∂λ)⁻¹ ∂g/∂s, every part by autograd (torch).

Neither looks at the library. A cost of a rate that is maximised is 1 − rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, softmax

FAR = 45.0
"""κ times the distance beyond the scores at which a membership is 0 or 1."""

STEP = 1e-3
"""The step of the differences; what is left of its error is of fourth order."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One batch: scores (n,) or (n, K), labels, weights, groups 0 and 1, sharpness κ."""

    scores: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    group: np.ndarray
    sharpness: float

    def take(self, order):
        """Some of the rows, or all of them in another order."""
        scores, y, weight, group = (
            x[order] for x in (self.scores, self.y, self.weight, self.group)
        )
        return Rows(scores, y, weight, group, self.sharpness)


def _like(x, scores):
    """An array as whatever the scores are."""
    return torch.as_tensor(x) if isinstance(scores, torch.Tensor) else x


# --- rates of memberships --------------------------------------------------------------------

RATES = {
    "fpr": lambda tp, fp, fn, tn: fp / (fp + tn),
    "fnr": lambda tp, fp, fn, tn: fn / (tp + fn),
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "positive_rate": lambda tp, fp, fn, tn: (tp + fp) / (tp + fp + fn + tn),
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
}


def rate(name, rows, member, among=None):
    """A rate of memberships (…, n), of one group's rows only where ``among`` says which."""
    weight = rows.weight if among is None else rows.weight * (rows.group == among)
    yes, no = _like(weight * rows.y, member), _like(weight * (1 - rows.y), member)
    tp, fp = (yes * member).sum(-1), (no * member).sum(-1)
    return RATES[name](tp, fp, yes.sum() - tp, no.sum() - fp)


def decided(rows, scores, cuts):
    """σ(κ (s − λ)), (T, n): one threshold for all rows, T times."""
    raised = rows.sharpness * (scores[None, :] - cuts[:, None])
    return torch.sigmoid(raised) if isinstance(raised, torch.Tensor) else expit(raised)


def decided_by_group(rows, scores, cuts):
    """σ(κ (s − λ of the row's group)), (n,)."""
    raised = rows.sharpness * (scores - cuts[_like(rows.group, scores)])
    return torch.sigmoid(raised) if isinstance(raised, torch.Tensor) else expit(raised)


def shares(rows, scores, shifts):
    """softmax(κ (s − λ)), (n, 3); the shift of class 0 is 0."""
    if isinstance(scores, torch.Tensor):
        whole = torch.cat([shifts.new_zeros(1), shifts])
        return torch.softmax(rows.sharpness * (scores - whole), 1)
    return softmax(rows.sharpness * (scores - np.r_[0.0, shifts]), axis=1)


def bracket(rows, scores):
    """Two thresholds beyond all scores."""
    reach = FAR / rows.sharpness
    return float(scores.min()) - reach, float(scores.max()) + reach


# --- problems --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """The mean of a rate over thresholds, each at the point where another rate has its target."""

    objective: str
    held: str
    targets: tuple[float, ...]
    maximize: bool = True

    def cost(self, rows, scores, cuts):
        """The mean rate, or 1 − it."""
        mean = rate(self.objective, rows, decided(rows, scores, cuts)).mean()
        return 1 - mean if self.maximize else mean

    def system(self, rows, scores, cuts):
        """How far each rate is from its target, (T,)."""
        found = rate(self.held, rows, decided(rows, scores, cuts))
        return found - _like(np.array(self.targets), scores)

    def solve(self, rows, scores, near=None):
        """Every threshold by bisection, at once."""
        low, high = (np.full(len(self.targets), x) for x in bracket(rows, scores))
        rising = self.held == "precision"
        for _ in range(75):
            middle = (low + high) / 2
            right = (self.system(rows, scores, middle) > 0) != rising
            low, high = np.where(right, middle, low), np.where(right, high, middle)
        return (low + high) / 2


@dataclass(frozen=True)
class Chosen:
    """One threshold, the best of those that keep every constraint (rate, group, sense, bound).

    A constraint is kept where sense · (bound − rate) ≥ 0.
    """

    objective: str
    constraints: tuple[tuple[str, int | None, int, float], ...]
    maximize: bool = True

    def cost(self, rows, scores, cuts):
        """The rate, or 1 − it."""
        found = rate(self.objective, rows, decided(rows, scores, cuts)).sum()
        return 1 - found if self.maximize else found

    def slacks(self, rows, scores, cuts):
        """One row for each constraint; negative where it is broken."""
        member = decided(rows, scores, cuts)
        return [s * (b - rate(name, rows, member, g)) for name, g, s, b in self.constraints]

    def system(self, rows, scores, cuts):
        """The constraint that binds, or the derivative of the cost in the threshold."""
        slacks = self.slacks(rows, scores, cuts)
        tight = [x for x in slacks if abs(float(x.detach()[0])) < 1e-9]
        assert len(tight) < 2, "two constraints bind at once"
        if tight:
            return tight[0]
        cost = self.cost(rows, scores, cuts)
        return torch.autograd.grad(cost, cuts, create_graph=True)[0]

    def solve(self, rows, scores, near=None):
        """The best point of a grid that keeps the constraints, then the edge or top beside it."""
        ends = bracket(rows, scores) if near is None else (near[0] - 0.1, near[0] + 0.1)
        grid = np.linspace(*ends, 2001 if near is None else 101)
        worst = np.min([np.ones_like(grid), *self.slacks(rows, scores, grid)], axis=0)
        member = decided(rows, scores, grid)
        with np.errstate(invalid="ignore"):  # no precision beyond all scores
            costs = rate(self.objective, rows, member) * (-1 if self.maximize else 1)
        best = int(np.nanargmin(np.where(worst >= 0, costs, np.inf)))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]

        def slack(cut):
            return min(float(x[0]) for x in self.slacks(rows, scores, np.array([cut])))

        def cost(cut):
            return float(self.cost(rows, scores, np.array([cut])))

        found = []
        if self.constraints:
            for one, other in ((grid[best], low), (grid[best], high)):
                if slack(other) < 0 <= slack(one):
                    found.append(brentq(slack, one, other, xtol=1e-15))
        top: Any = minimize_scalar(
            cost, bounds=(low, high), method="bounded", options={"xatol": 1e-11}
        )
        if not self.constraints or slack(top.x) >= 0:
            found.append(top.x)
        return np.array([min(found, key=cost)])


class Pair:
    """Two unknowns; one equation and the best cost along it, or two equations."""

    def equations(self, rows, scores, cuts):
        """What must be 0, one or two; the first always crosses 0 once in the second unknown."""
        raise NotImplementedError

    def cost(self, rows, scores, cuts):
        """What is least."""
        raise NotImplementedError

    def system(self, rows, scores, cuts):
        """Two equations, or one and ∂f/∂λ₀ ∂g/∂λ₁ − ∂f/∂λ₁ ∂g/∂λ₀ = 0."""
        held = self.equations(rows, scores, cuts)
        if len(held) == 2:
            return torch.stack(held)
        f = torch.autograd.grad(self.cost(rows, scores, cuts), cuts, create_graph=True)[0]
        g = torch.autograd.grad(held[0], cuts, create_graph=True)[0]
        return torch.stack([held[0], f[0] * g[1] - f[1] * g[0]])

    def solve(self, rows, scores, near=None):
        """Search over the first unknown; the second follows from the first equation."""
        ends = bracket(rows, scores) if scores.ndim == 1 else (-14.0, 14.0)
        wide = ends[0] - FAR, ends[1] + FAR

        def along(first):
            def off(second):
                return self.equations(rows, scores, np.array([first, second]))[0]

            return np.array([first, brentq(off, *wide, xtol=1e-15)])

        first = ends if near is None else (near[0] - 0.05, near[0] + 0.05)
        if len(self.equations(rows, scores, np.zeros(2))) == 2:
            x = brentq(lambda x: self.equations(rows, scores, along(x))[1], *first, xtol=1e-15)
            return along(x)

        def cost(x):
            return float(self.cost(rows, scores, along(x)))

        if near is None:
            low, high = np.quantile(scores, [0.1, 0.9]) if scores.ndim == 1 else (-4.0, 4.0)
            grid = np.linspace(low, high, 61)
            best = int(np.argmin([cost(x) for x in grid]))
            first = grid[max(best - 1, 0)], grid[min(best + 1, 60)]
        top: Any = minimize_scalar(cost, bounds=first, options={"xatol": 1e-10})
        return along(top.x)


@dataclass(frozen=True)
class Levelled(Pair):
    """A threshold for each of two groups, whose rates are to differ by ``apart`` (0: be the same).

    ``fixed``: a rate of all rows and its target, which settles both thresholds.
    """

    objective: str
    level: str
    fixed: tuple[str, float] | None = None
    apart: float = 0.0

    def equations(self, rows, scores, cuts):
        """Rate of group 0 − rate of group 1 − ``apart``; then the fixed rate."""
        member = decided_by_group(rows, scores, cuts)
        first, other = (rate(self.level, rows, member, g) for g in (0, 1))
        first = first - other - self.apart
        if self.fixed is None:
            return [first]
        return [first, rate(self.fixed[0], rows, member) - self.fixed[1]]

    def cost(self, rows, scores, cuts):
        """1 − the rate of all rows."""
        return 1 - rate(self.objective, rows, decided_by_group(rows, scores, cuts))


@dataclass(frozen=True)
class Apart(Pair):
    """A threshold for each of two groups, each with its own equation; best mean over all rows."""

    objective: str
    held: str
    targets: tuple[float, float]

    def equations(self, rows, scores, cuts):
        """Each group's rate − its target; group 1 first, since its threshold is the second."""
        member = decided_by_group(rows, scores, cuts)
        return [rate(self.held, rows, member, g) - self.targets[g] for g in (1, 0)]

    def cost(self, rows, scores, cuts):
        """1 − the rate of all rows."""
        return 1 - rate(self.objective, rows, decided_by_group(rows, scores, cuts))


@dataclass(frozen=True)
class Shifted(Pair):
    """Three classes, the highest of s − λ; the shares of some classes are fixed (2 before 1)."""

    coverage: tuple[tuple[int, float], ...]

    def equations(self, rows, scores, cuts):
        """Share of a class − its target."""
        weight = _like(rows.weight, scores)
        found = weight @ shares(rows, scores, cuts) / weight.sum()
        return [found[k] - target for k, target in self.coverage]

    def cost(self, rows, scores, cuts):
        """1 − accuracy."""
        weight, member = _like(rows.weight, scores), shares(rows, scores, cuts)
        return 1 - weight @ member[np.arange(len(rows.y)), rows.y] / weight.sum()


# --- the two ways ----------------------------------------------------------------------------


def value(problem, rows, near=None):
    """f(s, h(s))."""
    cuts = problem.solve(rows, rows.scores, near)
    return float(problem.cost(rows, rows.scores, cuts))


def slope(problem, rows, direction):
    """The derivative of f(s, h(s)) along a direction, by differences at two steps."""
    near = problem.solve(rows, rows.scores)

    def moved(step):
        return value(problem, replace(rows, scores=rows.scores + step * direction), near)

    one, two = ((moved(h) - moved(-h)) / (2 * h) for h in (STEP, 2 * STEP))
    return (4 * one - two) / 3


def _rows_of(column, x):
    """The Jacobian of a column in x, (m, size of x)."""
    found: list[Any] = [
        torch.autograd.grad(part, x, retain_graph=True, materialize_grads=True)[0].reshape(-1)
        for part in column
    ]
    return torch.stack(found)


def gradient(problem, rows):
    """(thresholds, f, ∂f/∂s − ∂f/∂λ (∂g/∂λ)⁻¹ ∂g/∂s), the thresholds polished by Newton steps."""
    scores = torch.tensor(rows.scores, requires_grad=True)
    cuts = torch.tensor(problem.solve(rows, rows.scores), requires_grad=True)
    for _ in range(3):
        system = problem.system(rows, scores, cuts)
        step = torch.linalg.solve(_rows_of(system, cuts), system)
        cuts = (cuts - step).detach().requires_grad_()
    system, cost = problem.system(rows, scores, cuts), problem.cost(rows, scores, cuts)
    assert float(system.detach().abs().max()) < 1e-13
    by_scores, by_cuts = torch.autograd.grad(cost, (scores, cuts), retain_graph=True)
    priced = torch.linalg.solve(_rows_of(system, cuts).T, by_cuts)
    total = by_scores.reshape(-1) - priced @ _rows_of(system, scores)
    return cuts.detach().numpy(), cost.item(), total.reshape(scores.shape).numpy()


# --- closed forms over shards ----------------------------------------------------------------


def shard_totals(rows, cut):
    """TP, TP + FP, Σ w y d, Σ w d, P, N of a shard, where d = κ m (1 − m): to be added up."""
    m = decided(rows, rows.scores, np.array([cut]))[0]
    d, yes = rows.sharpness * m * (1 - m), rows.weight * rows.y
    no = rows.weight - yes
    return np.array([yes @ m, rows.weight @ m, yes @ d, rows.weight @ d, yes.sum(), no.sum()])


def shard_fnr_at_fpr(rows, cut, totals):
    """A shard's part of the gradient of FNR where the FPR of all shards is held."""
    _, _, near_yes, near, yes, no = totals
    d = _density(rows, cut)
    ratio = (-near_yes / yes) / ((near - near_yes) / no)
    return -rows.weight * rows.y * d / yes - ratio * rows.weight * (1 - rows.y) * d / no


def shard_precision_at_recall(rows, cut, totals):
    """A shard's part of the gradient of 1 − precision where the recall of all shards is held."""
    tp, taken, near_yes, near, yes, _ = totals
    d = _density(rows, cut)
    ratio = -(near_yes / taken - tp * near / taken**2) / (near_yes / yes)
    loss = -rows.weight * d * (rows.y / taken - tp / taken**2)
    return loss - ratio * rows.weight * rows.y * d / yes


def _density(rows, cut):
    m = decided(rows, rows.scores, np.array([cut]))[0]
    return rows.sharpness * m * (1 - m)
