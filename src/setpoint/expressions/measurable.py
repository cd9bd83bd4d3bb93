"""Calling an expression evaluates it; its totals can be taken in shards and merged."""

from __future__ import annotations

from typing import Any

from setpoint._core.errors import DataError, KindError, Spelling
from setpoint.expressions.evaluate import Totals, measure
from setpoint.expressions.node import Node
from setpoint.expressions.rows.intake import take_in
from setpoint.expressions.rows.row_events import Label
from setpoint.expressions.rows.task import Task


class Measurable(Node):
    """A node that can be evaluated on rows."""

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
        group: Any = None,
        *,
        query: Any = None,
        abstained: Any = None,
        scores: Any = None,
        positive: Label = None,
        task: Task | str | None = None,
    ) -> Any:
        """Evaluate exactly.

        Parameters
        ----------
        y_true : array-like
            Labels (n,), a 0/1 matrix for multilabel, relevances, or real targets.
        y_pred : array-like
            Decisions; scores for an expression that judges scores; predictions for regression.
        sample_weight, query, abstained : array-like of shape (n,), optional
        group : array-like or mapping of array-likes, optional
        scores : array-like, optional
            Where the expression judges decisions and scores at once.
        positive : label, optional
            The positive label of a binary task with other labels than 0 and 1.
        task : Task or str, optional
            Needed where the task is not binary.

        Returns
        -------
        float, or a 0-dimensional tensor if ``y_true`` is one
        """
        return self.totals(
            y_true,
            y_pred,
            sample_weight,
            group,
            query=query,
            abstained=abstained,
            scores=scores,
            positive=positive,
            task=task,
        ).value()

    def totals(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
        group: Any = None,
        *,
        scores: Any = None,
        positive: Label = None,
        task: Task | str | None = None,
        **more: Any,
    ) -> Totals:
        """The totals behind the value, to be merged over shards; parameters as for a call."""
        declared = Task.make(task, positive)
        if declared.kind == "ranking" and group is not None and more.get("query") is None:
            raise DataError(
                "{metric} is taken by query: {way}, the query of each row",
                metric=str(self),
                way=Spelling("pass query=", "say --query"),
            )
        columns = take_in(
            declared,
            y_true,
            sample_weight=sample_weight,
            group=group,
            **self._decisions_or_scores(y_pred, scores),
            **more,
        )
        return measure(self, columns)

    def soft(
        self,
        y_true: Any,
        memberships: Any,
        sample_weight: Any = None,
        group: Any = None,
        *,
        positive: Label = None,
        task: Task | str | None = None,
    ) -> Any:
        """The soft reading: decisions replaced by memberships in [0, 1], (n,) or (n, K).

        With tensors the result is differentiable in the memberships.

        Examples
        --------
        >>> import setpoint as sp
        >>> sp.recall.soft([1, 1, 0], [0.5, 1.0, 0.25])
        0.75
        """
        columns = take_in(
            Task.make(task, positive),
            y_true,
            memberships=memberships,
            sample_weight=sample_weight,
            group=group,
        )
        return measure(self, columns).value()

    def _decisions_or_scores(self, y_pred: Any, scores: Any) -> dict[str, Any]:
        """Decide what the second positional argument is, from what the expression needs."""
        if y_pred is None:
            raise KindError(f"{self} needs what it judges: y_pred is None")
        needs = self.needs()
        if scores is None and "decisions" not in needs and "scores" in needs:
            return {"scores": y_pred}
        if scores is None and "scores" in needs:
            raise KindError(
                f'"{self}" judges decisions and scores: pass decisions as y_pred and scores=…'
            )
        return {"decisions": y_pred, "scores": scores}
