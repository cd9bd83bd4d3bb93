"""A fitted classifier as a folder: safetensors for weights, JSON for everything else.

    estimator.json        goal, settings, task, classes, features, rule, notes, history
    model.safetensors     weights of a network, and the running totals of its loss
    model.skops           a classifier of scikit-learn, read back only if all its types are trusted

Nothing that is read is executed.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn

from setpoint._core.errors import FileError, KindError, SetpointError
from setpoint._core.files import write_bytes, write_text
from setpoint.datasets import Features
from setpoint.decisions import DecisionRule
from setpoint.goals import Goal, Task
from setpoint.methods import method
from setpoint.training.checkpoint import load_state, save_state
from setpoint.training.networks import linear, mlp

FORMAT = "setpoint classifier 1"
PLAIN = (
    "positive kind tune_size hidden dropout epochs patience batch_size learning_rate weight_decay "
    "device confidence random_state"
).split()


def save(classifier: Any, path: Any) -> None:
    """Write a fitted classifier to a folder, which may exist."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f'cannot make the folder "{folder}": {error.strerror}') from error
    network = isinstance(classifier.model_, nn.Module)
    if network:
        state = {"model": classifier.model_.state_dict(), "loss": classifier.loss_state_}
        save_state(folder / "model.safetensors", state)
    else:
        write_bytes(folder / "model.skops", _skops().dumps(classifier.model_))
    text = json.dumps(_about(classifier, network, folder), indent=1, allow_nan=False)
    write_text(folder / "estimator.json", text + "\n")


def _about(classifier: Any, network: bool, folder: Path) -> dict[str, Any]:
    built_in = isinstance(classifier.model, str)
    settings = {name: _plain(getattr(classifier, name), name) for name in PLAIN}
    return {
        "format": FORMAT,
        "goal": str(Goal.of(classifier.goal)),
        "model": classifier.model if built_in else type(classifier.model).__name__,
        "built_in": built_in,
        "network": network,
        "weights": _digest(folder, network),
        "method": _method_to(classifier.method),
        "declared": None if classifier.task is None else Task.make(classifier.task).to_json(),
        "settings": settings,
        "task": classifier.task_.to_json(),
        "classes": [_label(c) for c in classifier.classes_.tolist()],
        "n_features_in": classifier.n_features_in_,
        "feature_names_in": getattr(classifier, "feature_names_in_", np.array([])).tolist() or None,
        "inputs": _inputs(classifier) if network and built_in else None,
        "features": None if classifier.features_ is None else classifier.features_.to_json(),
        "rule": classifier.rule_.to_json(),
        "notes": list(classifier.notes_),
        "plan": classifier.plan_,
        "history": [_row(row) for row in classifier.history_],
        "finished": classifier.finished_,
    }


def load(path: Any, kind: type, model: nn.Module | None, trusted: Sequence[str]) -> Any:
    """A fitted classifier from a folder."""
    folder = Path(path)
    try:
        about = json.loads((folder / "estimator.json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f'"{folder}" holds no classifier of Setpoint: {reason}') from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError(f'"{folder}" holds no classifier in the format "{FORMAT}"')
    try:
        return _restored(about, folder, kind, model, trusted)
    except SetpointError:
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise FileError(f'"{folder}" is damaged: {error!r}') from error


def _restored(
    about: dict[str, Any],
    folder: Path,
    kind: type,
    model: nn.Module | None,
    trusted: Sequence[str],
) -> Any:
    _whole(folder, about)
    settings = dict(about["settings"])
    settings["hidden"] = tuple(settings["hidden"])
    declared = about["declared"]
    classifier = kind(about["goal"], method=_method_from(about["method"]), **settings)
    classifier.task = None if declared is None else Task.from_json(declared)
    classifier.task_ = Task.from_json(about["task"])
    kinds = {type(c) for c in about["classes"]}
    classifier.classes_ = np.array(about["classes"], dtype=object if len(kinds) > 1 else None)
    classifier.n_features_in_ = about["n_features_in"]
    if about["feature_names_in"]:
        classifier.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
    features = about["features"]
    classifier.features_ = None if features is None else Features.from_json(features)
    classifier.rule_ = DecisionRule.from_json(about["rule"])
    classifier.notes_ = tuple(about["notes"])
    classifier.plan_ = about["plan"]
    classifier.history_ = about["history"]
    classifier.finished_ = about["finished"]
    if about["built_in"]:
        classifier.model = about["model"]
    if about["network"]:
        _network(classifier, about, load_state(folder / "model.safetensors"), model)
    else:
        classifier.model_ = _trusted(folder / "model.skops", trusted)
        classifier.model = classifier.model_
    return classifier


def _network(classifier: Any, about: dict[str, Any], state: dict[str, Any], model: Any) -> None:
    if about["built_in"]:
        outputs = 1 if classifier.task_.kind == "binary" else len(classifier.classes_)
        if about["model"] == "linear":
            network = linear(about["inputs"], outputs)
        else:
            network = mlp(about["inputs"], outputs, classifier.hidden, classifier.dropout)
        network = network.double()
    elif model is None:
        raise KindError(
            f"this classifier holds a module of your own, {about['model']}: "
            "make one of the same architecture and pass it, sp.load(path, model=module)"
        )
    else:
        network, classifier.model = copy.deepcopy(model), model
    try:
        network.load_state_dict(state["model"])
    except RuntimeError as error:
        raise FileError(f"the weights do not fit the model: {error}") from error
    classifier.model_ = network.eval()
    classifier.loss_state_ = state["loss"]


def _digest(folder: Path, network: bool) -> str:
    """What the file of weights holds, so that an old rule never meets new weights."""
    name = "model.safetensors" if network else "model.skops"
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


def _whole(folder: Path, about: dict[str, Any]) -> None:
    try:
        same = _digest(folder, about["network"]) == about["weights"]
    except OSError as error:
        raise FileError(f'"{folder}" lacks its weights: {error.strerror}') from error
    if not same:
        raise FileError(f'"{folder}" was not written to the end: weights and rule do not belong')


def _method_to(x: Any) -> Any:
    """A method as its name and options, those that are plain data."""
    if isinstance(x, str):
        return {"name": x, "options": {}}
    options = {f.name: getattr(x, f.name) for f in fields(x)}
    plain = {k: v for k, v in options.items() if _is_plain(v)}
    return {"name": x.name, "options": {k: v for k, v in plain.items() if v is not None}}


def _method_from(data: dict[str, Any]) -> Any:
    return method(data["name"], **data["options"]) if data["options"] else data["name"]


def _is_plain(x: Any) -> bool:
    if isinstance(x, tuple | list):
        return all(map(_is_plain, x))
    return x is None or isinstance(x, bool | int | float | str)


def _inputs(classifier: Any) -> int:
    first = next(m for m in classifier.model_.modules() if isinstance(m, nn.Linear))
    return int(first.in_features)


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


def _trusted(path: Path, trusted: Sequence[str]) -> BaseEstimator:
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


def _plain(x: Any, name: str) -> Any:
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, tuple | list):
        return [_plain(v, name) for v in x]
    if x is None or isinstance(x, bool | int | float | str):
        return x
    if isinstance(x, torch.device):
        return str(x)
    raise KindError(f"{name}={x!r} cannot be written to a file; give it as plain data")


def _label(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {k: (None if isinstance(v, float) and not np.isfinite(v) else v) for k, v in row.items()}
