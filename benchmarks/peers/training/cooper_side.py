"""Cooper's side, by its own Python: ``python -m benchmarks.peers.training.cooper_side FOLDER``.

The Lagrangian of its guide: the multiplier starts at 0 and moves by gradient ascent or by its nuPI
on hard decisions (its proxy constraint), the network by Adam on the surrogate; the alternating
optimizer that moves the multiplier first. Prints version and times.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cooper
import torch

from benchmarks.peers.networks import shuffled
from benchmarks.peers.training.batch_rates import BatchGoal
from benchmarks.peers.training.loop import Training, everybody


class ConstrainedRecall(cooper.ConstrainedMinimizationProblem):
    """The goal over one batch."""

    def __init__(self, model, goal):
        super().__init__()
        self.model, self.goal = model, goal
        self.bound = cooper.Constraint(
            constraint_type=cooper.ConstraintType.INEQUALITY,
            formulation_type=cooper.formulations.Lagrangian,
            multiplier=cooper.multipliers.DenseMultiplier(num_constraints=1),
        )

    def compute_cmp_state(self, x, y):
        """Loss and violations."""
        z = self.model(x)
        state = cooper.ConstraintState(
            violation=self.goal.violation(z, y), strict_violation=self.goal.hard(z, y)
        )
        loss = self.goal.objective(z, y)
        return cooper.CMPState(loss=loss, observed_constraints={self.bound: state})


def ascent(parameters, rate):
    """Gradient ascent."""
    return torch.optim.SGD(parameters, lr=rate, maximize=True)


def controller(parameters, rate):
    """Its controller, with a proportional part ten times the integral one."""
    return cooper.optim.nuPI(parameters, lr=rate, Kp=10.0, Ki=1.0, maximize=True)


def lagrangian(aim, surrogate, rate, dual_rate, dual=ascent):
    """A setup."""

    def setup(model, y):
        problem = ConstrainedRecall(model, BatchGoal.of(aim, surrogate, y))
        primal = torch.optim.Adam(model.parameters(), lr=rate)
        duals = dual(problem.dual_parameters(), dual_rate)
        optimizer = cooper.optim.AlternatingDualPrimalOptimizer(problem, primal, duals)

        def step(x, y, index):
            del index
            optimizer.roll(compute_cmp_state_kwargs={"x": x, "y": y})

        def slower():
            for group in primal.param_groups:
                group["lr"] /= 10

        return Training(step, slower)

    return setup, shuffled


#: aim -> surrogate, step size of the network, step size and kind of the multiplier's ascent: the
#: best of 12 to 14 on seeds that the comparison does not use
CHOICES = {
    "floor": [
        ("hinge", 1e-3, 0.01, ascent),
        ("hinge", 3e-3, 0.01, ascent),
        ("log", 1e-3, 0.1, ascent),
        ("log", 3e-3, 0.1, ascent),
        ("hinge", 1e-3, 0.01, controller),
        ("ratio", 1e-3, 0.1, ascent),
    ],
    "cap": [
        ("log", 1e-3, 10, ascent),
        ("log", 3e-3, 10, ascent),
        ("log", 1e-3, 100, ascent),
        ("hinge", 1e-3, 1, ascent),
        ("hinge", 1e-3, 10, ascent),
        ("hinge", 1e-3, 1, controller),
    ],
}
WAYS = {
    (aim, "Cooper"): {
        f"{surrogate} {rate:g} {dual_rate:g} {dual.__name__}": lagrangian(
            aim, surrogate, rate, dual_rate, dual
        )
        for surrogate, rate, dual_rate, dual in choices
    }
    for aim, choices in CHOICES.items()
}

if __name__ == "__main__":
    paces = everybody(Path(sys.argv[1]), WAYS)
    json.dump({"version": cooper.__version__, "paces": paces}, sys.stdout)
