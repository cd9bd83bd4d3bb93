"""Names of columns in sentences: those that a table has, and those that it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from setpoint._core.errors import DataError
from setpoint._core.words import listing, nearest

MOST_NAMES = 12  #: column names that a sentence lists


def quoted(names: Iterable[object], most: int = MOST_NAMES) -> str:
    """Names in quotation marks, with an ellipsis after ``most`` of them.

    >>> quoted(["amount", "fraud"]), quoted("abc", most=2)
    ('"amount", "fraud"', '"a", "b", …')
    """
    return listing((f'"{name}"' for name in names), most=most)


def absent_column(
    name: str, role: str, columns: Iterable[object], remedy: str | None = None
) -> DataError:
    """The error for a column that a table lacks: its role, the nearest name, the names there are.

    ``remedy`` says what else can be done, in a clause.

    >>> absent_column("frad", "label", ["amount", "fraud"])
    DataError('there is no column "frad" (label). Did you mean "fraud"? The columns are "amount", \
"fraud".')
    """
    columns = list(columns)
    clause = f": {remedy}" if remedy else ""
    return DataError(
        f'there is no column "{name}" ({role}){clause}.{_near(name, columns)} {_present(columns)}'
    )


def absent_features(names: Sequence[str], columns: Iterable[object]) -> DataError:
    """The error for columns that a model was fitted on and a later table lacks."""
    columns = list(columns)
    one = len(names) == 1
    verb = "is no column" if one else "are no columns"
    near = _near(names[0], columns) if one else ""
    return DataError(
        f"there {verb} {quoted(names)}, on which the model was fitted.{near} {_present(columns)}"
    )


def _near(name: str, columns: Sequence[object]) -> str:
    near = nearest(name, columns)
    return f' Did you mean "{near}"?' if near else ""


def _present(columns: Sequence[object]) -> str:
    return f"The columns are {quoted(columns)}." if columns else "The table has no columns."
