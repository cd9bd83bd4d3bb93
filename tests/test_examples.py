"""The scripts in examples/ run, and several processes learn what one does."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PLAIN = ["plain_loop.py", "fabric_loop.py", "accelerate_loop.py", "lightning_loop.py"]
OWN = ["text_column.py", "images.py"]


def run(*command):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_every_script_is_run():
    scripts = {p.name for p in (ROOT / "examples").glob("*.py")} - {"data.py"}
    assert scripts == {*PLAIN, *OWN, "torchrun_ddp.py"}


@pytest.mark.parametrize("script", PLAIN)
def test_a_script_runs(script):
    out = run(f"examples/{script}")
    value = re.search(r"(?:Recovered\(value=|recall )([0-9.]+)", out)
    assert value, out
    assert float(value.group(1)) > 0.5, out


@pytest.mark.parametrize("script", OWN)
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


def test_processes_learn_what_one_does():
    norms = {}
    for world, more in ((1, []), (2, []), (2, ["--fsdp"])):
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={world}"]
        out = run(*torchrun, "examples/torchrun_ddp.py", *more)
        norms[world, bool(more)] = float(re.search(r"weights ([0-9.]+)", out).group(1))
    assert norms[2, False] == pytest.approx(norms[1, False], abs=1e-8)
    assert norms[2, True] == pytest.approx(norms[1, False], abs=1e-8)
