"""``sp.minimize``: a goal of one metric, or a problem of functions over tensors."""

from __future__ import annotations

import importlib
from typing import Any

from setpoint._core.errors import KindError
from setpoint.expressions import Expression
from setpoint.goals import minimize as goal_of


def minimize(objective: Any, x0: Any = None, **settings: Any) -> Any:
    """The goal to make a metric as low as possible; with x0, the minimum of a function.

    ``minimize(metric)`` is a :class:`Goal`. ``minimize(f, x0, inequalities=c, equalities=e,
    bounds=(low, high))`` minimises f(x) subject to c(x) <= 0, e(x) = 0 and low <= x <= high and
    gives a :class:`setpoint.solvers.result.Result`; all its options are those of
    :func:`setpoint.solvers.solve.minimize`.

    Parameters
    ----------
    objective : Expression, str or callable
        A metric, or f.
    x0 : torch.Tensor, dict of tensors or torch.nn.Module, optional
        Where to start.
    **settings
        Of the solver: inequalities, equalities, bounds, method, batches, tolerance, feasibility,
        max_iterations, max_evaluations, max_seconds, hessian, qp, callback, resume, seed.

    Examples
    --------
    >>> import setpoint as sp, torch
    >>> str(sp.minimize(sp.fnr))
    'minimize fnr'
    >>> result = sp.minimize(lambda x: (x - 3).abs().sum(), torch.zeros(2), bounds=(None, 2.0))
    >>> result.x
    tensor([2., 2.])
    """
    if x0 is not None:  # torch is loaded for this alone
        return importlib.import_module("setpoint.solvers.solve").minimize(objective, x0, **settings)
    if x0 is None and callable(objective) and not isinstance(objective, Expression):
        raise KindError("minimize(f) of a function needs a point to start from: minimize(f, x0)")
    if settings:
        raise KindError(
            f"minimize({next(iter(settings))}=…) without x0: give the point to start from, "
            "minimize(f, x0, …); a metric's goal takes its constraints by .subject_to(…)"
        )
    return goal_of(objective)
