"""Every error Setpoint raises on purpose, one class per kind of mistake.

Each is a :class:`SetpointError` and also the built-in exception a Python user would catch:
``ValueError`` where a value is wrong, ``TypeError`` where the kind of thing is wrong. The message
is a sentence that names the value and the way out. They are shown under the name they are
imported by, ``setpoint.DataError``.

A sentence may hold fields, ``{name}``, filled from keywords. What is spelled differently by each
door is a field of its own type: an :class:`Argument` is ``positive="yes"`` in Python and
``--positive yes`` on the command line, a :class:`RowNumber` counts from 0 in Python and from 1 in a
file. :meth:`SetpointError.render` spells them; code never searches the sentence.

>>> error = DataError("{argument} must be a share", argument=Argument("margin", 2))
>>> str(error), error.value
('margin=2 must be a share', 2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

_UNSET: Any = ...  # pickles as the one object it is


class ErrorCode(StrEnum):
    """What an error is about, where code wants to know."""

    ROWS_USED = "rows-used"  # a proof was asked for on rows that were used before


class Wording:
    """A part of a sentence that each door spells for itself; ``str`` gives Python's spelling."""


@dataclass(frozen=True)
class Argument(Wording):
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
        quoted = f'"{self.value}"' if isinstance(self.value, str) else str(self.value)
        return f"{self.name}={quoted}"


@dataclass(frozen=True)
class Name(Wording):
    """An argument spoken of by its name alone: ``y_true`` in Python, "the label" elsewhere."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class RowNumber(Wording):
    """The place of a row, counted from 0.

    >>> str(RowNumber(3))
    'at row 3'
    """

    index: int

    def __str__(self) -> str:
        return f"at row {self.index}"


@dataclass(frozen=True)
class Spelling(Wording):
    """A part of a sentence with both its wordings: in Python, and on the command line."""

    python: str
    command: str | Wording

    def __str__(self) -> str:
        return self.python


class Phrase(Wording):
    """A part of a sentence with fields of its own.

    >>> str(Phrase("say {way}", way=Argument("positive", 1)))
    'say positive=1'
    """

    def __init__(self, template: str, /, **fields: Any) -> None:
        self.template = template
        self.fields = fields

    def render(self, spell: Callable[[Wording], str] = str) -> str:
        """The words, their fields spelled by a door."""
        if not self.fields:
            return self.template
        return self.template.format(**{k: _spelled(v, spell) for k, v in self.fields.items()})

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> Any:
        """Pickle by template and fields."""
        return _restored, (type(self), self.template, self.fields)


def _spelled(value: Any, spell: Callable[[Wording], str]) -> Any:
    """A field as a door spells it; a plain value stays, so that a format such as ``:g`` works."""
    if isinstance(value, Phrase):
        return value.render(spell)
    return spell(value) if isinstance(value, Wording) else value


class SetpointError(Exception):
    """Base class of all errors raised on purpose by Setpoint.

    Parameters
    ----------
    sentence : str
        What is wrong and the way out. With ``fields`` it is a template: ``{name}`` stands for a
        field, and a brace that is meant is doubled.
    **fields
        What the template names, and what code may want to know. ``argument`` (an
        :class:`Argument` or :class:`Name`), ``row`` (a :class:`RowNumber`), ``hint`` (the way out)
        and ``code`` (an :class:`ErrorCode`) can be asked for as attributes.

    Attributes
    ----------
    argument, value, row, hint, code
        The fields of that name, or None; ``value`` is the argument's.
    """

    __module__ = "setpoint"

    def __init__(self, sentence: str = "", /, **fields: Any) -> None:
        self.template = sentence
        self.fields = fields
        super().__init__(self.render())

    def render(self, spell: Callable[[Wording], str] = str) -> str:
        """The sentence, its fields spelled by a door."""
        return Phrase(self.template, **self.fields).render(spell)

    def with_fields(self, **fields: Any) -> Self:
        """The same error with some fields replaced."""
        return type(self)(self.template, **{**self.fields, **fields})

    def followed_by(self, sentence: str, /, **fields: Any) -> Self:
        """The same error with another sentence after its own."""
        first = Phrase(f"{self.template.rstrip('.')}.", **self.fields)
        asked = {k: v for k, v in self.fields.items() if k in ("argument", "row", "hint", "code")}
        more = Phrase(sentence, **fields)
        return type(self)("{first} {more}", **{**asked, "first": first, "more": more})

    @property
    def argument(self) -> str | None:
        """Name of the argument at fault."""
        argument = self.fields.get("argument")
        return None if argument is None else argument.name

    @property
    def value(self) -> Any:
        """Value of the argument at fault."""
        argument = self.fields.get("argument")
        return argument.value if isinstance(argument, Argument) and argument.has_value else None

    @property
    def row(self) -> int | None:
        """The row at fault, counted from 0."""
        row = self.fields.get("row")
        return None if row is None else row.index

    @property
    def hint(self) -> str | None:
        """The way out."""
        hint = self.fields.get("hint")
        return None if hint is None else str(hint)

    @property
    def code(self) -> ErrorCode | None:
        """What the error is about."""
        return self.fields.get("code")

    def __reduce__(self) -> Any:
        """Pickle by template and fields, not by the rendered message."""
        return _restored, (type(self), self.template, self.fields)


def _restored(kind: Callable[..., Any], template: str, fields: Mapping[str, Any]) -> Any:
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
