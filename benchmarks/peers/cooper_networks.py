"""Cooper's networks, by its own Python: ``python -m benchmarks.peers.cooper_networks FOLDER``.

"Maximize recall subject to precision >= 0.8" written by hand, as Cooper's users do. With P the
positives expected in a batch, the loss is Σ softplus(−z) / P over the positives, an upper bound of
the share missed (in units of log 2), and the constraint [0.8 · FP − 0.2 · TP] / P <= 0: with
sigmoids for the network's gradient and with hard decisions (z >= 0) for the multiplier, Cooper's
proxy constraint. Adam for the network, gradient ascent for the multiplier, which starts at 0; the
optimizer is the alternating one that its guide starts with (dual first). Prints the version.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cooper
import torch
from torch.nn import functional

from benchmarks.peers.networks import RATE, everybody, shuffled

FLOOR = 0.8


class FlooredRecall(cooper.ConstrainedMinimizationProblem):
    """The goal over one batch."""

    def __init__(self, model, share):
        super().__init__()
        self.model, self.share = model, share
        self.precision = cooper.Constraint(
            constraint_type=cooper.ConstraintType.INEQUALITY,
            formulation_type=cooper.formulations.Lagrangian,
            multiplier=cooper.multipliers.DenseMultiplier(num_constraints=1),
        )

    def compute_cmp_state(self, x, y):
        """Loss and violations."""
        z = self.model(x)
        expected = self.share * len(y)
        loss = (y * functional.softplus(-z)).sum() / expected
        worth = torch.where(y == 1, FLOOR - 1, FLOOR)  # of deciding a row positive
        soft = (worth * z.sigmoid()).sum() / expected
        hard = (worth * (z.detach() >= 0)).sum() / expected
        state = cooper.ConstraintState(violation=soft, strict_violation=hard)
        return cooper.CMPState(loss=loss, observed_constraints={self.precision: state})


def lagrangian(dual_rate):
    """A setup with that step size of the multiplier."""

    def setup(model, y):
        problem = FlooredRecall(model, float((y == 1).double().mean()))
        primal = torch.optim.Adam(model.parameters(), lr=RATE)
        dual = torch.optim.SGD(problem.dual_parameters(), lr=dual_rate, maximize=True)
        optimizer = cooper.optim.AlternatingDualPrimalOptimizer(problem, primal, dual)

        def step(x, y, index):
            del index
            optimizer.roll(compute_cmp_state_kwargs={"x": x, "y": y})

        def slower():
            for group in primal.param_groups:
                group["lr"] /= 10

        return step, slower

    return setup


SETUPS = {f"Cooper, dual step {rate:g}": (lagrangian(rate), shuffled) for rate in (0.01, 0.1)}

if __name__ == "__main__":
    everybody(Path(sys.argv[1]), SETUPS)
    json.dump({"version": cooper.__version__}, sys.stdout)
