"""One call of the functions: every row tries its next point, and those that are content move on.

Everything is done for all rows under masks, so that nothing has to be read back from a device.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from setpoint.solvers.batched import merit
from setpoint.solvers.batched.batched_result import End
from setpoint.solvers.batched.bounds import BatchedBox
from setpoint.solvers.batched.functions import BatchedFunctions, Values
from setpoint.solvers.batched.hessian import Memory
from setpoint.solvers.batched.line_search import CURVATURE, DECREASE, BatchedLineSearch
from setpoint.solvers.batched.stationarity import stuck, unbalanced
from setpoint.solvers.batched.steering import BatchedPoint, Step, steer

# The rows that are still running: what each carries from call to call.


@dataclass(frozen=True, eq=False)
class BestIterates:
    """The best point each row has seen: feasible before infeasible, then by f, or by violation."""

    x: Tensor  # (B, n)
    f: Tensor  # (B,)
    violation: Tensor  # (B,)

    def against(self, x: Tensor, f: Tensor, violation: Tensor, feasibility: float) -> BestIterates:
        """The better of this and another point, row by row; what is not finite is never better."""
        holds = violation <= feasibility
        held_before = self.violation <= feasibility
        better = torch.where(
            holds == held_before,
            torch.where(holds, f < self.f, violation < self.violation),
            holds,
        )
        better = better & f.isfinite() & violation.isfinite()
        return BestIterates(
            torch.where(better[:, None], x, self.x),
            torch.where(better, f, self.f),
            torch.where(better, violation, self.violation),
        )


@dataclass(frozen=True, eq=False)
class BatchedRows:
    """The state of the running rows, (B, …) each."""

    index: Tensor  # (B,) long: which problem a row is
    at: BatchedPoint
    step: Step
    search: BatchedLineSearch
    level: Tensor  # (B,) long: how far a row has fallen back, see ``steer``
    best: BestIterates
    code: Tensor  # (B,) long: an End
    iterations: Tensor  # (B,) long
    stalls: Tensor  # (B,) long: steps in a row that changed φ by nothing

    def take(self, index: Tensor) -> BatchedRows:
        """Some of the rows."""
        return _taken(self, index)

    def merged(self, where: Tensor, other: BatchedRows) -> BatchedRows:
        """The other's rows ``where`` (B,), these elsewhere."""
        return _merged(self, where, other)

    def ended(self, where: Tensor, end: int) -> BatchedRows:
        """The rows ``where`` (B,) end, unless they have."""
        running = self.code == 0
        return replace(self, code=torch.where(where & running, int(end), self.code))


def _taken(record, index: Tensor):  # noqa: ANN001, ANN202 - any record of tensors and records
    parts = {f.name: getattr(record, f.name) for f in fields(record)}
    return type(record)(
        **{
            k: a.index_select(0, index) if isinstance(a, Tensor) else _taken(a, index)
            for k, a in parts.items()
        }
    )


def _merged(mine, where: Tensor, theirs):  # noqa: ANN001, ANN202 - any record of tensors and records
    parts = {}
    for f in fields(mine):
        a, b = getattr(mine, f.name), getattr(theirs, f.name)
        if isinstance(a, Tensor):
            mask = where.reshape(-1, *(1,) * (a.ndim - 1))
            parts[f.name] = torch.where(mask, b, a)
        else:
            parts[f.name] = _merged(a, where, b)
    return type(mine)(**parts)


LEVELS = 4  #: ways to fall back, see ``steer``
STALLS = 5  #: steps in a row that change nothing before a row ends
DAMPING = 0.2  #: least share of s'Bs that s'y may be
UNBOUNDED = -1e10  #: a row whose f falls below this at a feasible point has no minimum
LEAST = 1e-12  #: μ is lowered to this at most


@dataclass(frozen=True)
class BatchedLimits:
    """When a row ends."""

    tolerance: float
    feasibility: float
    iterations: int


@dataclass(eq=False)
class BatchedRun:
    """The rows, their functions, bounds and memory, and the limits."""

    functions: BatchedFunctions
    box: BatchedBox | None
    memory: Memory
    limits: BatchedLimits
    equal: Tensor
    rows: BatchedRows

    @classmethod
    def start(
        cls,
        functions: BatchedFunctions,
        x: Tensor,
        mu: Tensor,
        box: BatchedBox | None,
        memory: Memory,
        limits: BatchedLimits,
    ) -> BatchedRun:
        """Values, gradients and a first step at x (B, n)."""
        equal = functions.equal(x)
        values = functions.at(x)
        at = _place(values, *values.gradients())
        sound = at.f.isfinite() & at.v.isfinite().all(-1)
        sound = sound & at.g.isfinite().all(-1) & at.j.isfinite().flatten(1).all(-1)
        at = BatchedPoint(
            x, *(torch.nan_to_num(a, 0.0, 0.0, 0.0) for a in (at.f, at.v, at.g, at.j))
        )
        violation = merit.greatest(values.v.detach(), equal)
        best = BestIterates(x, values.f.detach(), violation)
        none = torch.zeros(len(x), dtype=torch.long, device=x.device)
        step = steer(at, mu, merit.weights(at.v, equal), none, memory, box, equal)
        rows = BatchedRows(
            index=torch.arange(len(x), device=x.device),
            at=at,
            step=step,
            search=_first(step, memory),
            level=none,
            best=best,
            code=none,
            iterations=none,
            stalls=none,
        ).ended(~sound, End.START)
        run = cls(functions, box, memory, limits, equal, rows)
        run.rows = run.judged(rows)
        return run

    def take(self, index: Tensor) -> None:
        """Go on with some of the rows."""
        self.rows = self.rows.take(index)
        self.functions = self.functions.take(index)
        self.memory = self.memory.take(index)
        self.box = None if self.box is None else self.box.take(index)

    @torch.no_grad()
    def tick(self) -> None:
        """One trial of each row."""
        rows, at, step = self.rows, self.rows.at, self.rows.step
        reach = at.x + rows.search.t[:, None] * step.d
        x = reach if self.box is None else self.box.clip(reach)
        values = self.functions.at(x)
        f, v = values.f.detach(), values.v.detach()
        sound = f.isfinite() & v.isfinite().all(-1)
        violation = merit.greatest(v, self.equal)
        best = rows.best.against(x, f, violation, self.limits.feasibility)
        before = step.mu * at.f + merit.total(at.v, self.equal)
        after = step.mu * f + merit.total(v, self.equal)
        noise = 2 * torch.finfo(x.dtype).eps * ((step.mu * at.f).abs() + at.v.abs().sum(-1))
        wanted = DECREASE * self._promised(x)
        enough = sound & (after <= before - wanted + noise) & (step.slope < 0)
        rows = replace(rows, best=best)
        # a value costs a forward pass, a gradient more: where looking is free, look first
        if not _free_to_look(x) or bool(enough.any()):
            self.rows = self._moved(rows, values, x, enough, before - after)
        else:
            self.rows = self._searched(rows, enough, torch.zeros_like(enough))

    def _promised(self, x: Tensor) -> Tensor:
        """(B,) what the model promises for the step to x: t Δ, or less where a bound cuts it."""
        rows, at = self.rows, self.rows.at
        promised = rows.search.t * rows.step.drop
        if self.box is None:
            return promised
        s = x - at.x
        js = (at.j @ s[:, :, None])[:, :, 0]
        cut = merit.total(at.v, self.equal) - merit.total(at.v + js, self.equal)
        cut = cut - rows.step.mu * (at.g * s).sum(-1)
        return torch.minimum(promised, cut).clamp_min(0)

    def _moved(
        self, rows: BatchedRows, values: Values, x: Tensor, enough: Tensor, fallen: Tensor
    ) -> BatchedRows:
        """Rows whose trial is good take it, with a new step; the others search on."""
        at, step = rows.at, rows.step
        to = _place(values, *values.gradients())
        enough = enough & to.g.isfinite().all(-1) & to.j.isfinite().flatten(1).all(-1)
        gradient = merit.pulled(step.mu, to.g, merit.weights(to.v, self.equal), to.j)
        along = (gradient * step.d).sum(-1)
        limits = self.limits
        low = (to.f < UNBOUNDED) & enough
        endless = low & (merit.greatest(to.v, self.equal) <= limits.feasibility)
        content = (along >= CURVATURE * step.slope) | ~rows.search.patient() | low
        if self.box is not None:  # past a bound the way bends: what brings enough is not lengthened
            reach = at.x + rows.search.t[:, None] * step.d
            content = content | ((reach < self.box.low) | (reach > self.box.high)).any(-1)
        accepted = enough & content & (rows.code == 0)
        # only the penalty falls without end: f must weigh less, as long as it can
        runaway = low & ~endless & (step.mu > LEAST)
        self._remember(rows, to, x, accepted)
        stalled = fallen <= 4 * torch.finfo(x.dtype).eps * (step.mu * at.f).abs()
        moved = replace(
            rows,
            at=to,
            stalls=torch.where(stalled, rows.stalls + 1, 0),
            iterations=rows.iterations + 1,
            level=torch.zeros_like(rows.level),
        )
        rows = rows.merged(accepted & ~runaway, moved).ended(endless, End.UNBOUNDED)
        rows = replace(rows, iterations=rows.iterations + (runaway & (rows.code == 0)).long())
        lighter = (step.mu / 10).clamp_min(LEAST)
        mu = torch.where(runaway, lighter, step.mu)
        rows = replace(rows, step=replace(rows.step, mu=mu))
        return self._searched(rows, enough, accepted)

    def _remember(self, rows: BatchedRows, to: BatchedPoint, x: Tensor, accepted: Tensor) -> None:
        """Curvature of the Lagrangian μ f + y'v along the step, damped by B s = −t (μ g + J'y)."""
        step = rows.step
        s = x - rows.at.x
        before = merit.pulled(step.mu, rows.at.g, step.y, rows.at.j)
        y = merit.pulled(step.mu, to.g, step.y, to.j) - before
        moving = (s != 0).to(s.dtype)
        bs = -rows.search.t[:, None] * before * moving
        sbs, sy = (s * bs).sum(-1), (s * y).sum(-1)
        theta = torch.where(sy < DAMPING * sbs, (1 - DAMPING) * sbs / (sbs - sy), 1.0)
        theta = torch.where(sbs > 0, theta, 1.0)[:, None]
        y = theta * y + (1 - theta) * bs
        sy, size = (s * y).sum(-1), s.norm(dim=-1) * y.norm(dim=-1)
        curved = sy > torch.finfo(s.dtype).eps * size
        self.memory.update(s, y, accepted & curved & y.isfinite().all(-1))

    def _searched(self, rows: BatchedRows, enough: Tensor, accepted: Tensor) -> BatchedRows:
        """The next trial of each row: along its step, or along a new one."""
        at, step = rows.at, rows.step
        eps = torch.finfo(at.x.dtype).eps
        smallest = 4 * eps * at.x.abs().amax(-1).clamp_min(1)
        search, lost = rows.search.further(enough, step.d.abs().amax(-1), smallest)
        none = step.slope >= 0
        lost = (lost | none) & ~accepted
        # no way down while μ is still being lowered: it is lowered further before falling back
        level = torch.where(lost & ~(none & step.lowered), rows.level + 1, rows.level)
        rows = replace(rows, level=level).ended(level >= LEVELS, End.PRECISION)
        anew = (accepted | lost) & (rows.code == End.RUNNING)  # rows that ended stand still
        if _free_to_look(at.x) and not bool(anew.any()):
            return replace(rows, search=search)
        renewed = steer(at, step.mu, step.y, level, self.memory, self.box, self.equal)
        fresh = replace(rows, step=renewed, search=_first(renewed, self.memory))
        rows = replace(rows, search=search).merged(anew, fresh)
        return self.judged(rows)

    def looked(self) -> None:
        """End the rows that cannot become feasible; also those that ended for want of a step."""
        rows, limits = self.rows, self.limits
        broken = merit.greatest(rows.at.v, self.equal) > limits.feasibility
        lost = broken & stuck(rows.at, self.box, self.equal, limits.tolerance)
        lost = lost & ((rows.code == End.RUNNING) | (rows.code == End.PRECISION))
        self.rows = replace(rows, code=torch.where(lost, int(End.INFEASIBLE), rows.code))

    def judged(self, rows: BatchedRows) -> BatchedRows:
        """End the rows that are done."""
        limits, at, step = self.limits, rows.at, rows.step
        violation = merit.greatest(at.v, self.equal)
        mu = step.mu[:, None]
        left = unbalanced(step.force / mu, at, step.y / mu)
        slack = (step.y * at.v).abs().sum(-1) / step.mu
        tolerance = limits.tolerance
        still = (left <= tolerance) & (slack <= tolerance * at.f.abs().clamp_min(1))
        holds = violation <= limits.feasibility
        return (
            rows.ended(still & holds, End.STATIONARY)
            .ended(rows.stalls >= STALLS, End.PRECISION)
            .ended(rows.iterations >= limits.iterations, End.ITERATIONS)
        )


def _free_to_look(x: Tensor) -> bool:
    """Whether a truth value can be read without waiting for a device."""
    return x.device.type == "cpu"


def _place(values: Values, g: Tensor, j: Tensor) -> BatchedPoint:
    return BatchedPoint(values.x.detach(), values.f.detach(), values.v.detach(), g, j)


def _first(step: Step, memory: Memory) -> BatchedLineSearch:
    """A search for a new step: 1 first, or less where nothing is known of the curvature."""
    length = step.d.norm(dim=-1)
    careful = (1 / length.clamp_min(1)).to(length.dtype)
    return BatchedLineSearch.start(torch.where(memory.fresh, careful, torch.ones_like(length)))
