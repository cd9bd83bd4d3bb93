"""Minimise f(x) subject to c(x) <= 0, e(x) = 0 and low <= x <= high.

All functions may be non-convex and have kinks (locally Lipschitz). The answer is a local solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import choice, is_real, number, whole
from setpoint.solvers.augmented import AugmentedLagrangian
from setpoint.solvers.augmented.augmented_lagrangian import solved
from setpoint.solvers.result import Multipliers, Result, SolverProgress
from setpoint.solvers.sqp import quadratic_program as quadratic
from setpoint.solvers.sqp.bfgs_sqp import SqpRun, SqpSettings
from setpoint.solvers.sqp.functions import Functions, host
from setpoint.solvers.sqp.penalty_inner_solver import FULL, MEMORY
from setpoint.solvers.sqp.steering import Box
from setpoint.solvers.sqp.stopping import Limits

METHODS = ("auto", "sqp", "augmented-lagrangian")
EXACT = 1e-8  #: tolerances of exact values
ROUGH = 3e-3  #: and of float32, ten times the root of its rounding; of constraints a hundredth
STEPS = 1000  #: at most, by default
ROUNDS = ("epochs", "rounds")  #: what a limit of iterations means to the augmented Lagrangian


Variables = Tensor | Mapping[str, Tensor] | nn.Module  #: what x can be
ConstraintFunctions = Callable[..., Tensor] | Sequence[Callable[..., Tensor]]
Side = float | Tensor | np.ndarray | Mapping[str, Any] | None  #: low or high
Batches = Iterable[Any] | Callable[[], Any]


def solve(
    objective: Callable[..., Tensor],
    x0: Variables,
    *,
    inequalities: ConstraintFunctions = (),
    equalities: ConstraintFunctions = (),
    bounds: tuple[Side, Side] | None = None,
    method: str | AugmentedLagrangian = "auto",
    batches: Batches | None = None,
    tolerance: float | None = None,
    feasibility: float | None = None,
    max_iterations: int | None = None,
    max_evaluations: float | None = None,
    max_seconds: float | None = None,
    hessian: str | int = "auto",
    qp: str = "auto",
    callback: Callable[[SolverProgress], object] | None = None,
    resume: dict[str, Any] | None = None,
    seed: int = 0,
) -> Result:
    """Minimise f(x) subject to c(x) <= 0, e(x) = 0 and low <= x <= high.

    Parameters
    ----------
    objective : callable
        f: x -> scalar tensor.
    x0 : torch.Tensor, dict of tensors or torch.nn.Module
        Where to start, and what x is: the functions are called with such a thing. Of a module the
        parameters are the variables, and it is left with the solution.
    inequalities, equalities : callable or sequence of callables
        c and e: x -> tensor of any shape.
    bounds : tuple, optional
        (low, high), each None, a number, a tensor that broadcasts to x, or for a dict or a module a
        dict of them by name. They are kept at every point where a function is called.
    method : {"auto", "sqp", "augmented-lagrangian"} or AugmentedLagrangian
        Auto: "augmented-lagrangian" with ``batches``, "sqp" without. An instance carries its own
        options.
    batches : iterable or callable, optional
        Minibatches: the functions are then called f(x, batch), and their means are meant.
    tolerance : float, optional
        It is solved where no coordinate of the residual whose norm is kkt is more than this times
        1 + the sizes of what it is the sum of. 1e-8 by default, 3e-3 in float32; with ``batches``
        1e-3 times 1 + ‖∇f‖.
    feasibility : float, optional
        What a constraint may be broken by: 1e-8, in float32 3e-5, with ``batches`` 1e-3.
    max_iterations, max_evaluations, max_seconds : number, optional
        Limits; the best point so far is returned. 1000 steps by default; of the augmented
        Lagrangian they are rounds, or passes over the batches.
    hessian : "auto", "full" or int
        The whole matrix, or how many pairs are kept of it. Auto: whole up to 1000 variables.
    qp : {"auto", "daqp", "piqp"}
        What solves the quadratic programs.
    callback : callable, optional
        Told a :class:`SolverProgress` after each step; what is true of its answer ends the run.
    resume : dict, optional
        The ``state`` of an earlier result of the same problem: it goes on as if never stopped.
        Iterations and evaluations count on from there, limits included; seconds begin anew.
    seed : int
        Of the points that are sampled around a kink where no step leads on.

    Returns
    -------
    Result
        The best point so far, however it ended: see ``status``. Ctrl-C ends it, too.

    Raises
    ------
    DataError, KindError
        What is given makes no problem.

    Examples
    --------
    The nearest point to (2, 1) in the unit disc, with what a unit of the constraint costs:

    >>> target = torch.tensor([2.0, 1.0], dtype=torch.float64)
    >>> result = solve(
    ...     lambda x: (x - target).square().sum(),
    ...     torch.zeros(2, dtype=torch.float64),
    ...     inequalities=lambda x: x @ x - 1,
    ... )
    >>> result.success, result.x
    (True, tensor([0.8944, 0.4472], dtype=torch.float64))
    >>> round(float(result.multipliers.inequalities[0]), 4)
    1.2361
    """
    _checked(tolerance, feasibility, max_iterations, max_evaluations, max_seconds)
    name, reason = _chosen(method, batches)
    if torch.is_inference_mode_enabled():
        raise KindError("torch.inference_mode() is on, which has no gradients: minimise outside it")
    functions = Functions(objective, x0, inequalities, equalities)
    box = _box(bounds, functions)
    if name == "augmented-lagrangian":
        if not isinstance(method, AugmentedLagrangian):
            rounds = {} if max_iterations is None else dict.fromkeys(ROUNDS, int(max_iterations))
            method = AugmentedLagrangian(**rounds)
        return solved(
            method,
            functions,
            box,
            f"augmented Lagrangian, {reason}: {len(functions.first)} variables",
            batches=batches,
            callback=callback,
            tolerance=tolerance,
            feasibility=feasibility,
            max_evaluations=max_evaluations,
            max_seconds=max_seconds,
            resume=resume,
            seed=seed,
        )
    choice("qp", qp, quadratic.SOLVERS)
    settings = SqpSettings(
        (ROUGH if functions.rounded else EXACT) if tolerance is None else tolerance,
        (ROUGH / 100 if functions.rounded else EXACT) if feasibility is None else feasibility,
        _memory(hessian, len(functions.first)),
        qp,
        seed,
    )
    limits = Limits(
        STEPS if max_iterations is None else max_iterations,
        math.inf if max_evaluations is None else max_evaluations,
        math.inf if max_seconds is None else max_seconds,
    )
    return _sqp(SqpRun(functions, box, settings, limits), reason, callback, resume)


def _sqp(
    run: SqpRun, reason: str, callback: Callable[[SolverProgress], Any] | None, resume: Any
) -> Result:
    """The run, to its end or to Ctrl-C."""
    functions, memory = run.functions, run.settings.memory
    try:
        run.begin(functions.first) if resume is None else run.take_up(resume)
        run.go(callback)
    except KeyboardInterrupt:
        if not run.begun:
            raise
        run.status = "interrupted; resume=result.state goes on from here"
    matrix = "the whole Hessian" if memory is None else f"{memory} pairs of the Hessian"
    equal, other = functions.count
    plan = (
        f"sqp, {reason}: {len(functions.first)} variables, {other} inequalities, "
        f"{equal} equations, {matrix}"
    )
    return _result(run, plan)


def _result(run: SqpRun, plan: str) -> Result:
    functions = run.functions
    best = run.best
    equations = functions.count[0]
    conclusion = run.concluded()
    bundle = None
    if conclusion is None:
        paid = np.zeros(len(best.v))
        low = np.zeros(len(functions.first))
        high = np.zeros(len(functions.first))
        kkt = math.nan
    else:
        paid = host(conclusion.multipliers)
        low = host(conclusion.low)
        high = host(conclusion.high)
        kkt = conclusion.kkt
        if len(conclusion.points) > 1:
            bundle = (host(conclusion.points), host(conclusion.weights))
    return Result(
        x=functions.given(best.x),
        fun=best.f,
        violation=best.worst,
        kkt=kkt,
        multipliers=Multipliers(paid[equations:], paid[:equations], low, high),
        success=run.success,
        status=run.status,
        iterations=run.iteration,
        evaluations=functions.calls,
        gradients=run.gradients,
        seconds=run.limits.elapsed(),
        plan=plan,
        bundle=bundle,
        state=run.state(),
    )


def _chosen(method: Any, batches: Any) -> tuple[str, str]:
    if isinstance(method, AugmentedLagrangian):
        return "augmented-lagrangian", "as asked"
    choice("method", method, METHODS)
    if batches is not None:
        if method == "sqp":
            raise KindError(
                'method="sqp" compares values along a line, which minibatches make noisy; '
                'leave batches out, or take method="augmented-lagrangian"'
            )
        return "augmented-lagrangian", "since the functions are means over minibatches"
    if method == "augmented-lagrangian":
        return method, "as asked"
    if method == "sqp":
        return "sqp", "as asked"
    return "sqp", "since the functions give exact values"


def _checked(
    tolerance: Any, feasibility: Any, iterations: Any, evaluations: Any, seconds: Any
) -> None:
    for name, x in (("tolerance", tolerance), ("feasibility", feasibility)):
        if x is not None:
            number(name, x, 0, open_low=True, error=KindError)
    if iterations is not None:
        whole("max_iterations", iterations, 0, error=KindError)
    for name, x in (("max_evaluations", evaluations), ("max_seconds", seconds)):
        if x is not None and not (is_real(x) and x == math.inf):
            number(name, x, 0, open_low=True, error=KindError)


def _memory(hessian: str | int, n: int) -> int | None:
    if hessian == "full" or (hessian == "auto" and n <= FULL):
        return None
    if hessian == "auto":
        return MEMORY
    if not is_real(hessian) or int(hessian) < 1 or int(hessian) != hessian:
        raise KindError(f'hessian={hessian!r}: "auto", "full", or how many pairs are kept')
    return int(hessian)


def _box(bounds: Any, functions: Functions) -> Box | None:
    """Bounds over the flat x."""
    if bounds is None:
        return None
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise KindError(
            f"bounds={bounds!r}: a tuple (low, high) for all of x, each None, a number or a "
            "tensor; pairs for each entry become (torch.tensor(lows), torch.tensor(highs))"
        )
    low, high = (
        _flat_bound(side, functions, name, fill)
        for side, name, fill in ((bounds[0], "low", -math.inf), (bounds[1], "high", math.inf))
    )
    if bool((low > high).any()):
        at = int((low > high).nonzero()[0])
        raise DataError(f"bounds: low {low[at]:g} is above high {high[at]:g} at entry {at} of x")
    if bool(torch.isinf(low).all() & torch.isinf(high).all()):
        return None
    return Box(low, high)


def _flat_bound(given: Any, functions: Functions, name: str, fill: float) -> Tensor:
    shapes, names = functions.shapes, functions.names or [""]
    if isinstance(given, dict):
        unknown = set(given) - set(functions.names)
        if unknown:
            raise DataError(f"bounds name {sorted(unknown)[0]!r}, which x0 does not have")
        sides = [given.get(key) for key in names]
    elif isinstance(given, Tensor | np.ndarray) and functions.names:
        raise DataError(f"{name} is one tensor for {len(names)} variables; give a dict by name")
    else:
        sides = [given] * len(names)
    out = []
    for side, shape, kind in zip(sides, shapes, functions.kinds, strict=True):
        if side is not None and not is_real(side) and not isinstance(side, Tensor | np.ndarray):
            raise KindError(f"bounds: {name}={side!r}; give None, a number or a tensor")
        bound = torch.as_tensor(fill if side is None else side, dtype=torch.float64)
        bound = bound.detach().to(functions.device)
        if bool(bound.isnan().any()):
            raise DataError(f"{name} holds nan; leave a bound out by an infinite one, or None")
        try:
            out.append(_inwards(bound.expand(shape), kind, name == "low").reshape(-1))
        except RuntimeError:
            raise DataError(
                f"{name} of shape {tuple(bound.shape)} does not fit x of shape {tuple(shape)}"
            ) from None
    return torch.cat(out).clone()


def _inwards(bound: Tensor, kind: torch.dtype, low: bool) -> Tensor:
    """The nearest number of x's own type that keeps the bound."""
    near = bound.to(kind)
    past = near.double() < bound if low else near.double() > bound
    towards = torch.full_like(near, math.inf if low else -math.inf)
    return torch.where(past, torch.nextafter(near, towards), near).double()
