"""A prior of smooth images that needs no training, for tests of what lies around the solvers."""

import numpy as np
import torch

from setpoint.restoration.priors.linear_gaussian import LinearPrior

SIDE = 12


def make(side=SIDE, waves=3, scale=0.1):
    """Images 0.5 + Σ z cos cos: the lowest cosine waves of both directions."""
    at = (np.arange(side) + 0.5) * np.pi / side
    lines = [np.cos(k * at) for k in range(waves)]
    columns = [scale * np.outer(a, b).ravel() for a in lines for b in lines]
    matrix = torch.tensor(np.stack(columns, 1), dtype=torch.float32)
    return LinearPrior(matrix, torch.full((side * side,), 0.5), (1, side, side), (0.0, 1.0))


def images(count, seed=0, **settings):
    """Some of its images, moved into [0, 1] where they leave it."""
    prior = make(**settings)
    z = torch.randn(count, *prior.seed_shape, generator=torch.Generator().manual_seed(seed))
    return prior(z).clamp(0.0, 1.0)
