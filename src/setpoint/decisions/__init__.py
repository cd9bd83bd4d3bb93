"""Decisions: from scores of any model to an operating point, and to proof that it holds."""

from setpoint.decisions.certify import certify
from setpoint.decisions.comparison import Comparison, Contender, Difference
from setpoint.decisions.curves import MetricCurve, metric_curve, pr_curve, roc_curve
from setpoint.decisions.diagnose import Diagnosis, diagnose
from setpoint.decisions.evaluate import Evaluation, evaluate
from setpoint.decisions.monitor import Monitor, MonitorReport, Watched
from setpoint.decisions.plan import Need, Option, Plan, plan
from setpoint.decisions.plots import (
    plot_curve,
    plot_frontier,
    plot_monitor,
    plot_plan,
    plot_risk_coverage,
)
from setpoint.decisions.risk_coverage import RiskCoverage, risk_coverage, selective_errors
from setpoint.decisions.tune import tune
from setpoint.expressions.rows.row_fingerprint import Fingerprint
from setpoint.rules.certificate import Certificate, Evidence, Finding
from setpoint.rules.confidence_scores import CONFIDENCES, confidence, from_probabilities
from setpoint.rules.decision_rule import ConstraintStanding, DecisionRule
from setpoint.rules.rule import Rule
from setpoint.rules.tradeoff_curve import Frontier

__all__ = [
    "CONFIDENCES",
    "Certificate",
    "Comparison",
    "Contender",
    "DecisionRule",
    "Diagnosis",
    "Difference",
    "Evaluation",
    "Evidence",
    "Finding",
    "Fingerprint",
    "Frontier",
    "ConstraintStanding",
    "MetricCurve",
    "Monitor",
    "Need",
    "Option",
    "Plan",
    "MonitorReport",
    "RiskCoverage",
    "Rule",
    "Watched",
    "certify",
    "confidence",
    "diagnose",
    "evaluate",
    "from_probabilities",
    "metric_curve",
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
