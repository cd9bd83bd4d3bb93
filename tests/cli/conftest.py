"""A runner that looks like a pipe of 80 columns, and small tables of scores."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tests.cli.tables import CLEAN, GOAL, QUICK, people
from typer.testing import CliRunner

from setpoint.cli.app import app


@pytest.fixture
def run():
    """Run a command in this process; the result has exit_code, stdout and stderr."""

    def call(*args, columns=80):
        env = {**CLEAN, "COLUMNS": str(columns)}
        return CliRunner().invoke(app, [str(a) for a in args], env=env, prog_name="setpoint")

    return call


@pytest.fixture
def process():
    """Run ``python -m setpoint.cli`` in a process of its own."""

    def call(*args, **more):
        env = {k: v for k, v in os.environ.items() if k not in CLEAN}
        env |= {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8", **more.pop("env", {})}
        command = [sys.executable, "-m", "setpoint.cli", *map(str, args)]
        return subprocess.run(
            command, env=env, capture_output=True, encoding="utf-8", timeout=120, **more
        )

    return call


@pytest.fixture
def table():
    """200 rows with labels, scores, groups and weights."""
    rng = np.random.default_rng(0)
    n = 200
    y = (rng.random(n) < 0.3).astype(int)
    animals = rng.integers(0, 3, n)
    per_class = rng.normal(size=(n, 3))
    per_class[np.arange(n), animals] += 1.5
    other = (rng.random(n) < 0.5).astype(int)
    return pd.DataFrame(
        {
            "label": y,
            "score": (rng.normal(size=n) + 1.5 * y).round(3),
            "answer": np.where(y == 1, "yes", "no"),
            "truth": y == 1,
            "other": other,
            "other_score": rng.normal(size=n) + other,
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "age": rng.integers(0, 3, n),
            "weight": rng.random(n),
            "query": rng.integers(0, 10, n),
            "animal": np.array(["cat", "dog", "owl"])[animals],
            "code": animals,
            "cat": per_class[:, 0],
            "dog": per_class[:, 1],
            "owl": per_class[:, 2],
        }
    )


@pytest.fixture
def draw(tmp_path):
    """Rows of one population as a file; the lower the shift, the less its scores tell."""

    def call(name, n, seed, shift=3.0):
        rng = np.random.default_rng(seed)
        y = (rng.random(n) < 0.4).astype(int)
        animals = rng.integers(0, 3, n)
        per_class = rng.normal(size=(n, 3))
        per_class[np.arange(n), animals] += shift
        other = (rng.random(n) < 0.5).astype(int)
        frame = pd.DataFrame(
            {
                "label": y,
                "score": rng.normal(size=n) + shift * y,
                "answer": np.where(y == 1, "yes", "no"),
                "other": other,
                "other_score": rng.normal(size=n) + shift * other,
                "sex": np.where(rng.random(n) < 0.5, "f", "m"),
                "weight": rng.random(n),
                "animal": np.array(["cat", "dog", "owl"])[animals],
                "cat": per_class[:, 0],
                "dog": per_class[:, 1],
                "owl": per_class[:, 2],
            }
        )
        path = tmp_path / name
        frame.to_csv(path, index=False)
        return path, frame

    return call


@pytest.fixture
def flat():
    """What a screen says, whatever the wrapping."""
    return lambda result: " ".join(result.stdout.split())


@pytest.fixture
def scores(table, tmp_path):
    """The table as a file."""
    path = tmp_path / "scores.csv"
    table.to_csv(path, index=False)
    return path


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A run on 600 rows, proven, and the table it was fitted on; nobody changes them."""
    folder = tmp_path_factory.mktemp("fitted")
    table = folder / "known.csv"
    people(600).to_csv(table, index=False)
    made = folder / "run"
    args = ["fit", table, "--target", "fraud", "--goal", GOAL, "--out", made, *QUICK]
    result = CliRunner().invoke(app, [str(a) for a in args], env=CLEAN, prog_name="setpoint")
    assert result.exit_code == 0, result.output
    return made, table, result


@pytest.fixture
def new_rows(tmp_path):
    """A file of rows that the run has not seen."""

    def call(n=300, seed=7, name="new.csv", **changed):
        table = people(n, seed).assign(**changed)
        path = tmp_path / name
        table.to_csv(path, index=False)
        return path, table

    return call


@pytest.fixture
def undrawn(monkeypatch):
    """Reports without their page, whose drawings take longer than a small fit."""
    monkeypatch.setattr("setpoint.reports.Report.html", lambda _: "<!doctype html>\n")
