"""One fit from a file to a run folder: read, plan, fit, save; stopped, it can be taken up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setpoint._core.errors import FileError, SetpointError
from setpoint._core.notes import Note, NoteCode
from setpoint.cli.display.progress_bar import FitBar, plan_facts
from setpoint.cli.display.run_view import RunUsage, next_facts, record, show_outcome
from setpoint.cli.display.terminal import Screen
from setpoint.cli.files.run_folder import Folder, claim
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.fit_table import FitTable, Uses, read_given
from setpoint.cli.words import command, count, in_words
from setpoint.goals import Goal

if TYPE_CHECKING:
    from setpoint.estimators.classifier import GoalClassifier
    from setpoint.fit.events import Planned
    from setpoint.fit.run_record import ClassifierRun

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
class FitJob:
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
            folder.begin()

        with FitBar(planned, self.quiet) as live:
            classifier = self._classifier(given, folder, live)
            try:
                classifier.fit(given.X, given.target.y, **given.more)
            except KeyboardInterrupt:
                run = getattr(classifier, "run_", None)
                best = None if run is None else self._named(run, given, folder)
                raise self._stopped(best, folder) from None
            except FileError as error:
                raise self._unwritten(error, folder) from error
            except SetpointError:
                folder.withdraw()
                raise
            return self._named(classifier.run_, given, folder)

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
