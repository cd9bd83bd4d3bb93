"""Every error Setpoint raises on purpose, one class per kind of mistake.

Each is a :class:`SetpointError` and also the built-in exception a Python user would catch:
``ValueError`` where a value is wrong, ``TypeError`` where the kind of thing is wrong. The message
is a sentence that names the value and the way out. They are shown under the name they are
imported by, ``setpoint.DataError``.

A sentence may hold fields, ``{name}``, filled from keywords. What is spelled differently by each
door is a field of its own type: an :class:`Argument` is ``positive="yes"`` in Python and
``--positive yes`` on the command line, a :class:`RowNumber` counts from 0 in Python and from 1 in a
file. :meth:`SetpointError.render` spells them; nobody ever searches the sentence.

>>> error = DataError("{argument} must be a share", argument=Argument("margin", 2))
>>> str(error), error.value
('margin=2 must be a share', 2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_UNSET: Any = object()


@dataclass(frozen=True)
class Argument:
    """An argument as a sentence names it, with its value or without.

    >>> str(Argument("positive", "yes")), str(Argument("group"))
    ('positive="yes"', 'group=')
    """

    name: str
    value: Any = _UNSET

    @property
    def has_value(self) -> bool:
        """Whether the sentence shows a value."""
        return self.value is not _UNSET

    def __str__(self) -> str:
        if not self.has_value:
            return f"{self.name}="
        quoted = f'"{self.value}"' if isinstance(self.value, str) else repr(self.value)
        return f"{self.name}={quoted}"


@dataclass(frozen=True)
class Name:
    """An argument spoken of by its name alone: ``y_true`` in Python, "the label" elsewhere."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class RowNumber:
    """The place of a row, counted from 0.

    >>> str(RowNumber(3))
    'row 3'
    """

    index: int

    def __str__(self) -> str:
        return f"row {self.index}"


@dataclass(frozen=True)
class Spelling:
    """A part of a sentence that each door words for itself: in Python, and on the command line."""

    python: str
    command: str

    def __str__(self) -> str:
        return self.python


class SetpointError(Exception):
    """Base class of all errors raised on purpose by Setpoint.

    Parameters
    ----------
    sentence : str
        What is wrong and the way out. With ``fields`` it is a template: ``{name}`` stands for a
        field, and a brace that is meant is doubled.
    **fields
        What the template names. ``argument`` (an :class:`Argument` or :class:`Name`), ``row`` (a
        :class:`RowNumber`) and ``hint`` (the way out, added at the end where the template does not
        name it) are known to every door.

    Attributes
    ----------
    argument, value, row, hint
        The fields of that name, or None; ``value`` is the argument's.
    """

    __module__ = "setpoint"

    def __init__(self, sentence: str = "", **fields: Any) -> None:
        self.template = sentence
        self.fields = fields
        super().__init__(self.render())

    def render(self, spell: Callable[[Any], str] = str) -> str:
        """The sentence, its fields spelled by a door."""
        if not self.fields:
            return self.template
        sentence = self.template.format(**{k: spell(v) for k, v in self.fields.items()})
        hint = self.fields.get("hint")
        if hint is None or "{hint}" in self.template:
            return sentence
        return f"{sentence.rstrip('.')}. {spell(hint)}"

    @property
    def argument(self) -> str | None:
        """Name of the argument at fault."""
        found = self.fields.get("argument")
        return None if found is None else found.name

    @property
    def value(self) -> Any:
        """Value of the argument at fault."""
        found = self.fields.get("argument")
        return found.value if isinstance(found, Argument) and found.has_value else None

    @property
    def row(self) -> int | None:
        """The row at fault, counted from 0."""
        found = self.fields.get("row")
        return None if found is None else found.index

    @property
    def hint(self) -> str | None:
        """The way out."""
        found = self.fields.get("hint")
        return None if found is None else str(found)

    def __reduce__(self) -> Any:
        """Pickle by template and fields, not by the rendered message."""
        return _restored, (type(self), self.template, self.fields)


def _restored(kind: type[SetpointError], template: str, fields: Mapping[str, Any]) -> SetpointError:
    return kind(template, **fields)


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
