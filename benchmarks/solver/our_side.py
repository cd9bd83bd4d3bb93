"""One problem by :func:`setpoint.solve`: ``python -m benchmarks.solver.our_side NAME N``."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from benchmarks.solver.problems import PROBLEMS, Options, Problem, measured
from setpoint.solvers.solve import solve


def run(problem: Problem, settings: Options) -> dict[str, Any]:
    """At the defaults; PyGRANSO's limit of iterations and its tolerance where they are set."""
    calls = 0

    def objective(v: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return problem.objective(v)

    begun = time.process_time()
    found = solve(
        objective,
        {name: x.clone() for name, x in problem.start.items()},
        inequalities=problem.inequalities or (),
        equalities=problem.equalities or (),
        max_iterations=int(settings.get("maxit", 1000)),
        tolerance=settings.get("opt_tol", 1e-8),
    )
    seconds = time.process_time() - begun
    return {
        **measured(problem, found.x),
        "seconds": seconds,
        "iterations": found.iterations,
        "evaluations": calls,
        "kkt": found.kkt,
        "status": found.status,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    made = PROBLEMS[sys.argv[1]]()
    settings = made.settings[int(sys.argv[2])]
    run(made, {**settings, "maxit": 3})  # what is loaded at the first call is not counted
    print(json.dumps(run(made, settings)))
