"""``setpoint fit``: from a table and a goal to a model whose operating point is proven."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.inputs.duration import seconds_of
from setpoint.cli.inputs.fit_table import Uses
from setpoint.cli.inputs.shared_options import ENDINGS, Debug, Several, split
from setpoint.cli.jobs.fit_job import FitJob
from setpoint.goals import Goal

HELP = "Train for a goal on a table, choose the operating point, prove it, and report."
EPILOG = """
Examples

  setpoint fit transactions.csv --target fraud --out run \\
    --goal "maximize recall subject to precision >= 0.9"

  setpoint fit patients.parquet --target ill --positive yes \\
    --together patient --effort thorough --out run \\
    --goal "minimize fnr subject to fpr <= 0.05"

  setpoint fit loans.csv --target paid --time day --drop clerk --out run \\
    --goal 'maximize accuracy subject to gap(recall, by="sex") <= 0.05'

  setpoint fit animals.csv --target animal --goal "maximize macro(f1)" \\
    --out run --time-limit 10m

A quarter of the rows is kept for the proof and nothing else touches it; where
nothing is proven they go back into training. The columns of --split,
--together, --time and --weight are no features. Stopped by Ctrl-C, the same
command goes on with what is done.

Exit codes

  0    the goal is met; with constraints, it is PROVEN
  1    an unexpected error
  2    a mistake in the goal, the options or the file; nothing is written
  3    not feasible, or NOT PROVEN; the run is written all the same
  130  stopped by Ctrl-C; the best so far is written
"""
COLUMNS, MODELS, PROOF = "Columns", "Models", "Rule and proof"


def fit(
    file: Annotated[Path, typer.Argument(metavar="DATA", help=f"Table with a header: {ENDINGS}.")],
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="COL", help="Column of the label; a,b,c for multilabel."
        ),
    ],
    goal: Annotated[
        str, typer.Option("--goal", "-g", metavar="TEXT", help="What is wanted, in words.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder that the run is written to.")
    ],
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="The positive label; of several labels, set against the rest."
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="auto, linear, trees, mlp or baseline.", rich_help_panel=MODELS
        ),
    ] = "auto",
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="auto, or one that setpoint methods lists.", rich_help_panel=MODELS
        ),
    ] = "auto",
    confidence: Annotated[
        float,
        typer.Option(
            metavar="P",
            help="Of the proof: 0.95 is wrong in 1 of 20 at most.",
            rich_help_panel=PROOF,
        ),
    ] = 0.95,
    effort: Annotated[
        str,
        typer.Option(metavar="NAME", help="quick, standard or thorough.", rich_help_panel=MODELS),
    ] = "standard",
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="No model is begun after so long: 300, 5m, 1h.",
            rich_help_panel=MODELS,
        ),
    ] = None,
    certify_size: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Rows kept for the proof. Default: 0.25 where the goal has a constraint.",
            rich_help_panel=PROOF,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Of cross-fitting. Default: by the effort.", rich_help_panel=MODELS
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="K",
            help="Standard errors that limits hold by; 0 is none.",
            rich_help_panel=PROOF,
        ),
    ] = None,
    proof_price: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="How much of the objective a proof may cost; 1 is any.",
            rich_help_panel=PROOF,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Kind of rule, as for tune: per-group, top-k, ...",
            rich_help_panel=PROOF,
        ),
    ] = None,
    split_by: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="COL",
            help="Your own parts: train, tune, certify.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    together: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Rows of one id (a customer) are never parted.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The latest rows certify; folds look ahead only.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    group: Annotated[
        Several,
        typer.Option(
            metavar="COL",
            help="Column of a group; may be repeated. Those that the goal names are found.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column of the weight of each row.", rich_help_panel=COLUMNS
        ),
    ] = None,
    drop: Annotated[
        Several,
        typer.Option(
            metavar="COL", help="Column not to use; may be repeated.", rich_help_panel=COLUMNS
        ),
    ] = None,
    keep: Annotated[
        Several,
        typer.Option(
            metavar="COL",
            help="Column to use though it looks like an id; repeat.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="binary, multiclass or multilabel. Default: as found."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of splits and models.", rich_help_panel=MODELS)
    ] = 0,
    no_compare: Annotated[
        bool,
        typer.Option(
            "--no-compare", metavar="", help="Leave the referee out.", rich_help_panel=MODELS
        ),
    ] = False,
    drop_unlabelled: Annotated[
        bool,
        typer.Option(
            "--drop-unlabelled",
            metavar="",
            help="Leave out rows without a label.",
            rich_help_panel=COLUMNS,
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Replace the run in the folder.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read, plan, fit, save, print; see :class:`setpoint.GoalClassifier`."""
    wanted = Goal.parse(goal)
    limit = seconds_of(time_limit)
    uses = Uses(
        target=split(target) if task == "multilabel" else (target,),
        positive=positive,
        task=task,
        weight=weight,
        split=split_by,
        together=together,
        time=time,
        groups=tuple(group or ()),
        keep=tuple(keep or ()),
        drop=tuple(drop or ()),
        drop_unlabelled=drop_unlabelled,
    )
    settings = {
        "model": model,
        "method": method,
        "confidence": confidence,
        "kind": kind,
        "effort": effort,
        "folds": folds,
        "certify_size": certify_size,
        "compare": not no_compare,
        "random_state": seed,
    }
    asked = {"margin": margin, "proof_price": proof_price}
    settings |= {name: value for name, value in asked.items() if value is not None}
    output = FitJob(file, wanted, uses, settings, limit, quiet=as_json).make(out, force)
    if as_json:
        print_json(output.record())
    else:
        output.show(Screen.open())
    if not output.run.met:
        raise typer.Exit(ExitCode.GOAL_NOT_MET)
