"""From an exception to a sentence on stderr and an exit code.

The library names its arguments (``positive=``, ``y_true``) and counts rows from 0; on the command
line there are options and data rows from 1, so the sentence is worded again here.
"""

from __future__ import annotations

import re
import sys
import textwrap
import traceback
from collections.abc import Callable

from rich.cells import cell_len

from setpoint._core.errors import DataError, GoalSyntaxError, KindError, SetpointError
from setpoint.cli.display.terminal import Code, Screen, print_json

_VALUE = r"""("[^"]*"|'[^']*'|-?\d+(?:\.\d+)?|\w+)"""
_PREVALENCE = "--prevalence is a share of positives, or two of them (LOW,HIGH)"
_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (rf"\bpositive={_VALUE}", lambda m: f"--positive {_typed(m[1])}"),
    (rf"\bkind={_VALUE}", lambda m: f"--kind {_typed(m[1])}"),
    (
        rf"\b(model|method|effort|confidence|folds|certify_size|margin|proof_price)={_VALUE}",
        lambda m: f"--{m[1].replace('_', '-')} {_typed(m[2])}",
    ),
    (rf"\brandom_state={_VALUE}(: a whole number, 0 or more)?.*", r"--seed \1\2"),
    (r"^together and time cannot", "--together and --time cannot"),
    (r"^(split|together|time) (is|has) ", r"--\1 \2 "),
    (rf"\bby={_VALUE} belongs", lambda m: f"--by {_typed(m[1])} belongs"),
    (rf"\bby={_VALUE}(:| takes)", lambda m: f"--by {_typed(m[1])}{m[2]}"),
    (r"\bleave by= out", "leave --by out"),
    (
        r"divides each logit by the norm of its row of the last layer: pass head=,.*",
        "needs the last layer of the model; on the command line go by rl_conf_m",
    ),
    (r'declare them, Task\.multiclass\(classes, score="logit"\)', "say --score-kind logit"),
    (r'\bscore="logit" or "raw"', "--score-kind logit or raw"),
    (r"\btune\(goal, y, scores, prove=…, reference=…\)", "tune --prove 0.95 --reference FILE"),
    (r"\(seen=\)", "(--seen)"),
    (r"\bweight_bound= belongs to sample_weight=", "--weight-bound belongs to --weight"),
    (r"\bweight_bound=", "--weight-bound "),
    (r"\bweight_bound\b", "--weight-bound"),
    (r"\bmade (with|without) sample_weight", r"made \1 --weight"),
    (r"\bprevalence is a share of positives, or a pair \(low, high\) of them", _PREVALENCE),
    (r"\bsay by=,", "say --by,"),
    (
        r'the column "([^"]*)": pass it as group=',
        lambda m: f'the column "{m[1]}": add --group {_typed(m[1])}',
    ),
    (
        r'one threshold per "([^"]*)": pass group=',
        lambda m: f'one threshold per "{m[1]}": add --group {_typed(m[1])}',
    ),
    ("[Aa]re the label and the score swapped", "are --label and --score swapped"),
    (r"\bpass (group|query)=", lambda m: f"say --{m[1]}"),
    (r"\btask=Task\.multiclass\(.*?\]\)", "--classes a,b,…"),
    (r"\bsample_weight\b", "the weight"),
    (r"\by_true\b", "the label"),
    (r"\bat row (\d+)", lambda m: f"in data row {int(m[1]) + 1}"),
)

#: What may be said again in an error about a goal, which quotes it.
_WORDS_OF_GOALS = (
    ("leave prove= out", "leave --prove out"),
    ("prevalence= and sample_weight= do not", "--prevalence and --weight do not"),
)


def report(error: BaseException, debug: bool) -> Code:
    """Print what went wrong on stderr, with the traceback if asked for; return the exit code."""
    screen = Screen.open(stderr=True)
    if debug:
        traceback.print_exception(error)
    lines, code = _lines(error, screen), Code.UNEXPECTED
    if isinstance(error, SetpointError):
        code = Code.MISTAKE
    elif isinstance(error, KeyboardInterrupt):
        code = Code.STOPPED
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
        say = getattr(error, "format_message", lambda: f"unexpected error: {error}")
        sentence = str(say())
    print_json({"error": sentence, "kind": type(error).__name__})


def _lines(error: BaseException, screen: Screen) -> list[str]:
    if isinstance(error, GoalSyntaxError):
        return [*_wrapped(error.sentence, screen), *_caret(error, screen)]
    if isinstance(error, SetpointError):
        return _wrapped(worded(error), screen)
    if isinstance(error, KeyboardInterrupt):
        said = str(error) or "stopped; a file is written whole or not at all."
        return _wrapped(said, screen)
    reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": .")
    return _wrapped(f"unexpected error: {reason}; run again with --debug", screen)


def worded(error: SetpointError) -> str:
    """The message of an error in the words of the command line.

    >>> worded(DataError('column "y" holds "no", "yes": say for example positive="yes".'))
    'column "y" holds "no", "yes": say for example --positive yes.'
    """
    message = str(error)
    if isinstance(error, DataError | KindError):  # a GoalError quotes the goal, which is left alone
        for pattern, words in _WORDS:
            message = re.sub(pattern, words, message)
    else:
        for said, words in _WORDS_OF_GOALS:
            message = message.replace(said, words)
    return message.rstrip()


def _typed(value: str) -> str:
    """A value as it is typed in a shell: without quotes where it needs none."""
    bare = value.strip("\"'")
    return bare if re.fullmatch(r"[\w.+-]+", bare) else f'"{bare}"'


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
