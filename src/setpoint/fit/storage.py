"""A fitted run as a folder: what was asked, what was found, the models, the report.

    classifier.json     goal, settings, task, classes, columns, stack, models, notes, plan
    rule.json           the operating point            certificate.json   what was proven of it
    comparison.json     what it bought                 history.json       epochs of every network
    splits.csv          the part and fold of each row
    models/             safetensors for weights, text for trees, skops for scikit-learn
    report.html, report.json, README.md (a model card)
    manifest.json       the sha256 of every other file, written last

Of a regression ``regressor.json`` holds all but the model: goal, settings, task, columns,
comparison, plan, notes, history.

Everything is written to a folder beside its place and moved when it is whole. Nothing that is read
is executed, and a folder whose files are not those of its manifest is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from setpoint._core.errors import FileError, KindError, SetpointError
from setpoint._core.files import gathered, write_json, write_text
from setpoint._core.json_codec import to_json
from setpoint._core.notes import Note
from setpoint.datasets import Codes, Features, Schema
from setpoint.datasets.class_labels import ClassLabels
from setpoint.decisions import DecisionRule
from setpoint.decisions.outcome import Outcome
from setpoint.fit.conclusion.stack import Stack, read_outcomes
from setpoint.fit.fold_models import (
    Model,
    ModelSources,
    read_model,
    write_model,
)
from setpoint.fit.member_checkpoints import slug
from setpoint.fit.members import ScoresGiven
from setpoint.fit.plan import FitPlan
from setpoint.fit.regression.regression_comparison import RegressionComparison
from setpoint.fit.regression.regression_pipeline import RegressionPlan, RegressionRun
from setpoint.fit.run_files import (
    CERTIFICATE,
    CLASSIFIER,
    COMPARISON,
    HISTORY,
    REGRESSOR,
    RULE,
    SealedRun,
)
from setpoint.fit.run_record import ClassifierRun, FittedRun, RunOrigin
from setpoint.fit.training_data import Encoder
from setpoint.goals import Goal, Task
from setpoint.methods import Method, method

FORMAT = "setpoint run 1"
REGRESSOR_FORMAT = "setpoint regressor 1"
PLAIN = (
    "positive kind effort folds certify_size margin proof_price compare time_limit hidden dropout "
    "epochs patience batch_size learning_rate weight_decay device confidence"
).split()
REGRESSOR_PLAIN = (
    "compare refit hidden dropout epochs patience batch_size learning_rate weight_decay device"
).split()


def save(run: ClassifierRun, path: str | os.PathLike[str], report: bool = True) -> None:
    """Write a fitted run to a folder, which may exist."""
    with gathered(path) as folder:
        models = folder / "models"
        models.mkdir()
        records = {
            name: [write_model(m, models, f"{slug(name)}-{k}") for k, m in enumerate(several)]
            for name, several in run.models.items()
        }
        write_json(folder / CLASSIFIER, {**about(run), "models": records})
        write_json(folder / RULE, run.rule.to_json())
        if run.certificate is not None:
            write_json(folder / CERTIFICATE, run.certificate.to_json())
        if run.comparison is not None:
            write_json(folder / COMPARISON, run.comparison.to_json())
        write_json(folder / HISTORY, _rows(run.history))
        splits = run.splits()
        if splits is not None:
            write_text(folder / "splits.csv", splits)
        if report:
            run.report.save(folder)


def save_regression(run: RegressionRun, path: str | os.PathLike[str]) -> None:
    """Write a fitted regression to a folder, which may exist."""
    with gathered(path) as folder:
        models = folder / "models"
        models.mkdir()
        (model,) = run.all_models
        write_json(
            folder / REGRESSOR,
            {
                **_about(run, REGRESSOR_FORMAT, REGRESSOR_PLAIN, run.task),
                "edges": to_json(run.origin.settings["edges"]),
                "record": write_model(model, models, "model"),
                "comparison": run.comparison.to_json(),
                "plan": run.plan.to_json(),
                "history": _rows(run.history),
            },
        )


def load(
    path: str | os.PathLike[str],
    model: nn.Module | None = None,
    trusted: Sequence[str] = (),
) -> ClassifierRun:
    """A fitted run from a folder.

    Parameters
    ----------
    model : torch.nn.Module, optional
        A module of the same architecture, where the run was given one of the user's own.
    trusted : sequence of str
        Types in a scikit-learn model that the caller vouches for.
    """
    run = SealedRun.open(Path(path))
    record = _document(run, CLASSIFIER, FORMAT)
    with _damage_told(run.folder):
        return _restored(record, run, model, trusted)


def load_regression(
    path: str | os.PathLike[str],
    model: nn.Module | None = None,
    trusted: Sequence[str] = (),
) -> RegressionRun:
    """A fitted regression from a folder; parameters as for :func:`load`."""
    run = SealedRun.open(Path(path))
    record = _document(run, REGRESSOR, REGRESSOR_FORMAT)
    with _damage_told(run.folder):
        return _restored_regression(record, run.folder, model, trusted)


def about(run: ClassifierRun) -> dict[str, Any]:
    """What stands in ``classifier.json``, but for the files of the models."""
    return {
        **_about(run, FORMAT, PLAIN, run.labels.task),
        "classes": [_label(c) for c in run.labels.classes.tolist()],
        "stack": run.stack.to_json(),
        "members": [member.to_json() for member in run.members],
        "outcome": str(run.outcome),
        "plan": run.plan.to_json(),
        "fingerprint": run.fingerprint,
        "seconds": run.seconds,
        "versions": run.versions,
    }


# What runs of both kinds hold.


def _about(run: FittedRun, file_format: str, plain: Sequence[str], task: Task) -> dict[str, Any]:
    settings = run.origin.settings
    model = settings["model"]
    declared = settings["task"]
    names = run.origin.feature_names
    return {
        "format": file_format,
        "goal": str(run.goal),
        "model": model if isinstance(model, str) else type(model).__name__,
        "built_in": isinstance(model, str),
        "method": _method_to(settings["method"]),
        "declared": None if declared is None else Task.make(declared).to_json(),
        "settings": {name: _plain(settings[name], name) for name in (*plain, "random_state")},
        "task": task.to_json(),
        "n_features_in": run.origin.n_features,
        "feature_names_in": None if names is None else list(names),
        "encoder": _encoder_to(run.encoder),
        "notes": [note.to_json() for note in run.notes],
        "finished": run.finished,
    }


def _document(run: SealedRun, name: str, file_format: str) -> dict[str, Any]:
    record = run.json(name) if name in run.names else None
    if not isinstance(record, dict) or record.get("format") != file_format:
        kind = Path(name).stem
        raise FileError(f'"{run.folder}" holds no {kind} in the format "{file_format}"')
    return record


@contextmanager
def _damage_told(folder: Path) -> Iterator[None]:
    try:
        yield
    except SetpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f'"{folder}" is damaged: {error!r}') from error


def _origin(record: dict[str, Any], model: Any, **settings: Any) -> RunOrigin:
    """The parameters of the estimator and the names of its table."""
    declared = record["declared"]
    names = record["feature_names_in"]
    return RunOrigin(
        settings={
            **record["settings"],
            "hidden": tuple(record["settings"]["hidden"]),
            "goal": record["goal"],
            "model": model,
            "method": _method_from(record["method"]),
            "task": None if declared is None else Task.from_json(declared),
            **settings,
        },
        n_features=record["n_features_in"],
        feature_names=tuple(names) if names else None,
    )


def _restored(
    record: dict[str, Any],
    run: SealedRun,
    module: nn.Module | None,
    trusted: Sequence[str],
) -> ClassifierRun:
    task = Task.from_json(record["task"])
    kinds = {type(c) for c in record["classes"]}
    classes = np.array(record["classes"], dtype=object if len(kinds) > 1 else None)
    sources = ModelSources(task, module, trusted)
    models = {
        name: [read_model(r, run.folder / "models", sources) for r in records]
        for name, records in record["models"].items()
    }
    rule = run.rule()
    certificate = run.certificate()
    return ClassifierRun(
        goal=Goal.parse(record["goal"]),
        origin=_origin(record, _asked_model(record, models, rule, module)),
        labels=ClassLabels(task, classes),
        encoder=_encoder_from(record["encoder"]),
        plan=FitPlan.from_json(record["plan"]),
        models=models,
        members=read_outcomes(record),
        stack=Stack.from_json(record["stack"]),
        rule=rule,
        certificate=certificate,
        comparison=run.comparison(),
        outcome=Outcome.of(rule.goal.lowered, rule, certificate or rule.certificate),
        notes=tuple(map(Note.from_json, record["notes"])),
        history=run.json(HISTORY),
        fingerprint=record["fingerprint"],
        seconds=record["seconds"],
        versions=record["versions"],
        finished=record["finished"],
        saved_report=run.report(),
    )


def _asked_model(
    record: dict[str, Any],
    models: dict[str, list[Model]],
    rule: DecisionRule,
    module: nn.Module | None,
) -> Any:
    """The model that the fit was asked for; the user's own as far as it can be known."""
    if record["built_in"]:
        return record["model"]
    if record["model"] == ScoresGiven.__name__:
        return ScoresGiven(rule.task.score)
    if module is not None:
        return module
    several = [m for members in models.values() for m in members]
    return several[0].own if len(several) == 1 else models


def _restored_regression(
    record: dict[str, Any], folder: Path, module: nn.Module | None, trusted: Sequence[str]
) -> RegressionRun:
    task = Task.from_json(record["task"])
    about = record["record"]
    if "scale" in record:  # as version 1 wrote it, beside the model
        about = {**about, "of": about["kind"], "kind": "scaled", "scale": record["scale"]}
    model = read_model(about, folder / "models", ModelSources(task, module, trusted))
    built_in = record.get("built_in", record["model"] is not None)
    own = model.own if module is None else module
    comparison = RegressionComparison.from_json(record["comparison"])
    return RegressionRun(
        goal=Goal.parse(record["goal"]),
        origin=_origin(record, record["model"] if built_in else own, edges=record["edges"]),
        encoder=_encoder_from(record["encoder"]),
        models={comparison.chosen: [model]},
        notes=tuple(map(Note.from_json, record["notes"])),
        history=record["history"],
        finished=record["finished"],
        task=task,
        plan=RegressionPlan.from_json(record["plan"]),
        comparison=comparison,
    )


def _encoder_to(encoder: Encoder) -> dict[str, Any]:
    parts = {part.name: getattr(encoder, part.name) for part in fields(Encoder)}
    return {name: None if part is None else part.to_json() for name, part in parts.items()}


def _encoder_from(parts: dict[str, Any]) -> Encoder:
    readers = {"schema": Schema, "features": Features, "codes": Codes}
    return Encoder(
        **{k: None if parts[k] is None else r.from_json(parts[k]) for k, r in readers.items()}
    )


def _method_to(x: str | Method) -> dict[str, Any]:
    """A method as its name and options, those that are plain data."""
    if isinstance(x, str):
        return {"name": x, "options": {}}
    options = {f.name: getattr(x, f.name) for f in fields(x)}  # type: ignore[arg-type]
    plain = {k: v for k, v in options.items() if _is_plain(v)}
    return {"name": x.name, "options": {k: v for k, v in plain.items() if v is not None}}


def _method_from(data: dict[str, Any]) -> str | Method:
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


def _rows(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of epochs; what is not finite is null."""
    return [
        {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}
        for row in history
    ]
