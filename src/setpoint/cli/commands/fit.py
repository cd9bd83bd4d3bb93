"""``setpoint fit``: from a table and a goal to a model whose operating point is proven."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setpoint._core.errors import FileError, SetpointError
from setpoint._core.notes import Note, NoteCode
from setpoint.cli.display.progress_bar import FitBar, plan_facts
from setpoint.cli.display.run_view import RunUsage, next_facts, record, show_outcome
from setpoint.cli.display.terminal import Code, Json, Screen, command, count, print_json
from setpoint.cli.files.run_folder import Folder, claim
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.duration import in_words, seconds_of
from setpoint.cli.inputs.fit_table import FitTable, Uses, read_given
from setpoint.cli.inputs.shared_options import ENDINGS, Debug, Several, split
from setpoint.goals import Goal

if TYPE_CHECKING:
    from setpoint.estimators.classifier import GoalClassifier
    from setpoint.fit.plan import Planned
    from setpoint.fit.run_record import ClassifierRun


# One fit from a file to a run folder: read, plan, fit, save; stopped, it can be taken up.


_LOOKED = (
    "a finished run of these rows was replaced: its certify rows have been looked at before, and "
    "a proof on a second look is worth less than it says"
)


@dataclass(frozen=True, eq=False)
class FitOutput:
    """A run that was fitted and written, and what it was given."""

    run: SavedRun
    given: FitTable
    file: Path
    resumed: bool

    def show(self, screen: Screen) -> None:
        """Print what came of it; the plan was printed before."""
        show_outcome(screen, self.run)
        screen.line()
        screen.facts(next_facts(self.run, in_words(float(self.run.about["seconds"]))))

    def record(self) -> dict[str, Any]:
        """Plain data."""
        run = self.run
        fingerprint = {"fingerprint": run.about["fingerprint"]}
        return {
            **record(run),
            "data": {"file": str(self.file), **self.given.record(), **fingerprint},
            "plan": list(run.facts["plan"]),
            "resumed": self.resumed,
            "written": {"run": str(run.folder), "report": str(run.folder / "report.html")},
            "next": RunUsage.of(run.folder, command()).predict,
        }


@dataclass(frozen=True)
class Fitting:
    """One fit from a file to a folder.

    Parameters
    ----------
    file : Path
    goal : Goal
    uses : Uses
    settings : dict
        Of :class:`setpoint.GoalClassifier`.
    limit : float or None
        Seconds after which no model is begun.
    quiet : bool
        Whether neither plan nor progress are shown.
    """

    file: Path
    goal: Goal
    uses: Uses
    settings: dict[str, Any]
    limit: float | None = None
    quiet: bool = False

    def make(self, out: Path, force: bool = False) -> FitOutput:
        """Read, show the plan, fit, save."""
        folder = claim(out, self._asked(), force, self.file)
        given = read_given(self.file, self.goal, self.uses)
        run = self._fitted(given, folder)
        if folder.looked and run.certificate is not None:
            run = run.noted(Note(NoteCode.CERTIFY_ROWS_SEEN, _LOOKED))
        self._save(run, folder)
        folder.finish()
        return FitOutput(SavedRun.of(folder.path, run), given, self.file, folder.resumed)

    def _asked(self) -> dict[str, Any]:
        """What makes it the same fit when it is called again."""
        return {
            "file": str(self.file.resolve()),
            "goal": str(self.goal),
            "target": list(self.uses.target),
            "seed": self.settings["random_state"],
        }

    def _classifier(self, given: FitTable, folder: Folder, live: FitBar) -> GoalClassifier:
        from setpoint.estimators.classifier import GoalClassifier

        return GoalClassifier(
            self.goal,
            task=given.target.task,
            positive=given.target.positive,
            time_limit=self.limit,
            checkpoint=str(folder.work),
            listener=live,
            **self.settings,
        )

    def _named(self, run: ClassifierRun, given: FitTable, folder: Folder) -> ClassifierRun:
        """The run with the names of its file, its label and its folder."""
        usage = RunUsage.of(folder.path, "setpoint")
        lines = (usage.predict, usage.evaluate, f"in Python: {usage.python}")
        return run.named(source=self.file.name, target=given.target.name, usage=lines)

    def _fitted(self, given: FitTable, folder: Folder) -> ClassifierRun:
        """Fit; a mistake leaves nothing behind, what is done when it is stopped is kept."""

        def planned(event: Planned) -> None:
            if not self.quiet:
                self._show_plan(Screen.open(), given, event, folder)
            folder.begin(self._asked())

        with FitBar(planned, self.quiet) as live:
            made = self._classifier(given, folder, live)
            try:
                made.fit(given.X, given.target.y, **given.more)
            except KeyboardInterrupt:
                run = getattr(made, "run_", None)
                best = None if run is None else self._named(run, given, folder)
                raise self._stopped(best, folder) from None
            except FileError as error:
                raise self._unwritten(error, folder) from error
            except SetpointError:
                folder.withdraw()
                raise
            return self._named(made.run_, given, folder)

    def _stopped(self, run: ClassifierRun | None, folder: Folder) -> KeyboardInterrupt:
        """Write the best so far, unless a finished run lies there; say how to go on."""
        from setpoint.fit import storage

        if run is not None and not folder.finished:
            storage.save(run, folder.path)
        if not folder.kept and run is None:
            folder.withdraw()
            return KeyboardInterrupt("stopped before any part was done; nothing is written.")
        written = run is not None and not folder.finished
        best = f'; "{folder.path}" holds the best so far' if written else ""
        return KeyboardInterrupt(
            f"stopped; what is done is kept{best}: run the same command to go on."
        )

    def _save(self, run: ClassifierRun, folder: Folder) -> None:
        from setpoint.fit import storage

        try:
            storage.save(run, folder.path)
        except FileError as error:
            raise self._unwritten(error, folder) from error
        except SetpointError:
            folder.withdraw()
            raise

    def _unwritten(self, error: FileError, folder: Folder) -> FileError:
        """A file that could not be written; what was fitted before is worth keeping."""
        if not folder.kept:
            folder.withdraw()
            return error
        kept = "What was fitted before is kept: run the same command to go on."
        return error.followed_by(kept)

    def _show_plan(self, screen: Screen, given: FitTable, planned: Planned, folder: Folder) -> None:
        data = f"{self.file.name}: {count(len(given.X), 'row')}, {given.columns_line()}"
        resumed = [("", "goes on with the parts that are done")] if folder.resumed else []
        screen.line()
        screen.facts(
            [
                ("Goal", str(self.goal)),
                ("Data", data),
                ("", f"{given.target.line()}; fingerprint {planned.fingerprint[:8]}"),
                *(("", note) for note in given.notes),
                *plan_facts(planned.plan),
                *resumed,
            ]
        )


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
    made = Fitting(file, wanted, uses, settings, limit, quiet=as_json).make(out, force)
    if as_json:
        print_json(made.record())
    else:
        made.show(Screen.open())
    if not made.run.met:
        raise typer.Exit(Code.INFEASIBLE)
