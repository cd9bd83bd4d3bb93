"""A fitted regressor of scikit-learn as a model with a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._core.files import write_bytes
from setpoint.fit.fold_models import Model
from setpoint.fit.skops_files import dumped, trusted_from


class RegressorModel(Model):
    """Predictions of a regressor, on rows as they were given."""

    form, ending = "raw", "skops"

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    @property
    def own(self) -> Any:
        return self.regressor

    def outputs(self, rows: Any) -> np.ndarray:
        return np.asarray(self.regressor.predict(rows), dtype=np.float64).reshape(len(rows))

    def write(self, path: Path) -> dict[str, Any]:
        write_bytes(path, dumped(self.regressor))
        return {}

    @classmethod
    def read(cls, path: Path, trusted: Sequence[str]) -> RegressorModel:
        """Read what :meth:`write` wrote, if all its types are vouched for."""
        return cls(trusted_from(path, trusted))
