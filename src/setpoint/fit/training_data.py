"""What the members of one fit share: the goal, the rows in every form, the labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from setpoint._core.errors import KindError
from setpoint.datasets import Codes, Features, Schema
from setpoint.datasets.class_labels import ClassLabels
from setpoint.goals import Goal
from setpoint.training.events import Listener, TrainingEvent

SOME = 8_192  #: rows of a large table that are encoded at once, to be scored
LARGE = 20_000  #: rows from which encoding anew is cheaper than holding all of it


@dataclass(frozen=True, eq=False)
class Encoder:
    """How rows become what a member takes, learned without labels from rows that do not certify.

    numbers   columns of one scale for linear models and networks (:class:`Features`)
    codes     numbers as they are and levels as whole numbers, for trees (:class:`Codes`)
    raw       rows as they were given
    """

    schema: Schema | None = None
    features: Features | None = None
    codes: Codes | None = None

    @classmethod
    def fit(cls, X: Any, rows: np.ndarray, y: Any, weight: Any, forms: set[str]) -> Encoder:
        """Learn schema, scales and levels from some rows."""
        if not forms & {"numbers", "codes"}:
            return cls()
        some = taken(X, rows)
        schema = Schema.fit(some, None if y is None else y[rows])
        frame = schema.apply(some)
        w = None if weight is None else weight[rows]
        return cls(
            schema,
            Features.fit(frame, w) if "numbers" in forms else None,
            Codes.fit(frame) if "codes" in forms else None,
        )

    def encode(self, X: Any) -> Encoded:
        """Rows in all forms, each made when it is first asked for."""
        return Encoded(X, self)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows of a table in the forms that members take."""

    X: Any
    encoder: Encoder

    @cached_property
    def frame(self) -> Any:
        """The usable columns."""
        schema = self.encoder.schema
        return self.X if schema is None else schema.apply(self.X)

    @cached_property
    def numbers(self) -> np.ndarray:
        """(n, d) float32; rows of more than two dimensions as they are."""
        features = self.encoder.features
        if features is None:
            return np.asarray(self.X, dtype=np.float32)
        return features.transform(self.frame)

    @cached_property
    def codes(self) -> np.ndarray:
        """(n, k) for trees."""
        codes = self.encoder.codes
        if codes is None:
            raise KindError("these rows were not encoded for trees")
        return codes.transform(self.frame)[0]

    @property
    def width(self) -> int:
        """Columns of the numbers."""
        features = self.encoder.features
        shape = np.shape(self.X)
        if features is not None:
            return len(features.names)
        return int(np.prod(shape[1:])) if len(shape) > 1 else 1

    def rows(self, form: str, rows: np.ndarray | None = None) -> Any:
        """Some rows in a form; of a large table those rows alone are encoded, not all of them."""
        if form == "raw":
            return self.X if rows is None else taken(self.X, rows)
        if rows is not None and self.encoder.schema is not None and len(self.X) > LARGE:
            return Encoded(taken(self.X, rows), self.encoder).rows(form)
        whole = self.numbers if form == "numbers" else self.codes
        return whole if rows is None else whole[rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingData:
    """What the members of one fit share, whatever their targets are.

    Attributes
    ----------
    goal : Goal
    rows : Encoded
        All rows.
    target : numpy.ndarray
        (n,), or an (n, L) matrix of labels.
    weight : numpy.ndarray or None
    groups : dict
        Columns that the goal speaks of.
    seed : int
    device : str
    listener : callable or None
    """

    goal: Goal
    rows: Encoded
    target: np.ndarray
    weight: np.ndarray | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    seed: int = 0
    device: str = "cpu"
    listener: Listener | None = None

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns of the codes that are levels."""
        codes = self.rows.encoder.codes
        return () if codes is None else tuple(codes.categorical)

    def weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Weights of some rows."""
        return None if self.weight is None else self.weight[rows]

    def tell(self, event: TrainingEvent) -> None:
        """Tell whoever listens."""
        if self.listener is not None:
            self.listener(event)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassTrainingData(TrainingData):
    """Rows whose targets are codes of classes, or a 0/1 matrix of labels."""

    labels: ClassLabels


#: the data that a member is fitted on
Data = TypeVar("Data", bound=TrainingData)


def taken(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a frame or an array."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if isinstance(X, np.ndarray) else np.asarray(X)[rows]
