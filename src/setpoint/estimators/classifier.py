"""The door for scikit-learn: a classifier that takes a goal."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.utils.metaestimators import available_if
from torch import nn

from setpoint._core.errors import Argument, KindError, SetpointError
from setpoint._core.notes import Note, NoteCode
from setpoint._core.words import did_you_mean, listing
from setpoint.datasets.class_labels import allows_several_classes, needs_two, read_labels
from setpoint.decisions import evaluate
from setpoint.decisions.proof.safety_margin import MARGIN
from setpoint.estimators.base import (
    estimator_of,
    known_features,
    note_features,
    numbers_alone,
    origin_of,
    refuse_settings,
    row_weights,
    seed_of,
)
from setpoint.estimators.regressor import GoalRegressor
from setpoint.estimators.run_attributes import ClassifierAttributes
from setpoint.expressions import Expression, take_groups
from setpoint.fit import storage
from setpoint.fit.cross_fitting import mean_outputs
from setpoint.fit.members import ScoresGiven
from setpoint.fit.network.goal_network import NetworkSettings, device_of
from setpoint.fit.pipeline import PartOptions, fit_goal, refuse_columns
from setpoint.fit.plan import MODELS, FitRequest
from setpoint.fit.run_files import holds_regressor
from setpoint.fit.run_record import ClassifierRun
from setpoint.fit.training_data import ClassTrainingData, Encoder
from setpoint.goals import Goal, Task, check
from setpoint.methods import Costs, Method
from setpoint.methods.portfolio import effort
from setpoint.training.events import Listener

logger = logging.getLogger("setpoint")


def _has_probabilities(classifier: GoalClassifier) -> bool:
    """Whether predict_proba is there: for networks, and classifiers that have it themselves."""
    run = getattr(classifier, "run_", None)
    if run is not None:
        return run.rule.task.score != "raw"
    model = classifier.model
    return isinstance(model, str | nn.Module) or hasattr(model, "predict_proba")


class GoalClassifier(ClassifierAttributes, ClassifierMixin, BaseEstimator):
    """A classifier that is trained for a goal, decides at an operating point, and proves it.

    Parameters
    ----------
    goal : str, Goal or Expression
        ``"maximize recall subject to precision >= 0.9"``.
    model : {"auto", "linear", "trees", "mlp", "baseline"}, torch module or classifier
        "auto" is a portfolio: linear, boosted trees and an mlp, out-of-fold, stacked. "baseline" is
        LightGBM with a tuned threshold and no margin. A module takes the encoded table, or an
        array of more than two dimensions as it is, and gives one output per row for two classes,
        else one per class or label. A classifier of scikit-learn is fitted on X as it is (text
        needs a pipeline of its own).
    method : str or Method
        "cross-entropy", "soft-set", "costs", "pairwise", "implicit", "lagrangian" or "exact",
        for one network; "costs" also for a classifier of scikit-learn. "auto" is cross-entropy,
        with metric-driven members where the portfolio has a reason for them.
    confidence : float
        Of the certificate.
    task : str or Task, optional
        Inferred from ``y`` otherwise: two classes, several, or a 0/1 matrix of labels.
    positive : label, optional
        The positive class of two. Needed where the goal tells the classes apart and they are not
        0 and 1, −1 and 1, or False and True.
    kind : str, optional
        The kind of rule, as for :func:`setpoint.tune`: "per-group" for one threshold per group.
    effort : {"quick", "standard", "thorough"}
        Of the portfolio.
    folds : int, optional
        Of cross-fitting; 1 keeps a quarter of the rows apart to tune. By default the effort's for a
        portfolio and trees, 1 for one model.
    certify_size : float, optional
        Share of the rows kept for the proof, which nothing else touches; by default a quarter where
        the goal has constraints, else none.
    margin : float
        How many standard errors a constraint holds by on the rows the rule is chosen on; 0 is none.
    proof_price : float
        The most that a proof may cost, in units of the objective: a proven rule that is worse by
        more is not taken. 1 takes any.
    compare : bool
        Whether the referee runs: cross-entropy and LightGBM with tuned thresholds, same rows.
    time_limit : float, optional
        Seconds after which no further member of the portfolio is begun.
    hidden : tuple of int
        Widths of the mlp's layers.
    dropout : float
    epochs, patience : int
        Of one network: at most so many epochs; stop after ``patience`` without a better goal.
    batch_size : int, optional
        By default a sixteenth of the rows between 32 and 1024, or enough to hold ten rows of the
        rarest class.
    learning_rate : float, optional
        Of one network: by default the method's own (1e-3 for most, 3e-3 for soft-set, lagrangian
        and exact), ten times that for "linear".
    weight_decay : float
    device : str
        "auto" takes a GPU if there is one.
    checkpoint : path, optional
        A folder where finished parts are kept; ``fit`` with the same rows and settings goes on.
    listener : callable, optional
        Called with every event: :class:`~setpoint.fit.events.Planned`,
        :class:`~setpoint.fit.events.FitProgress`, those of :mod:`setpoint.training.events`.
    random_state : int
        Seed of splits, weights, order and dropout.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The classes; of a multilabel task the labels.
    run_ : ClassifierRun
        All that the fit gave, as one frozen record; the other attributes are read from it.
    rule_ : DecisionRule
    certificate_ : Certificate or None
        What the certify rows prove; None where none were kept.
    comparison_ : Comparison or None
        What it bought over the baselines.
    report_ : Report
    plan_ : FitPlan
        What the fit did: the chain from the goal to the rule.
    notes_ : tuple of str
        What was chosen and why, and what a reader should know.
    history_ : list of dict
        One row per epoch of every network; ``pandas.DataFrame(clf.history_)`` is a table.
    members_ : dict
        The fitted models, by member, one of each fold.
    stack_ : Stack
        How members are weighed.
    model_ : torch.nn.Module, classifier or dict
        The one model where there is one; else ``members_``.
    task_ : Task
    finished_ : bool
        False where it was interrupted.
    n_features_in_ : int
    feature_names_in_ : numpy.ndarray
        Where ``X`` has names.

    Examples
    --------
    >>> import setpoint as sp
    >>> data = sp.datasets.load("breast-cancer")
    >>> clf = sp.GoalClassifier("maximize recall subject to precision >= 0.8", model="trees")
    >>> clf.fit(data.X, data.y).predict(data.X[:2]).shape
    (2,)
    >>> clf.certificate_.verdict
    'PROVEN'
    """

    def __init__(
        self,
        goal: str | Goal | Expression = "maximize balanced_accuracy",
        model: str | nn.Module | BaseEstimator | ScoresGiven = "auto",
        method: str | Method = "auto",
        confidence: float = 0.95,
        random_state: int | np.random.RandomState | None = 0,
        *,
        task: str | Task | None = None,
        positive: Any = None,
        kind: str | None = None,
        effort: str = "standard",
        folds: int | None = None,
        certify_size: float | None = None,
        margin: float = MARGIN,
        proof_price: float = 0.1,
        compare: bool = True,
        time_limit: float | None = None,
        hidden: tuple[int, ...] = (128, 64),
        dropout: float = 0.1,
        epochs: int = 100,
        patience: int = 15,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float = 1e-4,
        device: str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.goal = goal
        self.model = model
        self.method = method
        self.confidence = confidence
        self.random_state = random_state
        self.task = task
        self.positive = positive
        self.kind = kind
        self.effort = effort
        self.folds = folds
        self.certify_size = certify_size
        self.margin = margin
        self.proof_price = proof_price
        self.compare = compare
        self.time_limit = time_limit
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

    def __sklearn_tags__(self) -> Any:
        """Missing values are taken; several classes, or labels per row, where the goal allows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = allows_several_classes(self.goal, self.task)
        tags.classifier_tags.multi_label = self._speaks_of_labels()
        tags.target_tags.single_output = True
        return tags

    def _speaks_of_labels(self) -> bool:
        """Whether the goal can be meant of several labels per row."""
        try:
            goal, task = Goal.of(self.goal), Task.multilabel((0, 1))
            check(goal, task)
            return bool(goal.objective.needs() <= {"scores"}) or bool(Costs().lower(goal, task))
        except SetpointError:
            return False

    # --- fitting ---------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        group: Any = None,
        *,
        split: Any = None,
        together: Any = None,
        time: Any = None,
    ) -> Self:
        """Train for the goal, choose the operating point, prove it, compare it.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Numbers, categories, dates, missing values. A module may take arrays of more dimensions.
        y : array-like
            (n,) classes, or an (n, L) matrix of 0 and 1.
        sample_weight : array-like of shape (n,), optional
        group : array-like or mapping of array-likes, optional
            The columns that the goal speaks of.
        split : array-like of text, shape (n,), optional
            Your own parts: train, tune or certify for each row.
        together : array-like of shape (n,), optional
            Rows of one id (a customer, a patient) are never parted.
        time : array-like of shape (n,), optional
            The latest rows certify, and folds hold rows later than those they fit.
        """
        goal = Goal.of(self.goal)
        seed = seed_of(self.random_state)
        asked = self._asked(goal, X, seed)
        rows = note_features(self, X)
        labels, target = read_labels(goal, y, rows, self.task, self.positive)
        weight = row_weights(sample_weight, rows)
        needs_two(target, weight)
        groups = take_groups(group, rows)
        refuse_columns(goal, groups)
        check(goal, labels.task)
        job = ClassTrainingData(
            goal=goal,
            labels=labels,
            rows=Encoder().encode(X if hasattr(X, "iloc") else np.asarray(X)),
            target=target,
            weight=weight,
            groups=groups,
            seed=seed,
            device=str(device_of(self.device)),
            listener=self.listener,
        )
        run = fit_goal(
            asked,
            job,
            PartOptions(self.certify_size, split, together, time),
            origin=origin_of(self, seed),
            work=self.checkpoint if self._crossed(asked) else None,
            time_limit=self.time_limit,
        )
        for note in run.notes:
            logger.info(note.text)
        if run.finished:
            self.run_ = run
            return self
        said = "training was interrupted: the classifier is fitted with the best so far"
        said += ", and the same fit goes on from the checkpoint" if self.checkpoint else ""
        self.run_ = run.noted(Note(NoteCode.INTERRUPTED, said))
        raise KeyboardInterrupt(said)

    def _asked(self, goal: Goal, X: Any, seed: int) -> FitRequest:
        """What is asked for, checked before anything is done."""
        refuse_settings(self.get_params(deep=False))
        settings = NetworkSettings(
            epochs=self.epochs,
            patience=self.patience,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=seed,
            checkpoint=self.checkpoint,
            listener=self.listener,
        )
        return FitRequest(
            goal=goal,
            model=self._model(),
            method=self.method,
            kind=self.kind,
            effort=effort(self.effort),
            folds=self.folds,
            margin=float(self.margin),
            proof_price=float(self.proof_price),
            confidence=float(self.confidence),
            compare=bool(self.compare),
            settings=settings,
            hidden=tuple(self.hidden),
            dropout=self.dropout,
            table=len(getattr(X, "shape", (0, 0))) == 2,
            numbers=numbers_alone(X),
        )

    def _crossed(self, asked: FitRequest) -> bool:
        """Whether finished parts are worth keeping: one network keeps its own state."""
        return self.folds not in (None, 1) or asked.model in ("auto", "trees", "baseline")

    def _model(self) -> str | nn.Module | BaseEstimator | ScoresGiven:
        model = self.model
        if isinstance(model, str):
            if model not in MODELS:
                hint = did_you_mean(model, MODELS, f"choose from {listing(MODELS)}.")
                raise KindError("{argument}: {hint}", argument=Argument("model", model), hint=hint)
            return model
        own = isinstance(model, nn.Module | ScoresGiven)
        if own or (hasattr(model, "fit") and is_classifier(model)):
            return model
        raise KindError(
            f"model={model!r}: one of {listing(MODELS)}, a torch module or a classifier"
        )

    # --- predicting ------------------------------------------------------------------------------

    def _scores(self, X: Any) -> np.ndarray:
        """Scores as the rule takes them: (n,), or (n, K)."""
        run = self._run
        rows = run.encoder.encode(known_features(self, X))
        outputs = {name: mean_outputs(run.models[name], rows) for name in run.stack.used}
        return run.stack.scores(outputs, run.labels.task)

    def predict(self, X: Any, group: Any = None) -> np.ndarray:
        """The decisions, as classes; ``group`` only where the rule has a threshold per group."""
        return self.decide(self._scores(X), group)

    def decide(self, scores: np.ndarray, group: Any = None) -> np.ndarray:
        """Decisions, as classes, from scores of this classifier; None where it abstains."""
        decided = np.asarray(self.rule_.decide(scores, group=group))
        abstaining = self.rule_.point.may_abstain
        if abstaining and self.task_.kind == "binary":
            named = self._labels.pair.astype(object)[np.maximum(decided, 0).astype(np.int64)]
            named[decided < 0] = None  # undecided
            return named
        if abstaining:
            return decided
        if self.task_.kind == "binary":
            return self._labels.pair[decided.astype(np.int64)]
        if self.task_.kind == "multilabel":
            return decided.astype(np.int64)
        return decided.astype(self.classes_.dtype)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, (n, K); of a multilabel task (n, L), one per label.

        They are the models' own, stacked. Trained on a goal they rank, and need not be calibrated.
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
        apart = self.rule_.point.margin(self._scores(X), group)
        flipped = self.task_.kind == "binary" and self._labels.pair[0] != self.classes_[0]
        return -apart if flipped else apart

    def score(self, X: Any, y: Any, sample_weight: Any = None, group: Any = None) -> float:
        """How the goal fares on these rows, for searches: greater is better.

        The objective (negative where it is minimized), less ten times what the constraints fall
        short by. An empty rate counts as the worst value.
        """
        goal = self.rule_.goal
        wanted = self.rule_.point.needs_group or goal.columns
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

    # --- scores from elsewhere -------------------------------------------------------------------

    @classmethod
    def from_scores(
        cls,
        goal: str | Goal | Expression,
        y: Any,
        scores: Any,
        *,
        sample_weight: Any = None,
        group: Any = None,
        split: Any = None,
        together: Any = None,
        time: Any = None,
        **options: Any,
    ) -> GoalClassifier:
        """A fitted classifier over the scores of a model trained elsewhere, on other rows.

        Its X is the score, (n,) or (n, K) in the order of the sorted classes: most of the rows
        choose the operating point, the rest prove it.

        Parameters
        ----------
        goal, y, sample_weight, group, split, together, time
            As for the class and :meth:`fit`.
        scores : array-like
            (n,), or (n, K). Raw, unless ``task`` declares probabilities or logits.
        **options
            Of the class.

        Examples
        --------
        >>> import numpy as np, setpoint as sp
        >>> y, scores = np.arange(400) % 2, np.arange(400) % 2 + np.arange(400) % 7 / 10
        >>> goal = "maximize recall subject to precision >= 0.8"
        >>> clf = sp.GoalClassifier.from_scores(goal, y, scores)
        >>> clf.certificate_.verdict, clf.predict([0.2, 1.4]).tolist()
        ('PROVEN', [0, 1])
        """
        task = options.get("task")
        kind = "raw" if task is None else Task.make(task).score
        options = {**options, "model": ScoresGiven(kind), "compare": False}
        made = cls(goal, **options)
        parts = {"split": split, "together": together, "time": time}
        return made.fit(scores, y, sample_weight, group, **parts)

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a folder, with its report; no pickle."""
        storage.save(self._run, path)

    @classmethod
    def from_run(cls, run: ClassifierRun) -> Self:
        """The estimator of a fitted run, for example one that was read from a folder."""
        return estimator_of(cls, run)


def load(
    path: str | os.PathLike[str], model: nn.Module | None = None, trusted: Sequence[str] = ()
) -> GoalClassifier | GoalRegressor:
    """Read what ``save`` of an estimator or ``setpoint fit`` wrote; nothing in it is executed.

    Parameters
    ----------
    path : path
    model : torch.nn.Module, optional
        A module of the same architecture, where the classifier was given one of the user's own.
    trusted : sequence of str
        Types and functions in a scikit-learn model that you vouch for; classes of scikit-learn and
        LightGBM need no word.
    """
    if holds_regressor(Path(path)):
        return GoalRegressor.load(path, model, trusted)
    return GoalClassifier.from_run(storage.load(path, model, trusted))
