"""What scikit-learn asks of an estimator, for the estimators of both kinds of target."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data
from torch import nn

from setpoint._core.errors import KindError
from setpoint.datasets.columns.matrix_input import take

MANY = 20_000  #: rows from which a member that takes all of them at once is for those who ask


def seed_of(state: Any) -> int:
    """A seed from ``random_state``: a whole number, a RandomState, or None for another each time.

    >>> seed_of(3)
    3
    """
    if state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31))
    if isinstance(state, int | np.integer) and state >= 0:
        return int(state)
    raise KindError(f"random_state={state!r}: a whole number, 0 or more, or None")


def note_features(estimator: Any, X: Any) -> int:
    """Note the number and names of the features on an estimator; how many rows there are."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) > 2:
        estimator.n_features_in_ = int(shape[1])
        return int(shape[0])
    if isinstance(estimator.model, str | nn.Module):
        rows = len(X) if hasattr(X, "iloc") else take(X).rows  # refuses what is no table
        validate_data(estimator, X, skip_check_array=True)
        return rows
    if shape is not None and len(shape) == 2:
        validate_data(estimator, X, skip_check_array=True)
    estimator.n_features_in_ = getattr(estimator, "n_features_in_", 1)
    return int(shape[0]) if shape is not None else len(X)


def known_features(estimator: Any, X: Any) -> Any:
    """X as an array or table, with the features that the estimator was fitted on."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) == 2:
        validate_data(estimator, X, reset=False, skip_check_array=True)
    return X


def numbers_alone(X: Any) -> int:
    """The columns of a table of real numbers; 0 of anything else, and where rows are many.

    >>> numbers_alone(np.zeros((5, 3))), numbers_alone([["a", 1.0]])
    (3, 0)
    """
    if len(getattr(X, "shape", ())) != 2:
        return 0
    kinds = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    real = all(getattr(kind, "kind", "") == "f" for kind in kinds)
    return int(X.shape[1]) if real and X.shape[0] <= MANY else 0
