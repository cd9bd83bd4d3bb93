"""One bar for all work that tells its progress: fits, attacks, restorations."""

import io

import pytest
from rich.console import Console

from setpoint._core.progress import Progress
from setpoint.cli.display import progress_bar
from setpoint.cli.display.progress_bar import FitBar, ProgressBar
from setpoint.cli.display.terminal import Screen
from setpoint.fit.events import FitProgress
from setpoint.robustness import AttackProgress
from setpoint.training.events import EpochDone

EVENTS = [
    (Progress(what="fold 2", done=1, total=4), "fold 2"),
    (
        AttackProgress(what="max-loss", done=1, total=4, eps=0.5, right=3, seen=4),
        "max-loss, eps 0.5, 3 of 4 left",
    ),
    (AttackProgress(what="min-radius", done=1, total=4, eps=None, right=0, seen=0), "min-radius"),
    (
        FitProgress("fit", what="trees", done=1, total=4, fold=2, folds=3, best="f1 0.5"),
        "trees, fold 2/3, best f1 0.5",
    ),
    (FitProgress("fit", what="trees", done=1, total=4, fold=1, folds=1), "trees"),
]


@pytest.fixture
def stream(monkeypatch):
    """What a terminal of 100 columns is sent; ``terminal`` says whether it is one."""

    def opened(terminal):
        file = io.StringIO()
        console = Console(file=file, width=100, force_terminal=terminal)
        monkeypatch.setattr(Screen, "open", lambda stderr: Screen(console, True))
        return file

    return opened


@pytest.mark.parametrize(("event", "words"), EVENTS)
def test_every_progress_is_shown_in_its_words(stream, event, words):
    file = stream(terminal=True)
    with ProgressBar(quiet=False) as bar:
        bar(event)
    assert event.words() == words
    assert words in file.getvalue()
    assert "25%" in file.getvalue()


@pytest.mark.parametrize(("terminal", "quiet"), [(True, True), (False, False)])
def test_without_a_terminal_or_a_wish_for_it_nothing_is_shown(stream, terminal, quiet):
    file = stream(terminal)
    with ProgressBar(quiet) as bar:
        bar(EVENTS[0][0])
        assert not bar.shown
    assert file.getvalue() == ""


def test_a_fit_shows_the_epochs_of_its_networks(stream, monkeypatch):
    stream(terminal=True)
    shown = []
    monkeypatch.setattr(progress_bar.ProgressBar, "show", lambda _, *event: shown.append(event))
    epoch = EpochDone("fit", epoch=6, loss=0.0, judged={}, best=True, seconds=1.0)
    with FitBar(planned=lambda _: None, quiet=False) as bar:
        bar(epoch)  # of no member yet
        bar(EVENTS[4][0])
        bar(epoch)
    assert shown == [("trees", 1, 4), ("trees, epoch 7",)]
