"""The language: events, totals, arithmetic, reductions, curves; printing, parsing, evaluation.

Reads top to bottom: an expression is a tree (`node`, `arithmetic`, `several`, `over`, `named`) over
leaves (`totals`, `curves`, `best`) that are measured on `columns` (`intake` checks them) as one
`task` declares; `evaluate` joins the two.
"""

from setpoint.expressions.arithmetic import (
    Absolute,
    Bound,
    Expression,
    Number,
    Power,
    Product,
    Ratio,
    Sum,
)
from setpoint.expressions.candidate_scan import Scan, scan
from setpoint.expressions.constraint import Constraint
from setpoint.expressions.evaluate import Reading, Totals, measure
from setpoint.expressions.json_form import from_json, to_json
from setpoint.expressions.leaf import Leaf
from setpoint.expressions.named_metric import Named
from setpoint.expressions.parse import Parser
from setpoint.expressions.ranking_curves import AtK, Auroc, Best, Curve, Ndcg, PrecisionOverRecall
from setpoint.expressions.reductions import Over, Several
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.domain import Domain, Population
from setpoint.expressions.rows.intake import take_groups, take_in, take_names, take_scores
from setpoint.expressions.rows.row_events import Event, Label, Literal
from setpoint.expressions.rows.task import Task
from setpoint.expressions.threshold_sweep import Sweep
from setpoint.expressions.totals import Spread, Total, rate

__all__ = [
    "Absolute",
    "AtK",
    "Auroc",
    "Best",
    "Bound",
    "Columns",
    "Constraint",
    "Curve",
    "Domain",
    "Event",
    "Expression",
    "Label",
    "Leaf",
    "Literal",
    "Named",
    "Ndcg",
    "Number",
    "Over",
    "Parser",
    "Population",
    "Power",
    "PrecisionOverRecall",
    "Product",
    "Ratio",
    "Reading",
    "Scan",
    "Several",
    "Spread",
    "Sum",
    "Sweep",
    "Task",
    "Total",
    "Totals",
    "from_json",
    "measure",
    "rate",
    "scan",
    "take_groups",
    "take_in",
    "take_names",
    "take_scores",
    "to_json",
]
