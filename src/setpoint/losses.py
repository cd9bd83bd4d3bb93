"""The door to losses: a goal as a torch loss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from setpoint._core.errors import KindError
from setpoint.decisions import DecisionRule, tune
from setpoint.expressions import Expression
from setpoint.goals import Goal, Task
from setpoint.methods import Method, Recovered, method
from setpoint.methods.goal_program import GoalProgram
from setpoint.methods.guard.guarded_program import GuardedProgram, guarded
from setpoint.methods.guard.loss_status import LossStatus
from setpoint.programs import KeepsRows
from setpoint.training import RunningLoss

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class GoalLoss(RunningLoss):
    """A goal as a loss for any model, loader and optimiser.

    Parameters
    ----------
    goal : Goal, str or Expression
    method : str or Method
        "soft-set", "costs", "cross-entropy", "pairwise", "implicit", "lagrangian", "exact" or
        "errors"; or one made with options.
    task : Task or str, optional
        Binary by default. Multiclass and multilabel tasks say their classes:
        ``Task.multiclass(range(5))``; group columns their values: ``Task.binary(groups=…)``.
    accumulate : int
        Number of calls that make up one optimiser step. The gradient of each is that of a mean, to
        be divided by ``accumulate`` as with any loss (Lightning and Accelerate do it).
    memory : float
        Rows that the running totals remember; 0 prices each batch at its own totals.
    warmup : int
        Steps of cross-entropy alone at the start.
    guard : bool
        Start on evidence, keep an anchor of cross-entropy, bound every step, and follow the
        operating point of the recent rows (:mod:`setpoint.methods.guard.guarded_program`). A step
        takes about a quarter longer. Of no effect with ``memory=0``, on rankings and regression.
    process_group : optional
        See :class:`torch.distributed.ProcessGroup`; the default group otherwise.
    **options
        Options of the method, where ``method`` is a name.

    Notes
    -----
    It is called as ``loss(logits, target, weight=…, group=…)``. A method that keeps something for
    each row, ``Exact(form="table", rows=n)``, asks for ``row=`` too, the number of each row of the
    batch among all n; others take no notice of it.

    Examples
    --------
    >>> import torch, setpoint as sp
    >>> loss = sp.GoalLoss("maximize recall subject to precision >= 0.9", method="costs")
    >>> logits = torch.zeros(4, requires_grad=True)
    >>> loss(logits, torch.tensor([1, 0, 0, 1])).backward()
    >>> logits.grad
    tensor([-0.1250,  0.1250,  0.1250, -0.1250])
    """

    def __init__(
        self,
        goal: Goal | Expression | str,
        method: str | Method = "soft-set",
        *,
        task: Task | str | None = None,
        accumulate: int = 1,
        memory: float = 8192,
        warmup: int = 1,
        guard: bool = False,
        process_group: ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        self.goal = Goal.of(goal)
        self.task = Task.make(task)
        self.method = _method(method, **options)
        program = self.method.lower(self.goal, self.task)
        keeps = isinstance(program, KeepsRows)
        if guard and memory and isinstance(program, GoalProgram) and not keeps:
            program = guarded(program, self.method, self.goal, self.task, int(accumulate))
        super().__init__(
            program,
            memory=memory,
            warmup=warmup,
            accumulate=accumulate,
            process_group=process_group,
        )

    @property
    def threshold(self) -> float:
        """The threshold of the logit that the loss decides by: positive at or above it.

        It follows the recent rows with a margin, so that decisions at it keep the constraints where
        decisions at 0 do not yet. For a rule on rows of your own choice see :meth:`rule`.
        """
        if isinstance(self.program, GuardedProgram) and self.program.judge is not None:
            return self.program.decided_at(alone=self._exchange() is None)
        thresholds = self.recover().thresholds
        return float(thresholds[0]) if len(thresholds) == 1 else 0.0

    def status(self) -> LossStatus:
        """How the goal stands right now, on the rows seen last.

        Raises
        ------
        KindError
            For goals and methods that keep no window of recent rows: rankings, cross-entropy.

        Examples
        --------
        >>> import torch, setpoint as sp
        >>> loss = sp.GoalLoss("maximize recall subject to precision >= 0.9", guard=True)
        >>> loss.status().rows
        0
        """
        if not isinstance(self.program, GuardedProgram) or self.program.judge is None:
            raise KindError(
                f'"{self.goal}" with {self.method.name} keeps no window of recent rows; '
                "evaluate the goal on validation rows: sp.tune(goal, y, scores)"
            )
        return self.program.status(int(self.steps), alone=self._exchange() is None)

    def rule(self, target: Any, logits: Any, *, weight: Any = None) -> DecisionRule:
        """The goal's decision rule on rows of your choice, for logits: ``rule.decide(logits)``.

        Parameters
        ----------
        target, logits : array-like
            Validation rows, if there are any: on training rows a rule is optimistic.
        weight : array-like, optional

        Examples
        --------
        >>> import setpoint as sp
        >>> loss = sp.GoalLoss("maximize recall subject to precision >= 0.6")
        >>> loss.rule([0, 0, 1, 1], [-2.0, 0.5, 0.4, 3.0]).threshold
        0.4
        """
        task = replace(self.task, score="logit")
        return tune(self.goal, target, logits, sample_weight=weight, task=task)

    def recover(self) -> Recovered:
        """The goal as it stands, each constraint, its multiplier, and the thresholds.

        Read on the window of recent rows, decided hard, where there is one; else at the running
        totals of the method.

        Raises
        ------
        KindError
            For cross-entropy and pairwise, which keep no totals of the goal.
        """
        program = self.program
        totals = self.totals / program.whole(self.totals).clamp(min=1e-30)
        if not isinstance(program, GuardedProgram):
            return self.method.recover(program, totals, self.multipliers)
        return program.recovered(self.method.recover(program.inner, totals, self.multipliers))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        """A run that was begun without a guard, by version 1, goes on without."""
        begun = f"{prefix}totals" in state_dict and f"{prefix}program.calls" not in state_dict
        if begun and isinstance(self.program, GuardedProgram):
            self._take(self.program.bare())
            self.register_buffer("multipliers", self.program.start.clone().to(self.multipliers))
        super()._load_from_state_dict(state_dict, prefix, *more)

    def extra_repr(self) -> str:
        """The goal and the method."""
        return f"{str(self.goal)!r}, {self.method}"


_method = method
