"""Members of a regression: kinds of models, each by a way to train it.

mse, mae     plain mean squared or absolute error
density      mean squared error, rows weighed by how rare their targets are
errors       the goal itself; networks only
own          a regressor of scikit-learn by its own loss
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import clone
from sklearn.linear_model import Ridge
from torch import nn

from setpoint._core.errors import KindError
from setpoint.fit.fold_models import (
    LinearModel,
    Model,
    NetworkModel,
    RegressorModel,
    TreesModel,
    built,
)
from setpoint.fit.members import MANY
from setpoint.fit.network.goal_network import NetworkSettings, device_of
from setpoint.fit.regression.regression_network import RealFit, RealPart, fresh
from setpoint.fit.regression.regression_targets import Scale, parted, rarity
from setpoint.fit.training_data import Encoded
from setpoint.goals import Goal, Task
from setpoint.methods import Errors

PLAIN = ("mse", "mae", "density")
STOP = 0.15  #: share of the rows fitted that stop a network
ROUNDS = 100


@dataclass(frozen=True, eq=False)
class RealJob:
    """What the members of one regression share; ``target`` is in the user's units."""

    goal: Goal
    task: Task
    rows: Encoded
    target: np.ndarray
    weight: np.ndarray | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    seed: int = 0
    device: str = "cpu"

    def weights(self, rows: np.ndarray, method: str) -> np.ndarray | None:
        """Weights of some rows as a method has them, of mean 1."""
        own = None if self.weight is None else self.weight[rows]
        if method == "density":
            return rarity(self.target[rows], self.task, own)
        return None if own is None else own / max(float(own.mean()), 1e-300)


@dataclass(frozen=True, eq=False)
class RealMade:
    """A fitted model, the scale of its outputs, and how it came about."""

    model: Model
    scale: Scale
    history: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = True

    def predict(self, rows: Encoded, some: np.ndarray | None = None) -> np.ndarray:
        """Predictions in the user's units."""
        return self.scale.back(self.model.outputs(rows.rows(self.model.form, some)))


class RealMember(ABC):
    """A kind of model and how it is trained."""

    form: ClassVar[str]
    method: Any

    @property
    @abstractmethod
    def family(self) -> str:
        """The kind of model."""

    @property
    def way(self) -> str:
        """How it is trained, in a word."""
        return self.method if isinstance(self.method, str) else self.method.name

    @property
    def name(self) -> str:
        """What it is called in plans and comparisons."""
        return f"{self.family}, {self.way}"

    @property
    def driven(self) -> bool:
        """Whether it is trained on the goal."""
        return self.way == "errors"

    @abstractmethod
    def fit(self, job: RealJob, rows: np.ndarray) -> RealMade:
        """Fit on some rows."""


@dataclass(frozen=True)
class RealLinear(RealMember):
    """Least squares with a small ridge."""

    form = "numbers"
    family = "linear"  # type: ignore[assignment]
    method: str = "mse"
    ridge: float = 1.0

    def fit(self, job: RealJob, rows: np.ndarray) -> RealMade:
        scale = Scale.of(job.target[rows], job.weights(rows, "mse"))
        X, z = job.rows.rows("numbers", rows), scale.there(job.target[rows])
        model = Ridge(self.ridge).fit(X, z, sample_weight=job.weights(rows, self.method))
        W, b = np.reshape(model.coef_, (1, -1)), np.reshape(model.intercept_, 1)
        return RealMade(LinearModel(W, b, single=True), scale)


@dataclass(frozen=True)
class RealTrees(RealMember):
    """Gradient-boosted trees of LightGBM on squared or absolute error."""

    form = "codes"
    family = "trees"  # type: ignore[assignment]
    method: str = "mse"

    def fit(self, job: RealJob, rows: np.ndarray) -> RealMade:
        import lightgbm

        scale = Scale.of(job.target[rows], job.weights(rows, "mse"))
        X = job.rows.rows("codes", rows)
        codes = job.rows.encoder.codes
        settings = {
            "objective": "regression_l1" if self.method == "mae" else "regression",
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
                label=scale.there(job.target[rows]),
                weight=job.weights(rows, self.method),
                feature_name=[f"x{j}" for j in range(X.shape[1])],
                categorical_feature=[] if codes is None else list(codes.categorical),
                params={"verbosity": -1},
                free_raw_data=True,
            )
            booster = lightgbm.train(settings, data, num_boost_round=ROUNDS)
        return RealMade(TreesModel([booster], several=False), scale)


@dataclass(frozen=True, eq=False)
class RealNetwork(RealMember):
    """A network of ours, "linear" or "mlp", or a module of the user's."""

    form = "numbers"
    model: Any
    method: Any
    settings: NetworkSettings
    hidden: tuple[int, ...] = (128, 64)
    dropout: float = 0.1

    @property
    def family(self) -> str:
        return self.model if isinstance(self.model, str) else type(self.model).__name__

    def fit(self, job: RealJob, rows: np.ndarray) -> RealMade:
        device, given = device_of(job.device), isinstance(self.model, nn.Module)
        inner = parted(job.target[rows], job.task, STOP, job.seed)
        scale = Scale.of(job.target[rows], job.weights(rows, "mse"))
        wide = next(self.model.parameters()).dtype if given else torch.float32

        def part(some: np.ndarray, way: str) -> RealPart:
            X = torch.as_tensor(job.rows.rows("numbers", some), dtype=wide, device=device)
            groups = {name: job.groups[name][some] for name, _ in job.task.groups}
            return RealPart(X, job.target[some], job.weights(some, way), groups)

        shape = None if given else self._shape(job)
        fit = RealFit(
            job.goal,
            job.task,
            "mse" if self.way == "density" else self.method,
            fresh(self.model, device) if given else self._builder(shape, job.seed, device),
            part(rows[inner.train], self.way),
            part(rows[inner.tune], "mse"),
            scale,
            self.settings,
        )
        module, run = fit.run()
        module = module.cpu()
        module = (module if given else module.double()).eval()
        history = [{"member": self.name, **row} for row in run.history]
        return RealMade(NetworkModel(module, shape), scale, history, run.finished)

    def _shape(self, job: RealJob) -> dict[str, Any]:
        return {
            "model": self.model,
            "inputs": job.rows.width,
            "outputs": 1,
            "hidden": list(self.hidden),
            "dropout": self.dropout,
        }

    def _builder(self, shape: Any, seed: int, device: torch.device) -> Any:
        def build() -> nn.Module:
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed)
                return built(shape).to(device)

        return build


@dataclass(frozen=True, eq=False)
class RealGiven(RealMember):
    """A regressor of scikit-learn, or a pipeline, fitted on rows as they are."""

    form = "raw"
    model: Any
    method: str = "own"

    @property
    def family(self) -> str:
        return type(self.model).__name__

    def fit(self, job: RealJob, rows: np.ndarray) -> RealMade:
        weight = job.weights(rows, self.method)
        more = {}
        if weight is not None:
            if "sample_weight" not in inspect.signature(self.model.fit).parameters:
                raise KindError(f"{self.family} takes no sample_weight; fit it without weights")
            more = {"sample_weight": weight}
        fresh_one: Any = clone(self.model)
        model = fresh_one.fit(job.rows.rows("raw", rows), job.target[rows], **more)
        return RealMade(RegressorModel(model), Scale())


def members_of(
    model: Any,
    method: Any,
    settings: NetworkSettings,
    hidden: tuple[int, ...],
    dropout: float,
    beside: bool,
) -> list[RealMember]:
    """The members of a fit: those that may be chosen, and with ``beside`` those to compare with."""

    def network(kind: Any, by: Any) -> RealNetwork:
        pace = 3.0 if kind == "linear" else 1.0
        return RealNetwork(kind, by, replace(settings, pace=pace), hidden, dropout)

    errors = Errors() if isinstance(method, str) else method
    one = errors if method == Errors.name else method
    ways = [*PLAIN, errors] if method == "auto" or beside else [one]
    if isinstance(model, str) and model == "auto" and method == "auto":
        trees = [RealTrees(way) for way in PLAIN]
        lines = [RealLinear("mse"), RealLinear("density"), network("linear", errors)]
        return [*lines, *trees, *(network("mlp", way) for way in ways)]
    if isinstance(model, str) and model == "trees":
        return [RealTrees(way) for way in ways if way in PLAIN]
    if isinstance(model, str) and model == "linear":
        plain = [RealLinear(way) for way in ways if way in ("mse", "density")]
        return [*plain, *(network("linear", way) for way in ways if way not in ("mse", "density"))]
    if isinstance(model, str | nn.Module):
        return [network("mlp" if isinstance(model, str) else model, way) for way in ways]
    own: list[RealMember] = [RealGiven(model)]
    return [*own, RealGiven(model, "density")] if method in ("auto", "density") else own
