"""Every error Setpoint raises on purpose, one class per kind of mistake.

Each is a :class:`SetpointError` and also the built-in exception a Python user would catch:
``ValueError`` where a value is wrong, ``TypeError`` where the kind of thing is wrong. The message
is a sentence that names the value and the way out. They are shown under the name they are
imported by, ``setpoint.DataError``.
"""

from __future__ import annotations


class SetpointError(Exception):
    """Base class of all errors raised on purpose by Setpoint."""

    __module__ = "setpoint"


class GoalError(SetpointError, ValueError):
    """The goal, or an expression in it, does not say something that can be meant."""

    __module__ = "setpoint"


class GoalSyntaxError(GoalError):
    """A text could not be read as a goal or an expression; knows the place.

    Parameters
    ----------
    sentence : str
        What is wrong, and the way out.
    text : str
        The whole text.
    start, stop : int
        The offending part is ``text[start:stop]``.
    """

    __module__ = "setpoint"

    def __init__(self, sentence: str, text: str, start: int, stop: int | None = None) -> None:
        self.sentence = sentence
        self.text = text
        self.start = start
        self.stop = max(start + 1, start if stop is None else stop)
        super().__init__(f"{sentence}\n  {text}\n  {' ' * start}{'^' * (self.stop - start)}")

    def __reduce__(self) -> tuple[type, tuple[str, str, int, int]]:
        """Pickle by the four parts, not by the rendered message."""
        return type(self), (self.sentence, self.text, self.start, self.stop)


class DataError(SetpointError, ValueError):
    """The rows given cannot be used: wrong values, lengths, labels, weights, columns."""

    __module__ = "setpoint"


class KindError(SetpointError, TypeError):
    """An argument is of the wrong kind: booleans for scores, a constraint as a truth value."""

    __module__ = "setpoint"


class FileError(SetpointError, ValueError):
    """A file cannot be read as what it should be, or cannot be written."""

    __module__ = "setpoint"
