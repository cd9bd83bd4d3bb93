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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from torch import nn

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.files import read_json, write_bytes, write_text
from setpoint.fit.scikit_members import Classifier, classifier_scores
from setpoint.goals import Task
from setpoint.training.checkpoint import load_state, save_state
from setpoint.training.networks import linear, mlp
from setpoint.training.validation_rows import evaluate_outputs

# Classifiers of scikit-learn as bytes, read back only if all their types are vouched for.


_OURS = ("sklearn", "lightgbm", "setpoint")


class Predictor(Protocol):
    """A fitted regressor of scikit-learn."""

    def predict(self, X: Any) -> Any:
        """Numbers of rows."""


def dumped(estimator: Predictor | Classifier) -> bytes:
    """An estimator of scikit-learn as bytes."""
    return _skops().dumps(estimator)


def trusted_from(path: Path, trusted: Sequence[str]) -> Any:
    """An estimator from skops; refused if it holds anything that nobody vouches for."""
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
    """A fitted model; a subclass is known to :func:`read_model` by its kind, and by that alone.

    Attributes
    ----------
    kind : str
        As the record beside its file calls it.
    form : {"numbers", "codes", "raw"}
        What rows it takes.
    ending : str
        Of its file.
    """

    kind: ClassVar[str]
    form: str
    ending: str
    kinds: ClassVar[dict[str, type[Model]]] = {}

    def __init_subclass__(cls) -> None:
        Model.kinds[cls.kind] = cls

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

    @classmethod
    @abstractmethod
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> Self:
        """Read what :meth:`write` wrote; nothing that is read is executed."""


@dataclass(frozen=True)
class ModelSources:
    """What a model is read back with beside its file.

    Attributes
    ----------
    task : Task
    module : torch.nn.Module, optional
        Of the same architecture, where the model is a module of the user's own.
    trusted : sequence of str
        Types in a scikit-learn model that the caller vouches for.
    """

    task: Task
    module: nn.Module | None = None
    trusted: Sequence[str] = ()


class LinearModel(Model):
    """outputs = X Wᵀ + b, with W (outputs, d)."""

    kind = "linear"
    form = "numbers"
    ending = "safetensors"

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
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> LinearModel:
        state = load_state(path)
        return cls(state["weights"].numpy(), state["bias"].numpy(), bool(about["single"]))


class TreesModel(Model):
    """Boosted trees of LightGBM, one booster, or one for each label."""

    kind = "trees"
    form = "codes"
    ending = "txt"
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
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> TreesModel:
        import lightgbm

        try:
            texts = path.read_text(encoding="utf-8").split(cls._PART)
            boosters = [lightgbm.Booster(model_str=text) for text in texts]
        except (OSError, UnicodeDecodeError, lightgbm.basic.LightGBMError) as error:
            raise FileError(f'cannot read the trees in "{path}": {error}') from error
        return cls(boosters, bool(about["several"]))


class NetworkModel(Model):
    """A network; those of ours in float64, so that a row's score depends on no other row's."""

    kind = "network"
    form = "numbers"
    ending = "safetensors"

    def __init__(
        self,
        module: nn.Module,
        shape: dict[str, Any] | None,
        loss: Mapping[str, Any] | None = None,
    ) -> None:
        self.module = module
        self.shape = shape
        self.loss = loss or {}

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
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> NetworkModel:
        state = load_state(path)
        shape = about["shape"]
        if shape is not None:
            module = built(shape).double()
        elif sources.module is not None:
            module = copy.deepcopy(sources.module)  # of several folds each has its own weights
        else:
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

    kind = "classifier"
    form = "raw"
    ending = "skops"

    def __init__(self, classifier: Classifier, task: Task) -> None:
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
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> ClassifierModel:
        return cls(trusted_from(path, sources.trusted), sources.task)


class RegressorModel(Model):
    """Predictions of a regressor, on rows as they were given."""

    kind = "regressor"
    form = "raw"
    ending = "skops"

    def __init__(self, regressor: Predictor) -> None:
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
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> RegressorModel:
        return cls(trusted_from(path, sources.trusted))


class ScoresModel(Model):
    """Scores of a model trained elsewhere: rows are the scores."""

    kind = "scores"
    form = "raw"
    ending = "json"

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
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> ScoresModel:
        return cls(Task.from_json(read_json(path)))


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
    return {"kind": model.kind, "file": file, **about}


def read_model(about: Mapping[str, Any], folder: Path, sources: ModelSources) -> Model:
    """Read what :func:`write_model` wrote; nothing that is read is executed."""
    path = folder / about["file"]
    if path.parent != folder:
        raise FileError(f'the model "{about["file"]}" does not lie in its folder')
    model = Model.kinds.get(about["kind"])
    if model is None:
        raise FileError(f'a model of the kind "{about["kind"]}" is not known here')
    return model.read(path, about, sources)
