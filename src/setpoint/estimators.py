"""The door for scikit-learn: a classifier that takes a goal."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)
from torch import nn

from setpoint._core.errors import DataError, GoalError, KindError, SetpointError
from setpoint._core.reals import is_real
from setpoint._core.words import did_you_mean, listing
from setpoint.datasets import Features, split
from setpoint.decisions import evaluate
from setpoint.expressions import take_groups
from setpoint.fit import (
    Fitted,
    Part,
    Settings,
    choose_rule,
    classifier_scores,
    device_of,
    fit_classifier,
    fit_network,
    probabilities,
    storage,
)
from setpoint.fit.labels import Labels, needs_two, read_labels
from setpoint.goals import Goal, Task, check
from setpoint.methods import Costs, Method, method
from setpoint.training.loop import evaluate_outputs
from setpoint.training.networks import linear, mlp

logger = logging.getLogger("setpoint")

MODELS = ("auto", "linear", "mlp")


def _has_probabilities(classifier: Any) -> bool:
    """Whether predict_proba is there: for networks, and classifiers that have it themselves."""
    model = getattr(classifier, "model_", classifier.model)
    return isinstance(model, str | nn.Module) or hasattr(model, "predict_proba")


class GoalClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is trained on a goal, and decides at the operating point that meets it.

    Parameters
    ----------
    goal : str, Goal or Expression
        ``"maximize recall subject to precision >= 0.9"``.
    model : {"auto", "linear", "mlp"}, torch.nn.Module or scikit-learn classifier
        A module takes the encoded table, ``Features.fit(X).transform(X)`` wide, or an array of more
        than two dimensions as it is, and gives one output per row for two classes, else one per
        class or label. A classifier of scikit-learn is fitted on X as it is (text needs a pipeline
        of its own), and the goal chooses its threshold; with ``method="costs"`` it is also refitted
        with the goal's costs as sample weights, and kept if that is better on the tune rows. "auto"
        is the mlp, until there is a portfolio to choose from.
    method : str or Method
        "cross-entropy", "soft-set", "costs", "pairwise"; "auto" is cross-entropy with a tuned
        threshold, until there is a portfolio to choose from.
    task : str or Task, optional
        Inferred from ``y`` otherwise: two classes, several, or a 0/1 matrix of labels.
    positive : label, optional
        The positive class of two. Needed where the goal tells the classes apart and they are not
        0 and 1, −1 and 1, or False and True.
    kind : str, optional
        The kind of rule, as for :func:`setpoint.tune`: "per-group" for one threshold per group.
    tune_size : float
        Share of the rows that choose the checkpoint and the threshold, and fit no weights.
    hidden : tuple of int
        Widths of the mlp's layers.
    dropout : float
    epochs, patience : int
        At most so many epochs; stop after ``patience`` without a better goal on the tune rows.
    batch_size : int, optional
        By default a sixteenth of the rows between 32 and 1024, or enough to hold ten rows of the
        rarest class.
    learning_rate : float, optional
        1e-3, ten times that for "linear"; thrice for soft-set.
    weight_decay : float
    device : str
        "auto" takes a GPU if there is one.
    checkpoint : path, optional
        A folder where a run is kept; ``fit`` with the same rows and settings takes it up.
    listener : callable, optional
        Called with every event of training; see :mod:`setpoint.training.events`.
    confidence : float
        Of the certificate, once there is one; not used yet.
    random_state : int
        Seed of splits, weights, order and dropout.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The classes; of a multilabel task the labels.
    rule_ : DecisionRule
    task_ : Task
    model_ : torch.nn.Module or classifier
    history_ : list of dict
        One row per epoch; ``pandas.DataFrame(clf.history_)`` is a table.
    notes_ : tuple of str
        What was chosen and why, and what a reader should know.
    plan_ : str
        The chain from the goal to the rule, a line for each link.
    finished_ : bool
        False where training was interrupted.
    n_features_in_ : int
    feature_names_in_ : numpy.ndarray
        Where ``X`` has names.

    Examples
    --------
    >>> import setpoint as sp
    >>> data = sp.datasets.load("breast-cancer")
    >>> clf = sp.GoalClassifier("maximize recall subject to precision >= 0.9", model="linear")
    >>> clf.fit(data.X, data.y).predict(data.X[:2]).shape
    (2,)
    """

    def __init__(
        self,
        goal: Any = "maximize balanced_accuracy",
        model: Any = "auto",
        method: Any = "auto",
        *,
        task: Any = None,
        positive: Any = None,
        kind: str | None = None,
        tune_size: float = 0.25,
        hidden: tuple[int, ...] = (128, 64),
        dropout: float = 0.1,
        epochs: int = 100,
        patience: int = 15,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-4,
        device: str = "auto",
        checkpoint: Any = None,
        listener: Any = None,
        confidence: float = 0.95,
        random_state: Any = 0,
    ) -> None:
        self.goal = goal
        self.model = model
        self.method = method
        self.task = task
        self.positive = positive
        self.kind = kind
        self.tune_size = tune_size
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.device = device
        self.checkpoint = checkpoint
        self.listener = listener
        self.confidence = confidence
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Missing values are taken, and several labels per row where the goal speaks of such."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_label = self._speaks_of_labels()
        tags.target_tags.single_output = True
        return tags

    def _speaks_of_labels(self) -> bool:
        """Whether the goal can be meant of several labels per row."""
        try:
            goal, task = Goal.of(self.goal), Task.multilabel((0, 1))
            check(goal, task)
            return bool(goal.objective.needs() <= {"scores"}) or bool(Costs().lower(goal, task))
        except GoalError:
            return False

    # --- fitting ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, group: Any = None) -> Self:
        """Train on the goal and choose the operating point.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Numbers, categories, text, missing values. A module may take arrays of more dimensions.
        y : array-like
            (n,) classes, or an (n, L) matrix of 0 and 1.
        sample_weight : array-like of shape (n,), optional
        group : array-like or mapping of array-likes, optional
            The columns that the goal speaks of.
        """
        goal = Goal.of(self.goal)
        self._check_settings()
        self.seed_ = self._seed()
        model, chosen = self._model(), self._method()
        inputs = self._inputs_to_fit(X, sample_weight)
        labels, target = read_labels(goal, y, len(inputs), self.task, self.positive)
        self.task_, self.classes_ = labels.task, labels.classes
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, np.zeros((len(target), 1)), dtype=float)
            if (weight < 0).any():
                raise DataError(f"sample_weight holds {weight.min():g}; weights are not negative")
        needs_two(target, weight)
        groups = take_groups(group, len(target))
        for column in goal.columns:
            if column not in groups:
                way = "group=…" if column == "group" else f'group={{"{column}": …}}'
                raise DataError(f'the goal speaks of the column "{column}": pass {way} to fit')
        check(goal, self.task_)
        parts = split(target, self.tune_size, self.seed_)
        if self.features_ is not None and not parts.shared:  # the tune rows scale nothing
            w = None if weight is None else weight[parts.train]
            with suppress(SetpointError):  # a column may look otherwise in fewer rows: then all do
                features = Features.fit(taken(X, parts.train), w)
                inputs = features.transform(X)
                self.features_ = features
        self.notes_ = self._first_notes(parts.shared, weight is not None)
        if isinstance(model, str | nn.Module):
            self._fit_network(goal, model, chosen, inputs, target, weight, groups, parts)
        else:
            self.model_, notes = fit_classifier(
                goal,
                labels,
                model,
                chosen,
                lambda rows: taken(X, rows),
                target,
                weight,
                parts,
                self.seed_,
            )
            self.history_, self.finished_, self.notes_ = [], True, self.notes_ + notes
        self._choose(goal, X, inputs, target, weight, groups, parts.tune)
        kept = "the same rows" if parts.shared else f"{len(parts.tune):,} rows kept apart"
        self.plan_ = "\n".join(
            [
                f"goal    {goal}",
                f"model   {model if isinstance(model, str) else type(model).__name__}"
                f" on {len(parts.train):,} rows, {self.n_features_in_} columns",
                f"method  {chosen}",
                f"rule    {self.rule_.operating_point()}, chosen on {kept}",
            ]
        )
        if not self.finished_:
            note = (
                "training was interrupted: the classifier is fitted with the best weights so far"
                + (", and the same fit goes on from the checkpoint" if self.checkpoint else "")
            )
            self.notes_ += (note,)
            raise KeyboardInterrupt(note)
        return self

    def _check_settings(self) -> None:
        """Refuse settings that nothing can be done with, before anything is done."""
        whole = {"epochs": self.epochs, "patience": self.patience, "batch_size": self.batch_size}
        for name, x in whole.items():
            if x is None and name == "batch_size":
                continue
            if not isinstance(x, int | np.integer) or isinstance(x, bool) or x < 1:
                raise KindError(f"{name}={x!r}: a whole number, 1 or more")
        widths = self.hidden
        if not isinstance(widths, tuple | list) or not all(
            isinstance(w, int | np.integer) and w > 0 for w in widths
        ):
            raise KindError(f"hidden={widths!r}: the widths of the layers, for example (128, 64)")
        shares = {"dropout": (self.dropout, 0), "confidence": (self.confidence, 1e-12)}
        for name, (x, low) in shares.items():
            if not is_real(x) or not low <= x < 1:
                raise KindError(f"{name}={x!r}: a number between 0 and 1")
        if self.listener is not None and not callable(self.listener):
            raise KindError(f"listener={self.listener!r}: a function of one event")

    def _model(self) -> Any:
        model = self.model
        if isinstance(model, str):
            if model not in MODELS:
                hint = did_you_mean(model, MODELS, f"choose from {listing(MODELS)}.")
                raise KindError(f"model={model!r}: {hint}")
            return "mlp" if model == "auto" else model
        if isinstance(model, nn.Module) or (hasattr(model, "fit") and is_classifier(model)):
            return model
        raise KindError(
            f"model={model!r}: one of {listing(MODELS)}, a torch module or a classifier"
        )

    def _method(self) -> Method:
        return method("cross-entropy" if self.method == "auto" else self.method)

    def _seed(self) -> int:
        state = self.random_state
        if state is None:
            return int(np.random.default_rng().integers(2**31))
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        if isinstance(state, int | np.integer) and state >= 0:
            return int(state)
        raise KindError(f"random_state={state!r}: a whole number, 0 or more, or None")

    def _first_notes(self, shared: bool, weighted: bool) -> tuple[str, ...]:
        notes = []
        if isinstance(self.model, str) and self.model == "auto":
            notes.append("model auto: a small network; a portfolio of models does not exist yet")
        if isinstance(self.method, str) and self.method == "auto":
            notes.append(
                "method auto: cross-entropy (of a scikit-learn classifier its own loss), the "
                "threshold chosen by the goal; a portfolio of methods does not exist yet"
            )
        if shared:
            notes.append(
                "there are too few rows of a class to keep some apart: the threshold was chosen on "
                "the rows the model was trained on, which flatters it"
            )
        if weighted:
            notes.append("the goal's figures count every row with its sample_weight")
        for note in notes:
            logger.info(note)
        return tuple(notes)

    def _inputs_to_fit(self, X: Any, sample_weight: Any) -> Any:
        """The matrix that a network sees, and what scikit-learn wants to know of X."""
        self.features_ = None
        if not isinstance(self.model, str | nn.Module):  # a classifier sees X as it is
            if len(getattr(X, "shape", (0,))) == 2:
                validate_data(self, X, skip_check_array=True)
            rows = X.shape[0] if hasattr(X, "shape") else len(X)
            self.n_features_in_ = getattr(self, "n_features_in_", 1)
            return np.zeros((rows, 0), np.float32)
        if getattr(X, "ndim", 2) > 2 and isinstance(self.model, nn.Module):
            X = np.asarray(X)
            self.n_features_in_ = int(X.shape[1])
            return X.astype(np.float32)
        self.features_ = Features.fit(X, sample_weight)
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = self.features_.n_inputs
        return self.features_.transform(X)

    # --- networks --------------------------------------------------------------------------------

    def _fit_network(
        self,
        goal: Goal,
        model: Any,
        chosen: Method,
        inputs: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None,
        groups: dict[str, np.ndarray],
        parts: Any,
    ) -> None:
        device = device_of(self.device)
        named = {name: np.unique(groups[name]) for name in goal.columns}
        task = self.task_
        if named:
            values = {name: v.tolist() for name, v in named.items()}
            task = Task(task.kind, task.positive, task.classes, groups=values)  # type: ignore[arg-type]

        wide = next(model.parameters()).dtype if isinstance(model, nn.Module) else torch.float32

        def part(rows: np.ndarray) -> Part:
            codes = {
                name: torch.as_tensor(np.searchsorted(v, groups[name][rows]), device=device)
                for name, v in named.items()
            }
            w = None if weight is None else weight[rows] / max(weight.mean(), 1e-300)
            return Part(
                torch.as_tensor(inputs[rows], dtype=wide, device=device),
                torch.as_tensor(target[rows], device=device),
                None if w is None else torch.as_tensor(w, dtype=torch.float32, device=device),
                codes,
                {name: groups[name][rows] for name in named},
            )

        settings = Settings(
            epochs=self.epochs,
            patience=self.patience,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            pace=10.0 if model == "linear" else 1.0,
            weight_decay=self.weight_decay,
            seed=self.seed_,
            checkpoint=self.checkpoint,
            listener=self.listener,
        )
        build = self._builder(model, inputs.shape[1], device)
        found: Fitted = fit_network(
            goal, task, chosen, build, part(parts.train), part(parts.tune), settings
        )
        self.model_ = found.model.cpu()
        if isinstance(model, str):
            self.model_ = self.model_.double()  # a row's score depends on no other row's
        self.model_.eval()
        self.history_ = found.history
        self.notes_ += found.notes
        self.finished_ = found.finished
        self.loss_state_ = found.loss.state_dict()

    def _builder(self, model: Any, width: int, device: torch.device) -> Any:
        outputs = 1 if self.task_.kind == "binary" else len(self.classes_)
        seed = self.seed_

        def build() -> nn.Module:
            if isinstance(model, nn.Module):
                return copy.deepcopy(model).to(device)
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed)
                if model == "linear":
                    return linear(width, outputs).to(device)
                return mlp(width, outputs, self.hidden, self.dropout).to(device)

        return build

    # --- the operating point ---------------------------------------------------------------------

    def _choose(
        self,
        goal: Goal,
        X: Any,
        inputs: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None,
        groups: dict[str, np.ndarray],
        rows: np.ndarray,
    ) -> None:
        """Tune the rule on the tune rows."""
        known: Any = getattr(self.model_, "classes_", None)
        if known is not None and not np.array_equal(known, np.arange(len(self.classes_))):
            raise DataError("some class has no row among the training rows; give more rows")
        task = Task(
            self.task_.kind, self.task_.positive, self.task_.classes, score=self._score_kind()
        )
        self.rule_, notes = choose_rule(
            goal,
            task,
            self._labels.named(target[rows]),
            self._scores_of(taken(X, rows), inputs[rows]),
            sample_weight=None if weight is None else weight[rows],
            group={name: groups[name][rows] for name in groups} or None,
            kind=self.kind,
            seed=self.seed_,
        )
        self.notes_ += notes

    @property
    def _labels(self) -> Labels:
        return Labels(self.task_, self.classes_)

    def _score_kind(self) -> str:
        network = isinstance(self.model_, nn.Module)
        return "probability" if network or hasattr(self.model_, "predict_proba") else "raw"

    # --- predicting ------------------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """Scores as the rule takes them: (n,), or (n, K)."""
        check_is_fitted(self, "rule_")
        if not isinstance(self.model_, nn.Module):
            return classifier_scores(self.model_, X, self.task_)
        if self.features_ is None:
            return self._scores_of(None, np.asarray(X).astype(np.float32))
        if len(getattr(X, "shape", (0, 0))) == 2:
            validate_data(self, X, reset=False, skip_check_array=True)
        return self._scores_of(X, self.features_.transform(X))

    def _scores_of(self, X: Any, inputs: np.ndarray) -> np.ndarray:
        if isinstance(self.model_, nn.Module):
            like = next(self.model_.parameters())
            rows = torch.as_tensor(inputs).to(like.dtype).to(like.device)
            return probabilities(evaluate_outputs(self.model_, rows), self.task_)
        return classifier_scores(self.model_, X, self.task_)

    def predict(self, X: Any, group: Any = None) -> np.ndarray:
        """The decisions, as classes; ``group`` only where the rule has a threshold per group."""
        scores = self._scores(X)
        decided = np.asarray(self.rule_.decide(scores, group=group))
        if self.task_.kind == "binary":
            return self._labels.pair[decided.astype(np.int64)]
        if self.task_.kind == "multilabel":
            return decided.astype(np.int64)
        return decided.astype(self.classes_.dtype)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n, K); of a multilabel task (n, L), one per label.

        They are the model's own. Trained on a goal they rank, and need not be calibrated.
        """
        scores = self._scores(X)
        if self.task_.kind != "binary":
            return scores
        both = np.stack([1 - scores, scores], 1)
        first = self._labels.pair[0] == self.classes_[0]
        return both if first else both[:, ::-1]

    def decision_function(self, X: Any, group: Any = None) -> np.ndarray:
        """How far the score lies beyond the threshold: positive exactly where decided positive.

        Multiclass: scores with the rule's offsets, whose largest is decided. Multilabel: (n, L).
        """
        scores = self._scores(X)
        rule = self.rule_
        if rule.kind == "offsets":
            return scores + np.array(rule.offsets)
        decided = np.asarray(rule.decide(scores, group=group))
        if rule.kind in ("threshold", "per-label"):
            cut = rule.threshold if rule.kind == "threshold" else [t for _, t in rule.thresholds]
            apart = scores - np.nan_to_num(np.asarray(cut, dtype=np.float64), posinf=2.0)
        else:
            apart = np.where(decided, scores, scores - 2.0)
        # the tie rule is >=, and rounding or an infinite threshold must not turn a sign round
        tiny = np.finfo(np.float64).tiny
        apart = np.where(
            decided & (apart <= 0), tiny, np.where(~decided & (apart >= 0), -tiny, apart)
        )
        flipped = self.task_.kind == "binary" and self._labels.pair[0] != self.classes_[0]
        return -apart if flipped else apart

    def score(self, X: Any, y: Any, sample_weight: Any = None, group: Any = None) -> float:
        """How the goal fares on these rows, for searches: greater is better.

        The objective (negative where it is minimized), less ten times what the constraints fall
        short by. An empty rate counts as the worst value.
        """
        check_is_fitted(self, "rule_")
        goal = self.rule_.goal
        wanted = self.rule_.kind == "per-group" or goal.columns
        found = evaluate(
            self.rule_,
            self._labels.named(self._labels.codes(y)),
            self._scores(X),
            sample_weight=sample_weight,
            group=group if wanted else None,
        )
        low, high = goal.objective.interval()
        worst = low if goal.sign > 0 else high
        value = worst if found.value is None else found.value
        return goal.sign * value - 10.0 * sum(k.short for k in found.kept)

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the fitted classifier to a folder: safetensors and JSON, no pickle."""
        check_is_fitted(self, "rule_")
        storage.save(self, path)


def taken(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a frame or an array."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if isinstance(X, np.ndarray) else np.asarray(X)[rows]


def load(path: Any, model: nn.Module | None = None, trusted: Sequence[str] = ()) -> GoalClassifier:
    """Read what :meth:`GoalClassifier.save` wrote; nothing in the files is executed.

    Parameters
    ----------
    path : path
    model : torch.nn.Module, optional
        A module of the same architecture, where the classifier was given one of the user's own.
    trusted : sequence of str
        Types and functions in a scikit-learn model that you vouch for; classes of scikit-learn and
        LightGBM need no word.
    """
    return storage.load(path, GoalClassifier, model, trusted)
