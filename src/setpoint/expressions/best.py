"""One metric at the best threshold that holds another: ``recall_at_precision(0.9)``."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.expressions.candidate_scan import scan
from setpoint.expressions.constraint import Constraint
from setpoint.expressions.node import ATOM, Node
from setpoint.expressions.ranking_curves import Curve, Scored
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.row_events import EVERYTHING, Event, Side
from setpoint.expressions.rows.task import Task
from setpoint.expressions.threshold_sweep import Sweep


@dataclass(frozen=True, eq=False, repr=False)
class Best(Curve):
    """Best value of ``objective`` over all thresholds at which ``constraint`` holds.

    Thresholds at which either is an empty rate do not count; ``empty`` is the value where none is
    left.
    """

    objective: Node
    sense: int
    constraint: Constraint
    empty: float
    where: Event = EVERYTHING
    label: Side = None
    by: str | None = None

    def text(self) -> tuple[str, int]:
        return f"best({self.objective} where {self.constraint})", ATOM

    def latex(self) -> str:
        end = "max" if self.sense > 0 else "min"
        return rf"\{end}_{{{self.constraint.latex()}}} {self.objective.latex()}"

    def measure_one(self, rows: Scored) -> float:
        columns = Columns(Task(), rows.gain > 0, scores=rows.scores, weight=rows.weight)
        over = scan(Sweep(columns), self.objective, self.sense, [self.constraint])
        index, feasible = over.choose()
        return self.sense * float(over.merit[index]) if feasible else self.empty
