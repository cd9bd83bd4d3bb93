"""Two attacks within a perceptual distance d(x, x') = ‖φ(x) − φ(x')‖₂, written for the comparison.

Both after Laidlaw, Singla and Feizi 2021 (arXiv 2006.12655), by their formulas, on the margin.

Penalty (their LPA)
    max_x' margin(x') − λ max(0, d(x, x') − ε) by Adam on the normalised gradient (plain steps find
    far less on mnist), and a bisection over λ, image by image: raised where the end is too far,
    lowered where it is not.
Projected (their PPGD)
    steps u that maximise ∇margin · u within ‖J u‖₂ ≤ η, J the Jacobian of φ, by conjugate gradients
    on JᵀJ; then Newton's steps along ∇d back to d ≤ ε. η falls from ε/2 to ε/50.

Every iterate that holds counts, and so does every iterate moved back along the segment to x until
it does; the best is returned. Both start at the image and at random points near it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.robustness.judging import SLACK, Case, margin

Distance = Callable[[Tensor, Tensor], Tensor]
NEAR = 0.02  #: standard deviation of the noise of a start
CONJUGATE, DAMPING = 5, 1e-3
HALVINGS = 15
NEWTON, RATE = 3, 0.05


class Best:
    """The feasible point of the greatest margin seen so far, image by image."""

    def __init__(self, held: Case, distance: Distance, eps: float) -> None:
        self.held, self.distance, self.eps = held, distance, eps
        self.x = held.x.clone()
        self.margin = torch.full((len(held.x),), -torch.inf, dtype=held.x.dtype)

    @torch.no_grad()
    def offer(self, x: Tensor) -> None:
        """Look at points, and at what is left of them within eps."""
        for point in (x, self.back(x)):
            gap = margin(self.held.net(point), self.held.y)
            held = self.distance(self.held.x, point) <= self.eps * (1 + SLACK)
            new = held & (gap > self.margin)
            self.x[new], self.margin[new] = point[new], gap[new]

    @torch.no_grad()
    def back(self, x: Tensor) -> Tensor:
        """Along the segment to the image until d ≤ eps, by bisection."""
        x0 = self.held.x
        low, high = torch.zeros(len(x), dtype=x.dtype), torch.ones(len(x), dtype=x.dtype)
        fits = self.distance(x0, x) <= self.eps
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            inside = self.distance(x0, x0 + middle.view(shape(x)) * (x - x0)) <= self.eps
            low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
        return x0 + torch.where(fits, torch.ones_like(low), low).view(shape(x)) * (x - x0)


def start(held: Case, turn: int, random: torch.Generator) -> Tensor:
    """The image (a little off it, where d has a slope), then random points near it."""
    noise = torch.randn(held.x.shape, generator=random, dtype=held.x.dtype)
    return (held.x + NEAR * (0.1 if turn == 0 else 1 + turn) * noise).clamp(0, 1)


def penalty(
    held: Case, distance: Distance, eps: float, steps: int, searches: int, restarts: int
) -> Best:
    """LPA."""
    best, random = Best(held, distance, eps), torch.Generator().manual_seed(0)
    for turn in range(restarts):
        low, high = (torch.full_like(best.margin, v) for v in (-3.0, 4.0))  # of log10 λ
        for _ in range(searches):
            middle = (low + high) / 2
            x = start(held, turn, random).requires_grad_()
            stepper = torch.optim.Adam([x], RATE)
            for step in range(steps):
                over = (distance(held.x, x) - eps).clamp(min=0)
                value = margin(held.net(x), held.y) - 10**middle * over
                (g,) = torch.autograd.grad(value.sum(), x)
                x.grad = -g / g.flatten(1).norm(dim=1).clamp(min=1e-12).view(shape(g))
                stepper.param_groups[0]["lr"] = RATE * (1 - step / steps)
                stepper.step()
                x.data.clamp_(0, 1)
                if step % 5 == 4 or step + 1 == steps:
                    best.offer(x.detach())
            with torch.no_grad():
                far = distance(held.x, x) > eps
            low, high = torch.where(far, middle, low), torch.where(far, high, middle)
    return best


def projected(
    held: Case, distance: Distance, seen: nn.Module, eps: float, steps: int, restarts: int
) -> Best:
    """PPGD."""
    best, random = Best(held, distance, eps), torch.Generator().manual_seed(0)
    for turn in range(restarts):
        x = start(held, turn, random)
        for step in range(steps):
            x = x.detach().requires_grad_()
            (g,) = torch.autograd.grad(margin(held.net(x), held.y).sum(), x)
            u, length = _longest(seen, x.detach(), g)
            size = eps / 2 * 0.04 ** (step / steps)
            x = (x.detach() + (size / length.clamp(min=1e-9)).view(shape(x)) * u).clamp(0, 1)
            for _ in range(NEWTON):
                x = x.detach().requires_grad_()
                far = distance(held.x, x)
                (g,) = torch.autograd.grad(far.sum(), x)
                over = (far - eps).clamp(min=0) / g.flatten(1).square().sum(1).clamp(min=1e-12)
                x = (x - over.view(shape(x)) * g).detach().clamp(0, 1)
            best.offer(x)
    return best


def shape(x: Tensor) -> tuple[int, ...]:
    """Of one number a row, beside images."""
    return (-1, *[1] * (x.ndim - 1))


def _longest(seen: nn.Module, x: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Solve (JᵀJ + damping) u = g row by row by conjugate gradients; u and ‖J u‖₂."""
    _, pull = torch.func.vjp(seen, x)

    def push(u: Tensor) -> Tensor:
        return torch.func.jvp(seen, (x,), (u,))[1]

    def dot(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).flatten(1).sum(1).view(-1, *[1] * (a.ndim - 1))

    u, r = torch.zeros_like(g), g.clone()
    p, rr = r.clone(), dot(r, r)
    for _ in range(CONJUGATE):
        ap = pull(push(p))[0] + DAMPING * p
        alpha = rr / dot(p, ap).clamp(min=1e-30)
        u, r = u + alpha * p, r - alpha * ap
        new = dot(r, r)
        p, rr = r + new / rr.clamp(min=1e-30) * p, new
    return u.detach(), push(u).flatten(1).norm(dim=1).detach()
