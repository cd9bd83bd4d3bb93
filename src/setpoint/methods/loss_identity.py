"""The identity of a loss: its goal, task and method, as they stand in its saved state.

Totals and multipliers are numbers without names: those of another goal load without a complaint and
price it wrongly. So a state carries what it is about, as the bytes of a JSON text in a tensor that
every format of weights can hold.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import KindError, SetpointError
from setpoint._core.json_codec import to_json
from setpoint._core.words import listing
from setpoint.goals import Goal, Task
from setpoint.methods.method import Method


@dataclass(frozen=True)
class LossIdentity:
    """What the state of a loss is about, as plain data.

    Attributes
    ----------
    goal, method : str
    task : dict
        Its kind, classes, bins and groups: what places a total.
    options : dict
        Options of the method that say what the state means; those that are forgotten with the
        totals, such as rates and the steepness of soft steps, are left out.
    """

    goal: str
    task: dict[str, Any]
    method: str
    options: dict[str, Any]

    @classmethod
    def of(cls, goal: Goal, task: Task, method: Method) -> LossIdentity:
        """The identity of a loss that is made of these."""
        about = {k: v for k, v in task.to_json().items() if k not in ("score", "positive")}
        parts = to_json({"task": about, "options": method.state_options()})
        return cls(goal=str(goal), method=method.name, **json.loads(json.dumps(parts)))

    def tensor(self) -> Tensor:
        """The bytes of its JSON text."""
        text = json.dumps(asdict(self), sort_keys=True).encode()
        return torch.from_numpy(np.frombuffer(text, np.uint8).copy())

    @classmethod
    def read(cls, state: Tensor) -> LossIdentity:
        """Read what :meth:`tensor` wrote, also after a cast to floats, which keep a byte."""
        try:
            text = state.detach().cpu().to(torch.uint8).numpy().tobytes()
            return cls(**json.loads(text))
        except (AttributeError, TypeError, ValueError) as error:
            raise KindError(
                "the state of this loss is damaged: what it was saved for cannot be read; leave "
                "its key out, and the state is taken as it is"
            ) from error

    def check(self, saved: LossIdentity) -> None:
        """Raise if a state was saved for another goal, task or method.

        Raises
        ------
        KindError
            With both of them.
        """
        same_goal = saved.goal == self.goal or _read_again(saved.goal) == self.goal
        if same_goal and (saved.task, saved.method, saved.options) == (
            self.task,
            self.method,
            self.options,
        ):
            return
        raise KindError(
            f"this state was saved for {saved._words(self)}; this loss is for "
            f"{self._words(saved)}: make the loss as it was, or load the model without the keys "
            "of the loss"
        )

    def _words(self, other: LossIdentity) -> str:
        """Goal and method, and what else is not the other's."""
        words = f'"{self.goal}" with {self.method}'
        if self.method == other.method:
            apart = [k for k in self.options if self.options[k] != other.options.get(k)]
            told = [f"{k}={_value(self.options[k])}" for k in apart]
            words += f" ({', '.join(told)})" if told else ""
        if self.task == other.task:
            return words
        kind, mine = self.task.get("kind"), self.task
        apart = [k for k in ("classes", "edges") if k in mine and mine[k] != other.task.get(k)]
        more = [f"{name} {listing(mine[name])}" for name in apart]
        if self.task.get("groups") != other.task.get("groups") and "groups" in self.task:
            pairs = self.task["groups"].items()
            more += [f'group "{name}" of {listing(values)}' for name, values in pairs]
        return f"{words} on a {kind} task" + (f" ({'; '.join(more)})" if more else "")


def _value(x: Any) -> str:
    return f"[{listing(x)}]" if isinstance(x, list) else str(x)


def _read_again(goal: str) -> str | None:
    """A goal's text as this version writes it; None where it cannot be read."""
    try:
        return str(Goal.parse(goal))
    except SetpointError:
        return None
