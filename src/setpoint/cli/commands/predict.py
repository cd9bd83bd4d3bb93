"""``setpoint predict``: the decisions of a run on new rows, a chunk of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from setpoint._core.errors import FileError, KindError
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.files.output_paths import refuse_existing
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.files.table_writer import refuse_unwritten
from setpoint.cli.inputs.shared_options import ENDINGS, Debug, Several
from setpoint.cli.jobs.predict_job import PredictJob, PredictOptions, PredictOutput
from setpoint.cli.jobs.run_scores import Scorer

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
    refuse_unwritten(out)
    if everything and ids:
        raise KindError("--all writes every column; leave --id out.")
    refuse_existing([out], force, rows=[file])
    run = SavedRun.open(folder)
    if out.resolve().is_relative_to(folder.resolve()):
        raise FileError(f'"{out}" lies in the run, which is sealed; give another name.')
    wanted = PredictOptions(tuple(ids or ()), score, everything, group)
    with _bar(quiet=as_json) as tick:
        tally = PredictJob(Scorer.open(folder), file, wanted).write(out, tick)
    told = PredictOutput(run, file, out, tally)
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
