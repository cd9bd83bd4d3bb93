"""One problem by PyGRANSO, in its environment: ``python -m benchmarks.solver.pygranso_side``."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from benchmarks.solver.problems import PROBLEMS, Options, Problem, measured
from benchmarks.solver.pygranso_shim import silent

from pygranso.pygranso import pygranso  # isort: skip
from pygranso.pygransoStruct import pygransoStruct  # isort: skip

CPU = torch.device("cpu")


def solve(problem: Problem, settings: Options) -> dict[str, Any]:
    """Its last point; where that violates by more than its tolerance of 1e-6, its best one."""
    calls = 0

    def both(struct: Any) -> list[Any]:
        nonlocal calls
        calls += 1
        v = {name: getattr(struct, name) for name in problem.start}
        return [problem.objective(v), *(_struct(part, v) for part in _parts(problem))]

    options: Any = pygransoStruct()
    options.x0 = torch.cat([x.reshape(-1, 1) for x in problem.start.values()])
    options.torch_device, options.print_level = CPU, 0
    for name, value in settings.items():
        setattr(options, name, value)
    spec = {name: list(x.shape) for name, x in problem.start.items()}
    begun = time.process_time()
    with silent():
        found: Any = pygranso(var_spec=spec, combined_fn=both, user_opts=options)
    seconds = time.process_time() - begun
    ends = [judged(problem, x.x) for x in _ends(found)]
    held = [x for x in ends if x["violation"] <= 1e-6]
    return {
        **(held or ends)[0],
        "seconds": seconds,
        "iterations": int(found.iters),
        "evaluations": calls,
        "status": f"code {found.termination_code}",
    }


def _ends(found: Any) -> list[Any]:
    """The points it reports; without constraints there is no most feasible one."""
    return [getattr(found, x) for x in ("final", "best", "most_feasible") if hasattr(found, x)]


def _parts(problem: Problem) -> tuple[Any, Any]:
    return problem.inequalities, problem.equalities


def _struct(part: Any, v: dict[str, torch.Tensor]) -> Any:
    if part is None:
        return None
    made: Any = pygransoStruct()
    made.c = part(v)
    return made


def judged(problem: Problem, x: torch.Tensor) -> dict[str, float]:
    """Objective and the greatest violation at a flat point, by the problem itself."""
    x, v, at = x.detach().reshape(-1), {}, 0
    for name, start in problem.start.items():
        v[name] = x[at : at + start.numel()].reshape(start.shape)
        at += start.numel()
    return measured(problem, v)


if __name__ == "__main__":
    torch.set_num_threads(1)
    made = PROBLEMS[sys.argv[1]]()
    settings = made.settings[int(sys.argv[2])]
    solve(made, {**settings, "maxit": 3})  # what is loaded at the first call is not counted
    print(json.dumps(solve(made, settings)))
