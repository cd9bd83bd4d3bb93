"""The natural weight of a penalty: curvature of the objective over that of the penalty.

    ρⱼ = h / ‖∇vⱼ‖²,      h = max(‖∇f(x + d) − ∇f(x)‖ / ‖d‖,  ‖∇f(x)‖ / reach)

Then ½ρⱼvⱼ² bends as much as f does, whatever the units of f, of v and of x, and λ is found in a few
rounds. The second term is for an f that does not bend: reach is how far x may go in the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor

from setpoint.solvers.augmented.mean_functions import MeanFunctions
from setpoint.solvers.box_projection import project

SAMPLE = 8  #: batches that are asked
ONE_BY_ONE = 64  #: constraints up to which each is measured; more are taken as alike
SMALL = 1e-4  #: a gradient this much smaller than the greatest counts as that


def natural(whole: MeanFunctions, parts: Sequence[Tensor], like: Tensor, reach: float) -> Tensor:
    """ρ (m,), of the kind of ``like``, near a start."""
    few = replace(whole, batches=list(islice(iter(whole.batches), SAMPLE)))
    signs = torch.zeros(0, dtype=torch.float64)
    if len(like) > ONE_BY_ONE:
        rng = torch.Generator().manual_seed(0)
        signs = 2.0 * torch.randint(0, 2, (len(like),), generator=rng).double() - 1
    slopes = few.slopes(parts, torch.zeros_like(like), signs.to(like) if len(signs) else None)
    g, rows = slopes[0], slopes[1:]
    sizes = rows.square().sum(1)
    if len(signs):
        sizes = (sizes / len(like)).expand(len(like))
    if not len(like):
        return like.clone()
    steepest = float(sizes.max())
    sizes = sizes.clamp(min=SMALL * steepest) if steepest > 0 else torch.ones_like(sizes)
    bend = float(g.norm()) / (reach * len(g) ** 0.5)
    bend = max(bend, _bend(few, parts, g, like, reach)) or 1.0
    return (bend / sizes).to(like)


def _bend(
    few: MeanFunctions, parts: Sequence[Tensor], g: Tensor, like: Tensor, reach: float
) -> float:
    """‖∇f(x + d) − ∇f(x)‖ / ‖d‖ along the gradient; 0 where there is nothing to be seen."""
    way = -g / g.norm() if float(g.norm()) > 0 else torch.ones_like(g) / len(g) ** 0.5
    start = torch.cat([part.detach().reshape(-1) for part in parts]).double().cpu()
    length = min(0.01 * reach, 0.01 * (1 + float(start.abs().max())))
    pieces = (start + length * way).split([part.numel() for part in parts])
    moved = [x.reshape(part.shape).to(part) for x, part in zip(pieces, parts, strict=True)]
    project(moved, few.box)
    went = torch.cat([x.reshape(-1) for x in moved]).double().cpu() - start
    if not float(went.norm()) > 0:
        return 0.0
    after = few.slopes(moved, torch.zeros_like(like), like.new_zeros(0))[0]
    bend = float((after - g).norm() / went.norm())
    return bend if bend < float("inf") else 0.0  # nan as well: it left where f is defined
