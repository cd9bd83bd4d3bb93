"""Rows of a new file scored by the models of a run, held to the columns it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError
from setpoint._core.words import listing, nearest

if TYPE_CHECKING:
    import pandas as pd

    from setpoint.estimators.classifier import GoalClassifier


@dataclass(frozen=True, eq=False)
class Scorer:
    """The models of a run."""

    classifier: GoalClassifier

    @classmethod
    def open(cls, folder: Path) -> Scorer:
        """Load a run folder; nothing in it is executed."""
        from setpoint.estimators.classifier import load

        return cls(load(folder))

    def strangers(self, table: pd.DataFrame) -> list[str]:
        """Columns that the run was not fitted on."""
        known = set(self._names(table))
        return [name for name in map(str, table.columns) if name not in known]

    def scores(self, table: pd.DataFrame, first: int = 0) -> np.ndarray:
        """Scores as the rule takes them.

        Parameters
        ----------
        table : pandas.DataFrame
            With the columns that were fitted on, in any order, and perhaps others.
        first : int
            Rows before these in their file, so that a mistake names its row.
        """
        rows = self._columns(table)
        try:
            return self.classifier._scores(rows)
        except DataError:
            schema = self.classifier.encoder_.schema
            if schema is not None and first:
                schema.apply(rows, first)  # says the same of the right row
            raise

    def fitted_on(self, table: pd.DataFrame, y: np.ndarray) -> bool:
        """Whether this is the very table of the fit; ``y`` as codes of the classes."""
        from setpoint.fit.pipeline import fingerprint_of

        names = self._names(table)
        if not set(names) <= set(map(str, table.columns)):
            return False
        return fingerprint_of(table.loc[:, names], y) == self.classifier.fingerprint_

    def _names(self, table: pd.DataFrame) -> list[str]:
        named = getattr(self.classifier, "feature_names_in_", None)
        return list(map(str, table.columns)) if named is None else list(map(str, named))

    def _columns(self, table: pd.DataFrame) -> pd.DataFrame:
        """The columns fitted on, in their order; those that were ignored may be missing."""
        wanted, there = self._names(table), set(map(str, table.columns))
        schema = self.classifier.encoder_.schema
        ignored = set() if schema is None else set(wanted) - set(schema.inputs)
        absent = [name for name in wanted if name not in there]
        needed = [name for name in absent if name not in ignored]
        if needed:
            raise _missing(needed, table)
        if not absent:
            return table.loc[:, wanted]
        return table.reindex(columns=wanted)


def _missing(names: list[str], table: pd.DataFrame) -> DataError:
    if len(names) == 1:
        near = nearest(names[0], table.columns)
        what, near = f'there is no column "{names[0]}"', f' Did you mean "{near}"?' if near else ""
    else:
        what, near = f"there are no columns {_quoted(names)}", ""
    return DataError(
        f"{what}, on which the model was fitted.{near} The columns are {_quoted(table.columns)}."
    )


def _quoted(names: Any) -> str:
    return listing((f'"{name}"' for name in names), most=12)
