"""Members of a regression: kinds of models, each by a way to train it.

mse, mae     plain mean squared or absolute error
density      mean squared error, rows weighed by how rare their targets are
errors       the goal itself; networks only
own          a regressor of scikit-learn by its own loss
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from torch import nn

from setpoint._core.errors import KindError
from setpoint.fit.fold_models import (
    LinearModel,
    Model,
    ModelSources,
    NetworkModel,
    RegressorModel,
    TreesModel,
)
from setpoint.fit.members import FoldFit, Member, NetworkBuilder, boosted
from setpoint.fit.network.goal_network import NetworkSettings, device_of
from setpoint.fit.regression.regression_network import RegressionTraining
from setpoint.fit.regression.regression_targets import Scale, parted, rarity
from setpoint.fit.training_data import TrainingData
from setpoint.goals import Task
from setpoint.methods import Errors

PLAIN = ("mse", "mae", "density")
STOP = 0.15  #: share of the rows fitted that stop a network
ROUNDS = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionTrainingData(TrainingData):
    """What the members of one regression share; ``target`` is in the user's units."""

    task: Task

    def way_weights(self, rows: np.ndarray, way: str) -> np.ndarray | None:
        """Weights of some rows as a way of training has them, of mean 1."""
        own = self.weights(rows)
        if way == "density":
            return rarity(self.target[rows], self.task, own)
        return None if own is None else own / max(float(own.mean()), 1e-300)

    def scale(self, rows: np.ndarray) -> Scale:
        """The scale of some rows' targets."""
        return Scale.of(self.target[rows], self.way_weights(rows, "mse"))


class ScaledModel(Model):
    """A model in standard units, whose outputs are in the user's."""

    kind = "scaled"

    def __init__(self, inner: Model, scale: Scale) -> None:
        self.inner = inner
        self.scale = scale
        self.form = inner.form
        self.ending = inner.ending

    @property
    def own(self) -> Any:
        return self.inner.own

    def outputs(self, rows: Any) -> np.ndarray:
        return self.scale.to_units(self.inner.outputs(rows))

    def write(self, path: Path) -> dict[str, Any]:
        return {"of": self.inner.kind, "scale": asdict(self.scale), **self.inner.write(path)}

    @classmethod
    def read(cls, path: Path, about: Mapping[str, Any], sources: ModelSources) -> ScaledModel:
        inner = Model.kinds[about["of"]].read(path, about, sources)
        return cls(inner, Scale(**about["scale"]))


class RegressionMember(Member[RegressionTrainingData]):
    """A kind of model and how it is trained; nothing but its own rows stops it."""

    method: str | Errors
    family: str  #: the kind of model

    @property
    def way(self) -> str:
        """How it is trained, in a word."""
        return self.method if isinstance(self.method, str) else self.method.name

    @property
    def name(self) -> str:
        return f"{self.family}, {self.way}"

    @property
    def driven(self) -> bool:
        """Whether it is trained on the goal."""
        return not isinstance(self.method, str)


@dataclass(frozen=True)
class RegressionLinear(RegressionMember):
    """Least squares with a small ridge; networks of its kind train in other ways."""

    form = "numbers"
    family = "linear"
    ways = ("mse", "density")
    also_network = True
    method: str = "mse"
    ridge: float = 1.0

    def fit(
        self, job: RegressionTrainingData, fit: np.ndarray, held: np.ndarray, fold: int
    ) -> FoldFit:
        scale = job.scale(fit)
        z = scale.standardise(job.target[fit])
        weight = job.way_weights(fit, self.method)
        model = Ridge(self.ridge).fit(job.rows.rows("numbers", fit), z, sample_weight=weight)
        W = np.reshape(model.coef_, (1, -1))
        b = np.reshape(model.intercept_, 1)
        return FoldFit(ScaledModel(LinearModel(W, b, single=True), scale), [])


@dataclass(frozen=True)
class RegressionTrees(RegressionMember):
    """Gradient-boosted trees of LightGBM on squared or absolute error."""

    form = "codes"
    family = "trees"
    ways = PLAIN
    also_network = False
    method: str = "mse"

    def fit(
        self, job: RegressionTrainingData, fit: np.ndarray, held: np.ndarray, fold: int
    ) -> FoldFit:
        scale = job.scale(fit)
        booster = boosted(
            job,
            fit,
            scale.standardise(job.target[fit]),
            job.way_weights(fit, self.method),
            ROUNDS,
            objective="regression_l1" if self.method == "mae" else "regression",
        )
        return FoldFit(ScaledModel(TreesModel([booster], several=False), scale), [])


@dataclass(frozen=True, eq=False)
class RegressionNetwork(NetworkBuilder, RegressionMember):
    """A network of ours, "linear" or "mlp", or a module of the user's."""

    form = "numbers"
    model: str | nn.Module
    method: str | Errors
    settings: NetworkSettings
    hidden: tuple[int, ...] = (128, 64)
    dropout: float = 0.1

    @property
    def family(self) -> str:
        return self.model_name

    def fit(
        self, job: RegressionTrainingData, fit: np.ndarray, held: np.ndarray, fold: int
    ) -> FoldFit:
        inner = parted(job.target[fit], job.task, STOP, job.seed)
        scale = job.scale(fit)
        train, tune = fit[inner.train], fit[inner.tune]
        shape = self.shape(job.rows.width, 1)
        training = RegressionTraining(
            goal=job.goal,
            task=job.task,
            method="mse" if self.way == "density" else self.method,
            fit=self.tensors(job, job.task, train, job.way_weights(train, self.way)),
            tune=self.tensors(job, job.task, tune, job.way_weights(tune, "mse")),
            scale=scale,
            settings=self.settings,
        )
        module, run = training.run(self.builder(shape, job.seed, device_of(job.device)))
        model = NetworkModel(self.settled(module), shape)
        return FoldFit(ScaledModel(model, scale), run.history, (), run.finished)


@dataclass(frozen=True, eq=False)
class GivenRegressor(RegressionMember):
    """A regressor of scikit-learn, or a pipeline, fitted on rows as they are."""

    form = "raw"
    model: BaseEstimator
    method: str = "own"

    @property
    def family(self) -> str:
        return type(self.model).__name__

    def fit(
        self, job: RegressionTrainingData, fit: np.ndarray, held: np.ndarray, fold: int
    ) -> FoldFit:
        weight = job.way_weights(fit, self.method)
        fresh: Any = clone(self.model)
        weights = {}
        if weight is not None:
            if "sample_weight" not in inspect.signature(fresh.fit).parameters:
                raise KindError(f"{self.family} takes no sample_weight; fit it without weights")
            weights = {"sample_weight": weight}
        model = fresh.fit(job.rows.rows("raw", fit), job.target[fit], **weights)
        return FoldFit(ScaledModel(RegressorModel(model), Scale()), [])


#: built-in kinds of models that a library fits on plain losses
PLAIN_MEMBERS: dict[str, type[RegressionLinear] | type[RegressionTrees]] = {
    "linear": RegressionLinear,
    "trees": RegressionTrees,
}


def members_of(
    model: str | nn.Module | BaseEstimator,
    method: str | Errors,
    settings: NetworkSettings,
    *,
    hidden: tuple[int, ...],
    dropout: float,
    beside: bool,
) -> list[RegressionMember]:
    """The members of a fit: those that may be chosen, and with ``beside`` those to compare with.

    Parameters
    ----------
    model : str, torch.nn.Module or regressor
    method : str or Method
    settings : NetworkSettings
    """

    def network(kind: str | nn.Module, way: str | Errors) -> RegressionNetwork:
        pace = 3.0 if kind == "linear" else 1.0
        return RegressionNetwork(kind, way, replace(settings, pace=pace), hidden, dropout)

    errors = Errors() if isinstance(method, str) else method
    named = errors if method == Errors.name else method
    ways = [*PLAIN, errors] if method == "auto" or beside else [named]
    if model == "auto" and method == "auto":
        plain = {kind: [row(way) for way in row.ways] for kind, row in PLAIN_MEMBERS.items()}
        mlps = [network("mlp", way) for way in ways]
        return [*plain["linear"], network("linear", errors), *plain["trees"], *mlps]
    if isinstance(model, str) and model in PLAIN_MEMBERS:
        row = PLAIN_MEMBERS[model]
        plain = [row(way) for way in row.ways if way in ways]
        others = [way for way in ways if way not in row.ways]
        return [*plain, *(network(model, way) for way in others if row.also_network)]
    if isinstance(model, str | nn.Module):
        return [network("mlp" if isinstance(model, str) else model, way) for way in ways]
    own: list[RegressionMember] = [GivenRegressor(model)]
    return [*own, GivenRegressor(model, "density")] if method in ("auto", "density") else own
