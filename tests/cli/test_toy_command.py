"""A new command is one module and one row in the table; everything else is there already."""

import importlib
import json
import sys

import pytest
from tests.cli.tables import CLEAN
from typer.testing import CliRunner

from setpoint.cli.app import app_of
from setpoint.cli.table import COMMANDS, SCORES, CommandRow

TOY = '''
"""``setpoint toy``: how many rows a share takes."""

from __future__ import annotations

from typing import Annotated

import typer

from setpoint._core.errors import Argument, DataError, RowNumber
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.inputs.shared_options import Debug

HELP = "Say how many rows a share takes."
EPILOG = """
Examples

  setpoint toy 0.5 --rows 10
"""


def toy(
    share: Annotated[float, typer.Argument(metavar="SHARE", help="Of the rows.")],
    rows: Annotated[int, typer.Option(metavar="N", help="How many there are.")] = 100,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Multiply."""
    if not 0 <= share <= 1:
        way = Argument("certify_size", 0.5)
        raise DataError("{row} has no share; say {way}", row=RowNumber(0), way=way)
    if share == 0:
        raise ZeroDivisionError("no rows")
    taken = int(share * rows)
    if as_json:
        print_json({"rows": taken})
    else:
        Screen.open().facts([("Rows", f"{taken:,}")])
    if taken == 0:
        raise typer.Exit(ExitCode.GOAL_NOT_MET)
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Run ``setpoint toy``, whose module is one file and whose row is one line."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    module = importlib.import_module("toy")
    monkeypatch.delitem(sys.modules, "toy")
    app = app_of((*COMMANDS, CommandRow.of(module, SCORES)))

    def call(*args):
        return CliRunner().invoke(app, [str(a) for a in args], env=CLEAN, prog_name="setpoint")

    return call


def test_it_is_listed_under_its_heading_and_has_help(toy):
    everything = toy("--help").stdout
    assert "│ toy " in everything
    panel = everything[everything.index(SCORES) :]
    assert panel.index("│ decide ") < panel.index("│ toy ") < panel.index("A model under attack")
    result = toy("toy", "--help")
    assert result.exit_code == 0
    shown = ("Say how many rows", "Examples", "setpoint toy 0.5", "--rows", "--json", "--debug")
    for said in shown:
        assert said in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_it_runs_prints_and_exits(toy):
    result = toy("toy", 0.5, "--rows", 3000)
    assert (result.exit_code, result.stdout.split(), result.stderr) == (0, ["Rows", "1,500"], "")
    result = toy("toy", 0.25, "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"rows": 25})
    assert toy("toy", 0.5, "--rows", 1).exit_code == 3


def test_its_mistakes_are_sentences_in_the_words_of_the_command_line(toy):
    result = toy("toy", 2)
    words = "in data row 1 has no share; say --certify-size 0.5."
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"setpoint: {words}\n")
    result = toy("toy", 2, "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"]) == (2, words)
    assert toy("toy").exit_code == 2
    assert "Missing argument" in toy("toy").stderr


def test_what_it_did_not_expect_is_told_apart(toy):
    result = toy("toy", 0)
    assert result.exit_code == 1
    assert "unexpected error: ZeroDivisionError: no rows; run again with --debug" in result.stderr
    assert "Traceback" in toy("toy", 0, "--debug").stderr
    assert toy("toyy").exit_code == 2
