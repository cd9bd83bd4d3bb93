"""The commands, in the order and under the headings in which ``setpoint --help`` lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from setpoint.cli.commands import (
    certify,
    compare,
    decide,
    demo,
    evaluate,
    explain,
    fit,
    methods,
    metrics,
    monitor,
    plan,
    predict,
    restore,
    robustness,
    tune,
)

JOB = "The main job"
SCORES = "On scores from anywhere"
ATTACKS = "A model under attack"
IMAGES = "Images from measurements"
LANGUAGE = "What can be said, what can be done"


@dataclass(frozen=True)
class CommandRow:
    """A command.

    Attributes
    ----------
    name : str
    run : callable
        Its parameters are the options.
    help, epilog : str
    panel : str
        The heading in the help of the program.
    """

    name: str
    run: Callable[..., Any]
    help: str
    epilog: str
    panel: str

    @classmethod
    def of(cls, module: ModuleType, panel: str) -> CommandRow:
        """The command of a module: the function of its name, with its HELP and EPILOG."""
        name = module.__name__.rpartition(".")[2]
        return cls(name, getattr(module, name), module.HELP, module.EPILOG, panel)


COMMANDS: tuple[CommandRow, ...] = (
    CommandRow.of(demo, JOB),
    CommandRow.of(fit, JOB),
    CommandRow.of(predict, JOB),
    CommandRow.of(evaluate, JOB),
    CommandRow.of(explain, JOB),
    CommandRow.of(compare, JOB),
    CommandRow.of(monitor, JOB),
    CommandRow.of(tune, SCORES),
    CommandRow.of(certify, SCORES),
    CommandRow.of(plan, SCORES),
    CommandRow.of(decide, SCORES),
    CommandRow.of(robustness, ATTACKS),
    CommandRow.of(restore, IMAGES),
    CommandRow.of(metrics, LANGUAGE),
    CommandRow.of(methods, LANGUAGE),
)
