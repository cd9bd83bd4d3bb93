"""Seeds of the frames of a clip: one each, or a shared one and residuals of low rank.

With d numbers in a seed and T frames, the rows Z_1, …, Z_T of a clip are

    each for itself       Z_t = z_t,                         z_t ~ N(0, I) at the start,
    shared, rank r        Z_t = s + u_t V,                   u_t (r,), V (r, d),
    shared, free          Z_t = s + e_t,                     e_t (d,),

each frame then put on the shell ‖Z_t‖ = √d, where almost all seeds of N(0, I) are. The shared part
is what a clip shows, the residuals are how it changes (Wang et al. 2025, arXiv:2503.14863: seeds of
one clip are close together). How far frames are apart is

    spread = Σ_t ‖Z_t − s‖² / (T d)   before the shell, to be penalised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.restoration.streams import normal_like

#: standard deviation of a frame's residual at the start, in units of the seed's own
APART = 0.1


@dataclass(frozen=True, eq=False)
class Seeds:
    """The numbers that are optimised, and the map from them to seeds.

    Attributes
    ----------
    shared : torch.Tensor or None
        (N, 1, d), s.
    weights : torch.Tensor or None
        (N, T, r), u_t.
    own : torch.Tensor
        (N, T, d), z_t or e_t; (N, r, d), V, where there are weights.
    shell : bool
        Whether seeds are put on the shell.
    """

    shared: Tensor | None
    weights: Tensor | None
    own: Tensor
    shell: bool

    @property
    def parameters(self) -> list[Tensor]:
        """What an optimiser moves."""
        return [part for part in (self.shared, self.weights, self.own) if part is not None]

    def residuals(self) -> Tensor:
        """(N, T, d): Z_t − s; the seeds themselves where nothing is shared."""
        return self.own if self.weights is None else self.weights @ self.own

    def __call__(self) -> tuple[Tensor, Tensor]:
        """Seeds (N, T, d), and the spread of each clip (N,), 0 where nothing is shared."""
        rows = self.residuals()
        if self.shared is None:
            apart = rows.new_zeros(len(rows))
        else:
            apart, rows = rows.square().mean((1, 2)), self.shared + rows
        return (on_shell(rows) if self.shell else rows), apart

    @torch.no_grad()
    def settle(self) -> None:
        """Scale a clip's numbers so that its seeds are near the shell before they are put on it.

        Changes no seed: (s, u) and (c s, c u) give the same ones. Steps stay of the same size.
        """
        if not self.shell:
            return
        rows = self.residuals() if self.shared is None else self.shared + self.residuals()
        factor = rows.square().mean((1, 2), keepdim=True).rsqrt()  # (N, 1, 1)
        for part in (self.shared, self.own if self.weights is None else self.weights):
            if part is not None:
                part.mul_(factor)


def start_seeds(
    sizes: tuple[int, int, int],
    *,
    semantic: bool,
    rank: int | None,
    shell: bool,
    seed: int,
    like: Tensor,
) -> Seeds:
    """Numbers to begin with.

    Parameters
    ----------
    sizes : tuple of int
        N clips, T frames, d numbers in a seed.
    semantic : bool
        Whether frames share a seed.
    rank : int or None
        Of the residuals; None leaves them free.
    shell : bool
        Whether seeds are put on the shell.
    seed : int
        Of the numbers drawn; the first clips of more are the same.
    like : torch.Tensor
        Of the dtype and device wanted.
    """
    clips, frames, length = sizes

    def drawn(purpose: str, rows: int, columns: int, size: float = 1.0) -> Tensor:
        numbers = normal_like(like.new_empty(clips, rows, columns), seed, f"video {purpose}")
        return (size * numbers).requires_grad_()

    if not semantic:
        return Seeds(None, None, drawn("frames", frames, length), shell)
    shared = drawn("shared", 1, length)
    if rank is None:
        return Seeds(shared, None, drawn("residuals", frames, length, APART), shell)
    weights = drawn("weights", frames, rank, APART / math.sqrt(max(rank, 1)))
    return Seeds(shared, weights, drawn("directions", rank, length), shell)


def on_shell(rows: Tensor) -> Tensor:
    """√d z/‖z‖ over the last size."""
    return rows * (rows.square().mean(-1, keepdim=True) + 1e-30).rsqrt()
