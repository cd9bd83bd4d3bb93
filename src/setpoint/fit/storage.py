"""A fitted run as a folder: what was asked, what was found, the models, the report.

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
from setpoint._core.notes import Note
from setpoint.datasets import Codes, Features, Schema
from setpoint.decisions import Certificate, DecisionRule
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.outcome import Outcome
from setpoint.fit.class_labels import ClassLabels
from setpoint.fit.fold_models import (
    Model,
    ModelSources,
    read_model,
    write_model,
)
from setpoint.fit.member_checkpoints import slug
from setpoint.fit.members import ScoresGiven
from setpoint.fit.plan import FitPlan
from setpoint.fit.regression.regression_comparison import RealComparison
from setpoint.fit.regression.regression_members import RealMade
from setpoint.fit.regression.regression_pipeline import RealPlan
from setpoint.fit.regression.regression_targets import Scale
from setpoint.fit.run_record import FittedRun, RunOrigin
from setpoint.fit.stack import Stack, read_outcomes
from setpoint.fit.training_data import Encoder
from setpoint.goals import Goal, Task, lower
from setpoint.methods import method
from setpoint.reports import Report

FORMAT = "setpoint run 1"
PLAIN = (
    "positive kind effort folds certify_size margin proof_price compare time_limit hidden dropout "
    "epochs patience batch_size learning_rate weight_decay device confidence"
).split()


def save(run: FittedRun, path: Any, report: bool = True) -> None:
    """Write a fitted run to a folder, which may exist."""
    with gathered(path) as folder:
        models = folder / "models"
        models.mkdir()
        records = {
            name: [write_model(m, models, f"{slug(name)}-{k}") for k, m in enumerate(several)]
            for name, several in run.models.items()
        }
        _json(folder / "classifier.json", {**about(run), "models": records})
        _json(folder / "rule.json", run.rule.to_json())
        if run.certificate is not None:
            _json(folder / "certificate.json", run.certificate.to_json())
        if run.comparison is not None:
            _json(folder / "comparison.json", run.comparison.to_json())
        _json(folder / "history.json", [_row(row) for row in run.history])
        splits = run.splits()
        if splits is not None:
            write_text(folder / "splits.csv", splits)
        if report:
            run.report.save(folder)


def load(path: Any, model: nn.Module | None = None, trusted: Sequence[str] = ()) -> FittedRun:
    """A fitted run from a folder.

    Parameters
    ----------
    model : torch.nn.Module, optional
        A module of the same architecture, where the run was given one of the user's own.
    trusted : sequence of str
        Types in a scikit-learn model that the caller vouches for.
    """
    folder = Path(path)
    sealed = verified(folder)
    record = read_json(folder / "classifier.json")
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise FileError(f'"{folder}" holds no classifier in the format "{FORMAT}"')
    try:
        return _restored(record, folder, sealed, model, trusted)
    except SetpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f'"{folder}" is damaged: {error!r}') from error


def about(run: FittedRun) -> dict[str, Any]:
    """What stands in ``classifier.json``, but for the files of the models."""
    settings, model = run.origin.settings, run.origin.settings["model"]
    declared = settings["task"]
    names = run.origin.feature_names
    return {
        "format": FORMAT,
        "goal": str(run.goal),
        "model": model if isinstance(model, str) else type(model).__name__,
        "built_in": isinstance(model, str),
        "method": _method_to(settings["method"]),
        "declared": None if declared is None else Task.make(declared).to_json(),
        "settings": {name: _plain(settings[name], name) for name in (*PLAIN, "random_state")},
        "task": run.labels.task.to_json(),
        "classes": [_label(c) for c in run.labels.classes.tolist()],
        "n_features_in": run.origin.n_features,
        "feature_names_in": None if names is None else list(names),
        "encoder": _encoder_to(run.encoder),
        "stack": run.stack.to_json(),
        "members": [member.to_json() for member in run.members],
        "outcome": str(run.outcome),
        "notes": [note.to_json() for note in run.notes],
        "plan": run.plan.to_json(),
        "fingerprint": run.fingerprint,
        "seconds": run.seconds,
        "versions": run.versions,
        "finished": run.finished,
    }


def _restored(
    record: dict[str, Any],
    folder: Path,
    sealed: frozenset[str],
    module: nn.Module | None,
    trusted: Sequence[str],
) -> FittedRun:
    task = Task.from_json(record["task"])
    kinds = {type(c) for c in record["classes"]}
    classes = np.array(record["classes"], dtype=object if len(kinds) > 1 else None)
    sources = ModelSources(task, module, trusted)
    models = {
        name: [read_model(r, folder / "models", sources) for r in records]
        for name, records in record["models"].items()
    }
    rule = DecisionRule.load(folder / "rule.json")
    certificate = comparison = report = None
    if "certificate.json" in sealed:  # a file that the manifest does not name is not of this run
        certificate = Certificate.load(folder / "certificate.json")
    if "comparison.json" in sealed:
        comparison = Comparison.from_json(read_json(folder / "comparison.json"))
    if "report.json" in sealed:
        report = Report.from_json(read_json(folder / "report.json"))
    stack, plan = Stack.from_json(record["stack"]), FitPlan.from_json(record["plan"])
    names = record["feature_names_in"]
    return FittedRun(
        goal=Goal.parse(record["goal"]),
        origin=RunOrigin(
            settings=_settings_from(record, models, rule, module),
            n_features=record["n_features_in"],
            feature_names=tuple(names) if names else None,
        ),
        labels=ClassLabels(task, classes),
        encoder=_encoder_from(record["encoder"]),
        plan=plan,
        models=models,
        members=read_outcomes(record),
        stack=stack,
        rule=rule,
        certificate=certificate,
        comparison=comparison,
        outcome=Outcome.of(lower(rule.goal), rule, certificate or rule.certificate),
        notes=tuple(map(Note.from_json, record["notes"])),
        history=read_json(folder / "history.json"),
        fingerprint=record["fingerprint"],
        seconds=record["seconds"],
        versions=record["versions"],
        finished=record["finished"],
        saved_report=report,
    )


def _settings_from(
    record: dict[str, Any],
    models: dict[str, list[Model]],
    rule: DecisionRule,
    module: nn.Module | None,
) -> dict[str, Any]:
    """The parameters of the estimator; the user's own model as far as it can be known."""
    settings = dict(record["settings"])
    settings["hidden"] = tuple(settings["hidden"])
    declared = record["declared"]
    several = [m for members in models.values() for m in members]
    model: Any = several[0].own if len(several) == 1 else models
    if record["built_in"]:
        model = record["model"]
    elif record["model"] == ScoresGiven.__name__:
        model = ScoresGiven(rule.task.score)
    elif module is not None:
        model = module
    return {
        **settings,
        "goal": record["goal"],
        "model": model,
        "method": _method_from(record["method"]),
        "task": None if declared is None else Task.from_json(declared),
    }


def _encoder_to(encoder: Encoder) -> dict[str, Any]:
    parts = {part.name: getattr(encoder, part.name) for part in fields(Encoder)}
    return {name: None if part is None else part.to_json() for name, part in parts.items()}


def _encoder_from(parts: dict[str, Any]) -> Encoder:
    readers = {"schema": Schema, "features": Features, "codes": Codes}
    return Encoder(
        **{k: None if parts[k] is None else r.from_json(parts[k]) for k, r in readers.items()}
    )


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
        "encoder": _encoder_to(regressor.encoder_),
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
    made.encoder_ = _encoder_from(about["encoder"])
    held = read_model(record, folder / "models", ModelSources(made.task_, model, trusted))
    made.made_ = RealMade(held, Scale(**about["scale"]))
    made.comparison_ = RealComparison.from_json(about["comparison"])
    made.plan_, made.notes_ = RealPlan.from_json(about["plan"]), tuple(about["notes"])
    made.history_, made.finished_ = about["history"], about["finished"]
    made.certificate_, made.seed_ = None, made.random_state
    made.model = about["model"] or (model if model is not None else held.own)
    return made
