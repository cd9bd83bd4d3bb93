"""From an exception to a sentence: the words of the command line, carets on the place."""

import io

import pytest
from rich.console import Console

from setpoint import DataError, GoalError, GoalSyntaxError, KindError
from setpoint.cli.display.terminal import Screen
from setpoint.cli.errors import _caret, _wrapped, worded


def terminal(width, unicode=True):
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    return Screen(console, unicode)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DataError('say positive="a b".'), 'say --positive "a b".'),
        (DataError("Say positive=1.5 to"), "Say --positive 1.5 to"),
        (KindError('by="sex" belongs to kind="per-group"'), "--by sex belongs to --kind per-group"),
        (DataError("y_true holds 'x' at row 0:"), "the label holds 'x' in data row 1:"),
        (
            DataError('the goal speaks of the column "region": pass it as group=. '),
            'the goal speaks of the column "region": add --group region.',
        ),
        (GoalError('gap(recall, by="sex")'), 'gap(recall, by="sex")'),
        (GoalError("add one, or leave prove= out"), "add one, or leave --prove out"),
        (
            KindError(
                'by="sr_max" takes a softmax; declare them, Task.multiclass(classes, '
                'score="logit"), or go by "rl_conf_m"'
            ),
            '--by sr_max takes a softmax; say --score-kind logit, or go by "rl_conf_m"',
        ),
        (
            DataError("a row weighs 2, more than weight_bound=1"),
            "a row weighs 2, more than --weight-bound 1",
        ),
        (DataError("were used before (seen=); say"), "were used before (--seen); say"),
    ],
)
def test_words(error, words):
    assert worded(error) == words


def test_sentences_wrap_on_a_terminal_only():
    sentence = "word " * 30
    assert all(len(line) <= 40 for line in _wrapped(sentence, terminal(40)))
    pipe = Screen(Console(file=io.StringIO(), width=40), True)
    assert len(_wrapped(sentence, pipe)) == 1


def caret_of(text, word, screen):
    start = text.index(word)
    shown, carets = _caret(GoalSyntaxError("no", text, start, start + len(word)), screen)
    return shown, shown[len(carets) - carets.count("^") : len(carets)]


@pytest.mark.parametrize("place", range(6))
def test_a_long_goal_is_cut_around_the_place(place):
    parts = [f"metric_{i} >= 0.{i}{i}{i}{i}" for i in range(6)]
    parts[place] = "recal >= 0.5"
    text = "maximize f1 subject to " + ", ".join(parts)
    shown, marked = caret_of(text, "recal", terminal(60))
    assert marked == "recal"
    assert len(shown) <= 60


def test_signs_before_the_place_keep_the_caret_right():
    text = "maximize f1 subject to fpr ≤ 0.1,\nrecal ≥ 0.5"
    for unicode in (True, False):
        shown, marked = caret_of(text, "recal", terminal(80, unicode))
        assert marked == "recal"
        assert "\n" not in shown
        assert unicode or shown.isascii()


def test_wide_signs_count_double():
    shown, carets = _caret(GoalSyntaxError("no", '"漢" recal', 4, 9), terminal(80))
    assert carets == "  " + " " * 5 + "^" * 5
    assert shown == '  "漢" recal'
