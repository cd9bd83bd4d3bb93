"""FMPlug against a grid over its time, the rest in closed form, on a flow that is Gaussian."""

import numpy as np
import pytest
import torch
from tests.restoration.linear_cases import Velocity
from tests.restoration.oracles import GaussianFlow, LinearGaussian, plugged_profile

from setpoint.restoration.measurement.forward_model import Forward
from setpoint.restoration.measurement.iterate_history import IterateHistory
from setpoint.restoration.measurement.noise import Gaussian
from setpoint.restoration.measurement.restoration_task import RestorationTask
from setpoint.restoration.methods.first_image import rough
from setpoint.restoration.methods.fmplug import fmplug
from setpoint.restoration.priors.flow import FlowPrior

FLOW = GaussianFlow(np.array([0.3, -0.2, 0.1]), np.diag([0.3, 0.2, 0.1]) + 0.05)
TIMES = np.linspace(0.02, 0.98, 121)
SIGMA = 0.05


def problem(box):
    rng = np.random.default_rng(8)
    row = rng.normal(size=(2, 3))
    truth = box[0] + (0.8 * rng.normal(size=(3, 3)) + 1) * (box[1] - box[0]) / 2
    y = torch.tensor(truth @ row.T)
    matrix = torch.tensor(row)
    prior = FlowPrior(Velocity(FLOW), shape=(1, 1, 3), range=box, steps=4, clip=False)
    forward = Forward(lambda x: x.flatten(1) @ matrix.T, y)
    return RestorationTask(y, forward, prior, Gaussian(SIGMA), 0, IterateHistory()), row


@pytest.mark.parametrize("box", [(-1.0, 1.0), (0.0, 1.0)])
def test_seed_and_time_are_the_best_that_explain_y(box):
    task, row = problem(box)
    options = {"warm_from": "smooth", "copies": 1, "time": 0.5}  # log t/(1 − t) begins at 0
    found = fmplug(task, **options, iterations=200, evaluations=500)
    warm = task.prior.from_image(rough(task)).flatten(1).numpy()
    anchors = task.seeds(1).flatten(1).numpy()
    residual = task.forward.residual(found.image, task.y).sqrt()
    assert float(residual.max()) <= SIGMA * (1 + 1e-4)
    for i in range(3):

        def affine(t, i=i):
            starts = t * warm[i] + (1 - t) * (anchors[i] + np.r_[np.zeros((1, 3)), np.eye(3)])
            ends = task.prior.carry(
                torch.tensor(starts).reshape(-1, 1, 1, 3), torch.full((4,), t, dtype=torch.float64)
            )
            ends = ends.flatten(1).numpy()
            return (ends[1:] - ends[0]).T, ends[0]

        y = task.y[i : i + 1].numpy()
        case = LinearGaussian(np.eye(3), np.zeros(3), row, SIGMA, y, y)
        values = plugged_profile(case, 3.0, TIMES)(affine)
        best = int(values.argmin())
        assert 0 < best < len(TIMES) - 1
        away = 0.5 * float(((found.seed[i].flatten().numpy() - anchors[i]) ** 2).sum())
        # the seed's own part of the least cost, at the best time of the grid
        t = TIMES[best]
        expected = values[best] - 1.5 * np.log(t / (1 - t)) ** 2
        assert away == pytest.approx(expected, abs=0.02 * (1 + expected))
