"""The door to losses: a goal as a torch loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from setpoint.expressions import Expression
from setpoint.goals import Goal, Task
from setpoint.methods import Method, Recovered, method
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
        process_group: ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        self.goal = Goal.of(goal)
        self.task = Task.make(task)
        self.method = _method(method, **options)
        super().__init__(
            self.method.lower(self.goal, self.task),
            memory=memory,
            warmup=warmup,
            accumulate=accumulate,
            process_group=process_group,
        )

    def recover(self) -> Recovered:
        """The goal at the running totals, how each constraint stands, and its multiplier.

        Raises
        ------
        KindError
            For cross-entropy and pairwise, which keep no totals of the goal.
        """
        totals = self.totals / self.program.whole(self.totals).clamp(min=1e-30)
        return self.method.recover(self.program, totals, self.multipliers)

    def extra_repr(self) -> str:
        """The goal and the method."""
        return f"{str(self.goal)!r}, {self.method}"


_method = method
