"""Where a fit keeps what is done: each model and its held outputs, taken up after an interruption.

    work/<member>-<fold>.json              key, record of the model, history, notes
    work/<member>-<fold>-model.<ending>    the model, whose ending may be json as well
    work/<member>-<fold>.held              its outputs on the held rows (safetensors)

The JSON file is written last, so that what it names is whole. A key that differs (other rows, other
settings) is as if nothing were there.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn

from setpoint._core.errors import SetpointError
from setpoint._core.files import make_folder, read_json, write_json
from setpoint.fit.fold_models import ModelSources, read_model, write_model
from setpoint.fit.members import FoldFit
from setpoint.goals import Task
from setpoint.training.checkpoint import load_state, save_state


class MemberCheckpoints:
    """A folder of finished parts."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        key: str,
        task: Task,
        module: nn.Module | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.key = key
        self.sources = ModelSources(task, module)
        make_folder(self.folder)

    def _name(self, member: str, fold: int) -> str:
        return f"{slug(member)}-{fold}"

    def find(self, member: str, settings: str, fold: int) -> tuple[FoldFit, np.ndarray] | None:
        """A part that is done: the fit, and its outputs on the held rows."""
        name = self._name(member, fold)
        try:
            about = read_json(self.folder / f"{name}.json")
            if about["key"] != self._key(settings, fold):
                return None
            model = read_model(about["model"], self.folder, self.sources)
            held = load_state(self.folder / f"{name}.held")["outputs"].numpy()
            return FoldFit(model, about["history"], tuple(about["notes"])), held
        except (OSError, ValueError, KeyError, TypeError, SetpointError):
            return None  # not there, half written or of another version: it is made again

    def keep(self, member: str, settings: str, fold: int, fit: FoldFit, held: np.ndarray) -> None:
        """Write a part that is done."""
        name = self._name(member, fold)
        (self.folder / f"{name}.json").unlink(missing_ok=True)  # it would vouch for other files
        record = write_model(fit.model, self.folder, f"{name}-model")
        save_state(self.folder / f"{name}.held", {"outputs": torch.as_tensor(held)})
        about = {
            "key": self._key(settings, fold),
            "model": record,
            "history": fit.history,
            "notes": list(fit.notes),
        }
        # A loss that is not a number is read back as one, so that a resumed fit is the same fit.
        write_json(self.folder / f"{name}.json", about, allow_nan=True)

    def _key(self, settings: str, fold: int) -> str:
        return hashlib.sha256(f"{self.key}|{settings}|{fold}".encode()).hexdigest()


def slug(name: str) -> str:
    """A name that any file system takes.

    >>> slug("mlp + soft-set")
    'mlp-soft-set'
    """
    words = "".join(c if c.isalnum() else " " for c in name).split()
    return "-".join(words).lower() or "model"
