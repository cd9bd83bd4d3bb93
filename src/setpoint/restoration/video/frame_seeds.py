"""Seeds of the frames of a clip: one each, or a shared one and residuals of low rank.

With d numbers in a seed and T frames, the rows Z_1, …, Z_T of a clip are

    each for itself     Z_t = z_t,                      z_t ~ N(0, I) at the start,
    shared              Z_t = s + u_t V + e_t,          u_t (r,), V (r, d), e_t (d,),

each frame then put on the shell ‖Z_t‖ = √d, where almost all seeds of N(0, I) are. The shared part
is what a clip shows, the residuals of rank r are how it changes (Wang et al. 2025,
arXiv:2503.14863: seeds of one clip are close together); e_t is what a frame may have beyond, either
nothing or penalised by its

    slack = Σ_t ‖e_t‖² / (T d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.random_streams import normal_like

#: standard deviation of a frame's residual at the start, in units of the seed's own
APART = 0.1


@dataclass(frozen=True, eq=False)
class Seeds:
    """The numbers that are optimised, and the map from them to seeds.

    Attributes
    ----------
    shared : torch.Tensor or None
        (N, 1, d), s.
    weights, directions : torch.Tensor or None
        (N, T, r) and (N, r, d), u_t and V.
    own : torch.Tensor or None
        (N, T, d), z_t where nothing is shared, else e_t.
    shell : bool
        Whether seeds are put on the shell.
    """

    shared: Tensor | None
    weights: Tensor | None
    directions: Tensor | None
    own: Tensor | None
    shell: bool

    @property
    def parameters(self) -> list[Tensor]:
        """What an optimiser moves."""
        parts = (self.shared, self.weights, self.directions, self.own)
        return [part for part in parts if part is not None]

    def rows(self) -> Tensor:
        """(N, T, d): the seeds before they are put on the shell."""
        if self.shared is None or self.weights is None or self.directions is None:
            assert self.own is not None
            return self.own
        rows = self.shared + self.weights @ self.directions
        return rows if self.own is None else rows + self.own

    def __call__(self) -> tuple[Tensor, Tensor]:
        """Seeds (N, T, d), and the slack of each clip (N,), 0 where there is none."""
        rows = self.rows()
        if self.own is None or self.shared is None:
            slack = rows.new_zeros(len(rows))
        else:
            slack = self.own.square().mean((1, 2))
        return (on_shell(rows) if self.shell else rows), slack

    @torch.no_grad()
    def settle(self) -> None:
        """Scale a clip's numbers so that its seeds are near the shell before they are put on it.

        Changes no seed: (s, u, e) and (c s, c u, c e) give the same ones. Steps stay of one size.
        """
        if not self.shell:
            return
        factor = self.rows().square().mean((1, 2), keepdim=True).rsqrt()  # (N, 1, 1)
        for part in (self.shared, self.weights, self.own):
            if part is not None:
                part.mul_(factor)


def start_seeds(
    sizes: tuple[int, int, int],
    *,
    semantic: bool,
    rank: int,
    free: bool,
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
    rank : int
        Of the residuals.
    free : bool
        Whether frames may have more than that.
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
        return Seeds(None, None, None, drawn("frames", frames, length), shell)
    shared, directions = drawn("shared", 1, length), drawn("directions", rank, length)
    weights = drawn("weights", frames, rank, APART / math.sqrt(max(rank, 1)))
    own = like.new_zeros(clips, frames, length).requires_grad_() if free else None
    return Seeds(shared, weights, directions, own, shell)


def on_shell(rows: Tensor) -> Tensor:
    """√d z/‖z‖ over the last size."""
    return rows * (rows.square().mean(-1, keepdim=True) + 1e-30).rsqrt()
