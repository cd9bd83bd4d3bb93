"""The app: help, version, exit codes, failures, pipes and poor encodings."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from tests.cli.tables import CLEAN

import setpoint as sp
from setpoint.cli import app as app_module
from setpoint.cli.commands import metrics as metrics_module
from setpoint.cli.words import command

GOAL = "maximize recall subject to precision >= 0.8"
COMMANDS = [
    *("demo", "fit", "predict", "evaluate", "explain", "compare", "monitor"),
    *("tune", "certify", "plan", "decide", "robustness", "restore"),
    *("metrics", "methods"),
]


def test_version(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"setpoint {sp.__version__}\n")


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",)])
def test_help_lists_commands_and_exit_codes(run, args):
    result = run(*args)
    assert result.exit_code == 0
    for said in (*COMMANDS, "--debug", "Exit codes", "130  stopped by Ctrl-C"):
        assert said in result.stdout
    places = [result.stdout.index(f"│ {name} ") for name in COMMANDS]
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands_has_examples_and_fits(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"setpoint {command}" in result.stdout
    assert "Examples" in result.stdout
    assert "--json" in result.stdout
    assert "<bool>" not in result.stdout
    assert "[[" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_flag_that_switches_off_has_that_name_in_python():
    """True is what was typed: ``--no-compare`` sets ``no_compare``, never ``compare``."""
    group = typer.main.get_command(app_module.app)
    flags = {
        option: parameter.name
        for command in group.commands.values()
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--no-")
    }
    assert "--no-compare" in flags
    assert flags == {option: option[2:].replace("-", "_") for option in flags}


@pytest.mark.parametrize("args", [("tun",), ("tune",), ("tune", "x.csv", "--gaol", "x"), ("--no",)])
def test_usage_mistakes_exit_with_2(run, args):
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_the_traceback_of_a_mistake(run, scores, place):
    args = ["tune", str(scores), "--goal", "maximize recal"]
    args = ["--debug", *args] if place == "before" else [*args, "--debug"]
    result = run(*args)
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr
    assert 'setpoint: unknown metric "recal"' in result.stderr


@pytest.mark.parametrize("debug", [False, True])
def test_unexpected_errors(run, monkeypatch, debug):
    def fail(_):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(metrics_module, "_show_all", fail)
    result = run(*(["--debug"] if debug else []), "metrics")
    assert result.exit_code == 1
    assert result.stdout == ""
    sentence = (
        "setpoint: unexpected error: ZeroDivisionError: division by zero; run again with --debug\n"
    )
    assert result.stderr.endswith(sentence)
    assert ("Traceback" in result.stderr) is debug


def test_ctrl_c(run, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(metrics_module, "_show_all", stop)
    result = run("metrics")
    assert result.exit_code == 130
    assert result.stderr == "setpoint: stopped; a file is written whole or not at all.\n"


def test_main_runs_the_app(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["setpoint", "--version"])
    with pytest.raises(SystemExit) as exit_of:
        app_module.main()
    assert exit_of.value.code == 0
    assert capsys.readouterr().out.startswith("setpoint ")


# --- true processes -----------------------------------------------------------------------------


def test_console_script():
    script = Path(sys.executable).with_name("setpoint")
    result = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60)
    assert result.stdout == f"setpoint {sp.__version__}\n"


@pytest.mark.parametrize(
    ("goal", "code"),
    [
        (GOAL, 0),
        ("maximize recal", 2),
        ("maximize recall subject to fpr <= 0, recall >= 1", 3),
    ],
)
def test_exit_codes_of_a_process(process, scores, goal, code):
    result = process("tune", scores, "--goal", goal)
    assert result.returncode == code
    assert "Traceback" not in result.stdout + result.stderr
    assert (result.stdout == "") is (code == 2)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_of_a_process():
    code = (
        "import sys, time, setpoint.cli.commands.metrics as m\n"
        "def wait(_):\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(60)\n"
        "m._show_all = wait\n"
        "from setpoint.cli import main\n"
        "sys.argv = ['setpoint', 'metrics']\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
    assert child.returncode == 130
    assert errors == "setpoint: stopped; a file is written whole or not at all.\n"


def test_ascii_streams_are_served(scores):
    calls = [
        ("tune", str(scores), "--goal", GOAL),
        ("tune", str(scores), "--goal", GOAL, "--json"),
        ("tune", "--help"),
        ("metrics",),
        ("metrics", "mcc"),
        ("plan", str(scores), "--goal", GOAL),
    ]
    code = (  # one process for all: starting one costs more than any of them
        "import sys\n"
        "from setpoint.cli import main\n"
        f"for args in {calls!r}:\n"
        "    sys.argv = ['setpoint', *args]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        print('=== exit', end.code)\n"
        "    else:\n"
        "        print('=== exit', 0)\n"
    )
    env = {k: v for k, v in os.environ.items() if k not in CLEAN}
    env |= {"COLUMNS": "80", "PYTHONIOENCODING": "ascii"}
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, b"")
    *said, end = result.stdout.decode("ascii").split("=== exit 0\n")
    assert (len(said), end) == (len(calls), "")
    for args, text in zip(calls, said, strict=True):
        assert "--json" in args or max(map(len, text.splitlines())) <= 80
    assert "O the rule   : precision >= 0.8" in said[0]
    assert "sqrt(TPR * TNR)" in said[3]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("args", [["metrics"], ["--help"]])
def test_a_reader_that_leaves_is_no_error(args):
    read, write = os.pipe()
    os.close(read)
    try:
        child = subprocess.run(
            [sys.executable, "-m", "setpoint.cli", *args],
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    finally:
        os.close(write)
    assert child.returncode in (0, -signal.SIGPIPE)
    assert child.stderr == b""


@pytest.mark.parametrize(
    ("args", "kind", "said"),
    [
        (["metrics", "recal", "--json"], "GoalSyntaxError", "did you mean recall?"),
        (["tune", "no.csv", "-g", "maximize f1", "--json"], "FileError", "there is no file"),
        (["tune", "no.csv", "--json"], "MissingParameter", "--goal"),
    ],
)
def test_mistakes_are_json_where_json_is_asked_for(run, args, kind, said):
    result = run(*args)
    assert result.exit_code == 2
    told = json.loads(result.stdout)
    assert set(told) == {"error", "kind"}
    assert told["kind"] == kind
    assert said in told["error"]
    assert result.stderr != ""


@pytest.mark.parametrize(
    ("argv", "found", "said"),
    [
        (".venv/bin/setpoint", None, ".venv/bin/setpoint"),
        (".venv/bin/setpoint", "/usr/bin/setpoint", "setpoint"),
        ("/a b/setpoint", None, '"/a b/setpoint"'),
        ("setpoint", None, "setpoint"),
        ("/x/setpoint/cli/__main__.py", None, "python -m setpoint.cli"),
        ("/x/pytest", None, "setpoint"),
    ],
)
def test_commands_are_printed_as_they_can_be_typed(monkeypatch, argv, found, said):
    monkeypatch.setattr(sys, "argv", [argv])
    monkeypatch.setattr(shutil, "which", lambda _: found)
    assert command() == said


def test_help_loads_nothing_heavy():
    code = (
        "import sys, setpoint.cli\n"
        "heavy = {'torch', 'pandas', 'sklearn', 'matplotlib', 'scipy', 'pyarrow', 'lightgbm'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.stdout == "[]\n"
