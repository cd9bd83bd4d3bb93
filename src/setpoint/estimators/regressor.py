"""The door for scikit-learn: a regressor that takes a goal."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, is_regressor
from torch import nn

from setpoint._core.errors import Argument, DataError, KindError, Name
from setpoint._core.notes import Note, NoteCode
from setpoint._core.options import is_real
from setpoint._core.words import did_you_mean, listing
from setpoint.decisions.evaluate import Evaluation
from setpoint.estimators.base import (
    estimator_of,
    known_features,
    note_features,
    origin_of,
    refuse_settings,
    row_weights,
    seed_of,
)
from setpoint.estimators.run_attributes import RegressorAttributes
from setpoint.expressions import Expression, take_groups
from setpoint.fit import storage
from setpoint.fit.network.goal_network import NetworkSettings, device_of
from setpoint.fit.pipeline import refuse_columns
from setpoint.fit.regression.regression_comparison import constraint_values
from setpoint.fit.regression.regression_members import (
    RegressionMember,
    RegressionTrainingData,
    members_of,
)
from setpoint.fit.regression.regression_pipeline import RegressionRun, fit_regression
from setpoint.fit.regression.regression_targets import columns_of, read_targets, real_task
from setpoint.fit.training_data import Encoder
from setpoint.goals import Goal, Task, check
from setpoint.methods import Errors
from setpoint.methods.table import trains_real_targets
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.training.events import Listener

logger = logging.getLogger("setpoint")

MODELS = ("auto", "linear", "trees", "mlp")
METHODS = ("auto", "errors", "mse", "mae", "density")


class GoalRegressor(RegressorAttributes, RegressorMixin, BaseEstimator):
    """A regressor that is trained for a goal on its errors.

    Parameters
    ----------
    goal : str, Goal or Expression
        ``"minimize balanced(mae)"``, ``'minimize rmse subject to worst(mae, by="bin") <= 2'``, …
    model : {"auto", "linear", "trees", "mlp"}, torch module or regressor
        "auto" fits all three kinds. A module takes the encoded table, or an array of more than two
        dimensions as it is, and gives one number per row, in units of the targets' standard
        deviation from their mean. A regressor of scikit-learn is fitted on X as it is.
    method : {"auto", "errors", "mse", "mae", "density"} or Errors
        "errors" trains a network on the goal; "mse" and "mae" on plain errors; "density" on squared
        errors, rows weighed by how rare their targets are. "auto" tries all that the model can and
        takes the goal-driven one only where the held rows tell it from the plain ones.
    random_state : int
        Seed of splits, weights, order and dropout.
    task : Task, optional
        ``Task.regression(edges=…)``.
    edges : sequence of float, optional
        Inner edges of the target bins that ``balanced`` and ``by="bin"`` speak of; ten of equal
        width over the targets fitted otherwise.
    compare : bool
        Whether the plain ways of training are run beside one that was named.
    refit : bool, optional
        Whether the model taken is fitted again on all rows; by default where the goal has no
        constraints, since those were seen to hold for the model that was judged alone.
    hidden : tuple of int
        Widths of the mlp's layers.
    dropout : float
    epochs, patience : int
        Of a network: at most so many epochs; stop after ``patience`` without a better goal.
    batch_size : int, optional
        A sixteenth of the rows between 32 and 1024.
    learning_rate : float, optional
        3e-3, three times that for "linear".
    weight_decay : float
    device : str
        "auto" takes a GPU if there is one.
    listener : callable, optional
        Called with every event.

    Attributes
    ----------
    run_ : RegressionRun
        All that the fit gave, as one frozen record; the other attributes are read from it.
    comparison_ : RegressionComparison
        What every member reached on the held rows, which was taken, what the goal bought.
    task_ : Task
        With the bins and groups that were used.
    plan_ : RegressionPlan
    notes_ : tuple of str
        What was chosen and why, and what a reader should know.
    history_ : list of dict
        One row per epoch of every network.
    certificate_ : None
        Errors have no upper bound, so no number of rows proves a bound on their mean.
    model_ : object
        The model taken, as its library knows it.
    n_features_in_ : int
    feature_names_in_ : numpy.ndarray
        Where ``X`` has names.

    Examples
    --------
    >>> import setpoint as sp
    >>> data = sp.datasets.load("diabetes")
    >>> reg = sp.GoalRegressor("minimize mae", model="linear", epochs=20)
    >>> reg.fit(data.X, data.y).predict(data.X[:2]).shape
    (2,)
    >>> reg.comparison_.rows
    111
    """

    def __init__(
        self,
        goal: str | Goal | Expression = "minimize mae",
        model: str | nn.Module | BaseEstimator = "auto",
        method: str | Errors = "auto",
        random_state: int | np.random.RandomState | None = 0,
        *,
        task: Task | None = None,
        edges: Sequence[float] | None = None,
        compare: bool = True,
        refit: bool | None = None,
        hidden: tuple[int, ...] = (128, 64),
        dropout: float = 0.1,
        epochs: int = 100,
        patience: int = 15,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-4,
        device: str = "auto",
        listener: Listener | None = None,
    ) -> None:
        self.goal = goal
        self.model = model
        self.method = method
        self.random_state = random_state
        self.task = task
        self.edges = edges
        self.compare = compare
        self.refit = refit
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.device = device
        self.listener = listener

    def __sklearn_tags__(self) -> Any:
        """Missing values are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # --- fitting ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, group: Any = None) -> Self:
        """Train for the goal and keep what fares best on held rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Numbers, categories, dates, missing values. A module may take arrays of more dimensions.
        y : array-like of shape (n,)
            Numbers, in any units.
        sample_weight : array-like of shape (n,), optional
        group : array-like or mapping of array-likes, optional
            The columns that the goal speaks of.
        """
        goal = Goal.of(self.goal)
        seed = seed_of(self.random_state)
        members, may = self._members(seed)
        rows = note_features(self, X)
        target = read_targets(y, rows)
        weight = _weights(sample_weight, rows)
        if rows < 2:
            raise DataError(f"n_samples={rows}: a regression needs at least 2 rows")
        groups = take_groups(group, rows)
        refuse_columns(goal, groups)
        task, notes = real_task(goal, self.task, self.edges, target, groups)
        check(goal, task)
        table = X if hasattr(X, "iloc") else np.asarray(X)
        forms = {"raw"} if table.ndim > 2 else {m.form for m in members}
        encoder = Encoder.fit(table, np.arange(rows), target, weight, forms)
        job = RegressionTrainingData(
            goal=goal,
            task=task,
            rows=encoder.encode(table),
            target=target,
            weight=weight,
            groups={name: groups[name] for name in goal.columns},
            seed=seed,
            device=str(device_of(self.device)),
            listener=self.listener,
        )
        if weight is not None:
            weighted = "the goal's figures count every row with its sample_weight"
            notes += (Note(NoteCode.WEIGHTED, weighted),)
        self.run_ = fit_regression(
            job, members, may, self.refit, origin=origin_of(self, seed), notes=notes
        )
        for note in self.run_.notes:
            logger.info(note.text)
        if not self.run_.finished:
            raise KeyboardInterrupt("training was interrupted: the regressor holds the best so far")
        return self

    def _members(self, seed: int) -> tuple[list[RegressionMember], list[str]]:
        """The members of the fit, and the names of those that may be taken."""
        usual = {"folds": None, "certify_size": None, "confidence": 0.95, "margin": 0.0}
        refuse_settings(
            {**usual, "proof_price": 0.0, "time_limit": None, **self.get_params(deep=False)}
        )
        model, method = self.model, self.method
        for name in ("weight_decay", "learning_rate"):
            x = getattr(self, name)
            if x is not None and (not is_real(x) or x < 0 or (name == "learning_rate" and not x)):
                raise KindError("{argument}: a positive number", argument=Argument(name, x))
        if isinstance(method, str) and method not in METHODS:
            hint = did_you_mean(method, METHODS, f"choose from {listing(METHODS)}.")
            raise KindError("{argument}: {hint}", argument=Argument("method", method), hint=hint)
        if not isinstance(method, str) and not trains_real_targets(method):
            raise KindError(f"method={method!r}: one of {listing(METHODS)}, or Errors(…)")
        if isinstance(model, str) and model not in MODELS:
            hint = did_you_mean(model, MODELS, f"choose from {listing(MODELS)}.")
            raise KindError("{argument}: {hint}", argument=Argument("model", model), hint=hint)
        named = not (isinstance(method, str) and method == "auto")
        if not isinstance(model, str | nn.Module):
            if not (hasattr(model, "fit") and is_regressor(model)):
                raise KindError(
                    f"model={model!r}: one of {listing(MODELS)}, a torch module or a regressor"
                )
            if named and method != "density":
                raise KindError(
                    f"{type(model).__name__} is trained by its own loss: leave method out, or take "
                    '"density", which weighs its rows'
                )
        driven = named and (not isinstance(method, str) or method == "errors")
        if driven and isinstance(model, str) and model == "trees":
            raise KindError(
                '{argument} is LightGBM on plain losses; {method} trains "linear", "mlp" or a '
                "module",
                argument=Argument("model", "trees"),
                method=Argument("method", "errors"),
            )
        settings = NetworkSettings(
            epochs=self.epochs,
            patience=self.patience,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            final=0.05,
            seed=seed,
            listener=self.listener,
        )
        members = members_of(
            model,
            method,
            settings,
            hidden=tuple(self.hidden),
            dropout=self.dropout,
            beside=bool(self.compare),
        )
        if not named:
            return members, [m.name for m in members]
        way = method if isinstance(method, str) else method.name
        return members, [m.name for m in members if m.way == way]

    # --- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Predictions, (n,), in the units of the targets."""
        return self._run.predict(known_features(self, X))

    def evaluate(self, X: Any, y: Any, sample_weight: Any = None, group: Any = None) -> Evaluation:
        """The goal on other rows: its objective, and how each constraint stands.

        A figure, not a proof. ``score`` is r2, as for every regressor of scikit-learn.
        """
        predicted = self.predict(X)
        goal, target = Goal.of(self.goal), read_targets(y, len(predicted))
        groups = take_groups(group, len(predicted))
        refuse_columns(goal, groups)
        weight = _weights(sample_weight, len(predicted))
        columns = columns_of(self.task_, target, predicted, weight, groups)
        point = GoalOnRows.ground(goal, columns).judge(columns)
        return Evaluation(goal, point.value, constraint_values(goal, point), len(predicted))

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted regressor to a folder; no pickle."""
        storage.save_regression(self._run, path)

    @classmethod
    def from_run(cls, run: RegressionRun) -> Self:
        """The estimator of a fitted run, for example one that was read from a folder."""
        return estimator_of(cls, run)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        model: nn.Module | None = None,
        trusted: Sequence[str] = (),
    ) -> Self:
        """Read what :meth:`save` wrote; nothing in it is executed.

        Parameters
        ----------
        path : path
        model : torch.nn.Module, optional
            A module of the same architecture, where the regressor was given one of the user's own.
        trusted : sequence of str
            Types and functions in a scikit-learn model that you vouch for.
        """
        return cls.from_run(storage.load_regression(path, model, trusted))


def _weights(sample_weight: Any, rows: int) -> np.ndarray | None:
    """Weights of rows, checked, at least one of them above zero; None where there are none."""
    weight = row_weights(sample_weight, rows)
    if weight is not None and not weight.sum() > 0:
        raise DataError(
            "{argument} sums to zero; at least one row must count", argument=Name("sample_weight")
        )
    return weight
