"""Settings that nothing can be done with, refused before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint._core.reals import is_real


def refuse_settings(given: Mapping[str, Any]) -> None:
    """Raise where a setting of a classifier is not of its kind."""
    whole = {"epochs": given["epochs"], "patience": given["patience"]}
    some = {"batch_size": given["batch_size"], "folds": given["folds"]}
    whole |= {name: x for name, x in some.items() if x is not None}
    for name, x in whole.items():
        if not isinstance(x, int | np.integer) or isinstance(x, bool) or x < 1:
            raise KindError(f"{name}={x!r}: a whole number, 1 or more")
    widths = given["hidden"]
    if not isinstance(widths, tuple | list) or not all(
        isinstance(w, int | np.integer) and w > 0 for w in widths
    ):
        raise KindError(f"hidden={widths!r}: the widths of the layers, for example (128, 64)")
    shares: dict[str, Any] = {
        "dropout": given["dropout"],
        "certify_size": given["certify_size"] or 0,
    }
    for name, x in shares.items():
        if not is_real(x) or not 0 <= x < 1:
            raise KindError(f"{name}={x!r}: a number between 0 and 1")
    sure, hears = given["confidence"], given["listener"]
    if not is_real(sure) or not 0.5 <= sure < 1:
        raise KindError(f"confidence={sure!r}: a number between 0.5 and 1, for example 0.95")
    limits: dict[str, Any] = {"margin": given["margin"], "proof_price": given["proof_price"]}
    if given["time_limit"] is not None:
        limits["time_limit"] = given["time_limit"]
    for name, x in limits.items():
        if not is_real(x) or not x >= 0:
            raise KindError(f"{name}={x!r}: a number, 0 or more")
    if hears is not None and not callable(hears):
        raise KindError(f"listener={hears!r}: a function of one event")
