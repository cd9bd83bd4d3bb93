"""Exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended; ``setpoint --help`` lists them."""

    OK = 0
    UNEXPECTED = 1
    MISTAKE = 2
    GOAL_NOT_MET = 3  # or not proven, or broken on these rows
    STOPPED = 130
