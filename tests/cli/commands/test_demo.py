"""`setpoint demo`: the whole story, soon, on our own folder; its numbers are those of the files."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score, recall_score

import setpoint as sp
from setpoint.cli.commands import demo as demo_module
from setpoint.cli.commands.demo import SecondLook


@pytest.fixture
def quick(monkeypatch, undrawn):
    """The demo without its drawings and without the second look."""
    monkeypatch.setattr(demo_module, "second_look", lambda *_: SecondLook("maximize f1", 50, 20))


def test_true_run_ends_soon(process, tmp_path):
    start = time.monotonic()
    result = process("demo", cwd=tmp_path, env={"OMP_NUM_THREADS": "1"})
    assert time.monotonic() - start < 90
    assert (result.returncode, result.stderr) == (0, "")
    flat = " ".join(result.stdout.split())
    for said in (
        "4,839 segments of a satellite image",
        "fit setpoint-demo/wilt.csv --target diseased",
        demo_module.GOAL,
        "Plan train",
        "Certificate",
        "Referee",
        "Promise",
        "rows flatter the threshold",
        "Report setpoint-demo/run/report.html",
    ):
        assert said in flat, said
    assert max(map(len, result.stdout.splitlines())) <= 80
    page = (tmp_path / "setpoint-demo" / "run" / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")


def test_the_numbers_are_those_of_the_files(run, quick, tmp_path):
    out = tmp_path / "new" / "demo"
    result = run("demo", "--out", out, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    new, decided = pd.read_csv(out / "new.csv"), pd.read_csv(out / "decisions.csv")["decision"]
    assert len(new) + len(pd.read_csv(out / "wilt.csv")) == 4839
    found = data["evaluate"]
    assert found["value"] == pytest.approx(recall_score(new["diseased"], decided), abs=1e-12)
    kept = found["constraints"][0]["value"]
    assert kept == pytest.approx(precision_score(new["diseased"], decided), abs=1e-12)
    assert data["fit"]["status"] == sp.load(out / "run").report_.verdict["status"]
    scores = pd.read_csv(out / "scores.csv")
    assert scores["label"].tolist() == new["diseased"].tolist()
    assert sorted(p.name for p in out.iterdir()) == sorted([*demo_module.FILES, "run"])


def test_an_earlier_demo_is_overwritten_and_nothing_else(run, quick, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for columns in (60, 80):
        result = run("demo", "--out", "d", columns=columns)
        assert (result.exit_code, result.stderr) == (0, "")
        assert max(map(len, result.stdout.splitlines())) <= columns
    (tmp_path / "d" / "mine.txt").write_text("mine")
    before = (tmp_path / "d" / "run" / "manifest.json").read_bytes()
    result = run("demo", "--out", tmp_path / "d")
    assert result.exit_code == 2
    assert 'holds other files ("mine.txt")' in result.stderr
    assert (tmp_path / "d" / "run" / "manifest.json").read_bytes() == before


def test_out_that_is_a_file(run, tmp_path):
    (tmp_path / "demo").write_text("mine")
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 2
    assert "cannot make the folder" in result.stderr


def test_the_second_look_by_brute_force(monkeypatch):
    monkeypatch.setattr(demo_module, "SHUFFLES", 4)
    data, goal = sp.datasets.load("wilt"), "maximize recall subject to precision >= 0.9"
    found = demo_module.second_look(data, goal, 0)
    y, scores = demo_module._scored(data, 0)
    met = broken = 0
    for shuffle in range(1, 5):
        first, second = demo_module._halves(y, shuffle)
        best = (-1.0, 0.0)
        for cut in np.unique(scores[first]):
            decided = scores[first] >= cut
            right = int((decided & (y[first] == 1)).sum())
            if right >= 0.9 * decided.sum():
                best = max(best, (right / y[first].sum(), cut))
        met += best[0] >= 0
        broken += precision_score(y[second], scores[second] >= best[1]) < 0.9
    assert (found.met, found.broken) == (met, broken)
