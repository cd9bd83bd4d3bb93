"""What scikit-learn asks of an estimator, for the estimators of both kinds of target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import nn

from setpoint._core.errors import Argument, DataError, KindError, Name, Spelling
from setpoint._core.options import is_real
from setpoint.datasets.columns.matrix_input import take
from setpoint.fit.run_record import FittedRun, RunOrigin

MANY = 20_000  #: rows from which a member that takes all of them at once is for those who ask


def seed_of(state: int | np.random.RandomState | None) -> int:
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
    raise KindError(
        "{argument}: a whole number, 0 or more{none}",
        argument=Argument("random_state", state),
        none=Spelling(", or None", ""),
    )


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


def row_weights(sample_weight: Any, rows: int) -> np.ndarray | None:
    """Weights of rows, checked; None where there are none."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, np.zeros((rows, 1)), dtype=float)
    if (weight < 0).any():
        raise DataError(
            "{argument} holds {weight:g}; weights are not negative",
            argument=Name("sample_weight"),
            weight=weight.min(),
        )
    return weight


def origin_of(estimator: BaseEstimator, seed: int) -> RunOrigin:
    """Settings of an estimator and names of its table, as a run keeps them."""
    settings = {**estimator.get_params(deep=False), "random_state": seed}
    settings.pop("listener")  # a function of this process
    names = getattr(estimator, "feature_names_in_", None)
    return RunOrigin(
        settings=settings,
        n_features=estimator.n_features_in_,  # type: ignore[attr-defined]
        feature_names=None if names is None else tuple(names.tolist()),
    )


Fitted = TypeVar("Fitted")


def estimator_of(kind: type[Fitted], run: FittedRun) -> Fitted:
    """The estimator of a fitted run, for example one that was read from a folder."""
    estimator: Any = kind(**run.origin.settings)
    estimator.n_features_in_ = run.origin.n_features
    if run.origin.feature_names is not None:
        estimator.feature_names_in_ = np.array(run.origin.feature_names, dtype=object)
    estimator.run_ = run
    return estimator


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


# Settings that nothing can be done with, refused before anything is done.


def refuse_settings(given: Mapping[str, Any]) -> None:
    """Raise where a setting of a classifier is not of its kind."""
    whole = {"epochs": given["epochs"], "patience": given["patience"]}
    some = {"batch_size": given["batch_size"], "folds": given["folds"]}
    whole |= {name: x for name, x in some.items() if x is not None}
    for name, x in whole.items():
        if not isinstance(x, int | np.integer) or isinstance(x, bool) or x < 1:
            raise KindError("{argument}: a whole number, 1 or more", argument=Argument(name, x))
    widths = given["hidden"]
    if not isinstance(widths, tuple | list) or not all(
        isinstance(w, int | np.integer) and w > 0 for w in widths
    ):
        raise KindError(
            "{argument}: the widths of the layers, for example (128, 64)",
            argument=Argument("hidden", widths),
        )
    shares: dict[str, Any] = {
        "dropout": given["dropout"],
        "certify_size": given["certify_size"] or 0,
    }
    for name, x in shares.items():
        if not is_real(x) or not 0 <= x < 1:
            raise KindError("{argument}: a number between 0 and 1", argument=Argument(name, x))
    sure, hears = given["confidence"], given["listener"]
    if not is_real(sure) or not 0.5 <= sure < 1:
        raise KindError(
            "{argument}: a number between 0.5 and 1, for example 0.95",
            argument=Argument("confidence", sure),
        )
    limits: dict[str, Any] = {"margin": given["margin"], "proof_price": given["proof_price"]}
    if given["time_limit"] is not None:
        limits["time_limit"] = given["time_limit"]
    for name, x in limits.items():
        if not is_real(x) or not x >= 0:
            raise KindError("{argument}: a number, 0 or more", argument=Argument(name, x))
    if hears is not None and not callable(hears):
        raise KindError("{argument}: a function of one event", argument=Argument("listener", hears))
