"""Run folders: whole or refused, never executed; fits that are stopped and taken up."""

import errno
import hashlib
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import setpoint as sp
from setpoint.cli.files.saved_run import SavedRun
from setpoint.fit import members, storage
from setpoint.fit.events import FitProgress, Planned

GOAL = "maximize recall subject to precision >= 0.8"
EASY = "maximize recall subject to precision >= 0.5"
HARD = "maximize recall subject to precision >= 0.97"  # not to be proven on so few rows
QUICK = {"effort": "quick", "compare": False}


def rows(n=400, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (1.5 * X[:, 0] - X[:, 1] + noise * rng.normal(size=n) > 0.8).astype(int)


def table(n=400):
    X, y = rows(n)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["town"] = np.random.default_rng(0).choice(["Ulm", "Rom", None], n)
    frame["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) % 90, "D")
    return frame, np.where(y == 1, "fraud", "fine")


def stored(clf, path):
    """Saved without its report, which takes longest to write."""
    storage.save(clf.run_, path, report=False)
    return path


def files(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def reseal(folder, *names):
    """Make a manifest true again, as somebody who means harm would."""
    seal = json.loads((folder / "manifest.json").read_text())
    for name in names:
        seal["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(seal))


@pytest.fixture(scope="module")
def clf():
    made = sp.GoalClassifier(EASY, effort="quick", positive="fraud", proof_price=1)
    assert made.fit(*table()).certificate_.verdict == "PROVEN"
    return made


@pytest.fixture(scope="module")
def whole(clf, tmp_path_factory):
    """A run with everything in it; tests put back what they change."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    clf.save(folder)
    return folder


@pytest.fixture
def run(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.fixture(scope="module")
def logistic():
    return sp.GoalClassifier(GOAL, LogisticRegression(), compare=False).fit(*rows())


# --- what is there is what was written -----------------------------------------------------------


def test_a_run_comes_back(clf, whole):
    X, _ = table()
    back = sp.load(whole)
    assert np.array_equal(back.predict_proba(X), clf.predict_proba(X))
    assert np.array_equal(back.predict(X), clf.predict(X))
    assert back.rule_ == clf.rule_
    assert back.certificate_ == clf.certificate_
    assert back.comparison_ == clf.comparison_
    assert back.plan_ == clf.plan_
    assert back.notes_ == clf.notes_
    assert back.get_params()["positive"] == "fraud"
    assert back.report_.to_json() == clf.report_.to_json()
    assert back.score(X, table()[1]) == clf.score(X, table()[1])
    held = {"classifier.json", "rule.json", "certificate.json", "comparison.json", "history.json"}
    held |= {"splits.csv", "report.html", "report.json", "README.md", "manifest.json"}
    assert {f for f in files(whole) if not f.startswith("models/")} == held
    assert {Path(f).suffix for f in files(whole / "models")} <= {".safetensors", ".txt", ".skops"}
    again = back.fit(*table())
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_one_byte_is_enough_to_be_refused(run):
    assert len(files(run)) > 12
    for name in files(run):
        path = run / name
        before = path.read_bytes()
        changed = bytearray(before)
        changed[len(changed) // 2] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(sp.FileError, match="." if name == "manifest.json" else name):
            sp.load(run)
        path.write_bytes(before[:-2])
        with pytest.raises(sp.FileError):
            sp.load(run)
        path.write_bytes(before)
    sp.load(run)


def test_a_file_that_is_missing_is_named(run):
    for name in files(run):
        (run / name).rename(run.parent / "aside")
        with pytest.raises(sp.FileError, match=f'"{name}"|no manifest.json'):
            sp.load(run)
        (run.parent / "aside").rename(run / name)
    (run / "my notes.txt").write_text("mine")
    (run / "models" / "old.txt").write_text("mine")
    sp.load(run)
    with pytest.raises(sp.FileError, match="no folder"):
        sp.load(run / "nowhere")
    (run.parent / "empty").mkdir()
    with pytest.raises(sp.FileError, match="no run of Setpoint"):
        sp.load(run.parent / "empty")


@pytest.mark.parametrize("name", ["certificate.json", "comparison.json", "report.json"])
def test_a_foreign_file_beside_a_run_is_not_of_it(run, name):
    """What the seal does not name is read by nobody, whole as it may be."""
    seal = json.loads((run / "manifest.json").read_text())
    del seal["files"][name]
    (run / "manifest.json").write_text(json.dumps(seal))
    assert (run / name).exists()
    clf = sp.load(run)
    if name == "report.json":
        with pytest.raises(sp.FileError, match="saved without its report"):
            SavedRun.open(run)
        return
    saved = SavedRun.open(run)
    attribute = name.removesuffix(".json")
    assert getattr(saved, attribute) is None
    assert getattr(clf.run_, attribute) is None


def test_a_foreign_regressor_beside_a_classifier_is_not_read(run):
    (run / "regressor.json").write_text("{}")
    assert isinstance(sp.load(run), sp.GoalClassifier)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"files": {}}', "{", "\x00"])
def test_a_manifest_that_is_none(run, text):
    (run / "manifest.json").write_text(text)
    with pytest.raises(sp.FileError, match=r"manifest\.json"):
        sp.load(run)


@pytest.mark.parametrize("name", ["classifier.json", "rule.json", "certificate.json"])
@pytest.mark.parametrize("text", ["null", "[]", "{}", "[1]", '"x"'])
def test_files_that_hold_something_else(run, name, text):
    (run / name).write_text(text)
    reseal(run, name)
    with pytest.raises(sp.FileError):
        sp.load(run)


def test_a_certificate_that_was_put_there_is_not_believed(clf, tmp_path):
    plain = sp.GoalClassifier("maximize f1", LogisticRegression(), compare=False).fit(*rows())
    run = stored(plain, tmp_path / "run")
    assert sp.load(run).certificate_ is None
    clf.certificate_.save(run / "certificate.json")
    try:
        assert sp.load(run).certificate_ is None
    except sp.FileError:
        pass  # as good


def test_another_working_directory_and_process(clf, whole, tmp_path):
    X, _ = table()
    X.to_pickle(tmp_path / "rows.pkl")
    code = (
        "import sys, pandas as pd, setpoint as sp\n"
        "X = pd.read_pickle(sys.argv[2])\n"
        "print(*sp.load(sys.argv[1]).predict(X))\n"
    )
    path = os.path.relpath(whole, tmp_path)
    told = subprocess.run(
        [sys.executable, "-c", code, path, "rows.pkl"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == clf.predict(X).tolist()


# --- nothing is executed -------------------------------------------------------------------------


class Bomb:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_is_never_opened(run, tmp_path):
    """In the place of every file of the run, with a manifest that agrees."""
    mark = tmp_path / "it ran"
    payload = pickle.dumps(Bomb(mark))
    pickle.loads(payload)
    assert mark.exists()  # the bomb works
    mark.unlink()
    for name in [*files(run), "estimator.pkl", "models/model.pkl", "model.joblib"]:
        if name == "manifest.json":
            continue
        path = run / name
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(payload)
        reseal(run, name)
        if name.endswith((".html", ".md", ".csv", ".pkl", ".joblib")):
            sp.load(run)  # of no use to a loaded classifier
        else:
            with pytest.raises(sp.FileError):
                sp.load(run)
        assert not mark.exists()
        path.write_bytes(before)
        reseal(run, name)


def test_a_pickle_in_the_place_of_a_skops_file(logistic, tmp_path):
    mark = tmp_path / "it ran"
    run = stored(logistic, tmp_path / "run")
    name = next(f for f in files(run) if f.endswith(".skops"))
    (run / name).write_bytes(pickle.dumps(Bomb(mark)))
    reseal(run, name)
    try:
        with pytest.raises(sp.FileError):
            sp.load(run)
    finally:
        assert not mark.exists()


def crafted(run, node):
    """Put an object of one's own into a skops file."""
    name = next(f for f in files(run) if f.endswith(".skops"))
    old = zipfile.ZipFile(io.BytesIO((run / name).read_bytes()))
    schema = json.loads(old.read("schema.json"))
    schema["content"]["content"]["penalty"] = node
    with zipfile.ZipFile(run / name, "w") as new:
        for part in old.namelist():
            new.writestr(part, json.dumps(schema) if part == "schema.json" else old.read(part))
    reseal(run, name)


def called(module, name, *arguments):
    """What skops takes for a call of a class."""
    plain = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    content = [{**plain, "content": json.dumps(x), "is_json": True} for x in arguments]
    args = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "__id__": 2}
    return {
        "__class__": name, "__module__": module, "__loader__": "ConstructorFromReduceNode",
        "__id__": 1, "content": {**args, "content": content},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("gzip", "GzipFile"),
        ("pathlib", "Path"),
        ("setpoint._core.files", "gathered"),
        ("sklearn.utils._testing", "check_output"),
        ("sklearn.nowhere", "GzipFile"),
        ("sklearn.datasets._covtype", "GzipFile"),
        ("sklearn.datasets._openml", "TemporaryDirectory"),
    ],
)  # fmt: skip
def test_a_skops_file_calls_nothing(logistic, tmp_path, module, name):
    run, victim = stored(logistic, tmp_path / "run"), tmp_path / "precious.txt"
    victim.write_text("precious")
    arguments = (str(victim), "wb") if "Gzip" in name else (".precious", "precious", str(tmp_path))
    crafted(run, called(module, name, *arguments))
    before = set(tmp_path.iterdir())
    with pytest.raises(sp.FileError, match="vouches for"):
        sp.load(run)
    assert victim.read_text() == "precious"
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("file", ["../classifier.json", "/etc/passwd", "..", ".", "a/b.txt", ""])
def test_models_lie_in_their_folder(run, file):
    about = json.loads((run / "classifier.json").read_text())
    next(iter(about["models"].values()))[0]["file"] = file
    (run / "classifier.json").write_text(json.dumps(about))
    reseal(run, "classifier.json")
    with pytest.raises(sp.FileError):
        sp.load(run)


def test_models_of_an_unknown_kind(run):
    about = json.loads((run / "classifier.json").read_text())
    next(iter(about["models"].values()))[0]["kind"] = "pickle"
    (run / "classifier.json").write_text(json.dumps(about))
    reseal(run, "classifier.json")
    with pytest.raises(sp.FileError, match='kind "pickle" is not known'):
        sp.load(run)


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "models/../../outside"])
def test_a_manifest_names_nothing_outside_its_folder(run, name, clf):
    outside = run.parent / "outside"
    outside.write_text("mine")
    seal = json.loads((run / "manifest.json").read_text())
    seal["files"][name] = hashlib.sha256(b"mine").hexdigest()
    (run / "manifest.json").write_text(json.dumps(seal))
    with pytest.raises(sp.FileError, match="outside its folder"):
        sp.load(run)
    stored(clf, run)  # what an old manifest lists is removed when a run is replaced
    assert outside.read_text() == "mine"


# --- writing -------------------------------------------------------------------------------------


def test_a_new_run_replaces_the_old_one_wholly(clf, logistic, run):
    (run / "notes of mine.txt").write_text("mine")
    stored(logistic, run)
    kept = {"notes of mine.txt", "manifest.json"}
    listed = set(json.loads((run / "manifest.json").read_text())["files"])
    assert set(files(run)) == listed | kept
    assert [f for f in files(run) if f.startswith("models/")] == [
        "models/logisticregression-0.skops"
    ]
    X, _ = rows()
    assert np.array_equal(sp.load(run).predict(X), logistic.predict(X))


def full_after(monkeypatch, what, n):
    """A disk that is full at the n-th call."""
    real, calls = getattr(os, what), [0]

    def call(*args, **kwargs):
        calls[0] += 1
        if calls[0] == n:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, what, call)
    return calls


@pytest.mark.parametrize("what", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_run_or_none(clf, logistic, tmp_path, monkeypatch, what):
    X, _ = rows()
    old = stored(logistic, tmp_path / "old")
    with monkeypatch.context() as m:
        total = full_after(m, what, 10**9)
        stored(clf, tmp_path / "count")
    outcomes = set()
    for n in sorted({1, 2, 3, total[0] // 2, total[0] - 1, total[0]}):
        run = Path(shutil.copytree(old, tmp_path / f"{what}-{n}"))
        with monkeypatch.context() as m:
            full_after(m, what, n)
            with pytest.raises(sp.FileError, match="No space left"):
                stored(clf, run)
        assert not list(run.glob(".new-*"))
        try:
            back = sp.load(run)
        except sp.FileError:
            outcomes.add("refused")
        else:
            assert np.array_equal(back.predict(X), logistic.predict(X))
            assert files(run) == files(old)
            outcomes.add("old")
        stored(clf, run)  # and there is a way on
        assert sp.load(run).rule_ == clf.rule_
    assert outcomes == ({"old"} if what == "fsync" else {"old", "refused"})


def test_a_full_disk_leaves_nothing_where_nothing_was(clf, tmp_path, monkeypatch):
    for n in (1, 4, 8):
        with monkeypatch.context() as m:
            full_after(m, "fsync", n)
            with pytest.raises(sp.FileError, match="No space left"):
                stored(clf, tmp_path / "run")
        assert files(tmp_path) == []
        with pytest.raises(sp.FileError):
            sp.load(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(sp.FileError, match="cannot make the folder"):
        stored(clf, tmp_path / "file" / "run")


def test_a_save_that_is_stopped_by_hand_leaves_the_old_run(clf, logistic, tmp_path, monkeypatch):
    run = stored(logistic, tmp_path / "run")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(os, "fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            stored(clf, run)
    assert sp.load(run).rule_ == logistic.rule_
    assert not list(run.glob(".new-*"))


# --- stopped and taken up ------------------------------------------------------------------------


class Stop:
    """A listener that presses Ctrl-C at the k-th fit."""

    def __init__(self, k):
        self.k, self.seen = k, []

    def __call__(self, event):
        if isinstance(event, FitProgress):
            self.seen.append(event)
            if len(self.seen) == self.k:
                raise KeyboardInterrupt


@pytest.fixture
def boosted(monkeypatch):
    """How often LightGBM was trained."""
    real, calls = lightgbm.train, []
    monkeypatch.setattr(lightgbm, "train", lambda *a, **k: calls.append(1) or real(*a, **k))
    return calls


def same(a, b, X):
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert a.stack_ == b.stack_
    assert a.rule_ == b.rule_
    assert a.certificate_ == b.certificate_
    assert a.notes_ == b.notes_
    assert a.history_ == b.history_
    return True


@pytest.mark.parametrize("goal", [EASY, HARD])
@pytest.mark.parametrize("k", [1, 4, 6])
def test_a_fit_that_was_stopped_goes_on(tmp_path, boosted, goal, k):
    """linear has three folds, then trees; the hard goal sends rows back and fits all once more."""
    X, y = rows(240)
    untouched = sp.GoalClassifier(goal, **QUICK).fit(X, y)
    fits = len(boosted)
    assert fits == (3 if goal == EASY else 6)
    first = sp.GoalClassifier(goal, **QUICK, listener=Stop(k), checkpoint=tmp_path / "work")
    with pytest.raises(KeyboardInterrupt, match="nothing to keep" if k < 4 else "best so far"):
        first.fit(X, y)
    done = len(boosted) - fits
    assert done == max(0, k - 4)
    if k >= 4:
        assert not first.finished_
        assert first.stack_.names == ("linear",)
        assert first.certificate_ is None  # the proof is for the fit that goes on
        assert set(first.predict(X).tolist()) <= {0, 1}
        assert any("stopped by hand while fitting trees" in note for note in first.notes_)
        assert any("interrupted" in note and "checkpoint" in note for note in first.notes_)
        assert not sp.load(stored(first, tmp_path / "part")).finished_
    else:
        assert not hasattr(first, "rule_")
    again = sp.GoalClassifier(goal, **QUICK, checkpoint=tmp_path / "work").fit(X, y)
    assert len(boosted) == 2 * fits  # what was done is not done again
    assert again.finished_
    assert same(again, untouched, X)
    third = sp.GoalClassifier(goal, **QUICK, checkpoint=tmp_path / "work").fit(X, y)
    assert len(boosted) == 2 * fits
    assert same(third, untouched, X)


def test_ctrl_c_inside_a_fit(tmp_path, monkeypatch):
    X, y = rows(240)
    real, calls = lightgbm.train, []

    def train(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with monkeypatch.context() as m:
        m.setattr(lightgbm, "train", train)
        clf = sp.GoalClassifier(EASY, **QUICK, checkpoint=tmp_path)
        with pytest.raises(KeyboardInterrupt, match="best so far"):
            clf.fit(X, y)
        assert clf.stack_.names == ("linear",)
        clf.fit(X, y)
        assert len(calls) == 4
    assert same(clf, sp.GoalClassifier(EASY, **QUICK).fit(X, y), X)


def test_ctrl_c_in_the_second_round_is_heard():
    X, y = rows(240)
    stop = Stop(9)
    clf = sp.GoalClassifier(HARD, **QUICK, listener=stop)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert len(stop.seen) == 9
    assert not clf.finished_
    assert clf.certificate_.verdict == "NOT PROVEN"
    assert len(clf.predict(X)) == 240


@pytest.mark.xfail(strict=True, reason="all models are fitted, and nothing is kept")
def test_ctrl_c_at_the_end_keeps_what_was_fitted():
    X, y = rows(240)
    clf = sp.GoalClassifier(EASY, **QUICK, listener=Stop(7))
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.stack_.names == ("linear", "trees")
    assert len(clf.predict(X)) == 240


def test_the_plan_is_told_before_anything_is_fitted(boosted):
    seen = []

    def listen(event):
        if isinstance(event, Planned):
            seen.append((len(boosted), str(event.plan)))

    sp.GoalClassifier(GOAL, "trees", compare=False, folds=2, listener=listen).fit(*rows(240))
    assert len(seen) == 1
    assert seen[0][0] == 0
    assert "rows     train 180" in seen[0][1]


def test_a_time_limit_leaves_members_out_and_says_so(monkeypatch):
    X, y = rows(240)
    clf = sp.GoalClassifier(EASY, **QUICK, time_limit=0).fit(X, y)
    assert clf.stack_.names == ("linear",)
    assert "trees was left out: the time limit of 0 s" in clf.notes_
    assert clf.finished_
    assert sp.GoalClassifier(EASY, **QUICK, time_limit=600).fit(X, y).stack_.names == (
        "linear",
        "trees",
    )


def test_a_time_limit_does_not_leave_out_the_model_that_was_asked_for():
    X, y = rows(240)
    clf = sp.GoalClassifier(GOAL, "trees", folds=2, time_limit=0)
    try:
        clf.fit(X, y)
    except KeyboardInterrupt as error:  # pytest itself would stop
        raise AssertionError("nobody pressed Ctrl-C") from error
    assert clf.stack_.names == ("trees",)


@pytest.mark.parametrize(
    "change",
    [
        {"goal": "maximize recall subject to precision >= 0.7"},
        {"random_state": 1},
        {"folds": 2},
        {"y": 3},
        {"X": 3},
        {"weight": True},
    ],
)
def test_what_was_done_for_another_fit_is_not_taken_up(tmp_path, boosted, change):
    X, y = rows(200)

    def fit(goal=GOAL, y_at=None, x_at=None, weight=False, **options):
        labels, cells = y.copy(), X.copy()
        if y_at is not None:
            labels[y_at] ^= 1
        if x_at is not None:
            cells[x_at, 0] += 1e-9
        w = np.linspace(1, 2, 200) if weight else None
        new = sp.GoalClassifier(goal, "trees", compare=False, **{"folds": 3, **options})
        new.set_params(certify_size=0)
        return new.fit(cells, labels, w)

    fit(checkpoint=tmp_path)
    before = len(boosted)
    names = {"y": "y_at", "X": "x_at"}
    changed = {names.get(k, k): v for k, v in change.items()}
    fit(checkpoint=tmp_path, **changed)
    assert len(boosted) == before + changed.get("folds", 3)


class Net(nn.Module):
    """A module of the user's own."""

    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)


def test_a_module_with_other_weights_is_another_module(tmp_path):
    X, y = rows(200)
    options = {"folds": 2, "epochs": 2, "compare": False}
    sp.GoalClassifier("maximize f1", Net(0), checkpoint=tmp_path, **options).fit(X, y)
    again = sp.GoalClassifier("maximize f1", Net(1), checkpoint=tmp_path, **options).fit(X, y)
    fresh = sp.GoalClassifier("maximize f1", Net(1), **options).fit(X, y)
    assert np.array_equal(again.predict_proba(X), fresh.predict_proba(X))


def test_other_groups_are_another_fit(tmp_path, monkeypatch):
    X, y = rows(200)
    fits, real = [], members.fit_network
    monkeypatch.setattr(members, "fit_network", lambda *a, **k: fits.append(1) or real(*a, **k))
    goal = 'maximize f1 subject to gap(recall, by="sex") <= 0.05'
    for seed in range(2):
        sex = np.random.default_rng(seed).choice(["f", "m"], 200)
        sp.GoalClassifier(
            goal, "linear", "soft-set", folds=2, epochs=2, compare=False, certify_size=0,
            checkpoint=tmp_path,
        ).fit(X, y, group={"sex": sex})  # fmt: skip
    assert len(fits) == 4


@pytest.mark.parametrize(
    ("model", "left"),
    [
        ("trees", 0),
        ("trees", 30),
        (LogisticRegression(), 0),
        (LogisticRegression(), 30),
    ],
)  # fmt: skip
def test_finished_parts_that_are_damaged_are_made_again(tmp_path, model, left):
    X, y = rows(200)
    options = {"folds": 2, "compare": False, "certify_size": 0}
    a = sp.GoalClassifier("maximize f1", model, checkpoint=tmp_path, **options).fit(X, y)
    for path in tmp_path.iterdir():
        if path.suffix != ".json":
            path.write_bytes(path.read_bytes()[:left])
    b = sp.GoalClassifier("maximize f1", model, checkpoint=tmp_path, **options).fit(X, y)
    assert same(a, b, X)


def test_a_pickle_among_finished_parts_is_never_opened(tmp_path):
    X, y = rows(200)
    mark = tmp_path / "it ran"
    options = {"folds": 2, "compare": False, "certify_size": 0, "checkpoint": tmp_path / "work"}
    a = sp.GoalClassifier("maximize f1", "trees", **options).fit(X, y)
    for path in (tmp_path / "work").iterdir():
        path.write_bytes(pickle.dumps(Bomb(mark)))
    b = sp.GoalClassifier("maximize f1", "trees", **options).fit(X, y)
    assert same(a, b, X)
    assert not mark.exists()


@pytest.mark.parametrize("goal", ["maximize recall subject to precision >= 0.6", "maximize f1"])
def test_a_run_just_written_is_as_it_will_be_read(tmp_path, goal):
    """The command line prints the run that it has: what it would read back is the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    clf = sp.GoalClassifier(goal, "linear", epochs=2, certify_size=0.3).fit(X, y)
    clf.save(tmp_path)
    now = SavedRun.of(tmp_path, clf.run_)
    read = SavedRun.open(tmp_path)
    assert {k: v for k, v in read.about.items() if k != "models"} == now.about
    for name in ("rule", "certificate", "comparison", "report", "status", "notes", "figures"):
        assert getattr(now, name) == getattr(read, name), name
