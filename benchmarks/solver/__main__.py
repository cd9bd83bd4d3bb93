"""Run the problems on both sides, in turns; print and record."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from typing import Any

from rich.console import Console

from benchmarks.harness import new_table, verdict_cell
from benchmarks.peers import ROOT
from benchmarks.results.recording import PACKAGES, record
from benchmarks.solver import __doc__ as description
from benchmarks.solver.problems import PROBLEMS, Problem

NAME = "solver"
SETUP = "sh benchmarks/solver/setup_pygranso.sh"
THEIRS = ROOT / ".peers" / "pygranso" / "bin" / "python"
SIDES = {"PyGRANSO": (str(THEIRS), "pygranso_side"), "ours": (sys.executable, "our_side")}
EQUAL = 1e-7  #: objectives that differ by less, relative to max(1, |f|), are equal
FEASIBLE = 1e-8  #: and violations below this
LONG = 60.0  #: CPU seconds of a run that is not repeated
ENOUGH = 3600  #: seconds after which a run is given up
Line = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report, record; 1 where a target is missed."""
    options = _options(arguments)
    console = Console(width=max(140, Console().width))
    sides = SIDES if THEIRS.exists() else {"ours": SIDES["ours"]}
    if len(sides) == 1:
        console.print(f"PyGRANSO is not installed and is left out: run {SETUP}")
    lines: list[Line] = []
    for name in options.names or PROBLEMS:
        problem = PROBLEMS[name]()
        for which in range(len(problem.settings)):
            found = rounds(name, problem, which, sides, options.repeats)
            lines += judged(name, problem, which, found)
            console.print(f"{name}, {said(problem, which)}: done", highlight=False)
    show(console, lines)
    if options.record:
        more = {"peer": "PyGRANSO 1.2.0", "setup": SETUP}
        command = "python -m benchmarks.solver --record"
        record(NAME, command, lines, packages=(*PACKAGES, "daqp", "piqp"), **more)
    return int(any(x.get("verdict") == "MISSED" for x in lines))


def rounds(name: str, problem: Problem, which: int, sides: Any, most: int) -> dict[str, list[Line]]:
    """Each side in turn, so many times; once where a run takes minutes."""
    found: dict[str, list[Line]] = {side: [] for side in sides}
    for _ in range(min(most, problem.repeats)):
        for side, (python, module) in sides.items():
            found[side].append(one(python, module, name, which))
        if any(x[-1]["seconds"] > LONG for x in found.values()):
            break
    return found


def one(python: str, module: str, name: str, which: int) -> Line:
    """A run in a process of its own."""
    command = [python, "-m", f"benchmarks.solver.{module}", name, str(which)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=ENOUGH
    )
    if done.returncode:
        raise RuntimeError(f"{module} failed on {name}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def judged(name: str, problem: Problem, which: int, found: dict[str, list[Line]]) -> list[Line]:
    """A line a side: the last run's answer, median seconds; ours with the ratio and a verdict."""
    lines = []
    for side, runs in found.items():
        seconds = statistics.median(x["seconds"] for x in runs)
        about = {"problem": name, "settings": said(problem, which), "side": side}
        about |= {"variables": problem.size[0], "constraints": problem.size[1]}
        lines.append({**about, **runs[-1], "seconds": seconds, "rounds": len(runs)})
    if len(found) == 2:
        theirs, ours = lines
        pairs = zip(found["PyGRANSO"], found["ours"], strict=True)
        ratio = statistics.median(a["seconds"] / b["seconds"] for a, b in pairs)
        close = EQUAL * max(1.0, abs(theirs["objective"]))
        equal = ours["objective"] <= theirs["objective"] + close
        held = ours["violation"] <= max(theirs["violation"], FEASIBLE)
        good = equal and held and ratio >= problem.faster
        ours |= {"ratio": ratio, "target": problem.faster, "verdict": "ok" if good else "MISSED"}
    if problem.best is not None:
        for line in lines:
            line["optimum"] = problem.best
    return lines


def said(problem: Problem, which: int) -> str:
    """PyGRANSO's settings in words."""
    words = [f"{k} {v:g}" for k, v in problem.settings[which].items()]
    return ", ".join(words) or "defaults"


def show(console: Console, lines: list[Line]) -> None:
    """A table."""
    words = ("problem", "settings", "side")
    numbers = ("objective", "violation", "iterations", "evaluations", "CPU s", "ratio", "")
    table = new_table("solve beside PyGRANSO", description.split("\n")[0], words, numbers)
    for x in lines:
        ratio = f"{x['ratio']:.1f}" if "ratio" in x else ""
        counts = str(x["iterations"]), str(x["evaluations"])
        figures = f"{x['objective']:.10g}", f"{x['violation']:.1e}", *counts, f"{x['seconds']:.3f}"
        cells = (x["problem"], x["settings"], x["side"], *figures, ratio)
        table.add_row(*cells, verdict_cell(x.get("verdict")))
    console.print(table)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.solver",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="at most (default 5)")
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in PROBLEMS:
            parser.error(f"there is no problem {name!r}; there are {', '.join(PROBLEMS)}")
    if options.names and options.record:
        parser.error("a part of the problems is not recorded: leave the names out")
    return options


if __name__ == "__main__":
    sys.exit(main())
