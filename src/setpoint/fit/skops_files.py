"""Classifiers of scikit-learn as bytes, read back only if all their types are vouched for."""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from setpoint._core.errors import FileError

_OURS = ("sklearn", "lightgbm", "setpoint")


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
    except FileError:
        raise
    except OSError as error:
        raise FileError(f'cannot read "{path}": {error.strerror}') from error
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise FileError(f'"{path}" is no model as skops writes them: {error}') from error


def _skops() -> Any:
    import skops.io

    return skops.io


def _is_estimator_part(name: str) -> bool:
    """Whether a name is a class of scikit-learn, LightGBM or ours; never a function."""
    module, _, last = name.rpartition(".")
    if name == "numpy.dtype":
        return True
    if module.split(".")[0] not in _OURS:
        return False
    try:
        found = getattr(importlib.import_module(module), last, None)
    except ImportError:
        return False
    own = getattr(found, "__module__", "").split(".")[0]  # not what they import from elsewhere
    return isinstance(found, type) and own in _OURS
