"""The domain: what an expression can be taken over, of rows or of the population they come from."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint._core.errors import DataError
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.row_events import Label, Side, other_side
from setpoint.expressions.rows.task import Task


@dataclass(frozen=True)
class Population:
    """Where rows come from, as far as it is known before any row is seen.

    Attributes
    ----------
    task : Task
        With its classes, and the values of every group that a goal speaks of.
    abstains : bool
        Whether rows may be left undecided.
    weighted : bool
    weight_bound : float or None
        The largest weight that a row can have; None where it is not known, or without weights.
    dependent : bool
        Whether rows depend on each other, as those of a query do.
    """

    task: Task
    abstains: bool = False
    weighted: bool = False
    weight_bound: float | None = None
    dependent: bool = False

    @classmethod
    def of(
        cls, columns: Columns, weight_bound: float | None = None, dependent: bool = False
    ) -> Population:
        """That of some rows, whose task declares the groups."""
        weighted = columns.weight is not None
        return cls(
            task=columns.task,
            abstains=columns.abstains,
            weighted=weighted,
            weight_bound=weight_bound if weighted else None,
            dependent=dependent or columns.query is not None,
        )

    def group_values(self, column: str) -> tuple[Label, ...]:
        """The declared values of a group column."""
        declared = self.task.group_values(column)
        if declared is None:
            raise DataError(f'the task declares no values of the column "{column}"')
        return declared


@dataclass(frozen=True, eq=False)
class Domain:
    """Classes, groups and bins of some rows, perhaps seen from one class.

    Seen from a class there are two: that class and the rest. So ``mcc.of("cat")`` is the
    correlation of *cat* and *not cat*, and not of all classes.
    """

    rows: Columns | Population
    side: Side = None

    @property
    def task(self) -> Task:
        """What labels and scores mean."""
        return self.rows.task

    @property
    def kind(self) -> str:
        """The kind of task."""
        return self.task.kind

    @property
    def abstains(self) -> bool:
        """Whether rows may be left undecided."""
        return self.rows.abstains

    @property
    def classes(self) -> tuple[Side, ...]:
        """All classes; seen from one, the rest and that one."""
        if self.side is None:
            return self.task.sides
        return other_side(self.side), self.side

    @property
    def bins(self) -> int:
        """Number of target bins."""
        return self.task.bins

    def seen_from(self, side: Side) -> Domain:
        """The domain of one class against the rest."""
        return Domain(self.rows, side)

    def check_label(self, label: Label, text: str) -> None:
        """Refuse a class that there is not."""
        known = self.task.sides
        if label not in known:
            hint = did_you_mean(label, known, f"the classes are {listing(known)}")
            raise DataError(f'there is no class {label!r} (in "{text}"): {hint}')

    def check_group(self, column: str, value: Label, text: str) -> None:
        """Refuse a group that no row has."""
        known = self.group_values(column)
        if value not in known:
            hint = did_you_mean(value, known, f"there are {listing(known)}")
            raise DataError(f'no row has {column}={value!r} (in "{text}"): {hint}')

    def group_values(self, column: str) -> tuple[Label, ...]:
        """The values of a group column."""
        return self.rows.group_values(column)
