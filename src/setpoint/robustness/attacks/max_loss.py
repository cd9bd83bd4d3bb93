"""The greatest loss within a radius: max ℓ(x') s.t. d(x, x') ≤ ε and x' in the box.

    max_u  ℓ(z(x + u), y)   s.t.   ‖u‖_p ≤ ε,   low ≤ x + u ≤ high

for norms by climbs with exact projections (``ascent``): on the loss itself, then, for images that
still resist, against each rival class and from random starts, then by the least radius (``racing``;
a radius of at most ε is a point in the ball), and a last climb from the best point. Any other
distance goes to the constrained solver (``general``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack import AttackResult, Pace
from setpoint.robustness.attacks.attack_losses import checked_loss
from setpoint.robustness.attacks.attack_problem import checked, pose, radii
from setpoint.robustness.attacks.distances import Distance, Measure, as_distance, norms
from setpoint.robustness.attacks.general_distance import general_max_loss
from setpoint.robustness.attacks.max_loss_stages import Chase, Stages
from setpoint.robustness.attacks.model_probe import BATCH, Model
from setpoint.robustness.attacks.projections import project

#: The step of the residual of a projected gradient, in units of the radius.
_STEP = 0.01


def max_loss(
    model: Model,
    x: Tensor,
    y: Tensor,
    distance: str | Measure | Distance,
    eps: float | Tensor,
    *,
    loss: str = "margin",
    target: Tensor | int | None = None,
    restarts: int = 3,
    iterations: int = 50,
    rivals: int = 9,
    seed: int | Sequence[int] | Tensor = 0,
    low: float = 0.0,
    high: float = 1.0,
    batch: int = BATCH,
    progress: Callable[[float], object] | None = None,
    **options: Any,
) -> AttackResult:
    """For each image the one within ``eps`` at which the model is most wrong.

    Parameters
    ----------
    model : callable
        Images (B, *shape) -> logits (B, K), in evaluation mode. It is not changed.
    x, y : Tensor (B, *shape), Tensor (B,)
        Images inside the box, and their classes.
    distance : str, callable or Distance
        ``"l1"``, ``"l2"``, ``"linf"``, ``"l<p>"``; or a differentiable function, see ``general``.
    eps : float or Tensor (B,)
        The radius.
    loss : {"margin", "cross_entropy"}
        What is made large; past a margin of 0.01, or a cross-entropy of 10, an image is done.
    target : Tensor (B,), int or None
        The class to be decided for; None: any other than y.
    restarts : int
        Random starts for images that still resist.
    iterations : int
        Steps of the last climb; the climbs before it take three tenths of it each.
    rivals : int
        Classes that are climbed for, in the order of their logits.
    seed : int, or one for each image
        Of the random starts.
    low, high : float
        The box.
    batch : int
        Rows put through the model at once.
    progress : callable or None
        Told the share done, from 0 to 1.
    **options
        For a distance that is a function: what ``general_max_loss`` takes besides.

    Returns
    -------
    AttackResult
        Every point is in the ball and in the box.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    >>> x, y = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    >>> max_loss(model, x, y, "linf", 0.25).x
    tensor([[0.2500, 0.2500]])
    """
    measure, soft = as_distance(distance), checked_loss(loss) == "cross_entropy"
    if measure.p is None:
        return general_max_loss(
            model, x, y, measure, eps, loss=loss, target=target, restarts=restarts,
            iterations=iterations, seed=seed, low=low, high=high, batch=batch, progress=progress,
            **options,
        )  # fmt: skip
    checked(options, restarts, iterations, rivals)
    posed = pose(model, x, y, target, low, high, seed, soft=soft, batch=batch)
    reach = radii(eps, len(x), x)
    if not len(x):
        return AttackResult(x, x.new_zeros(0), x.new_zeros(0), torch.zeros(0, dtype=torch.long), 0)
    stages = Stages(iterations, restarts, rivals)
    chase = Chase(posed, measure.p, reach, stages, soft, Pace(stages.steps, progress))
    moves = chase.run()
    over = (norms(moves, measure.p) - reach).clamp(min=0.0)
    residual = _residual(chase, moves)
    return AttackResult(posed.images(moves), residual, over, chase.taken, posed.probe.forwards)


def _residual(chase: Chase, moves: Tensor) -> Tensor:
    """‖u − Π(u + τ g/‖g‖₂)‖₂ / τ; 0 where the loss is cut off, or its gradient is 0."""
    rows, p = chase.posed.rows, chase.p
    seen = chase.posed.probe.look(rows.clean + moves, rows.labels)
    step = _STEP * torch.where(chase.eps > 0, chase.eps, 1.0)[:, None]
    length = torch.linalg.vector_norm(seen.gradient, dim=1, keepdim=True)
    way = seen.gradient / torch.where(length > 0, length, 1.0)
    ahead = project(moves + step * way, rows.low, rows.high, chase.eps, p)
    residual = torch.linalg.vector_norm(ahead - moves, dim=1) / step[:, 0]
    return torch.where(seen.score >= chase.ceiling, 0.0, residual)
