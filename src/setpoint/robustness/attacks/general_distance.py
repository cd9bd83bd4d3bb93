"""Attacks for any differentiable distance d, as constrained programs on the batched solver.

    nearing   min max(d(x, x') / ε, 1)   s.t.  margin(x') >= m₀,      low <= x' <= high
    losing    min −min(ℓ(x'), clip)      s.t.  d(x, x') / ε <= 1,     low <= x' <= high

Min-radius is the first without its clip. Max-loss is both: they have the same solutions where an
image can be beaten (both are flat there: the image is done), but the way is not the same. Going to
the decision surface and along it towards x finds more than staying inside d <= ε, whose shape is
the harder one of the two; losing then starts where nearing ended. The box is a true bound.

At x' = x a norm has no slope, so every start is a little off. Nothing projects onto d <= ε: what is
returned is moved back on the segment to x, where d = 0, until d is measured to hold.

References
----------
Liang, Liang, Cui, Mitchell, Sun, Optimization and optimizers for adversarial robustness, 2023
(arXiv 2303.13401).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack import AttackResult
from setpoint.robustness.attacks.attack_losses import CROSS_ENTROPY_CLIP, MARGIN_CLIP, checked_loss
from setpoint.robustness.attacks.attack_problem import Posed, pose, radii
from setpoint.robustness.attacks.bisection import inside, outside
from setpoint.robustness.attacks.distances import Distance, Measure, as_distance
from setpoint.robustness.attacks.model_probe import BATCH, Model
from setpoint.robustness.attacks.random_starts import Draws
from setpoint.robustness.attacks.two_stage_solver import (
    SLACK,
    Box,
    CountedModel,
    Images,
    Judged,
    Lines,
    losing_program,
    nearing_program,
    noisy,
    starts_of,
    two_stages,
)


def general_max_loss(
    model: Model,
    x: Tensor,
    y: Tensor,
    distance: Measure | Distance | str,
    eps: float | Tensor,
    *,
    loss: str = "margin",
    target: Tensor | int | None = None,
    restarts: int = 4,
    iterations: int = 120,
    seed: int | Sequence[int] | Tensor = 0,
    low: float = 0.0,
    high: float = 1.0,
    hessian: str | int = "auto",
    batch: int = BATCH,
    progress: Callable[[float], object] | None = None,
) -> AttackResult:
    """For each image one within eps of it at which the loss is large, for any distance.

    Parameters
    ----------
    model : callable
        Images (B, *shape) -> logits (B, K), in evaluation mode.
    x, y : Tensor (B, *shape), Tensor (B,)
        Images inside the box, and their classes.
    distance : callable, Distance or str
        d(x, x') -> (B,), differentiable in x', and 0 at x' = x.
    eps : float or Tensor (B,)
        The greatest distance.
    loss : {"margin", "cross_entropy"}
        What is made large; see ``losses``.
    target : Tensor (B,), int or None
        The class to be decided for; None: any other than y.
    restarts : int
        Starts of each image: the first against all classes, the others against one rival each.
    iterations : int
        Calls of the model on the line that is followed to the end; the others get a share of them.
    seed : int, or one for each image
        Of the starts.
    low, high : float
        The box.
    hessian : "auto", "full" or int
        See ``solve_batched``.
    batch : int
        Rows put through the model at once.
    progress : callable or None
        Told the share done, from 0 to 1.

    Returns
    -------
    AttackResult
        Points with d <= eps, measured, in the box; ``violation`` is 0 unless d(x, x) itself is not.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    >>> x, y = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    >>> weighed = lambda a, b: ((a - b) * torch.tensor([1.0, 2.0])).norm(dim=1)
    >>> found = general_max_loss(model, x, y, weighed, 1.2, low=-2.0, high=2.0)
    >>> bool(model(found.x).argmax(1) == 1), float(found.violation)
    (True, 0.0)
    """
    checked_loss(loss)
    measure = as_distance(distance)
    lines = Lines(restarts, iterations, hessian)
    clip = MARGIN_CLIP if loss == "margin" else CROSS_ENTROPY_CLIP
    radius = radii(eps, len(x), x)

    def one(posed: Posed, rows: slice) -> AttackResult:
        scored = CountedModel(model, posed.probe.sign, loss != "margin")
        return _max_loss(posed, scored, measure, radius[rows], clip, lines, (low, high))

    return _parts(
        model=model,
        x=x,
        y=y,
        target=target,
        low=low,
        high=high,
        seed=seed,
        loss=loss,
        batch=batch,
        lines=lines,
        progress=progress,
        one=one,
    )


def general_min_radius(
    model: Model,
    x: Tensor,
    y: Tensor,
    distance: Measure | Distance | str,
    *,
    target: Tensor | int | None = None,
    restarts: int = 4,
    iterations: int = 120,
    seed: int | Sequence[int] | Tensor = 0,
    low: float = 0.0,
    high: float = 1.0,
    hessian: str | int = "auto",
    batch: int = BATCH,
    progress: Callable[[float], object] | None = None,
) -> AttackResult:
    """For each image the nearest one that is decided otherwise, for any distance.

    Parameters
    ----------
    model, x, y, distance, target, restarts, iterations, seed, low, high, hessian, batch, progress
        As for ``general_max_loss``.

    Returns
    -------
    AttackResult
        Where nothing was found, the point with the greatest margin; ``violation`` is above 0.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    >>> x, y = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    >>> weighed = lambda a, b: ((a - b) * torch.tensor([1.0, 2.0])).norm(dim=1)
    >>> found = general_min_radius(model, x, y, weighed, low=-2.0, high=2.0)
    >>> round(float(weighed(x, found.x)), 3)  # 3.5 / ‖(3, 4/2)‖
    0.971
    """
    measure = as_distance(distance)
    lines = Lines(restarts, iterations, hessian)

    def one(posed: Posed, rows: slice) -> AttackResult:
        scored = CountedModel(model, posed.probe.sign, False)
        return _min_radius(posed, scored, measure, lines, (low, high))

    return _parts(
        model=model,
        x=x,
        y=y,
        target=target,
        low=low,
        high=high,
        seed=seed,
        loss="margin",
        batch=batch,
        lines=lines,
        progress=progress,
        one=one,
    )


def _max_loss(
    posed: Posed,
    scored: CountedModel,
    measure: Distance,
    eps: Tensor,
    clip: float,
    lines: Lines,
    box: Box,
) -> AttackResult:
    """The nearest points, back until d <= eps is measured; where that fails, the greatest loss."""
    draws = Draws(posed.seeds, posed.rows.clean)
    images, start = starts_of(posed, lines.restarts, draws, eps, box)
    count = len(posed.margins)
    left = (posed.margins < 0).nonzero()[:, 0]
    rows = _every(left, lines.restarts, count)
    near = nearing_program(scored, measure, box, lines.hessian, 1 - SLACK)
    lose = losing_program(scored, measure, box, lines.hessian, clip)
    alone = replace(
        images.take(torch.arange(count, device=left.device)), rival=images.rival[:count]
    )
    points, quality = alone.clean, posed.margins - posed.rows.floor
    taken = torch.zeros_like(posed.rows.labels)

    def kept(index: Tensor, z: Tensor, steps: Tensor) -> None:
        nonlocal points, quality, taken
        some = alone.take(index)
        z = _inside(measure, some, z)
        value = scored.margin(z, some.label) - some.floor
        better = value > quality[index]
        points = points.index_copy(0, index[better], z[better])
        quality = quality.index_copy(0, index[better], value[better])
        taken = taken.index_add(0, index, steps)

    if len(left):
        z, _, steps = two_stages(
            near, images.take(rows), start[rows], _on_surface(scored, measure), lines
        )
        kept(left, z, steps)
        left = left[quality[left] < 0]
    if len(left):
        result = lose.run(alone.take(left), points[left], max(1, lines.iterations // 2))
        kept(left, result.x, result.iterations)
    seen = replace(lose, hessian=1).run(alone, points, 1)
    excess = (_measured(measure, alone.clean, points) - eps).clamp_min(0)
    return AttackResult(points, _still(seen.kkt, seen.gradient), excess, taken, scored.forwards)


def _inside(measure: Distance, images: Images, z: Tensor) -> Tensor:
    """z, back on the way to the image until d <= eps is measured, rounding included."""
    most = images.scale * (1 - 100 * torch.finfo(z.dtype).eps)
    return inside(images.clean, z, lambda w: _measured(measure, images.clean, w) <= most)


def _on_surface(scored: CountedModel, measure: Distance) -> Judged:
    """Points back on the way to the image until the surface; how good: near, or little missing."""

    def judged(images: Images, z: Tensor) -> tuple[Tensor, Tensor]:
        z = outside(images.clean, z, lambda w: scored.margin(w, images.label) >= images.floor)
        far, value = _measured(measure, images.clean, z), scored.margin(z, images.label)
        most = torch.finfo(z.dtype).max / 4
        return z, torch.where(value >= images.floor, -far, value - most)

    return judged


def _min_radius(
    posed: Posed, scored: CountedModel, measure: Distance, lines: Lines, box: Box
) -> AttackResult:
    """Starts, the best of each image to the end, and back until the decision surface."""
    draws = Draws(posed.seeds, posed.rows.clean)
    clean = posed.rows.clean.view(-1, *posed.shape)
    images, start = starts_of(
        posed, lines.restarts, draws, _yardstick(measure, clean, draws, box), box
    )
    program = nearing_program(scored, measure, box, lines.hessian)
    count = len(clean)
    left = (posed.margins < 0).nonzero()[:, 0]
    points, taken = clean, torch.zeros_like(posed.rows.labels)
    if len(left):
        rows = _every(left, lines.restarts, count)
        z, _, steps = two_stages(
            program, images.take(rows), start[rows], _on_surface(scored, measure), lines
        )
        points, taken = points.index_copy(0, left, z), taken.index_copy(0, left, steps)
    alone = images.take(torch.arange(count, device=left.device))
    seen = replace(program, hessian=1).run(alone, points, 1)
    missing = (-scored.margin(points, alone.label)).clamp_min(0)
    return AttackResult(points, _still(seen.kkt, seen.gradient), missing, taken, scored.forwards)


def _every(left: Tensor, restarts: int, count: int) -> Tensor:
    """The rows of some images; rows are ordered by start, then by image."""
    starts = torch.arange(restarts, device=left.device)[:, None] * count
    return (starts + left).reshape(-1)


def _yardstick(measure: Distance, clean: Tensor, draws: Draws, box: Box) -> Tensor:
    """(B,) the distance of an image with noise of a tenth of the box: what d is counted in."""
    far = _measured(measure, clean, noisy(clean, 0.1, draws, box))
    return torch.where(far > 0, far, torch.ones_like(far))


def _measured(measure: Distance, x: Tensor, z: Tensor) -> Tensor:
    with torch.no_grad():
        return measure(x, z)


def _still(kkt: Tensor, gradient: Tensor) -> Tensor:
    """The residual as a share of the gradient it is left of; 0 where there is none."""
    share = kkt / torch.where(gradient > 0, gradient, torch.ones_like(gradient))
    return torch.nan_to_num(share, nan=torch.inf)


def _parts(
    model: Model,
    x: Tensor,
    y: Tensor,
    target: Tensor | int | None,
    low: float,
    high: float,
    seed: int | Sequence[int] | Tensor,
    loss: str,
    batch: int,
    lines: Lines,
    progress: Callable[[float], object] | None,
    one: Callable[[Posed, slice], AttackResult],
) -> AttackResult:
    """An attack on so many images at a time that their starts fit into a batch."""
    if isinstance(seed, int):
        seed = [seed + number for number in range(len(x))]
    step = max(1, batch // lines.restarts)
    results: list[AttackResult] = []
    for begin in range(0, len(x), step):
        rows = slice(begin, min(begin + step, len(x)))
        aim = target[rows] if isinstance(target, Tensor) and target.ndim else target
        posed = pose(
            model, x[rows], y[rows], aim, low, high, seed[rows], soft=loss != "margin", batch=batch
        )
        results.append(one(posed, rows))
        if progress is not None:
            progress(rows.stop / len(x))
    if not results:
        none = x.new_zeros(0)
        return AttackResult(x, none, none, torch.zeros(0, dtype=torch.long), 0)
    return AttackResult(
        torch.cat([part.x for part in results]),
        torch.cat([part.stationarity for part in results]),
        torch.cat([part.violation for part in results]),
        torch.cat([part.iterations for part in results]),
        sum(part.forwards for part in results),
    )
