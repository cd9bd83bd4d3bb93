"""The domain: what an expression can be taken over, once the rows are there."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint._core.errors import DataError
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.row_events import Label, Side, other_side


@dataclass(frozen=True, eq=False)
class Domain:
    """Classes, groups and bins of some columns, perhaps seen from one class.

    Seen from a class there are two: that class and the rest. So ``mcc.of("cat")`` is the
    correlation of *cat* and *not cat*, and not of all classes.
    """

    columns: Columns
    side: Side = None

    @property
    def kind(self) -> str:
        """The kind of task."""
        return self.columns.task.kind

    @property
    def classes(self) -> tuple[Side, ...]:
        """All classes; seen from one, the rest and that one."""
        if self.side is None:
            return self.columns.classes
        return other_side(self.side), self.side

    @property
    def bins(self) -> int:
        """Number of target bins."""
        return self.columns.bins

    def seen_from(self, side: Side) -> Domain:
        """The domain of one class against the rest."""
        return Domain(self.columns, side)

    def check_label(self, label: Label, text: str) -> None:
        """Refuse a class that there is not."""
        known = self.columns.classes
        if label not in known:
            hint = did_you_mean(label, known, f"the classes are {listing(known)}")
            raise DataError(f'there is no class {label!r} (in "{text}"): {hint}')

    def check_group(self, column: str, value: Label, text: str) -> None:
        """Refuse a group that no row has."""
        known = self.columns.group_values(column)
        if value not in known:
            hint = did_you_mean(value, known, f"there are {listing(known)}")
            raise DataError(f'no row has {column}={value!r} (in "{text}"): {hint}')

    def group_values(self, column: str) -> tuple[Label, ...]:
        """The values of a group column."""
        return self.columns.group_values(column)
