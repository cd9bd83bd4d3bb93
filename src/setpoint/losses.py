"""The door to losses: a goal as a torch loss."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from setpoint._core.errors import KindError
from setpoint._core.options import choice
from setpoint.decisions import DecisionRule, tune
from setpoint.expressions import Expression
from setpoint.goals import Goal, Task
from setpoint.methods import METHODS, Method, Recovered, method, method_for
from setpoint.methods.goal_program import GoalProgram
from setpoint.methods.guard.guarded_program import GuardedProgram, guarded
from setpoint.methods.guard.loss_status import LossStatus
from setpoint.methods.loss_identity import LossIdentity
from setpoint.methods.pixels import as_rows
from setpoint.programs import KeepsRows
from setpoint.training import RunningLoss
from setpoint.training.distributed import rank, world_size

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

logger = logging.getLogger("setpoint")

#: options of the loss itself
OPTIONS = ("task", "accumulate", "memory", "warmup", "guard", "process_group")


def _method_of(goal: Goal, task: Task, name: str | Method, options: dict[str, Any]) -> Method:
    """The method that is named, or the one for the goal; mistyped options are recognised."""
    if isinstance(name, str):
        choice("method", name, ("auto", *METHODS))
        if name == "auto":
            return method_for(goal, task, OPTIONS, **options)
    return method(name, OPTIONS, **options)


class GoalLoss(RunningLoss):
    """A goal as a loss for any model, loader and optimiser.

    Parameters
    ----------
    goal : Goal, str or Expression
    method : str or Method
        "auto": "exact" for decisions, "pairwise" for areas under a curve, "implicit" for the other
        goals on a ranking, "errors" for regression. Or "soft-set", "costs", "cross-entropy",
        "pairwise", "implicit", "lagrangian", "exact" or "errors"; or one made with options.
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
        Start with cross-entropy until each class has been seen, keep a share of it, bound every
        step, and act at the threshold that the recent rows ask for
        (:mod:`setpoint.methods.guard.guarded_program`). False trains as the method was published.
        Of no effect with ``memory=0``, and on rankings and regression.
    process_group : optional
        See :class:`torch.distributed.ProcessGroup`; the default group otherwise.
    **options
        Options of the method, where ``method`` is a name.

    Notes
    -----
    It is called as ``loss(logits, target, weight=…, group=…)``. In segmentation every pixel is a
    row: logits (b, 1, h, w), or (b, K, h, w) for several classes, targets (b, h, w), weights and
    groups (b, h, w) or (b,). ``memory`` then counts pixels.

    A method that keeps something for each row, ``Exact(form="table", rows=n)``, asks for ``row=``
    too, the number of each row of the batch among all n; others take no notice of it.

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
        method: str | Method = "auto",
        *,
        task: Task | str | None = None,
        accumulate: int = 1,
        memory: float = 8192,
        warmup: int = 1,
        guard: bool = True,
        process_group: ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        self.goal = Goal.of(goal)
        self.task = Task.make(task)
        self.method = _method_of(self.goal, self.task, method, options)
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
        >>> loss = sp.GoalLoss("maximize recall subject to precision >= 0.9")
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
        own = self.method.recover(program.inner, totals, self.multipliers)
        return program.recovered(own, alone=self._exchange() is None)

    def _flat(self, outputs: Tensor, target: Any, weight: Any, group: Any, row: Any) -> Any:
        """Images as rows, a row for each pixel."""
        return as_rows(self.task, outputs, target, weight, group, row)

    @property
    def identity(self) -> LossIdentity:
        """What the loss's state is about: goal, task, method, and the options that count."""
        return LossIdentity.of(self.goal, self.task, self.method)

    def get_extra_state(self) -> Tensor:
        """What the state is about, as bytes: every format of weights can hold them."""
        return self.identity.tensor()

    def set_extra_state(self, state: Any) -> None:
        """Refuse the state of another goal, task or method."""
        self.identity.check(LossIdentity.read(state))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        """Check whose state it is before any of it is taken.

        Version 1 did not say whose it is. A run that it began without a guard goes on without.
        """
        saved = f"{prefix}_extra_state"
        if saved in state_dict:
            self.set_extra_state(state_dict[saved])
        begun = f"{prefix}totals" in state_dict and f"{prefix}program.calls" not in state_dict
        if begun and isinstance(self.program, GuardedProgram):
            self._take(self.program.bare())
            self.register_buffer("multipliers", self.program.start.clone().to(self.multipliers))
        self._warn_of_other_process(state_dict.get(f"{prefix}program.process"))
        super()._load_from_state_dict(state_dict, prefix, *more)
        missing = more[2]
        if saved in missing:
            missing.remove(saved)

    def _warn_of_other_process(self, process: Tensor | None) -> None:
        """Warn where a process takes over the recent rows of another."""
        saved, world = (0, 1) if process is None else process.tolist()
        own = rank(self.process_group)
        if world > 1 and world_size(self.process_group) > 1 and saved != own:
            logger.warning(
                "process %d is loading the loss state of process %d, which saw other recent rows: "
                "the run will continue slightly differently. Save one state per process to resume "
                "exactly",
                own,
                saved,
            )

    def __repr__(self) -> str:
        """The goal and the method, and how the goal stands where that is known."""
        head = f"GoalLoss({str(self.goal)!r}, {self.method})"
        if not isinstance(self.program, GuardedProgram) or self.program.judge is None:
            return head
        return f"{head}\n{self.status()}"
