"""Classifiers of scikit-learn as bytes, read back only if all their types are vouched for."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from setpoint._core.errors import FileError


def dumped(classifier: Any) -> bytes:
    """A classifier as bytes."""
    return _skops().dumps(classifier)


def trusted_from(path: Path, trusted: Sequence[str]) -> BaseEstimator:
    """A classifier from skops; refused if it holds anything that nobody vouches for."""
    io = _skops()
    try:
        data = path.read_bytes()
        unknown = io.get_untrusted_types(data=data)
        odd = [name for name in unknown if name not in trusted and not _is_estimator_part(name)]
        if odd:
            raise FileError(
                f'"{path}" holds what nobody vouches for: {", ".join(odd)}. If you do, '
                f"sp.load(path, trusted={odd!r})"
            )
        return io.loads(data, trusted=unknown)
    except OSError as error:
        raise FileError(f'cannot read "{path}": {error.strerror}') from error


def _skops() -> Any:
    import skops.io

    return skops.io


def _is_estimator_part(name: str) -> bool:
    """Whether a name is a class of scikit-learn or LightGBM; never a function, which could run."""
    module, _, last = name.rpartition(".")
    if module.split(".")[0] not in ("sklearn", "lightgbm"):
        return False
    try:
        return isinstance(getattr(importlib.import_module(module), last, None), type)
    except ImportError:
        return False
