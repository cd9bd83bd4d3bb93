"""Members: kinds of models that a fit trains on the folds of its rows."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from torch import nn

from setpoint._core.errors import KindError
from setpoint.datasets import Split, split
from setpoint.fit.fold_models import (
    ClassifierModel,
    LinearModel,
    Model,
    NetworkModel,
    ScoresModel,
    TreesModel,
    built,
)
from setpoint.fit.network.goal_network import (
    Fitted,
    NetworkSettings,
    TensorRows,
    device_of,
    fit_network,
)
from setpoint.fit.scikit_members import fit_classifier
from setpoint.fit.training_data import ClassTrainingData, Data, TrainingData
from setpoint.goals import Task
from setpoint.methods import Method

INNER = 0.1  #: share of a fold's rows that stop a network where the held rows must not
MANY = 10_000  #: rows from which trees are worth several threads
_EXTRA = {
    "extra_trees": True,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "min_data_in_leaf": 10,
    "lambda_l2": 1.0,
}


@dataclass(frozen=True, eq=False)
class FoldFit:
    """What one fit of a member gave."""

    model: Model
    history: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    finished: bool = True


class Member(ABC, Generic[Data]):
    """A kind of model, and how it is trained on data of its kind."""

    form: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in plans and reports."""

    @abstractmethod
    def fit(self, job: Data, fit: np.ndarray, held: np.ndarray, fold: int) -> FoldFit:
        """Fit on some rows; the held ones are scored afterwards, and may stop a network alone."""

    def seconds(self, rows: int, width: int) -> float:
        """About how long one fit takes on one core of a common machine."""
        return 0.1 + 1e-6 * rows * max(width, 1)

    def mark(self) -> str:
        """What a part that was kept must agree in to be taken up."""
        return repr(self)


@dataclass(frozen=True)
class LinearMember(Member[ClassTrainingData]):
    """Logistic regression with a small ridge."""

    form = "numbers"
    ridge: float = 1.0

    @property
    def name(self) -> str:
        return "linear"

    def seconds(self, rows: int, width: int) -> float:
        return 0.05 + 1e-7 * rows * max(width, 1)

    def fit(self, job: ClassTrainingData, fit: np.ndarray, held: np.ndarray, fold: int) -> FoldFit:
        del held
        X, y, weight = job.rows.rows("numbers", fit), job.target[fit], job.weights(fit)
        if y.ndim == 2:
            parts = [self._one(X, y[:, j], weight) for j in range(y.shape[1])]
            W, b = (np.concatenate(p) for p in zip(*parts, strict=True))
            return FoldFit(LinearModel(W, b, single=False), [])
        if job.labels.task.kind == "binary":
            return FoldFit(LinearModel(*self._one(X, y, weight), single=True), [])
        model = self._fitted(X, y, weight)
        W = np.zeros((len(job.labels.classes), X.shape[1]))
        b = np.full(len(W), -30.0)  # a class that no row of the fold has
        seen = model.classes_
        W[seen], b[seen] = self._per_class(model)
        return FoldFit(LinearModel(W, b, single=False), [])

    def _one(self, X: Any, y: np.ndarray, weight: Any) -> tuple[np.ndarray, np.ndarray]:
        if y.min() == y.max():  # a label that all rows of the fold share
            return np.zeros((1, X.shape[1])), np.array([30.0 if y[0] else -30.0])
        model = self._fitted(X, y, weight)
        return model.coef_, model.intercept_

    def _fitted(self, X: Any, y: np.ndarray, weight: Any) -> Any:
        model = LogisticRegression(C=1 / self.ridge, max_iter=300, tol=1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # 300 steps are enough to rank
            return model.fit(X, y, sample_weight=weight)

    @staticmethod
    def _per_class(model: Any) -> tuple[np.ndarray, np.ndarray]:
        W, b = model.coef_, model.intercept_
        if len(W) == 1:  # two classes of several in this fold: one logit, split between them
            return np.concatenate([-W, W]) / 2, np.concatenate([-b, b]) / 2
        return W, b


@dataclass(frozen=True)
class TreesMember(Member[ClassTrainingData]):
    """Gradient-boosted trees of LightGBM on log-loss."""

    form = "codes"
    trees: int = 100
    rate: float = 0.1
    leaves: int = 31
    extra: bool = False  #: cuts drawn at random, rows and columns sampled: other mistakes
    label: str = "trees"

    @property
    def name(self) -> str:
        return self.label

    def seconds(self, rows: int, width: int) -> float:
        del width
        return self.trees / 100 * (0.2 + 5e-6 * rows)

    def fit(self, job: ClassTrainingData, fit: np.ndarray, held: np.ndarray, fold: int) -> FoldFit:
        del held
        y, several = job.target[fit], job.target.ndim == 2
        columns = [y[:, j] for j in range(y.shape[1])] if several else [y]
        boosters = [self._one(job, fit, column) for column in columns]
        return FoldFit(TreesModel(boosters, several), [])

    def _one(self, job: ClassTrainingData, fit: np.ndarray, y: np.ndarray) -> Any:
        task = job.labels.task
        kind: dict[str, Any] = {"objective": "binary"}
        if task.kind == "multiclass":
            kind = {"objective": "multiclass", "num_class": len(job.labels.classes)}
        kind |= {"learning_rate": self.rate, "num_leaves": self.leaves}
        return boosted(
            job, fit, y, job.weights(fit), self.trees, **kind, **(_EXTRA if self.extra else {})
        )


def boosted(
    job: TrainingData,
    rows: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    trees: int,
    **settings: Any,
) -> Any:
    """A booster of LightGBM on some rows; the same rows and seed give the same one."""
    import lightgbm

    X = job.rows.rows("codes", rows)
    settings |= {
        "num_threads": 0 if len(rows) >= MANY else 1,
        "seed": job.seed,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of levels that LightGBM merges
        data = lightgbm.Dataset(
            X,
            label=y,
            weight=weight,
            feature_name=[f"x{j}" for j in range(X.shape[1])],
            categorical_feature=list(job.categorical),
            params={"verbosity": -1},
            free_raw_data=True,
        )
        return lightgbm.train(settings, data, num_boost_round=trees)


class NetworkBuilder:
    """What networks of all targets share: how they are built, and their rows as tensors."""

    model: str | nn.Module
    hidden: tuple[int, ...]
    dropout: float

    @property
    def model_name(self) -> str:
        """Of a network of ours its kind, else the class of the module."""
        return self.model if isinstance(self.model, str) else type(self.model).__name__

    def shape(self, inputs: int, outputs: int) -> dict[str, Any] | None:
        """The numbers that make a network of ours; None of a module of the user's."""
        if isinstance(self.model, nn.Module):
            return None
        return {
            "model": self.model,
            "inputs": inputs,
            "outputs": outputs,
            "hidden": list(self.hidden),
            "dropout": self.dropout,
        }

    def builder(
        self, shape: dict[str, Any] | None, seed: int, device: torch.device
    ) -> Callable[[], nn.Module]:
        """What makes the network anew, with the same weights each time."""

        def build() -> nn.Module:
            if shape is None:
                return copy.deepcopy(self.model).to(device)  # type: ignore[union-attr]
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed)
                return built(shape).to(device)

        return build

    def tensors(
        self, job: TrainingData, task: Task, rows: np.ndarray, weight: np.ndarray | None
    ) -> TensorRows:
        """Some rows on the job's device; groups are those that the task names."""
        device = device_of(job.device)
        dtype = torch.float32
        if isinstance(self.model, nn.Module):
            dtype = next(self.model.parameters()).dtype
        groups = {name: job.groups[name][rows] for name, _ in task.groups}
        codes = {
            name: torch.as_tensor(np.searchsorted(np.array(values), groups[name]), device=device)
            for name, values in task.groups
        }
        return TensorRows(
            torch.as_tensor(job.rows.rows("numbers", rows), dtype=dtype, device=device),
            torch.as_tensor(job.target[rows], device=device),
            None if weight is None else torch.as_tensor(weight, device=device),
            codes,
            groups,
        )

    def settled(self, module: nn.Module) -> nn.Module:
        """A trained network as it is kept: on the host, those of ours in float64."""
        module = module.cpu()
        return (module if isinstance(self.model, nn.Module) else module.double()).eval()


@dataclass(frozen=True, eq=False, repr=False)
class Network(NetworkBuilder, Member[ClassTrainingData]):
    """A network of ours, "linear" or "mlp", or a module of the user's, by any method."""

    form = "numbers"
    model: str | nn.Module
    method: Method
    settings: NetworkSettings
    hidden: tuple[int, ...] = (128, 64)
    dropout: float = 0.1
    apart: bool = True  #: whether rows of the fold's own stop the training, not the held ones

    @property
    def name(self) -> str:
        own = self.model_name
        return f"{own} + {self.method.name}" if self.method.hints.goal_driven else own

    def seconds(self, rows: int, width: int) -> float:
        s = self.settings
        steps = s.steps if s.steps is not None else s.epochs * max(16, rows // 1024) // 2
        steps = min(steps, max(600, 15_000_000 // max(rows, 1)))
        return self.method.hints.step_cost * (0.3 + steps * (1.6e-3 + 2e-5 * width))

    def fit(self, job: ClassTrainingData, fit: np.ndarray, held: np.ndarray, fold: int) -> FoldFit:
        task = _grouped(job, self.method.threshold_group)
        if self.apart:
            inner = split(job.target[fit], INNER, job.seed + fold)
            fit, held = fit[inner.train], fit[inner.tune]
        mean = 1.0 if job.weight is None else max(float(job.weight.mean()), 1e-300)

        def part(rows: np.ndarray) -> TensorRows:
            weight = None if job.weight is None else (job.weight[rows] / mean).astype(np.float32)
            return self.tensors(job, task, rows, weight)

        settings = replace(self.settings, seed=self.settings.seed + fold)
        if fold and settings.checkpoint is not None:
            settings = replace(settings, checkpoint=Path(settings.checkpoint) / f"fold-{fold}")
        outputs = 1 if task.kind == "binary" else len(job.labels.classes)
        shape = self.shape(job.rows.width, outputs)
        trained: Fitted = fit_network(
            job.goal,
            task,
            self.method,
            self.builder(shape, settings.seed, device_of(job.device)),
            part(fit),
            part(held),
            settings,
        )
        model = NetworkModel(self.settled(trained.model), shape, trained.loss.state_dict())
        return FoldFit(model, trained.history, trained.notes, trained.finished)

    def __repr__(self) -> str:
        plain = replace(self.settings, listener=None, checkpoint=None)
        parts = (self.model, self.method, plain, self.hidden, self.dropout, self.apart)
        return f"Network{parts!r}"


@dataclass(frozen=True, eq=False, repr=False)
class GivenMember(Member[ClassTrainingData]):
    """A classifier of scikit-learn, or a pipeline, fitted on rows as they are."""

    form = "raw"
    model: BaseEstimator
    method: Method

    @property
    def name(self) -> str:
        own = type(self.model).__name__
        return f"{own} + {self.method.name}" if self.method.hints.goal_driven else own

    def __repr__(self) -> str:
        return f"Given({self.model.__class__!r}, {self.model.get_params()!r}, {self.method!r})"

    def fit(self, job: ClassTrainingData, fit: np.ndarray, held: np.ndarray, fold: int) -> FoldFit:
        shared = bool(np.intersect1d(fit, held).size)
        found, notes = fit_classifier(
            job.goal,
            job.labels,
            self.model,
            self.method,
            lambda rows: job.rows.rows("raw", rows),
            job.target,
            job.weight,
            Split(fit, held, shared),
            job.seed + fold,
        )
        return FoldFit(ClassifierModel(found, job.labels.task), [], notes)


@dataclass(frozen=True)
class ScoresGiven(Member[ClassTrainingData]):
    """No model: the rows are the scores of one that was trained elsewhere."""

    form = "raw"
    score: str = "raw"

    @property
    def name(self) -> str:
        return "scores"

    def fit(self, job: ClassTrainingData, fit: np.ndarray, held: np.ndarray, fold: int) -> FoldFit:
        return FoldFit(ScoresModel(replace(job.labels.task, score=self.score)), [])


def _grouped(job: ClassTrainingData, by: str | None) -> Task:
    """The task with the groups that the goal, or the method, speaks of, and their values."""
    task = job.labels.task
    names = {*job.goal.columns} | ({by} if by else set())
    if by is not None and by not in job.groups:
        raise KindError(f'by="{by}" is no group column of the rows; pass group={{"{by}": …}}')
    values = {name: np.unique(job.groups[name]).tolist() for name in sorted(names)}
    if not values:
        return task
    return Task(task.kind, task.positive, task.classes, groups=values)  # type: ignore[arg-type]
