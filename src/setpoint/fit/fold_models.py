"""Fitted models, one of each fold: outputs from rows, and files that hold them.

An output is a logit, (n,) of a binary task, (n, L) of labels; log-probabilities up to a constant,
(n, K), of classes; or, where a classifier has no probabilities, its raw score.
"""

from __future__ import annotations

import copy
import importlib
import io
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.files import write_bytes, write_text
from setpoint.fit.scikit_members import classifier_scores
from setpoint.goals import Task
from setpoint.training.checkpoint import load_state, save_state
from setpoint.training.loop import evaluate_outputs
from setpoint.training.networks import linear, mlp

# Classifiers of scikit-learn as bytes, read back only if all their types are vouched for.


_OURS = ("sklearn", "lightgbm", "setpoint")


def dumped(classifier: Any) -> bytes:
    """A classifier as bytes."""
    return _skops().dumps(classifier)


def trusted_from(path: Path, trusted: Sequence[str]) -> BaseEstimator:
    """A classifier from skops; refused if it holds anything that nobody vouches for."""
    skops = _skops()
    try:
        data = _renamed_modules(path.read_bytes())
        unknown = skops.get_untrusted_types(data=data)
        odd = [name for name in unknown if name not in trusted and not _is_estimator_part(name)]
        if odd:
            raise FileError(
                f'"{path}" holds what nobody vouches for: {", ".join(odd)}. If you do, '
                f"sp.load(path, trusted={odd!r})"
            )
        return skops.loads(data, trusted=unknown)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f'cannot read "{path}": {error.strerror}') from error
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise FileError(f'"{path}" is no model as skops writes them: {error}') from error


#: where classes of ours lay when version 1 wrote them into skops files
_MOVED_MODULES = {
    "setpoint.boosting.libraries": "setpoint.boosting.library_estimators",
    "setpoint.expressions.task": "setpoint.expressions.rows.task",
}


def _renamed_modules(data: bytes) -> bytes:
    """A skops file that names today's modules where it named those of version 1."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = archive.read("schema.json")
        renamed = schema
        for old, new in _MOVED_MODULES.items():
            renamed = renamed.replace(
                f'"__module__": "{old}"'.encode(), f'"__module__": "{new}"'.encode()
            )
        if renamed == schema:
            return data
        rewritten = io.BytesIO()
        with zipfile.ZipFile(rewritten, "w") as target:
            for name in archive.namelist():
                target.writestr(name, renamed if name == "schema.json" else archive.read(name))
    return rewritten.getvalue()


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


_ROWS = 8_192  #: that a network scores at once
_SURE = 1e-16  #: a probability is this far from 0 and 1 at least: a logit of ±36.7


class Model(ABC):
    """A fitted model.

    Attributes
    ----------
    form : {"numbers", "codes", "raw"}
        What rows it takes.
    ending : str
        Of its file.
    """

    form: ClassVar[str]
    ending: ClassVar[str]

    @property
    def probable(self) -> bool:
        """Whether outputs are logits, not raw scores."""
        return True

    @property
    @abstractmethod
    def own(self) -> Any:
        """The thing itself, as its library knows it."""

    @abstractmethod
    def outputs(self, rows: Any) -> np.ndarray:
        """Outputs in float64."""

    @abstractmethod
    def write(self, path: Path) -> dict[str, Any]:
        """Write the file; what else is needed to read it comes back as plain data."""


class LinearModel(Model):
    """outputs = X Wᵀ + b, with W (outputs, d)."""

    form, ending = "numbers", "safetensors"

    def __init__(self, weights: np.ndarray, bias: np.ndarray, single: bool) -> None:
        self.weights, self.bias, self.single = weights, bias, single

    @property
    def own(self) -> Any:
        return self.weights, self.bias

    def outputs(self, rows: Any) -> np.ndarray:
        W, b = self.weights.T.astype(np.float64), self.bias.astype(np.float64)
        parts = np.array_split(np.asarray(rows), max(1, -(-len(rows) // _ROWS)))
        z = np.concatenate([part.astype(np.float64) @ W + b for part in parts])  # (n, outputs)
        return z[:, 0] if self.single else z

    def write(self, path: Path) -> dict[str, Any]:
        parts = {"weights": torch.as_tensor(self.weights), "bias": torch.as_tensor(self.bias)}
        save_state(path, parts)
        return {"single": self.single}

    @classmethod
    def read(cls, path: Path, about: dict[str, Any]) -> LinearModel:
        """Read what :meth:`write` wrote."""
        state = load_state(path)
        return cls(state["weights"].numpy(), state["bias"].numpy(), bool(about["single"]))


class TreesModel(Model):
    """Boosted trees of LightGBM, one booster, or one for each label."""

    form, ending = "codes", "txt"
    _PART = "\n=== another booster ===\n"

    def __init__(self, boosters: Sequence[Any], several: bool) -> None:
        self.boosters, self.several = list(boosters), several

    @property
    def own(self) -> Any:
        return self.boosters if self.several else self.boosters[0]

    def outputs(self, rows: Any) -> np.ndarray:
        found = [np.asarray(b.predict(rows, raw_score=True), np.float64) for b in self.boosters]
        return np.stack(found, 1) if self.several else found[0]

    def write(self, path: Path) -> dict[str, Any]:
        write_text(path, self._PART.join(b.model_to_string() for b in self.boosters))
        return {"several": self.several}

    @classmethod
    def read(cls, path: Path, about: dict[str, Any]) -> TreesModel:
        """Read what :meth:`write` wrote."""
        import lightgbm

        try:
            texts = path.read_text(encoding="utf-8").split(cls._PART)
            boosters = [lightgbm.Booster(model_str=text) for text in texts]
        except (OSError, UnicodeDecodeError, lightgbm.basic.LightGBMError) as error:
            raise FileError(f'cannot read the trees in "{path}": {error}') from error
        return cls(boosters, bool(about["several"]))


class NetworkModel(Model):
    """A network; those of ours in float64, so that a row's score depends on no other row's."""

    form, ending = "numbers", "safetensors"

    def __init__(self, module: nn.Module, shape: dict[str, Any] | None, loss: Any = None) -> None:
        self.module, self.shape, self.loss = module, shape, loss or {}

    @property
    def own(self) -> Any:
        return self.module

    def outputs(self, rows: Any) -> np.ndarray:
        like = next(self.module.parameters())
        found = [
            evaluate_outputs(self.module, torch.as_tensor(part).to(like.dtype).to(like.device))
            for part in np.array_split(rows, max(1, -(-len(rows) // _ROWS)))
        ]
        z = torch.cat(found).double().cpu().numpy()
        return z[:, 0] if z.ndim == 2 and z.shape[1] == 1 else z

    def write(self, path: Path) -> dict[str, Any]:
        save_state(path, {"model": self.module.state_dict(), "loss": self.loss})
        return {"shape": self.shape, "module": type(self.module).__name__}

    @classmethod
    def read(cls, path: Path, about: dict[str, Any], module: nn.Module | None) -> NetworkModel:
        """Read what :meth:`write` wrote; a module of the user's own must be given."""
        state, shape = load_state(path), about["shape"]
        if shape is not None:
            module = built(shape).double()
        elif module is None:
            raise KindError(
                f"this classifier holds a module of your own, {about['module']}: "
                "make one of the same architecture and pass it, sp.load(path, model=module)"
            )
        try:
            module.load_state_dict(state["model"])
        except RuntimeError as error:
            raise FileError(f"the weights do not fit the model: {error}") from error
        return cls(module.eval(), shape, state["loss"])


def built(shape: dict[str, Any]) -> nn.Module:
    """A network of ours from the numbers that make it."""
    if shape["model"] == "linear":
        return linear(shape["inputs"], shape["outputs"])
    return mlp(shape["inputs"], shape["outputs"], tuple(shape["hidden"]), shape["dropout"])


class ClassifierModel(Model):
    """A classifier of scikit-learn, on rows as they were given."""

    form, ending = "raw", "skops"

    def __init__(self, classifier: Any, task: Task) -> None:
        self.classifier, self.task = classifier, task

    @property
    def probable(self) -> bool:
        return hasattr(self.classifier, "predict_proba")

    @property
    def own(self) -> Any:
        return self.classifier

    def outputs(self, rows: Any) -> np.ndarray:
        found = classifier_scores(self.classifier, rows, self.task)
        return logits(found, self.task) if self.probable else found

    def write(self, path: Path) -> dict[str, Any]:
        write_bytes(path, dumped(self.classifier))
        return {}

    @classmethod
    def read(cls, path: Path, task: Task, trusted: Sequence[str]) -> ClassifierModel:
        """Read what :meth:`write` wrote, if all its types are vouched for."""
        return cls(trusted_from(path, trusted), task)


class ScoresModel(Model):
    """Scores of a model trained elsewhere: rows are the scores."""

    form, ending = "raw", "json"

    def __init__(self, task: Task) -> None:
        self.task = task

    @property
    def own(self) -> Any:
        return None

    @property
    def probable(self) -> bool:
        return self.task.score != "raw"

    def outputs(self, rows: Any) -> np.ndarray:
        found = np.asarray(rows, dtype=np.float64)
        single = self.task.kind == "binary" and found.ndim == 2 and found.shape[1] == 1
        found = found[:, 0] if single else found
        if self.task.score != "probability":
            return found
        if len(found) and not (found.min() >= 0 and found.max() <= 1):
            raise DataError(
                f"scores hold {found.min():g} to {found.max():g}, which are no probabilities; "
                'declare them raw or logits, task=Task(…, score="raw")'
            )
        return logits(found, self.task)

    def write(self, path: Path) -> dict[str, Any]:
        write_text(path, json.dumps(self.task.to_json()) + "\n")
        return {}

    @classmethod
    def read(cls, path: Path) -> ScoresModel:
        """Read what :meth:`write` wrote."""
        return cls(Task.from_json(json.loads(path.read_text(encoding="utf-8"))))


def logits(p: np.ndarray, task: Task) -> np.ndarray:
    """Outputs from probabilities."""
    if task.kind == "multiclass":
        return np.log(np.maximum(p, _SURE))
    p = np.clip(p, _SURE, 1 - _SURE)
    return np.log(p) - np.log1p(-p)


def write_model(model: Model, folder: Path, name: str) -> dict[str, Any]:
    """Write a model beside others; the record says how to read it back."""
    file = f"{name}.{model.ending}"
    about = model.write(folder / file)
    return {"kind": _KINDS[type(model)], "file": file, **about}


def read_model(
    about: dict[str, Any],
    folder: Path,
    task: Task,
    module: nn.Module | None = None,
    trusted: Sequence[str] = (),
) -> Model:
    """Read what :func:`write_model` wrote; nothing that is read is executed."""
    path, kind = folder / about["file"], about["kind"]
    if path.parent != folder:
        raise FileError(f'the model "{about["file"]}" does not lie in its folder')
    if kind == "linear":
        return LinearModel.read(path, about)
    if kind == "trees":
        return TreesModel.read(path, about)
    if kind == "network":
        return NetworkModel.read(path, about, copy.deepcopy(module))
    if kind == "classifier":
        return ClassifierModel.read(path, task, trusted)
    if kind == "scores":
        return ScoresModel.read(path)
    raise FileError(f'a model of the kind "{kind}" is not known here')


_KINDS = {
    LinearModel: "linear",
    TreesModel: "trees",
    NetworkModel: "network",
    ClassifierModel: "classifier",
    ScoresModel: "scores",
}


# A fitted regressor of scikit-learn as a model with a file.


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
