"""A fitted classifier as a folder: what was asked, what was found, the models, the report.

    classifier.json     goal, settings, task, classes, columns, stack, models, notes, plan
    rule.json           the operating point            certificate.json   what was proven of it
    comparison.json     what it bought                 history.json       epochs of every network
    splits.csv          the part and fold of each row
    models/             safetensors for weights, text for trees, skops for scikit-learn
    report.html, report.json, README.md (a model card)
    manifest.json       the sha256 of every other file, written last

Everything is written to a folder beside its place and moved when it is whole. Nothing that is read
is executed, and a folder whose files are not those of its manifest is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from setpoint._core.errors import FileError, KindError, SetpointError
from setpoint._core.files import gathered, read_json, verified, write_text
from setpoint.datasets import Codes, Features, Schema
from setpoint.decisions import Certificate, DecisionRule
from setpoint.decisions.comparison import Comparison
from setpoint.fit.fold_models import RegressorModel, read_model, write_model
from setpoint.fit.member_checkpoints import slug
from setpoint.fit.members import ScoresGiven
from setpoint.fit.plan import FitPlan
from setpoint.fit.regression.regression_comparison import RealComparison
from setpoint.fit.regression.regression_members import RealMade
from setpoint.fit.regression.regression_pipeline import RealPlan
from setpoint.fit.regression.regression_targets import Scale
from setpoint.fit.stack import Stack
from setpoint.fit.training_data import Encoder
from setpoint.goals import Goal, Task
from setpoint.methods import method
from setpoint.reports import Report

FORMAT = "setpoint run 1"
PLAIN = (
    "positive kind effort folds certify_size margin proof_price compare time_limit hidden dropout "
    "epochs patience batch_size learning_rate weight_decay device confidence"
).split()


def save(classifier: Any, path: Any, report: bool = True) -> None:
    """Write a fitted classifier to a folder, which may exist."""
    with gathered(path) as folder:
        models = folder / "models"
        models.mkdir()
        records = {
            name: [write_model(m, models, f"{slug(name)}-{k}") for k, m in enumerate(several)]
            for name, several in classifier.members_.items()
        }
        _json(folder / "classifier.json", _about(classifier, records))
        _json(folder / "rule.json", classifier.rule_.to_json())
        if classifier.certificate_ is not None:
            _json(folder / "certificate.json", classifier.certificate_.to_json())
        if classifier.comparison_ is not None:
            _json(folder / "comparison.json", classifier.comparison_.to_json())
        _json(folder / "history.json", [_row(row) for row in classifier.history_])
        if classifier.story_ is not None:
            write_text(folder / "splits.csv", classifier.story_.splits())
        if report:
            classifier.report_.save(folder)


def load(path: Any, kind: type, model: nn.Module | None, trusted: Sequence[str]) -> Any:
    """A fitted classifier from a folder."""
    folder = Path(path)
    sealed = verified(folder)
    about = read_json(folder / "classifier.json")
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError(f'"{folder}" holds no classifier in the format "{FORMAT}"')
    try:
        return _restored(about, folder, sealed, kind, model, trusted)
    except SetpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f'"{folder}" is damaged: {error!r}') from error


def _about(classifier: Any, records: dict[str, Any]) -> dict[str, Any]:
    built_in = isinstance(classifier.model, str)
    encoder: Encoder = classifier.encoder_
    return {
        "format": FORMAT,
        "goal": str(Goal.of(classifier.goal)),
        "model": classifier.model if built_in else type(classifier.model).__name__,
        "built_in": built_in,
        "method": _method_to(classifier.method),
        "declared": None if classifier.task is None else Task.make(classifier.task).to_json(),
        "settings": {
            **{name: _plain(getattr(classifier, name), name) for name in PLAIN},
            "random_state": classifier.seed_,
        },
        "task": classifier.task_.to_json(),
        "classes": [_label(c) for c in classifier.classes_.tolist()],
        "n_features_in": classifier.n_features_in_,
        "feature_names_in": getattr(classifier, "feature_names_in_", np.array([])).tolist() or None,
        "encoder": {
            part.name: None if (x := getattr(encoder, part.name)) is None else x.to_json()
            for part in fields(Encoder)
        },
        "stack": classifier.stack_.to_json(),
        "models": records,
        "notes": list(classifier.notes_),
        "plan": classifier.plan_.to_json(),
        "fingerprint": classifier.fingerprint_,
        "seconds": classifier.seconds_,
        "versions": classifier.versions_,
        "finished": classifier.finished_,
    }


def _restored(
    about: dict[str, Any],
    folder: Path,
    sealed: frozenset[str],
    kind: type,
    model: nn.Module | None,
    trusted: Sequence[str],
) -> Any:
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
    readers = {"schema": Schema, "features": Features, "codes": Codes}
    parts = about["encoder"]
    classifier.encoder_ = Encoder(
        **{k: None if parts[k] is None else r.from_json(parts[k]) for k, r in readers.items()}
    )
    classifier.stack_ = Stack.from_json(about["stack"])
    classifier.members_ = {
        name: [
            read_model(record, folder / "models", classifier.task_, model, trusted)
            for record in records
        ]
        for name, records in about["models"].items()
    }
    classifier.rule_ = DecisionRule.load(folder / "rule.json")
    classifier.certificate_ = classifier.comparison_ = None
    if "certificate.json" in sealed:  # a file that the manifest does not name is not of this run
        classifier.certificate_ = Certificate.load(folder / "certificate.json")
    if "comparison.json" in sealed:
        classifier.comparison_ = Comparison.from_json(read_json(folder / "comparison.json"))
    classifier.history_ = read_json(folder / "history.json")
    classifier.notes_ = tuple(about["notes"])
    classifier.plan_ = FitPlan.from_json(about["plan"])
    for name in ("fingerprint", "seconds", "versions", "finished"):
        setattr(classifier, f"{name}_", about[name])
    classifier.story_ = None
    if "report.json" in sealed:
        classifier.__dict__["report_"] = Report.from_json(read_json(folder / "report.json"))
    classifier.seed_ = classifier.random_state
    classifier.model = _model_of(classifier, about, model)
    return classifier


def _model_of(classifier: Any, about: dict[str, Any], module: nn.Module | None) -> Any:
    """What the user gave as model, as far as it can be known."""
    if about["built_in"]:
        return about["model"]
    if about["model"] == ScoresGiven.__name__:
        return ScoresGiven(classifier.rule_.task.score)
    return module if module is not None else classifier.model_


def _json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


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


# A fitted regressor as a folder: what was asked, what was found, the model.
#
# regressor.json      goal, settings, task, columns, scale, comparison, plan, notes, history
# models/             safetensors for weights, text for trees, skops for scikit-learn
# manifest.json       the sha256 of every other file, written last


REGRESSOR_FORMAT = "setpoint regressor 1"
REGRESSOR_PLAIN = (
    "compare refit hidden dropout epochs patience batch_size learning_rate weight_decay device"
).split()


def save_regressor(regressor: Any, path: Any) -> None:
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
        about = _about_regressor(regressor, record)
        write_text(folder / "regressor.json", json.dumps(about, indent=1, allow_nan=False) + "\n")


def load_regressor(path: Any, kind: type, model: nn.Module | None, trusted: Sequence[str]) -> Any:
    """A fitted regressor from a folder."""
    folder = Path(path)
    verified(folder)
    about = read_json(folder / "regressor.json")
    if not isinstance(about, dict) or about.get("format") != REGRESSOR_FORMAT:
        raise FileError(f'"{folder}" holds no regressor in the format "{REGRESSOR_FORMAT}"')
    try:
        return _restored_regressor(about, folder, kind, model, trusted)
    except SetpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f'"{folder}" is damaged: {error!r}') from error


def _about_regressor(regressor: Any, record: dict[str, Any]) -> dict[str, Any]:
    encoder: Encoder = regressor.encoder_
    built_in = isinstance(regressor.model, str)
    edges = None if regressor.edges is None else [float(e) for e in regressor.edges]
    return {
        "format": REGRESSOR_FORMAT,
        "goal": str(Goal.of(regressor.goal)),
        "model": regressor.model if built_in else None,
        "method": _method_to(regressor.method),
        "declared": None if regressor.task is None else Task.make(regressor.task).to_json(),
        "edges": edges,
        "settings": {
            **{name: _plain(getattr(regressor, name), name) for name in REGRESSOR_PLAIN},
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


def _restored_regressor(
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
