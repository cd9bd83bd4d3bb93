"""Memory of curvature of each row: the whole inverse Hessian, or the last m pairs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import KindError

# The whole inverse Hessian of each row: H (B, n, n), by BFGS.
#
#     H⁺ = (I − ρ s y') H (I − ρ y s') + ρ s s',    ρ = 1 / s'y
#
# Coordinates that rest on a bound are held still: among the free ones F the inverse of the
# Hessian's block is (B_FF)⁻¹ = H_FF − H_FN (H_NN)⁻¹ H_NF, not H_FF.
#
# References
# ----------
# Nocedal, Wright, Numerical optimization, 2006, equation 6.17.


@dataclass(eq=False)
class FullMemory:
    """H (B, n, n), and which rows have not been updated yet."""

    h: Tensor
    fresh: Tensor  # (B,) bool

    @classmethod
    def start(cls, x: Tensor) -> FullMemory:
        """The identity for each row of x (B, n)."""
        eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        return cls(eye.expand(len(x), -1, -1).clone(), x.new_ones(len(x)).bool())

    def take(self, index: Tensor) -> FullMemory:
        """The memory of some rows."""
        return FullMemory(self.h.index_select(0, index), self.fresh.index_select(0, index))

    def put(self, index: Tensor, other: FullMemory) -> None:
        """Write the memory of some rows."""
        self.h.index_copy_(0, index, other.h)
        self.fresh.index_copy_(0, index, other.fresh)

    def apply(self, vectors: Tensor, free: Tensor | None) -> Tensor:
        """(B, k, n) H v of each vector v, among the free coordinates (B, n) where given."""
        if free is None:
            return vectors @ self.h
        still = (~free).to(vectors.dtype)
        u = (vectors * free[:, None]) @ self.h
        block = still[:, :, None] * still[:, None, :] * self.h
        block = block + torch.diag_embed(free.to(vectors.dtype))
        factor = torch.linalg.cholesky_ex(block)[0]
        z = torch.cholesky_solve((u * still[:, None]).mT, factor).mT
        product = u - z @ self.h
        product = torch.where(product.isfinite(), product, u)  # a block that lost its definiteness
        return product * free[:, None]

    def update(self, s: Tensor, y: Tensor, where: Tensor) -> None:
        """Take in the pair (s, y) (B, n) in the rows ``where`` (B,), which have s'y > 0."""
        sy = (s * y).sum(-1)
        yy = (y * y).sum(-1)
        where = where & (sy > 0) & (yy > 0)
        first = where & self.fresh
        scale = torch.where(first, sy / torch.where(first, yy, 1.0), 1.0)
        self.h.mul_(scale[:, None, None])
        self.fresh = self.fresh & ~where
        s, y = (torch.where(where[:, None], a, torch.zeros_like(a)) for a in (s, y))
        rho = torch.where(where, 1 / torch.where(where, sy, 1.0), 0.0)
        hy = (self.h @ y[:, :, None])[:, :, 0]
        both = rho * (1 + rho * (y * hy).sum(-1))
        left = torch.stack([both[:, None] * s - rho[:, None] * hy, -rho[:, None] * s], dim=2)
        right = torch.stack([s, hy], dim=1)
        self.h.baddbmm_(left, right)


# The last m pairs of each row in place of its inverse Hessian: S, Y (B, m, n), compact form.
#
#     H = γ I + [S' γY'] [ R⁻ᵀ(D + γ YY')R⁻¹   −R⁻ᵀ ] [ S  ]
#                        [ −R⁻¹                  0   ] [ γY ]
#
# with rows s, y of S, Y from old to new, R the upper triangle of S Y', D its diagonal, γ = s'y /
# y'y of the newest pair. All columns go through it at once. Where coordinates rest on a bound, the
# pairs
# are read in the free ones alone, and those that lose s'y > 0 by it are left out: H stays positive
# definite.
#
# References
# ----------
# Byrd, Nocedal, Schnabel, Representations of quasi-Newton matrices, 1994, equation 3.13.


@dataclass(eq=False)
class LimitedMemory:
    """The pairs in a ring: slot ``head`` of a row is the next to be written."""

    s: Tensor  # (B, m, n)
    y: Tensor  # (B, m, n)
    head: Tensor  # (B,) long
    count: Tensor  # (B,) long: how many slots are used

    @classmethod
    def start(cls, x: Tensor, size: int) -> LimitedMemory:
        """No pairs yet for each row of x (B, n)."""
        empty = x.new_zeros(len(x), size, x.shape[1])
        none = torch.zeros(len(x), dtype=torch.long, device=x.device)
        return cls(empty, empty.clone(), none, none.clone())

    @property
    def fresh(self) -> Tensor:
        """(B,) which rows have no pair yet."""
        return self.count == 0

    def take(self, index: Tensor) -> LimitedMemory:
        """The memory of some rows."""
        parts = (self.s, self.y, self.head, self.count)
        return LimitedMemory(*(a.index_select(0, index) for a in parts))

    def put(self, index: Tensor, other: LimitedMemory) -> None:
        """Write the memory of some rows."""
        for mine, theirs in (
            (self.s, other.s),
            (self.y, other.y),
            (self.head, other.head),
            (self.count, other.count),
        ):
            mine.index_copy_(0, index, theirs)

    def apply(self, vectors: Tensor, free: Tensor | None) -> Tensor:
        """(B, k, n) H v of each vector v, among the free coordinates (B, n) where given."""
        size = self.s.shape[1]
        s, y = self.s, self.y
        if free is not None:
            s, vectors = s * free[:, None], vectors * free[:, None]
            y = y * free[:, None]
        sy, yy = s @ y.mT, y @ y.mT  # (B, m, m)
        a, b = s @ vectors.mT, y @ vectors.mT  # (B, m, k)
        # from ring order to old-to-new: the slot after the newest is the oldest
        order = (self.head[:, None] + torch.arange(size, device=s.device)) % size
        sy, yy = _reordered(sy, order), _reordered(yy, order)
        a, b = (c.gather(1, order[:, :, None].expand_as(c)) for c in (a, b))
        ss = (s * s).sum(-1).gather(1, order)
        diagonal, squares = sy.diagonal(dim1=-2, dim2=-1), yy.diagonal(dim1=-2, dim2=-1)
        least = torch.finfo(s.dtype).eps ** 0.75
        keep = diagonal > least * (ss * squares).sqrt()
        keep = keep & (diagonal > 0)
        usable = keep.to(s.dtype)
        pairs = usable[:, :, None] * usable[:, None, :]
        gamma = _scale(diagonal, squares, keep)[:, None, None]
        r = (sy * pairs).triu() + torch.diag_embed(1 - usable)
        a, b = a * usable[:, :, None], b * usable[:, :, None]
        u = torch.linalg.solve_triangular(r, a, upper=True)
        middle = torch.diag_embed(diagonal * usable) + gamma * yy * pairs
        first = torch.linalg.solve_triangular(r.mT, middle @ u - gamma * b, upper=False)
        # back to ring order
        first, second = (
            torch.zeros_like(c).scatter(1, order[:, :, None].expand_as(c), c)
            for c in (first * usable[:, :, None], -gamma * u * usable[:, :, None])
        )
        return gamma * vectors + first.mT @ s + second.mT @ y

    def update(self, s: Tensor, y: Tensor, where: Tensor) -> None:
        """Take in the pair (s, y) (B, n) in the rows ``where`` (B,), which have s'y > 0."""
        size = self.s.shape[1]
        slot = self.head[:, None, None].expand(-1, 1, s.shape[1])
        for ring, new in ((self.s, s), (self.y, y)):
            old = ring.gather(1, slot)
            ring.scatter_(1, slot, torch.where(where[:, None, None], new[:, None], old))
        self.head = torch.where(where, (self.head + 1) % size, self.head)
        self.count = torch.where(where, (self.count + 1).clamp_max(size), self.count)


def _reordered(matrix: Tensor, order: Tensor) -> Tensor:
    rows = matrix.gather(1, order[:, :, None].expand_as(matrix))
    return rows.gather(2, order[:, None, :].expand_as(matrix))


def _scale(diagonal: Tensor, squares: Tensor, keep: Tensor) -> Tensor:
    """(B,) γ of the newest pair that is kept; 1 where there is none."""
    size = keep.shape[1]
    place = torch.arange(1, size + 1, device=keep.device) * keep
    last = place.amax(1, keepdim=True)  # 0: none
    pick = (last - 1).clamp_min(0)
    ratio = diagonal.gather(1, pick) / squares.gather(1, pick)
    return torch.where(last > 0, ratio, 1.0)[:, 0]


Memory = FullMemory | LimitedMemory

WIDE = 200  #: from this many variables on, pairs are kept
NUMBERS = 2e7  #: and where B n² would be more numbers than this
PAIRS = 10


def memory_for(hessian: str | int, x: Tensor) -> Memory:
    """The memory that ``hessian`` asks for: "auto", "full" or how many pairs."""
    rows, wide = x.shape
    if hessian == "auto":
        hessian = "full" if wide < WIDE and rows * wide * wide <= NUMBERS else PAIRS
    if hessian == "full":
        return FullMemory.start(x)
    if isinstance(hessian, bool) or not isinstance(hessian, int) or hessian < 1:
        raise KindError(f'hessian={hessian!r}: "auto", "full" or a number of pairs, 1 or more')
    return LimitedMemory.start(x, hessian)
