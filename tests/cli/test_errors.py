"""From an exception to a sentence: the words of the command line, carets on the place."""

import io
import pickle

import pytest
from rich.console import Console

import setpoint as sp
from setpoint import DataError, FileError, GoalError, GoalSyntaxError, KindError
from setpoint._core.errors import Argument, Name, Phrase, RowNumber, Spelling
from setpoint.cli.display.terminal import Screen
from setpoint.cli.errors import _caret, _wrapped, worded


def terminal(width, unicode=True):
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    return Screen(console, unicode)


#: One of each wording: as Python says it, and as the command line does.
FIELDS = [
    (Argument("positive", "a b"), 'positive="a b"', '--positive "a b"'),
    (Argument("positive", 1.5), "positive=1.5", "--positive 1.5"),
    (Argument("weight_bound", 1), "weight_bound=1", "--weight-bound 1"),
    (Argument("random_state", -1), "random_state=-1", "--seed -1"),
    (Argument("prove"), "prove=", "--prove"),
    (Name("y_true"), "y_true", "the label"),
    (Name("sample_weight"), "sample_weight", "the weight"),
    (Name("together"), "together", "--together"),
    (Name("batch_size"), "batch_size", "--batch-size"),
    (Name("scores"), "scores", "scores"),
    (RowNumber(0), "at row 0", "in data row 1"),
    (Spelling("state the range", "say --range"), "state the range", "say --range"),
    (Phrase("say {by}", by=Argument("by", "sex")), 'say by="sex"', "say --by sex"),
    (Phrase("as it is: {"), "as it is: {", "as it is: {"),
]


@pytest.mark.parametrize(("field", "python", "command"), FIELDS)
def test_each_door_spells_a_field(field, python, command):
    for kind in (DataError, KindError, GoalError, FileError):
        error = kind("wrong: {what}; {n:.1f}", what=field, n=2)
        for one in (error, pickle.loads(pickle.dumps(error))):
            assert str(one) == f"wrong: {python}; 2.0"
            assert worded(one) == f"wrong: {command}; 2.0."


def test_another_sentence_follows_with_the_fields_of_both():
    first = DataError("{argument} fails {row}.", argument=Argument("by", "x"), row=RowNumber(1))
    error = first.followed_by("Say {way}", way=Argument("kind", "per-group"))
    assert str(error) == 'by="x" fails at row 1. Say kind="per-group"'
    assert worded(error) == "--by x fails in data row 2. Say --kind per-group."
    assert (error.argument, error.value, error.row, error.hint) == ("by", "x", 1, None)


Y, S = [0, 1, 0, 1], [0.1, 0.9, 0.4, 0.7]
GOAL = "maximize recall subject to precision >= 0.5"
RAW = sp.Task.multiclass(["a", "b"], score="raw")
SAID = [
    ({"s": [float("nan"), 0.9, 0.4, 0.7]}, "scores hold nan in data row 1; drop"),
    ({"y": [0, 1, 2, 1]}, "the label holds 2 in data row 3; a binary task"),
    ({"y": list("nyny")}, "say which label is positive, for example --positive y."),
    ({"positive": "1"}, "--positive 1 is text, and the label holds 0; they must be of one kind."),
    ({"by": "sex"}, "--by sex belongs to --kind per-group or --kind abstain."),
    ({"kind": "per-grup"}, "--kind per-grup: did you mean per-group?"),
    ({"kind": "per-group"}, "--kind per-group needs to know the group of each row: say --group."),
    (
        {"weight_bound": 1.0, "prove": 0.9, "reference": (Y, S)},
        "--weight-bound belongs to --weight;",
    ),
    ({"sample_weight": [1, 1, -1, 1]}, "the weight is -1 in data row 3;"),
    ({"goal": "maximize recall", "prove": 0.9, "reference": (Y, S)}, "or leave --prove out."),
    (
        {
            "y": list("abab"),
            "s": [[1, 0]] * 4,
            "task": RAW,
            "goal": "maximize coverage",
            "by": "sr_max",
            "kind": "abstain",
        },
        "--by sr_max takes a softmax, and these scores are declared raw; say --score-kind logit",
    ),
]


@pytest.mark.parametrize(("call", "words"), SAID)
def test_the_library_speaks_of_options_on_the_command_line(call, words):
    given = {"y": Y, "s": S, "goal": GOAL} | call
    y, s, goal = (given.pop(name) for name in ("y", "s", "goal"))
    with pytest.raises(sp.SetpointError) as error:
        sp.tune(goal, y, s, **given)
    assert words in worded(error.value)
    assert words not in str(error.value)


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
