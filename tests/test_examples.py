"""The scripts in examples/ run, and several processes learn what one does."""

import pathlib
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest
import torch

ROOT = pathlib.Path(__file__).parent.parent
PLAIN = ["plain_loop.py", "fabric_loop.py", "accelerate_loop.py", "lightning_loop.py"]
PLAIN += ["huggingface_loop.py", "skorch_loop.py"]
NEEDS = {"huggingface_loop.py": "transformers", "skorch_loop.py": "skorch"}
DAILY = ["plain_loop.py", "lightning_loop.py"]  # the others import as much again
OWN = ["text_column.py", "images.py"]


def run(*command):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_every_script_is_run():
    scripts = {p.name for p in (ROOT / "examples").glob("*.py")} - {"data.py"}
    apart = ("solve_", "robustness_", "restoration_")  # run by tests/solvers, and below
    scripts = {name for name in scripts if not name.startswith(apart)}
    assert scripts == {*PLAIN, *OWN, "torchrun_ddp.py", "exact_surfaces.py"}


def test_a_model_is_attacked_by_library_and_command():
    out = run("examples/robustness_digits.py")
    _, first, second = out.split("=== ")
    assert "REFUTED: robust accuracy >= 0.8 at l2 <= 0.6" in first, out
    assert "robustness.json" in second, out


def test_digits_are_restored():
    out = run("examples/restoration_digits.py")
    _, first, second = out.split("=== ")
    assert "iterate" in first, out
    found = dict(re.findall(r"^(\w+), 6 images: PSNR ([0-9.]+)", second, re.MULTILINE))
    assert set(found) == {"constrained", "tv", "nearest"}, out
    assert float(found["constrained"]) > float(found["tv"]) + 3, out  # what a prior is for
    assert "oracle (picked by the truth)" in second, out
    assert "restoration.html" in second, out


@pytest.mark.slow
def test_a_clip_is_restored():
    out = run("examples/restoration_video.py")
    found = {k: float(v) for k, v in re.findall(r"^(\w+) +PSNR +([0-9.]+)", out, re.MULTILINE)}
    assert set(found) == {"base", "semantic", "pixel", "both"}, out
    assert found["pixel"] > found["base"] + 1, out  # what frames know of each other


@pytest.mark.slow
def test_the_pictures_of_restorations(tmp_path):
    asked = ["--count", "1", "--iterations", "2", "--only", "inpaint", "--out", str(tmp_path)]
    out = run("examples/restoration_pictures.py", *asked)
    assert "=== inpaint: inpaint:0.7" in out
    assert [p.name for p in tmp_path.iterdir()] == ["restoration-inpaint.png"]


@pytest.mark.parametrize(
    "script", [s if s in DAILY else pytest.param(s, marks=pytest.mark.slow) for s in PLAIN]
)
def test_a_script_runs(script):
    if script in NEEDS:
        pytest.importorskip(NEEDS[script])
    out = run(f"examples/{script}")
    value = re.search(r"(?:Recovered\(value=|recall )([0-9.]+)", out)
    assert value, out
    assert float(value.group(1)) > 0.5, out


@pytest.mark.parametrize("script", [OWN[0], pytest.param(OWN[1], marks=pytest.mark.slow)])
def test_a_model_of_ones_own_is_proven_and_compared(script):
    out = run(f"examples/{script}")
    first, *parts = out.split("=== ")
    assert len(parts) == 2, out
    for part in parts:
        recall, floor, precision = re.search(
            r"^recall ([0-9.]+), precision >= ([0-9.]+) \(([0-9.]+)\)", part, re.MULTILINE
        ).groups()
        assert float(recall) > 0.5, part
        assert float(precision) >= float(floor), part
        assert "\nPROVEN at 95% confidence" in part, part
        assert "+ tuned threshold: recall" in part, part
    if script == "images.py":
        assert "the same: True" in first, out
        assert "loaded, same decisions: True" in parts[0], out
        return
    for part in parts:  # rows drawn anew, 3,000 of them: 3 standard errors of 700 flagged ones
        later = re.search(r"later rows: recall ([0-9.]+), precision ([0-9.]+)", part)
        assert float(later.group(1)) > 0.6, part
        assert float(later.group(2)) > 0.7 - 3 * (0.7 * 0.3 / 700) ** 0.5, part


@pytest.mark.slow  # tests/training/test_distributed.py holds the same of every loss
def test_processes_learn_what_one_does():
    norms = {}
    for world, more in ((1, []), (2, []), (2, ["--fsdp"])):
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={world}"]
        out = run(*torchrun, "examples/torchrun_ddp.py", *more)
        norms[world, bool(more)] = float(re.search(r"weights ([0-9.]+)", out).group(1))
    assert norms[2, False] == pytest.approx(norms[1, False], abs=1e-8)
    assert norms[2, True] == pytest.approx(norms[1, False], abs=1e-8)


def figures(text):
    """The first number in each cell of a table, by the name of its row."""
    rows = re.findall(r"^\| ((?:sigmoid|exact)[^|]*) (\|.*)$", text, re.MULTILINE)
    return {name: [float(x) for x in re.findall(r"\| *([0-9.]+)", row)] for name, row in rows}


def test_the_picture_of_the_exact_method(tmp_path, capsys):
    toy = runpy.run_path(str(ROOT / "examples/exact_surfaces.py"))
    some = list(toy["METHODS"])[2::3]  # a sigmoid and an exact one: the others cost as much each
    toy["main"](tmp_path / "picture.svg", some)
    found = figures(capsys.readouterr().out)
    told = figures((ROOT / "docs/guide/exact-picture.md").read_text(encoding="utf-8"))
    assert list(found) == some
    assert list(told) == list(toy["METHODS"])
    for name, row in found.items():  # another machine rounds otherwise, and a run may end elsewhere
        assert row == pytest.approx(told[name], abs=4), name
    for file in (tmp_path / "picture.svg", ROOT / "docs/exact-surfaces.svg"):
        words = re.findall(r"<text[^>]*>([^<]*)</text>", file.read_text(encoding="utf-8"))
        assert {"zero set of G", "zero set of H", *found} <= set(words)
    sides = np.meshgrid(np.linspace(-2, 2, 401), np.linspace(-1.5, 3.5, 501))
    at, rng = torch.tensor(np.stack(sides, -1)), np.random.default_rng(5)
    for x in (toy["draw"](rng) for _ in range(3)):  # what is best is so on a grid as well
        assert float(toy["worth"](torch.tensor(x), at).max()) == toy["best"](x)
