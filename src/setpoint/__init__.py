"""Setpoint. State the goal. Train for it. Prove it holds.

>>> import setpoint as sp
>>> goal = sp.maximize(sp.recall).subject_to(sp.precision >= 0.9)
>>> str(goal)
'maximize recall subject to precision >= 0.9'
"""

import importlib

from setpoint import datasets, metrics
from setpoint._core.errors import (
    DataError,
    FileError,
    GoalError,
    GoalSyntaxError,
    KindError,
    SetpointError,
)
from setpoint._core.words import did_you_mean
from setpoint.decisions import (
    Certificate,
    Comparison,
    DecisionRule,
    Diagnosis,
    Evaluation,
    Frontier,
    MetricCurve,
    Monitor,
    Plan,
    RiskCoverage,
    certify,
    diagnose,
    evaluate,
    metric_curve,
    plan,
    plot_curve,
    plot_frontier,
    plot_monitor,
    plot_plan,
    plot_risk_coverage,
    pr_curve,
    risk_coverage,
    roc_curve,
    selective_errors,
    tune,
)
from setpoint.goals import Constraint, Goal, Task, check, maximize, minimize
from setpoint.metrics import *  # noqa: F403  the language: its names are listed once, in metrics.__all__

__version__ = "0.1.0.dev0"

__all__ = [
    "Certificate",
    "Comparison",
    "Constraint",
    "DataError",
    "DecisionRule",
    "Diagnosis",
    "Evaluation",
    "FileError",
    "Frontier",
    "Goal",
    "GoalError",
    "GoalSyntaxError",
    "KindError",
    "MetricCurve",
    "Monitor",
    "Plan",
    "RiskCoverage",
    "SetpointError",
    "Task",
    "certify",
    "check",
    "datasets",
    "diagnose",
    "evaluate",
    "maximize",
    "metric_curve",
    "metrics",
    "minimize",
    "plan",
    "plot_curve",
    "plot_frontier",
    "plot_monitor",
    "plot_plan",
    "plot_risk_coverage",
    "pr_curve",
    "risk_coverage",
    "roc_curve",
    "selective_errors",
    "tune",
]
__all__ += metrics.__all__


#: what needs torch: name -> module, loaded when it is first asked for
_LATE = {
    "GoalLoss": "setpoint.losses",
    "GoalKeeper": "setpoint.validation",
    "METHODS": "setpoint.methods",
    "SURROGATES": "setpoint.surrogates",
    "methods": "setpoint.methods",
    "surrogates": "setpoint.surrogates",
    "GoalClassifier": "setpoint.estimators",
    "GoalRegressor": "setpoint.estimators",
    "load": "setpoint.estimators",
    "boosting": "setpoint.boosting",
    "Report": "setpoint.reports",
    "robustness": "setpoint.robustness",
    "restoration": "setpoint.restoration",
    "solve": "setpoint.solvers",
    "solve_batched": "setpoint.solvers",
    "solvers": "setpoint.solvers",
}
__all__ += list(_LATE)


def __dir__() -> list[str]:
    """The public names; those that need torch are loaded when they are first asked for."""
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> object:
    """Load what needs torch when it is asked for; name the nearest word for what there is not."""
    if name in _LATE:
        module = importlib.import_module(_LATE[name])
        value = module if _LATE[name].endswith(f".{name}") else getattr(module, name)
        globals()[name] = value
        return value
    hint = did_you_mean(name, __all__, "see setpoint.__all__")
    raise AttributeError(f'setpoint has no "{name}": {hint}')
