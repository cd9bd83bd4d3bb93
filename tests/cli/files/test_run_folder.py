"""The run folder: never over somebody else's files, resumed where it was stopped, whole or not."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.cli.tables import GOAL, QUICK, people

import setpoint as sp
from setpoint._core.files import gathered
from setpoint._core.notes import NoteCode
from setpoint.cli.files.run_folder import claim
from setpoint.cli.files.saved_run import SavedRun
from setpoint.fit import cross_fitting as portfolio

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    people(300).to_csv(path, index=False)
    return path


@pytest.fixture
def fit(run, table, tmp_path):
    def call(*options, out=tmp_path / "run", goal=GOAL, model=QUICK):
        given = ("--target", "fraud", "--goal", goal, "--out", out, *model)
        return run("fit", table, *given, *options)

    return call


def test_a_finished_run_is_replaced_only_by_force(fit, tmp_path):
    assert fit("--no-compare").exit_code in (0, 3)
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    result = fit("--no-compare")
    assert result.exit_code == 2
    assert "holds a finished run; say --force" in result.stderr
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before
    assert fit("--no-compare", "--force", "--seed", "1").exit_code in (0, 3)
    assert SavedRun.open(tmp_path / "run").about["settings"]["random_state"] == 1


def test_a_folder_with_other_files_is_left_alone(fit, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "README.md").write_text("mine")
    for options in ((), ("--force",)):
        result = fit(*options)
        assert result.exit_code == 2
        assert "holds other files" in result.stderr
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["README.md"]


class Stop:
    """Ctrl-C at the n-th fit of a member; counts the fits."""

    def __init__(self, monkeypatch, at):
        self.at, self.done = at, 0
        self.plain = portfolio._run
        monkeypatch.setattr("setpoint.fit.members.TreesMember.fit", self._counting("TreesMember"))
        monkeypatch.setattr("setpoint.fit.members.LinearMember.fit", self._counting("LinearMember"))

    def _counting(self, name):
        from setpoint.fit import members

        plain = getattr(members, name).fit

        def fit(member, *args):
            self.done += 1
            if self.done == self.at:
                raise KeyboardInterrupt
            return plain(member, *args)

        return fit


def test_stopped_after_a_member_it_keeps_the_best_so_far_and_goes_on(fit, tmp_path, monkeypatch):
    quick = ("--effort", "quick")
    stop = Stop(monkeypatch, at=5)  # linear on three folds, one of the trees, then Ctrl-C
    result = fit(model=quick)
    assert result.exit_code == 130
    assert "run the same command to go on" in result.stderr
    assert "holds the best so far" in result.stderr
    out = tmp_path / "run"
    assert SavedRun.open(out).about["finished"] is False
    assert sp.load(out).stack_.names == ("linear",)
    assert (out / "work").is_dir()

    stop.at, stop.done = 0, 0
    again = fit("--json", model=quick)
    assert again.exit_code in (0, 3), again.stderr
    data = json.loads(again.stdout)
    assert data["resumed"] is True
    assert data["finished"] is True
    assert not any("looked at" in note for note in data["notes"])  # certify rows were spared
    fits = 2 if data["status"] == "PROVEN" else 8  # else all rows once more: 6 fits
    assert stop.done == fits
    assert not (out / "work").exists()


def test_stopped_before_anything_is_done_it_leaves_nothing(fit, tmp_path, monkeypatch):
    Stop(monkeypatch, at=1)
    result = fit(model=("--effort", "quick"), out=tmp_path / "deep" / "run")
    assert result.exit_code == 130
    assert "nothing is written" in result.stderr
    assert not (tmp_path / "deep").exists()


def test_an_unfinished_fit_of_something_else_is_not_taken_up(fit, tmp_path, monkeypatch):
    stop = Stop(monkeypatch, at=2)
    quick = ("--effort", "quick")
    assert fit(model=quick).exit_code == 130
    assert (tmp_path / "run" / "work").is_dir()
    stop.at = 0
    other = fit(goal="maximize f1", model=quick)
    assert other.exit_code == 2
    assert "a fit of something else that was not finished" in other.stderr
    assert fit("--force", goal="maximize f1", model=quick).exit_code == 0


def test_parts_of_another_fit_survive_a_mistake_in_the_one_that_would_replace_them(
    fit, tmp_path, monkeypatch
):
    quick = ("--effort", "quick", "--no-compare")
    stop = Stop(monkeypatch, at=3)
    assert fit(model=quick).exit_code == 130
    work = tmp_path / "run" / "work"
    parts = sorted(p.name for p in work.iterdir())
    assert len(parts) > 1
    mistaken = fit("--force", "--model", "lnear", goal="maximize f1", model=quick)
    assert mistaken.exit_code == 2, mistaken.stderr
    assert sorted(p.name for p in work.iterdir()) == parts
    stop.at = 0
    assert fit(model=quick).exit_code in (0, 3)


def test_a_finished_run_survives_a_refit_that_is_stopped(fit, tmp_path, monkeypatch):
    quick = ("--effort", "quick", "--no-compare")
    assert fit(model=quick).exit_code in (0, 3)
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    Stop(monkeypatch, at=5)
    assert fit("--force", "--seed", "3", model=quick).exit_code == 130
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before
    assert SavedRun.open(tmp_path / "run").about["finished"] is True


def test_a_replaced_run_is_remembered_by_a_fit_that_was_stopped(fit, tmp_path, monkeypatch):
    """The certify rows were looked at by the run that is replaced, however often one is stopped."""
    quick = ("--effort", "quick", "--no-compare", "--force", "--json")
    first = fit("--seed", "3", model=quick)
    assert first.exit_code in (0, 3), first.stderr
    seen = NoteCode.CERTIFY_ROWS_SEEN
    run = tmp_path / "run"
    assert seen not in {note.code for note in SavedRun.open(run).coded_notes}
    stop = Stop(monkeypatch, at=5)
    assert fit("--seed", "3", model=quick).exit_code == 130
    stop.at = 0
    again = fit("--seed", "3", model=quick)
    assert again.exit_code in (0, 3), again.stderr
    assert json.loads(again.stdout)["resumed"] is True
    assert seen in {note.code for note in SavedRun.open(run).coded_notes}


def test_a_mistake_found_late_leaves_nothing(fit, tmp_path, monkeypatch):
    def fail(*_):
        raise sp.DataError("found late")

    monkeypatch.setattr("setpoint.fit.pipeline.choose_stack", fail)
    result = fit(out=tmp_path / "deep" / "run")
    assert (result.exit_code, result.stderr) == (2, "setpoint: found late.\n")
    assert not (tmp_path / "deep").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_of_a_process(table, tmp_path):
    out = tmp_path / "run"
    args = ["fit", table, "--target", "fraud", "--goal", GOAL, "--out", out, "--model", "auto"]
    with subprocess.Popen(
        [sys.executable, "-m", "setpoint.cli", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as child:
        until = time.monotonic() + 90
        while time.monotonic() < until and not list(out.glob("work/trees-0.json")):
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    assert "run the same command to go on" in errors
    assert "Traceback" not in errors


def test_a_stray_record_makes_no_finished_run_of_another(tmp_path):
    """The seal says what a run is: a classifier.json that it does not name does not count."""
    out = tmp_path / "run"
    with gathered(out) as new:
        (new / "regressor.json").write_text("{}")
    (out / "classifier.json").write_text('{"finished": true}')
    folder = claim(out, {"goal": GOAL}, force=True, source=tmp_path / "t.csv")
    assert (folder.finished, folder.looked) == (False, False)
