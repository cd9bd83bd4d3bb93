"""``setpoint predict``: the decisions of a run on new rows, a chunk of them at a time."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from setpoint._core.errors import FileError, KindError
from setpoint._core.words import listing
from setpoint.cli.debugging import Debug
from setpoint.cli.deciding import Deciding, Found, Wanted
from setpoint.cli.options import ENDINGS, Several
from setpoint.cli.output import Force, Json, Screen, command, count, print_json
from setpoint.cli.run import Run
from setpoint.cli.saving import refuse_existing
from setpoint.cli.scoring import Scorer
from setpoint.cli.sink import WRITTEN
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
    if as_json:
        print_json(_record(run, file, out, found))
    else:
        _show(Screen.open(), run, file, out, found)


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


# --- what is said -----------------------------------------------------------------------------


def _drift(run: Run, found: Found) -> tuple[str, bool] | None:
    """The share decided positive beside that of the rows it was last known of."""
    known = run.flagged
    if known is None or run.rule.task.kind != "binary" or run.rule.kind == "top-k":
        return None
    then, rows = known
    here = _positives(run, found) / found.rows
    error = math.sqrt(max(then * (1 - then), 1 / (rows + found.rows)) * (1 / rows + 1 / found.rows))
    far = abs(here - then) > _APART * error
    where = "certify rows" if run.report["fresh"] else "out-of-fold rows"
    said = f"{_percent(here)} of these rows, {_percent(then)} of the {where}"
    if far:
        said += ": these may be unlike the rows of the fit; check some with labels"
    return said, far


def _positives(run: Run, found: Found) -> int:
    return found.counts[DECISION].get(str(run.facts["positive"]), 0)


def _decided(run: Run, name: str, counts: dict[str, int], rows: int) -> str:
    """How many rows were decided as what."""
    undecided = rows - sum(counts.values())
    rest = f"; {undecided:,} left empty, undecided" if undecided else ""
    target, positive = run.facts["target"], run.facts["positive"]
    if name == DECISION and positive is not None:
        many = counts.get(str(positive), 0)
        return f"{target} = {positive}: {many:,} of {count(rows, 'row')}{rest}"
    if name != DECISION:
        return f"{counts.get('1', 0):,} of {count(rows, 'row')}"
    return ", ".join(f"{word} {many:,}" for word, many in sorted(counts.items())) + rest


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _record(run: Run, file: Path, out: Path, found: Found) -> dict[str, Any]:
    drift, known = _drift(run, found), run.flagged
    return {
        "run": str(run.folder),
        "goal": run.goal,
        "data": {"file": str(file), "rows": found.rows, "ignored": found.ignored},
        "operating_point": run.rule.operating_point(),
        "decided": found.counts,
        "share_when_fitted": None if known is None or drift is None else known[0],
        "drift": None if drift is None else {"sentence": drift[0], "far": drift[1]},
        "written": {"decisions": str(out)},
    }


def _show(screen: Screen, run: Run, file: Path, out: Path, found: Found) -> None:
    facts = [
        ("Run", f"{run.folder}: {run.goal}; {run.status}"),
        ("Data", f"{file}: {count(found.rows, 'row')}"),
    ]
    if found.ignored:
        names = listing((f'"{name}"' for name in found.ignored), most=6)
        facts.append(("", f"passed over: {names}"))
    facts.append(("Operating point", run.rule.operating_point()))
    facts += [
        ("Decided" if name == DECISION else name, _decided(run, name, counts, found.rows))
        for name, counts in found.counts.items()
    ]
    drift = _drift(run, found)
    if drift is not None:
        facts.append(("CAUTION" if drift[1] else "", drift[0]))
    facts.append(("Written", str(out)))
    if drift is not None and drift[1]:
        folder = shlex.quote(str(run.folder))
        facts.append(("Check it", f"{command()} evaluate {folder} labelled.csv"))
    screen.line()
    screen.facts(facts)
