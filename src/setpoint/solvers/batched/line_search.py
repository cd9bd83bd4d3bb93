"""Weak Wolfe for every row at its own pace: each call of the functions is one trial of each row.

    φ(x(t)) <= φ(x) − c₁ t Δ   (Δ: what the model promises)      otherwise t is too long
    φ'(x(t)) >= c₂ φ'(x)                                         otherwise t is too short

t is doubled until it is too long once, then the bracket is halved. No row waits for another: a row
that has found its t moves on with the next call while the others go on searching.

References
----------
Lewis, Overton, Nonsmooth optimization via quasi-Newton methods, 2013, algorithm 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

DECREASE = 1e-4
CURVATURE = 0.5
PATIENCE = 10  #: trials after which a step that brings enough is taken, whatever its curvature
HASTE = 6  #: halvings after which an empty bracket is cut to a tenth
TRIALS = 60  #: the most


@dataclass(frozen=True, eq=False)
class BatchedLineSearch:
    """Where each row is in its search."""

    t: Tensor  # (B,) what is tried
    short: Tensor  # (B,) the longest step known to bring enough; 0 at first
    long: Tensor  # (B,) the shortest step known to be too long; infinite at first
    trials: Tensor  # (B,) long

    @classmethod
    def start(cls, t: Tensor) -> BatchedLineSearch:
        """A search that tries t (B,) first."""
        none = torch.zeros_like(t)
        return cls(t, none, torch.full_like(t, torch.inf), none.long())

    def patient(self) -> Tensor:
        """(B,) rows that still ask for the curvature condition."""
        return self.trials < PATIENCE

    def further(
        self, enough: Tensor, length: Tensor, smallest: Tensor
    ) -> tuple[BatchedLineSearch, Tensor]:
        """The next trial of each row, and which rows have nothing left to try.

        Parameters
        ----------
        enough : torch.Tensor
            (B,) whether t brought enough (and was too short).
        length, smallest : torch.Tensor
            (B,) |d|, and the length of a step that changes nothing.
        """
        short = torch.where(enough, self.t, self.short)
        long = torch.where(enough, self.long, self.t)
        bracketed = long.isfinite()
        # far from the first trial steps shrink faster: what is left is a kink, or round-off
        share = torch.where((short == 0) & (self.trials > HASTE), 0.1, 0.5)
        t = torch.where(bracketed, short + share * (long - short), 2 * self.t)
        trials = self.trials + 1
        closed = bracketed & ((long - short) * length <= smallest)
        tired = trials >= PATIENCE
        # a step known to bring enough is tried again, now without the curvature condition
        settle = (closed | tired) & (short > 0)
        t = torch.where(settle & bracketed, short, t)
        trials = torch.where(settle, trials.clamp_min(PATIENCE), trials)
        lost = (closed & (short == 0)) | (trials >= TRIALS)
        return BatchedLineSearch(t, short, long, trials), lost
