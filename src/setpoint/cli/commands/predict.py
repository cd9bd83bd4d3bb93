"""``setpoint predict``: the decisions of a run on new rows, a chunk of them at a time."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint._core.errors import FileError, KindError
from setpoint._core.words import listing
from setpoint.cli.debugging import Debug
from setpoint.cli.deciding import Deciding, Found, Wanted
from setpoint.cli.display.terminal import Force, Json, Screen, command, count, print_json
from setpoint.cli.files.output_paths import refuse_existing
from setpoint.cli.files.saved_run import Run
from setpoint.cli.files.table_writer import WRITTEN
from setpoint.cli.inputs.run_scores import Scorer
from setpoint.cli.inputs.shared_options import ENDINGS, Several
from setpoint.cli.worded import DECISION

HELP = "Decide new rows with a run: a file of any size, some rows at a time."
EPILOG = """
Examples

  setpoint predict run new.csv --out decisions.csv

  setpoint predict run new.parquet --id customer --id day \\
    --out decisions.parquet

  setpoint predict run new.csv --all --no-score --out decided.csv

Columns are found by name; others than those fitted on are passed over, and
categories that were never seen are fine. Without --id rows are named by their
number in the file, the first being 1. Where a run that may abstain decides
nothing the cell is empty.

Exit codes

  0  done
  1  an unexpected error
  2  a mistake in the options, the run or the file; nothing is written
"""
_APART = 3.0  #: standard errors from which on shares are told to differ


def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that fit wrote.")],
    file: Annotated[Path, typer.Argument(metavar="NEW", help=f"Rows to decide: {ENDINGS}.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Decisions go here: .csv or .parquet."),
    ],
    ids: Annotated[
        Several,
        typer.Option("--id", metavar="COL", help="Column that names the rows; may be repeated."),
    ] = None,
    score: Annotated[
        bool, typer.Option("--score/--no-score", metavar="", help="Whether scores are written.")
    ] = True,
    everything: Annotated[
        bool, typer.Option("--all", metavar="", help="Write all columns of NEW as well.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Group of a per-group rule. Default: as fitted."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Load, read, decide, write; see :meth:`setpoint.GoalClassifier.predict`."""
    if out.suffix.lower() not in WRITTEN:
        raise FileError(f'"{out.name}" must end in {" or ".join(WRITTEN)}.')
    if everything and ids:
        raise KindError("--all writes every column; leave --id out.")
    refuse_existing([out], force, rows=[file])
    run = Run.open(folder)
    if out.resolve().is_relative_to(folder.resolve()):
        raise FileError(f'"{out}" lies in the run, which is sealed; give another name.')
    wanted = Wanted(tuple(ids or ()), score, everything, group)
    with _bar(quiet=as_json) as tick:
        found = Deciding(Scorer.open(folder), file, wanted).write(out, tick)
    told = Decided(run, file, out, found)
    if as_json:
        print_json(told.record())
    else:
        told.show(Screen.open())


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[float], None]]:
    """A function that takes the share that is done, and shows it on a terminal."""
    screen = Screen.open(stderr=True)
    if quiet or not screen.console.is_terminal:
        yield lambda share: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn(" deciding"), BarColumn(), TaskProgressColumn(), Remaining())
    with Progress(*columns, console=screen.console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share: bar.update(task, completed=share)


@dataclass(frozen=True, eq=False)
class Decided:
    """New rows that were decided, and what is said of them."""

    run: Run
    file: Path
    out: Path
    found: Found

    def drift(self) -> tuple[str, bool] | None:
        """The share decided positive beside that of the rows it was last known of; whether far."""
        run, rows = self.run, self.found.rows
        known = run.flagged
        if known is None or run.rule.task.kind != "binary" or run.rule.kind == "top-k":
            return None
        then, of = known
        here = self.found.counts[DECISION].get(str(run.facts["positive"]), 0) / rows
        spread = max(then * (1 - then), 1 / (of + rows))
        far = abs(here - then) > _APART * math.sqrt(spread * (1 / of + 1 / rows))
        where = "certify rows" if run.report["fresh"] else "out-of-fold rows"
        said = f"{_percent(here)} of these rows, {_percent(then)} of the {where}"
        if far:
            said += ": these may be unlike the rows of the fit; check some with labels"
        return said, far

    def record(self) -> dict[str, Any]:
        """Plain data."""
        run, found, drift = self.run, self.found, self.drift()
        return {
            "run": str(run.folder),
            "goal": run.goal,
            "data": {"file": str(self.file), "rows": found.rows, "ignored": found.ignored},
            "operating_point": run.rule.operating_point(),
            "decided": found.counts,
            "drift": None if drift is None else {"sentence": drift[0], "far": drift[1]},
            "written": {"decisions": str(self.out)},
        }

    def show(self, screen: Screen) -> None:
        """Print the screen."""
        run, found, drift = self.run, self.found, self.drift()
        facts = [
            ("Run", f"{run.folder}: {run.goal}; {run.status}"),
            ("Data", f"{self.file}: {count(found.rows, 'row')}"),
        ]
        if found.ignored:
            names = listing((f'"{name}"' for name in found.ignored), most=6)
            facts.append(("", f"passed over: {names}"))
        facts.append(("Operating point", run.rule.operating_point()))
        facts += [
            ("Decided" if name == DECISION else name, self._counted(name, counts))
            for name, counts in found.counts.items()
        ]
        if drift is not None:
            facts.append(("CAUTION" if drift[1] else "", drift[0]))
        facts.append(("Written", str(self.out)))
        if drift is not None and drift[1]:
            folder = shlex.quote(str(run.folder))
            facts.append(("Check it", f"{command()} evaluate {folder} labelled.csv"))
        screen.line()
        screen.facts(facts)

    def _counted(self, name: str, counts: dict[str, int]) -> str:
        """How many rows were decided as what."""
        rows, facts = self.found.rows, self.run.facts
        undecided = rows - sum(counts.values())
        rest = f"; {undecided:,} left empty, undecided" if undecided else ""
        positive = facts["positive"]
        if name == DECISION and positive is not None:
            many = counts.get(str(positive), 0)
            return f"{facts['target']} = {positive}: {many:,} of {count(rows, 'row')}{rest}"
        if name != DECISION:
            return f"{counts.get('1', 0):,} of {count(rows, 'row')}"
        return ", ".join(f"{word} {many:,}" for word, many in sorted(counts.items())) + rest


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
