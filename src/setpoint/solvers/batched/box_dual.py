"""The dual of the steering problem: a quadratic over a box of p sides, for many rows at once.

    min_y  ½ y'Q y + w'y,    low <= y <= high            Q (B, p, p), w (B, K, p)

Up to five sides it is solved exactly: a minimiser is free in some coordinates and at a bound in
the others, which leaves 3ᵖ faces; every face is solved and the best is taken. Beyond, an interior
point takes a fixed number of steps, and Newton steps in the box end the search for the face.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

EXACT = 5  #: the most sides whose faces are enumerated
STEPS = 12  #: of the interior point
NEWTON = 16  #: the most sweeps and Newton steps after it


def box_dual(q: Tensor, w: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """(B, K, p) minimisers of ½ y'Q y + w'y over the box."""
    sides = q.shape[-1]
    if sides == 0:
        return w
    if sides == 1:
        curved = q[:, :, 0].clamp_min(_tiny(q))
        return (-w / curved[:, :, None]).clamp(low, high)
    if sides <= EXACT:
        return _faces(q, w, low, high)
    return _interior(q, w, low, high)


def _faces(q: Tensor, w: Tensor, low: Tensor, high: Tensor) -> Tensor:
    p = q.shape[-1]
    marks = torch.tensor(list(itertools.product((-1, 0, 1), repeat=p)), device=q.device)  # (F, p)
    free = (marks == 0).to(q.dtype)
    fixed = torch.where(marks < 0, low, high) * (1 - free)  # (F, p)
    # one inverse for each set of free coordinates: rows and columns of the others are the identity
    kinds = torch.tensor(list(itertools.product((0.0, 1.0), repeat=p)), device=q.device).to(q)
    kind = ((marks == 0) * 2 ** torch.arange(p - 1, -1, -1, device=q.device)).sum(-1)  # (F,)
    ridge = _ridge(q)[:, None, None, None] * torch.eye(p, dtype=q.dtype, device=q.device)
    block = kinds[:, :, None] * kinds[:, None, :] * q[:, None] + torch.diag_embed(1 - kinds)
    inverse = torch.linalg.inv_ex(block + ridge)[0]  # (B, 2ᵖ, p, p), symmetric
    block, inverse = block[:, kind], inverse[:, kind]  # (B, F, p, p)
    rest = torch.einsum("bij,fj->bfi", q, fixed)  # (B, F, p)
    right = -free[:, None] * (w[:, None] + rest[:, :, None])  # (B, F, K, p)
    y = right @ inverse
    for _ in range(2):  # what the ridge and an ill-conditioned block have cost
        y = y + (right - y @ block) @ inverse
    y = y * free[:, None] + fixed[:, None]
    y = y.clamp(low, high)  # of the solved faces only the best is inside; none may leave the box
    value = _value(q[:, None], w[:, None], y)
    value = torch.where(value.isnan(), torch.inf, value)
    best = value.argmin(dim=1)[:, None, :, None].expand(-1, 1, -1, p)  # (B, 1, K, p)
    return y.gather(1, best)[:, 0]


def _interior(q: Tensor, w: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Primal-dual interior point with a fixed number of steps; rows that are done stand still."""
    scale = q.diagonal(dim1=-2, dim2=-1).amax(-1).clamp_min(_tiny(q))[:, None, None]
    q, w = q / scale, w / scale
    size = w.abs().amax(-1, keepdim=True).clamp_min(1)
    y = ((low + high) / 2).expand_as(w)
    below = size.expand_as(w)  # forces of the two bounds
    above = below
    end = 10 * torch.finfo(q.dtype).eps
    for _ in range(STEPS):
        down, up = y - low, high - y
        gap = ((down * below + up * above).mean(-1, keepdim=True) / 2).clamp_min(end * end)
        target = 0.1 * gap
        left = y @ q + w
        block = q[:, None] + torch.diag_embed(below / down + above / up)  # (B, K, p, p)
        right = -(left - target / down + target / up)
        factor = torch.linalg.cholesky_ex(block)[0]
        step = torch.cholesky_solve(right[..., None], factor)[..., 0]
        to_below = target / down - below - below / down * step
        to_above = target / up - above + above / up * step
        reach = torch.stack(
            [
                _reach(down, step),
                _reach(up, -step),
                _reach(below, to_below),
                _reach(above, to_above),
            ]
        ).amin(0)
        moves = (gap > end) & step.isfinite().all(-1, keepdim=True)
        size = torch.where(moves, (0.99 * reach).clamp_max(1), 0.0)
        step, to_below, to_above = (
            torch.where(moves, s, torch.zeros_like(s)) for s in (step, to_below, to_above)
        )
        y, below, above = y + size * step, below + size * to_below, above + size * to_above
    # 0 is the better start where w is small against q: nothing in it is of the wrong scale
    none = torch.zeros_like(y)
    y = torch.where(y.isfinite(), y, none).clamp(low, high)
    y = torch.where((_value(q, w, y) < 0)[..., None], y, none)
    return _polished(q, w, y, low, high)


def _polished(q: Tensor, w: Tensor, y: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Sweeps over the coordinates, which find bounds whatever the scale of w, and Newton steps.

    A Newton step goes among the coordinates that no bound holds, is bent into the box, and has the
    best of several lengths.
    """
    eye = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    ridge = 10 * torch.finfo(y.dtype).eps * q.diagonal(dim1=-2, dim2=-1).amax(-1)[:, None, None]
    ridged = (q + (ridge + _tiny(q)) * eye)[:, None]
    shares = torch.tensor([1.0, 0.5, 0.2, 0.05, 0.01, 1e-3], dtype=y.dtype, device=y.device)
    for _ in range(min(q.shape[-1] + 3, NEWTON)):
        y = _swept(q, w, y, low, high)
        left = y @ q + w
        blocked = ((y <= low) & (left > 0)) | ((y >= high) & (left < 0))
        free = (~blocked).to(y.dtype)
        block = free[..., :, None] * free[..., None, :] * ridged + torch.diag_embed(1 - free)
        step = torch.linalg.solve_ex(block, -(free * left)[..., None])[0][..., 0] * free
        step = torch.where(step.isfinite(), step, torch.zeros_like(step))
        tried = y[:, None] + shares[:, None, None] * step[:, None]
        first = torch.minimum(_reach(y - low, step), _reach(high - y, -step)).clamp_max(1)
        first = y + first * step  # to the first bound on the way, along a valley without curvature
        tried = torch.cat([tried, first[:, None], y[:, None]], dim=1).clamp(low, high)
        best = _value(q[:, None], w[:, None], tried).argmin(1)[:, None, :, None]
        y = tried.gather(1, best.expand(-1, 1, -1, y.shape[-1]))[:, 0]
    return y


def _swept(q: Tensor, w: Tensor, y: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Each coordinate in turn to its best value."""
    y, left = y.clone(), y @ q + w
    curved = q.diagonal(dim1=-2, dim2=-1).clamp_min(_tiny(q))
    for i in range(q.shape[-1]):
        best = (y[..., i] - left[..., i] / curved[:, None, i]).clamp(low[i], high[i])
        left = left + (best - y[..., i])[..., None] * q[:, None, i]
        y[..., i] = best
    return y


def _reach(room: Tensor, step: Tensor) -> Tensor:
    """How far a step can go until something positive is used up."""
    ratio = torch.where(step < 0, -room / step, torch.inf)
    return ratio.amin(-1, keepdim=True).clamp_max(1e6)


def _value(q: Tensor, w: Tensor, y: Tensor) -> Tensor:
    """(..., K) of y (..., K, p), by the symmetric q (..., p, p)."""
    return (y * (y @ q / 2 + w)).sum(-1)


def _tiny(q: Tensor) -> float:
    return torch.finfo(q.dtype).tiny ** 0.5


def _ridge(q: Tensor) -> Tensor:
    """(B,) what makes a block of parallel gradients solvable without being felt."""
    return 4 * torch.finfo(q.dtype).eps * q.diagonal(dim1=-2, dim2=-1).amax(-1) + _tiny(q)
