"""Decisions: from scores of any model to an operating point."""

from setpoint.decisions.certificate import Certificate, Evidence, Finding
from setpoint.decisions.certify import certify
from setpoint.decisions.curves import MetricCurve, metric_curve, pr_curve, roc_curve
from setpoint.decisions.evaluate import Evaluation, evaluate
from setpoint.decisions.frontier import Frontier
from setpoint.decisions.monitor import Monitor
from setpoint.decisions.plan import Need, Option, Plan, plan
from setpoint.decisions.plots import plot_curve, plot_frontier
from setpoint.decisions.rule import DecisionRule, Held
from setpoint.decisions.tune import tune

__all__ = [
    "Certificate",
    "DecisionRule",
    "Evaluation",
    "Evidence",
    "Finding",
    "Frontier",
    "Held",
    "MetricCurve",
    "Monitor",
    "Need",
    "Option",
    "Plan",
    "certify",
    "evaluate",
    "metric_curve",
    "plan",
    "plot_curve",
    "plot_frontier",
    "pr_curve",
    "roc_curve",
    "tune",
]
