"""When to stop: the variance of the last reconstructions (ES-WMV, Wang et al. 2023).

A method that fits y ever better passes near the image first and then begins to fit the noise.
With the window of the last W reconstructions x_{k−W+1} … x_k and their mean x̄,

    variance_k = 1/W Σ ‖x_i − x̄‖² / n,

which is least about where the reconstruction is best: before, the image still changes; after, the
noise comes in. A run is over when that minimum has not fallen for P steps; the iterate that ends
the window of the least variance is the one selected. The truth is not needed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.options import whole


class WindowedVariance:
    """The moving variance of B runs, each with a minimum and an end of its own.

    Parameters
    ----------
    window : int
        W, the number of reconstructions.
    patience : int
        P, the steps without a new minimum after which a run is over.

    Attributes
    ----------
    variance : torch.Tensor
        (B,) at the last step; infinite until the window is full.
    best : torch.Tensor
        (B,) the least so far.
    best_step : torch.Tensor
        (B,) its step; -1 before there is one.
    done : torch.Tensor
        (B,) which runs are over.
    """

    def __init__(self, window: int = 50, patience: int = 200) -> None:
        whole("window", window, 2)
        whole("patience", patience, 1)
        self.window, self.patience = window, patience
        self.seen = 0
        self._ring: Tensor | None = None

    def update(self, step: int, image: Tensor) -> Tensor:
        """Take in the reconstructions of a step; (B,) says where the variance is a new minimum."""
        flat = image.detach().flatten(1)
        if self._ring is None:
            self._ring = flat.new_zeros(self.window, *flat.shape)
            self.variance = flat.new_full((len(flat),), float("inf"))
            self.best = self.variance.clone()
            self.best_step = torch.full((len(flat),), -1, device=flat.device)
            self.done = torch.zeros(len(flat), dtype=torch.bool, device=flat.device)
        self._ring[self.seen % self.window] = flat
        self.seen += 1
        if self.seen >= self.window:
            self.variance = self._ring.var(dim=0, correction=0).mean(dim=1)
        better = (self.variance < self.best) & ~self.done
        self.best = torch.where(better, self.variance, self.best)
        self.best_step = torch.where(better, step, self.best_step)
        over = (self.best_step >= 0) & (step - self.best_step >= self.patience)
        self.done = self.done | over
        return better
