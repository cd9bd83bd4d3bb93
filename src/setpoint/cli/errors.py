"""From an exception to a sentence on stderr and an exit code.

The library names its arguments (``positive=``, ``y_true``) and counts rows from 0; on the command
line there are options and data rows from 1. Errors hold these parts as fields, spelled here.
"""

from __future__ import annotations

import re
import sys
import textwrap
import traceback

from rich.cells import cell_len

from setpoint._core.errors import (
    Argument,
    GoalSyntaxError,
    Name,
    Phrase,
    RowNumber,
    SetpointError,
    Spelling,
    Wording,
)
from setpoint.cli.display.terminal import Screen, print_json
from setpoint.cli.exit_codes import ExitCode

#: What the library calls by an argument that is no option, and options with a name of their own.
_NAMES = {"y_true": "the label", "sample_weight": "the weight"}
_OPTIONS = {"random_state": "--seed"}
#: Arguments that a sentence speaks of by their name alone, and that are options here.
_OPTION_NAMES = frozenset(
    {
        *("batch_size", "confidence", "distance", "eps", "floor", "force", "iterations", "loss"),
        *("noise", "prevalence", "range", "restarts", "split", "time", "together"),
        "weight_bound",
    }
)


def spelled(part: Wording) -> str:
    """A part of a sentence in the words of the command line.

    >>> spelled(Argument("certify_size", 2)), spelled(RowNumber(0))
    ('--certify-size 2', 'in data row 1')
    """
    if isinstance(part, Argument):
        option = _OPTIONS.get(part.name) or _option(part.name)
        return f"{option} {_typed(str(part.value))}" if part.has_value else option
    if isinstance(part, Name):
        word = _NAMES.get(part.name, part.name)
        return _option(word) if word in _OPTION_NAMES else word
    if isinstance(part, Phrase):
        return part.render(spelled)
    if isinstance(part, RowNumber):
        return f"in data row {part.index + 1}"
    if isinstance(part, Spelling):
        return part.command if isinstance(part.command, str) else spelled(part.command)
    return str(part)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def report(error: BaseException, debug: bool) -> ExitCode:
    """Print what went wrong on stderr, with the traceback if asked for; return the exit code."""
    screen = Screen.open(stderr=True)
    if debug:
        traceback.print_exception(error)
    lines, code = _lines(error, screen), ExitCode.UNEXPECTED
    if isinstance(error, SetpointError):
        code = ExitCode.MISTAKE
    elif isinstance(error, KeyboardInterrupt):
        code = ExitCode.STOPPED
    sys.stderr.write("".join(f"{screen.say(line)}\n" for line in lines))
    sys.stderr.flush()
    return code


def report_json(error: Exception) -> None:
    """Print what went wrong as one JSON object on stdout, for the program that asked for one."""
    if isinstance(error, GoalSyntaxError):
        sentence = error.sentence
    elif isinstance(error, SetpointError):
        sentence = worded(error)
    else:  # a mistake in the usage has its sentence without the words around it
        message = getattr(error, "format_message", lambda: f"unexpected error: {error}")
        sentence = str(message())
    print_json({"error": sentence, "kind": type(error).__name__})


def _lines(error: BaseException, screen: Screen) -> list[str]:
    if isinstance(error, GoalSyntaxError):
        return [*_wrapped(error.sentence, screen), *_caret(error, screen)]
    if isinstance(error, SetpointError):
        return _wrapped(worded(error), screen)
    if isinstance(error, KeyboardInterrupt):
        stopped = str(error) or "stopped; a file is written whole or not at all."
        return _wrapped(stopped, screen)
    reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": .")
    return _wrapped(f"unexpected error: {reason}; run again with --debug", screen)


def worded(error: SetpointError) -> str:
    """The message of an error in the words of the command line.

    >>> from setpoint import DataError
    >>> worded(DataError("say for example {way}.", way=Argument("positive", "yes")))
    'say for example --positive yes.'
    """
    sentence = error.render(spelled).rstrip()
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _typed(value: str) -> str:
    """A value as it is typed in a shell: without quotes where it needs none."""
    return value if re.fullmatch(r"[\w.+-]+", value) else f'"{value}"'


def _wrapped(sentence: str, screen: Screen) -> list[str]:
    """Wrapped at words on a terminal; one line for a file or a program, which may search it."""
    whole = f"setpoint: {sentence}"
    if not screen.console.is_terminal:
        return [whole]
    return textwrap.wrap(whole, screen.width, break_long_words=False, break_on_hyphens=False)


def _caret(error: GoalSyntaxError, screen: Screen) -> list[str]:
    """The text and the carets under the place; a long text is cut around it on a terminal."""
    text, start, stop = re.sub(r"\s", " ", error.text), error.start, error.stop
    room = screen.width - 4
    if screen.console.is_terminal and len(text) > room:
        first = max(0, min(start - room // 3, len(text) - room))
        text, start, stop = text[first : first + room], start - first, stop - first
        text = f"…{text[1:]}" if first else text
    before, place, after = map(screen.say, (text[:start], text[start:stop], text[stop:]))
    return [
        f"  {before}{place}{after}",
        f"  {' ' * cell_len(before)}{'^' * max(1, cell_len(place))}",
    ]
