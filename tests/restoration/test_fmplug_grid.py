"""FMPlug against a grid over its two unknowns, on a flow known in closed form."""

import numpy as np
import pytest
import torch
from tests.restoration.linear_cases import Velocity
from tests.restoration.oracles import GaussianFlow, best_plugged

from setpoint.restoration import restore
from setpoint.restoration.priors.flow import FlowPrior


@pytest.mark.parametrize("range", [(-1.0, 1.0), (0.0, 1.0)])
def test_fmplug_reaches_the_best_start_of_a_grid(range):
    """Two pixels: z is an angle, t a number, and a grid over both knows the least residual."""
    rng = np.random.default_rng(8)
    flow = GaussianFlow(np.array([0.3, -0.2]), np.array([[0.3, 0.1], [0.1, 0.2]]))
    row = np.array([[0.8, -0.5], [0.3, 0.9]])
    low, high = range
    image_of = lambda u: low + (u + 1) * (high - low) / 2  # noqa: E731
    truth = image_of(0.4 * rng.normal(size=(3, 2)))
    y = truth @ row.T + 0.05
    prior = FlowPrior(Velocity(flow), shape=(1, 1, 2), range=range, steps=60, clip=False)
    matrix = torch.tensor(row)
    found = restore(
        torch.tensor(y).reshape(3, 1, 1, 2),
        lambda x: (x.flatten(1) @ matrix.T).reshape(x.shape),
        prior,
        noise=0.02,
        method="fmplug",
        optimiser="adam",
        copies=1,
        iterations=300,
        stopping=False,
    )
    for i in [0, 1, 2]:
        inside = (y[i] - low) * 2 / (high - low) - 1
        best = best_plugged(
            flow, inside, lambda u, i=i: ((image_of(u) @ row.T - y[i]) ** 2).mean(axis=1)
        )
        assert float(found.residual[i]) <= np.sqrt(best) + 2e-2
