"""One fit from a file to a run folder: read, plan, fit, save; stopped, it can be taken up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setpoint._core.errors import FileError, SetpointError
from setpoint.cli.display.progress_bar import Live, plan_facts
from setpoint.cli.display.run_view import next_facts, record, show_outcome
from setpoint.cli.display.terminal import Screen, command, count
from setpoint.cli.files.run_folder import Folder, claim
from setpoint.cli.files.saved_run import Run
from setpoint.cli.inputs.duration import in_words
from setpoint.cli.inputs.fit_table import Given, Uses, read_given
from setpoint.cli.meant import refuse_unmeant
from setpoint.goals import Goal

if TYPE_CHECKING:
    from setpoint.estimators.classifier import GoalClassifier
    from setpoint.fit.plan import FitPlan

_LOOKED = (
    "a finished run of these rows was replaced: its certify rows have been looked at before, and "
    "a proof on a second look is worth less than it says"
)


@dataclass(frozen=True, eq=False)
class Made:
    """A run that was fitted and written, and what it was given."""

    run: Run
    given: Given
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
            "next": f"{command()} predict {run.folder} new.csv --out decisions.csv",
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

    def make(self, out: Path, force: bool = False) -> Made:
        """Read, show the plan, fit, save."""
        folder = claim(out, self._asked(), force, self.file)
        given = read_given(self.file, self.goal, self.uses)
        refuse_unmeant(self.goal, given, self.settings["kind"])
        classifier = self._fitted(given, folder)
        if folder.looked and classifier.certificate_ is not None:
            classifier.notes_ += (_LOOKED,)
        self._save(classifier, folder)
        folder.finish()
        return Made(Run.open(folder.path), given, self.file, folder.resumed)

    def _asked(self) -> dict[str, Any]:
        """What makes it the same fit when it is called again."""
        return {
            "file": str(self.file.resolve()),
            "goal": str(self.goal),
            "target": list(self.uses.target),
            "seed": self.settings["random_state"],
        }

    def _classifier(self, given: Given, folder: Folder, live: Live) -> GoalClassifier:
        from setpoint.estimators.classifier import GoalClassifier

        made = GoalClassifier(
            self.goal,
            task=given.target.task,
            positive=given.target.positive,
            time_limit=self.limit,
            checkpoint=str(folder.work),
            listener=live,
            **self.settings,
        )
        made.source_ = self.file.name  # type: ignore[attr-defined]
        made.target_ = given.target.name  # type: ignore[attr-defined]
        run = folder.path
        made.usage_ = (  # type: ignore[attr-defined]
            f"setpoint predict {run} new.csv --out decisions.csv",
            f"setpoint evaluate {run} labelled.csv",
            f'in Python: sp.load("{run.as_posix()}").predict(table)',
        )
        return made

    def _fitted(self, given: Given, folder: Folder) -> GoalClassifier:
        """Fit; a mistake leaves nothing behind, what is done when it is stopped is kept."""

        def planned(plan: FitPlan) -> None:
            if not self.quiet:
                self._show_plan(Screen.open(), given, plan, folder)
            folder.begin(self._asked())

        with Live(planned, self.quiet) as live:
            made = self._classifier(given, folder, live)
            try:
                return made.fit(given.X, given.target.y, **given.more)
            except KeyboardInterrupt:
                raise self._stopped(made, folder) from None
            except FileError as error:
                raise self._unwritten(error, folder) from error
            except SetpointError:
                folder.withdraw()
                raise

    def _stopped(self, made: Any, folder: Folder) -> KeyboardInterrupt:
        """Write the best so far, unless a finished run lies there; say how to go on."""
        fitted = getattr(made, "rule_", None) is not None
        if fitted and not folder.finished:
            made.save(folder.path)
        if not folder.kept and not fitted:
            folder.withdraw()
            return KeyboardInterrupt("stopped before any part was done; nothing is written.")
        best = f'; "{folder.path}" holds the best so far' if fitted and not folder.finished else ""
        return KeyboardInterrupt(
            f"stopped; what is done is kept{best}: run the same command to go on."
        )

    def _save(self, made: GoalClassifier, folder: Folder) -> None:
        try:
            made.save(folder.path)
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
        return FileError(f"{str(error).rstrip('.')}. {kept}")

    def _show_plan(self, screen: Screen, given: Given, plan: FitPlan, folder: Folder) -> None:
        data = f"{self.file.name}: {count(len(given.X), 'row')}, {given.columns_line()}"
        resumed = [("", "goes on with the parts that are done")] if folder.resumed else []
        screen.line()
        screen.facts(
            [
                ("Goal", str(self.goal)),
                ("Data", data),
                ("", f"{given.target.line()}; fingerprint {given.fingerprint(self.goal)[:8]}"),
                *(("", note) for note in given.notes),
                *plan_facts(plan),
                *resumed,
            ]
        )
