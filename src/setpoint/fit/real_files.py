"""A fitted regressor as a folder: what was asked, what was found, the model.

regressor.json      goal, settings, task, columns, scale, comparison, plan, notes, history
models/             safetensors for weights, text for trees, skops for scikit-learn
manifest.json       the sha256 of every other file, written last
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from setpoint._core.errors import FileError, SetpointError
from setpoint._core.files import write_text
from setpoint.datasets import Codes, Features, Schema
from setpoint.fit.fold_models import read_model, write_model
from setpoint.fit.manifest import gathered, read_json, verified
from setpoint.fit.regression.regression_comparison import RealComparison
from setpoint.fit.regression.regression_members import RealMade
from setpoint.fit.regression.regression_pipeline import RealPlan
from setpoint.fit.regression.regression_targets import Scale
from setpoint.fit.regressor_model import RegressorModel
from setpoint.fit.storage import _method_from, _method_to, _plain, _row
from setpoint.fit.training_data import Encoder
from setpoint.goals import Goal, Task

FORMAT = "setpoint regressor 1"
PLAIN = (
    "compare refit hidden dropout epochs patience batch_size learning_rate weight_decay device"
).split()


def save(regressor: Any, path: Any) -> None:
    """Write a fitted regressor to a folder, which may exist."""
    with gathered(path) as folder:
        models, model = folder / "models", regressor.made_.model
        models.mkdir()
        if isinstance(model, RegressorModel):
            record = {
                "kind": "regressor",
                "file": "model.skops",
                **model.write(models / "model.skops"),
            }
        else:
            record = write_model(model, models, "model")
        about = _about(regressor, record)
        write_text(folder / "regressor.json", json.dumps(about, indent=1, allow_nan=False) + "\n")


def load(path: Any, kind: type, model: nn.Module | None, trusted: Sequence[str]) -> Any:
    """A fitted regressor from a folder."""
    folder = Path(path)
    verified(folder)
    about = read_json(folder / "regressor.json")
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError(f'"{folder}" holds no regressor in the format "{FORMAT}"')
    try:
        return _restored(about, folder, kind, model, trusted)
    except SetpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f'"{folder}" is damaged: {error!r}') from error


def _about(regressor: Any, record: dict[str, Any]) -> dict[str, Any]:
    encoder: Encoder = regressor.encoder_
    built_in = isinstance(regressor.model, str)
    edges = None if regressor.edges is None else [float(e) for e in regressor.edges]
    return {
        "format": FORMAT,
        "goal": str(Goal.of(regressor.goal)),
        "model": regressor.model if built_in else None,
        "method": _method_to(regressor.method),
        "declared": None if regressor.task is None else Task.make(regressor.task).to_json(),
        "edges": edges,
        "settings": {
            **{name: _plain(getattr(regressor, name), name) for name in PLAIN},
            "random_state": regressor.seed_,
        },
        "task": regressor.task_.to_json(),
        "n_features_in": regressor.n_features_in_,
        "feature_names_in": getattr(regressor, "feature_names_in_", np.array([])).tolist() or None,
        "encoder": {
            part.name: None if (x := getattr(encoder, part.name)) is None else x.to_json()
            for part in fields(Encoder)
        },
        "record": record,
        "scale": asdict(regressor.made_.scale),
        "comparison": regressor.comparison_.to_json(),
        "plan": regressor.plan_.to_json(),
        "notes": list(regressor.notes_),
        "history": [_row(row) for row in regressor.history_],
        "finished": regressor.finished_,
    }


def _restored(
    about: dict[str, Any],
    folder: Path,
    kind: type,
    model: nn.Module | None,
    trusted: Sequence[str],
) -> Any:
    settings = {**about["settings"], "hidden": tuple(about["settings"]["hidden"])}
    declared, record = about["declared"], about["record"]
    made = kind(about["goal"], method=_method_from(about["method"]), **settings)
    made.task = None if declared is None else Task.from_json(declared)
    made.edges, made.task_ = about["edges"], Task.from_json(about["task"])
    made.n_features_in_ = about["n_features_in"]
    if about["feature_names_in"]:
        made.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
    readers = {"schema": Schema, "features": Features, "codes": Codes}
    parts = about["encoder"]
    made.encoder_ = Encoder(
        **{k: None if parts[k] is None else r.from_json(parts[k]) for k, r in readers.items()}
    )
    if record["kind"] == "regressor":
        held: Any = RegressorModel.read(folder / "models" / "model.skops", trusted)
    else:
        held = read_model(record, folder / "models", made.task_, model, trusted)
    made.made_ = RealMade(held, Scale(**about["scale"]))
    made.comparison_ = RealComparison.from_json(about["comparison"])
    made.plan_, made.notes_ = RealPlan.from_json(about["plan"]), tuple(about["notes"])
    made.history_, made.finished_ = about["history"], about["finished"]
    made.certificate_, made.seed_ = None, made.random_state
    made.model = about["model"] or (model if model is not None else held.own)
    return made
