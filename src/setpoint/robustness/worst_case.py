"""Where the images of a batch stand: the worst that any attack has found so far.

Two things are kept for each image. The *radius* is the least distance at which any attack made the
model wrong, +∞ where none did. The *point* is the worst one within the greatest eps: a wrong one
before a right one, and of two alike that with the greater margin. It begins as the clean image.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from setpoint.robustness.success_criterion import AttackVerdict, Judge

NONE = -1  #: the number of the attack where none has found anything


class WorstCase:
    """The worst case so far for B images.

    Parameters
    ----------
    judge : Judge
    x : Tensor (B, *shape)
        The clean images.
    clean : AttackVerdict
        The model's word on them.
    eps : float
        The greatest radius asked for.
    """

    def __init__(self, judge: Judge, x: Tensor, clean: AttackVerdict, eps: float) -> None:
        count, at = len(x), x.device
        self.limit = judge.allowed(eps, x)
        self.point = x.clone()
        self.prediction = clean.prediction.clone()
        self.margin = clean.margin.clone()
        self.distance = torch.zeros(count, dtype=torch.float64, device=at)
        self.won = torch.zeros(count, dtype=torch.bool, device=at)
        self.by = torch.full((count,), NONE, device=at)
        self.stationarity = torch.full((count,), math.nan, dtype=torch.float64, device=at)
        self.radius = torch.full((count,), math.inf, dtype=torch.float64, device=at)
        self.radius_by = torch.full((count,), NONE, device=at)
        self.radius_stationarity = self.stationarity.clone()
        self.iterations = torch.zeros(count, dtype=torch.int64, device=at)

    def take(
        self, attack: int, nearest: bool, rows: Tensor, verdict: AttackVerdict, stationarity: Tensor
    ) -> None:
        """Keep what is worse than before.

        Parameters
        ----------
        attack : int
            Its number.
        nearest : bool
            Whether it looks for the least distance, and its stationarity speaks of that.
        rows : Tensor (b,) of int64
            The images of the batch that were attacked.
        verdict : AttackVerdict
            Of b points.
        stationarity : Tensor (b,)
            NaN where the attack knows none.
        """
        unknown = torch.full_like(stationarity, math.nan)
        nearer = verdict.wrong & (verdict.distance < self.radius[rows])
        self.radius[rows[nearer]] = verdict.distance[nearer]
        self.radius_by[rows[nearer]] = attack
        self.radius_stationarity[rows[nearer]] = (stationarity if nearest else unknown)[nearer]

        within = ~verdict.broken & (verdict.distance <= self.limit)
        won, before = verdict.wrong & within, self.won[rows]
        # the first point that an attack gives replaces the clean image, even where it is no worse:
        # its stationarity tells how hard the attack has tried
        greater = (verdict.margin > self.margin[rows]) | (self.by[rows] == NONE)
        worse = within & ((won & ~before) | ((won == before) & greater))
        places = rows[worse]
        self.point[places] = verdict.x[worse]
        self.prediction[places] = verdict.prediction[worse]
        self.margin[places] = verdict.margin[worse]
        self.distance[places] = verdict.distance[worse]
        self.won[places] = won[worse]
        self.by[places] = attack
        self.stationarity[places] = (unknown if nearest else stationarity)[worse]
