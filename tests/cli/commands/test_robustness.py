"""`setpoint robustness`: the library's record, files, promises, mistakes, Ctrl-C."""

import csv
import importlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_model
from tests.robustness.stand_ins import nearest_wrong, problem

import setpoint as sp
from setpoint.robustness.storage import FILES

NETS = """
import torch
from torch import nn

def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 4, dtype=torch.float64))

def other():
    return nn.Linear(3, 3)

def nothing():
    return 3

def half_l2(a, b):
    return 0.5 * (a - b).flatten(1).norm(dim=1)

def still(model):
    def still(model, x, y):
        print("still here")
        return x
    return still

def failing(model):
    def failing(model, x, y):
        raise ValueError("no idea")
    return failing

def stopping(model):
    calls = []
    def stopping(model, x, y):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return x
    return stopping
"""


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A linear model, images, the folder they lie in, and the truth."""
    model, weights, bias, x, y = problem(30)
    (tmp_path / "brought_nets.py").write_text(NETS)
    save_model(model, str(tmp_path / "w.safetensors"))
    np.savez(tmp_path / "test.npz", X=x.numpy().reshape(-1, 1, 2, 3), y=y.numpy(), rest=y.numpy())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    _, radius = nearest_wrong(weights, bias, x, y, 2.0)
    right = (x @ weights.T + bias).argmax(1) == y
    return model, x, y, torch.where(right, radius, 0.0).numpy()


GIVEN = ("robustness", "w.safetensors", "test.npz", "--factory", "brought_nets:make")
L2 = ("--distance", "l2")


def test_json_is_the_record_of_the_library(run, case, tmp_path):
    model, x, y, radius = case
    out = tmp_path / "run"
    result = run(*GIVEN, *L2, "--eps", 0.03, "--eps", 0.08, "--out", out, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert [level["right"] for level in told["levels"]] == [
        int((radius > e).sum()) for e in (0.03, 0.08)
    ]
    found = sp.robustness.evaluate(model, x.reshape(-1, 1, 2, 3), y, "l2", [0.03, 0.08])
    assert told["levels"] == found.to_json()["levels"]
    assert told["written"] == str(out)
    assert {p.name for p in out.iterdir()} == set(FILES)
    rows = list(csv.DictReader((out / "images.csv").open()))
    np.testing.assert_allclose([float(r["radius"]) for r in rows], radius, rtol=1e-3, atol=1e-9)


def test_the_screen_says_what_figures_are_not(run, case, flat):
    *_, radius = case
    result = run(*GIVEN, *L2, "--eps", 0.05, "--out", "run")
    assert (result.exit_code, result.stderr) == (0, "")
    said = flat(result)
    left = int((radius > 0.05).sum())
    for words in (
        "Data test.npz: 30 images of 1 x 2 x 3",
        "Attacks min-radius (",
        "Clean The model is right on 27 of 30 clean images.",
        f"l2 <= 0.05 {left} {left / 30:.4g}",
        "Caution An attack can only show that a model is not robust",
        "Radius Least distance found: median",
        "Written run",
    ):
        assert words in said, words
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("floor", "code", "verdict"), [(0.99, 3, "REFUTED"), (0.01, 0, "NOT REFUTED")]
)
def test_a_floor_is_refuted_or_not(run, case, flat, floor, code, verdict):
    quick = (*GIVEN, *L2, "--eps", 0.08, "--no-radius", "--floor", floor)
    result = run(*quick)
    assert (result.exit_code, result.stderr) == (code, "")
    assert f"Promise {verdict}: robust accuracy >= {floor} at l2 <= 0.08" in flat(result)
    told = json.loads(run(*quick, "--json").stdout)
    assert [p["verdict"] for p in told["promises"]] == [verdict]


def test_attacks_of_others_run_beside(run, case, flat):
    more = ("--beside", "brought_nets:still", "--beside", "brought_nets:failing")
    result = run(*GIVEN, *L2, "--eps", 0.08, "--no-radius", *more)
    assert result.exit_code == 0
    assert "failing raised ValueError: no idea" in flat(result)
    told = run(*GIVEN, *L2, "--eps", 0.08, "--no-radius", *more, "--json")
    assert [a["name"] for a in json.loads(told.stdout)["attacks"]] == [
        "max-loss",
        "still",
        "failing",
    ]


def test_a_distance_of_ones_own(run, case):
    *_, radius = case
    options = ("--distance", "brought_nets:half_l2", "--eps", 0.03, "--no-radius", "--first", 12)
    told = json.loads(run(*GIVEN, *options, "--json").stdout)
    assert told["distance"] == "half_l2"
    assert told["levels"][0]["right"] == int((radius[:12] > 0.06).sum())


def test_ctrl_c_keeps_the_images_that_are_done(run, case):
    more = ("--beside", "brought_nets:stopping", "--batch-size", 10, "--no-radius", "--out", "run")
    result = run(*GIVEN, *L2, "--eps", 0.001, *more)
    assert result.exit_code == 130
    assert result.stderr == 'setpoint: stopped; 10 of 30 images are done and written to "run".\n'
    with open("run/robustness.json") as file:
        told = json.load(file)
    assert (told["images"], told["stopped"]) == (10, True)


MISTAKES = {
    "no weights": (("robustness", "x.safetensors", *GIVEN[2:]), 'there is no file "x.safetensors"'),
    "pickle": (("robustness", "w.pt", *GIVEN[2:]), '"w.pt" is not read: only .safetensors is'),
    "garbage": (("robustness", "bad.safetensors", *GIVEN[2:]), "cannot be read as safetensors"),
    "no data": ((*GIVEN[:2], "no.npz", *GIVEN[3:]), 'there is no file "no.npz"'),
    "no npz": ((*GIVEN[:2], "w.pt", *GIVEN[3:]), '"w.pt" cannot be read as .npz'),
    "objects": ((*GIVEN[:2], "objects.npz", *GIVEN[3:]), '"objects.npz" cannot be read as .npz'),
    "one array": ((*GIVEN[:2], "one.npy", *GIVEN[3:]), "is one array"),
    "name": ((*GIVEN, "--images", "Z"), 'holds X, y, rest and no "Z"; say --images NAME'),
    "form": (
        (*GIVEN[:4], "nets.make"),
        '--factory is of the form package.module:function; got "nets',
    ),
    "module": ((*GIVEN[:4], "no_such_nets:make"), 'cannot import "no_such_nets"'),
    "function": ((*GIVEN[:4], "brought_nets:mak"), 'has no "mak"; did you mean make?'),
    "no call": ((*GIVEN[:4], "brought_nets:__name__"), "cannot be called"),
    "no module": (
        (*GIVEN[:4], "brought_nets:nothing"),
        "gave a int; it has to give a torch module",
    ),
    "no fit": ((*GIVEN[:4], "brought_nets:other"), "do not fit what --factory brought_nets:other"),
    "device": ((*GIVEN, "--device", "cube"), "--device cube cannot be used"),
    "eps": ((*GIVEN, "--eps", "-1"), "--eps is a number above 0; got -1.0."),
    "floor": ((*GIVEN, "--floor", "60"), "--floor is a share above 0, at most 1; got 60."),
    "first": ((*GIVEN, "--first", "0"), "--first is a number of images, 1 or more; got 0."),
    "batch": ((*GIVEN, "--batch-size", "0"), "--batch-size is a whole number, 1 or more; got 0."),
    "range": ((*GIVEN, "--high", "0.5"), "and the box is [0, 0.5]; say --low 0.4"),
    "labels": ((*GIVEN, "--labels", "X"), "y has shape (30, 1, 2, 3)"),
    "a file": ((*GIVEN, "--out", "w.pt"), '"w.pt" is a file; name a folder as --out.'),
    "other files": ((*GIVEN, "--out", "."), "holds other files; name a new folder as --out."),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(run, case, tmp_path, name):
    (tmp_path / "w.pt").write_bytes(b"pickle")
    (tmp_path / "bad.safetensors").write_bytes(b"garbage")
    np.savez(tmp_path / "objects.npz", X=np.array([{}, {}], dtype=object), y=[0, 1])
    np.save(tmp_path / "one.npy", np.zeros(3))
    args, said = MISTAKES[name]
    more = () if "--eps" in args else ("--eps", 0.1)
    result = run(*args, *L2, *more)
    assert result.exit_code == 2, result.stderr
    assert result.stdout == ""
    assert said in result.stderr


def test_an_unknown_distance_names_the_nearest(run, case):
    result = run(*GIVEN, "--distance", "euclidean", "--eps", 0.1)
    assert result.exit_code == 2
    assert "setpoint: --distance 'euclidean' is not known; did you mean 'l2'?\n" == result.stderr


def test_an_evaluation_is_replaced_by_force_only(run, case):
    quick = (*GIVEN, *L2, "--eps", 0.1, "--no-radius", "--first", 3, "--out", "run")
    assert run(*quick).exit_code == 0
    again = run(*quick)
    assert again.exit_code == 2
    assert '"run" holds an evaluation; say --force to replace it.' in again.stderr
    assert run(*quick, "--force").exit_code == 0


def test_help_fits_and_has_examples(run):
    result = run("robustness", "--help")
    assert result.exit_code == 0
    for words in ("Examples", "setpoint robustness weights.safetensors", "Exit codes", "--json"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
