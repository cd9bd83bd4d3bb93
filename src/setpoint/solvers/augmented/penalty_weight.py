"""The weight ρ of the quadratic penalty: its natural scale, where it starts and how it grows.

    natural ρⱼ = h / ‖∇vⱼ‖²,      h = max(‖∇f(x + d) − ∇f(x)‖ / ‖d‖,  ‖∇f(x)‖ / reach)

At it ½ρⱼvⱼ² bends as much as f does, whatever the units of f, of v and of x, and λ is found in a
few rounds. The second term is for an f that does not bend: reach is how far x may go in the run.
ρ starts at ``START`` times the natural weight and grows by a :class:`PenaltyGrowth`, one for exact
values and a gentler one for batches. (The weights μ of the exact penalty are options of
:class:`setpoint.solvers.exact_penalty.ExactPenalty`: they start low and grow slowly on purpose.)

References
----------
Birgin, Martínez, Practical Augmented Lagrangian Methods, 2014, chapter 4 (growth where a violation
has not fallen by a share).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor

from setpoint.solvers.augmented.mean_functions import MeanFunctions
from setpoint.solvers.box_projection import project

START = 10.0  #: times the natural weight, where a run starts


@dataclass(frozen=True)
class PenaltyGrowth:
    """How ρ grows in a run.

    Attributes
    ----------
    factor : float
        By what ρ grows at a time, where the solver's ``growth`` does not say.
    share : float
        Share of a violation that may be left since the last check; ρ grows where more is.
    cap : float
        Times its start beyond which ρ does not grow any further; rounds of exact values end there.
    """

    factor: float
    share: float
    cap: float

    def step(self, growth: float | None) -> float:
        """The factor, unless the solver's ``growth`` says another."""
        return self.factor if growth is None else growth


# Exact values: factor and share as in Birgin and Martínez. No noise holds ρ back, but rounding:
# beyond the cap it rules.
EXACT_GROWTH = PenaltyGrowth(factor=10.0, share=0.5, cap=1e10)

# Batches: a step pays λ + ρ v̂, so ρ multiplies the noise of v̂. It therefore grows by little at a
# time and not far, and a violation that is seen through noise may fall more slowly.
NOISY_GROWTH = PenaltyGrowth(factor=2.0, share=0.7, cap=100.0)
NOISY_CHECKS = 10  #: times in a run over batches that ρ may grow

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
