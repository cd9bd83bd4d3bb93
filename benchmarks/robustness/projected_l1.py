"""A projected attack on the ℓ₁ ball and the box, for the comparison: torchattacks has none.

    x ← Π(x + η u),   u the signs of the k largest entries of ∇ℓ, each 1/k

Π is the exact projection on {‖x' − x₀‖₁ ≤ ε} ∩ [0, 1]ⁿ: shrink |x' − x₀| by a threshold found by
bisection, then clip. Steps fall from ε to ε/50; k is a twentieth of the pixels and halves as they
fall; cross-entropy, the margin and the margins to the nine other classes in turn, from the image
and from random points of the ball. After Tramèr and Boneh 2019 (sparse ℓ₁ steps) and Croce and
Hein 2021 (the projection on ball and box together).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.robustness.judging import Case, margin

HALVINGS = 40


def projected(x: Tensor, start: Tensor, eps: float) -> Tensor:
    """Π: with s(τ) = clip(x₀ + sign(d)(|d| − τ)₊), the least τ ≥ 0 with ‖s − x₀‖₁ ≤ ε."""
    d = x - start

    def shrunk(t: Tensor) -> Tensor:
        return (d.sign() * (d.abs() - t).clamp(min=0) + start).clamp(0, 1) - start

    shape = (-1, *[1] * (x.ndim - 1))
    low, high = torch.zeros(len(x), dtype=x.dtype), d.flatten(1).abs().amax(1)
    fits = shrunk(low.view(shape)).flatten(1).abs().sum(1) <= eps
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        over = shrunk(middle.view(shape)).flatten(1).abs().sum(1) > eps
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    return start + shrunk(torch.where(fits, torch.zeros_like(high), high).view(shape))


def attack(held: Case, eps: float, steps: int, restarts: int, seed: int = 0) -> Tensor:
    """The best point of all losses and starts; rows that succeed are left alone."""
    best, done = held.x.clone(), torch.zeros(len(held.x), dtype=torch.bool)
    random = torch.Generator().manual_seed(seed)
    for turn in range(restarts):
        for loss in losses(held):
            rows = (~done).nonzero()[:, 0]
            if not len(rows):
                return best
            x0 = held.x[rows]
            x = x0.clone()
            if turn:
                noise = torch.randn(x0.shape, generator=random, dtype=x0.dtype)
                x = projected(x0 + eps * noise / noise.flatten(1).abs().sum(1).mean(), x0, eps)
            found, hit = _run(held, rows, x, loss, eps, steps)
            best[rows[hit]], done[rows[hit]] = found[hit], True
    return best


def losses(held: Case) -> list[Callable[[Tensor, Tensor], Tensor]]:
    """(logits, rows) -> a loss to be raised; the last nine go to one class each."""
    with torch.no_grad():
        order = held.net(held.x).scatter(1, held.y[:, None], -torch.inf).argsort(1, descending=True)

    def towards(k: int) -> Callable[[Tensor, Tensor], Tensor]:
        def loss(z: Tensor, rows: Tensor) -> Tensor:
            goal, own = order[rows, k : k + 1], held.y[rows, None]
            return (z.gather(1, goal) - z.gather(1, own))[:, 0]

        return loss

    return [
        lambda z, rows: cross_entropy(z, held.y[rows], reduction="none"),
        lambda z, rows: margin(z, held.y[rows]),
        *(towards(k) for k in range(9)),
    ]


def _run(
    held: Case, rows: Tensor, x: Tensor, loss: Callable, eps: float, steps: int
) -> tuple[Tensor, Tensor]:
    x0, y = held.x[rows], held.y[rows]
    kept, hit = x.clone(), torch.zeros(len(rows), dtype=torch.bool)
    for step in range(steps + 1):
        x = x.detach().requires_grad_()
        z = held.net(x)
        new = (margin(z, y) >= 0) & ~hit
        kept[new], hit = x.detach()[new], hit | new
        if step == steps or bool(hit.all()):
            break
        (g,) = torch.autograd.grad(loss(z, rows).sum(), x)
        share = step / steps
        k = max(1, round(x[0].numel() / 20 * 0.5 ** (4 * share)))
        x = projected(x.detach() + eps * 50.0**-share * _sparse(g, x.detach(), k), x0, eps)
    return kept, hit


def _sparse(g: Tensor, x: Tensor, k: int) -> Tensor:
    """Signs of the k largest entries that the box lets move, 1/k each."""
    free = torch.where(((x <= 0) & (g < 0)) | ((x >= 1) & (g > 0)), torch.zeros_like(g), g)
    flat = free.flatten(1)
    least = flat.abs().topk(k, dim=1).values[:, -1:]
    return (torch.where(flat.abs() >= least, flat.sign(), torch.zeros_like(flat)) / k).view_as(g)
