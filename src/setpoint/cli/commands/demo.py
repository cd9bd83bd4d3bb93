"""``setpoint demo``: the whole story on bundled data: fit, proof, report, decisions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

from setpoint._core.errors import FileError
from setpoint._core.files import make_folder, write_text
from setpoint.cli.display.run_view import show_outcome
from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.fit_table import Uses
from setpoint.cli.inputs.shared_options import Debug
from setpoint.cli.jobs.evaluate_job import EvaluatedRun
from setpoint.cli.jobs.fit_job import FitJob, FitOutput
from setpoint.cli.jobs.predict_job import PredictJob, PredictOptions, PredictOutput
from setpoint.cli.jobs.run_scores import OutputColumns, Scorer
from setpoint.cli.words import command, count
from setpoint.datasets import Dataset, load
from setpoint.decisions import evaluate, tune
from setpoint.goals import Goal

if TYPE_CHECKING:
    import pandas as pd


# A second look: how often a threshold that was only tuned breaks its limit on other rows.


SHUFFLES = 50
MODEL = "logistic regression on squares and products of rank-normalised columns"


@dataclass(frozen=True)
class SecondLook:
    """One model, one goal; the rows to tune and to test on shuffled many times.

    Attributes
    ----------
    goal : str
    met : int
        Shuffles in which the goal was met on the rows the threshold was tuned on.
    broken : int
        Those of them in which a constraint broke on the other rows.
    """

    goal: str
    met: int
    broken: int

    def sentence(self) -> str:
        """What was seen, in words."""
        return (
            f"With a threshold tuned on half of the rows and tested on the other half ({MODEL}), "
            f'"{self.goal}" was met on the tune rows in {self.met} of {SHUFFLES} shuffles, and '
            f"broken on the test rows in {self.broken} of these: rows flatter the threshold that "
            "was chosen on them."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "goal": self.goal,
            "model": MODEL,
            "shuffles": SHUFFLES,
            "met_on_tune": self.met,
            "broken_on_test": self.broken,
            "sentence": self.sentence(),
        }


def second_look(data: Dataset, goal: str, seed: int) -> SecondLook:
    """Train on half of the rows; tune and test on shuffled halves of the rest."""
    y, scores = _scored(data, seed)
    met = broken = 0
    for shuffle in range(seed + 1, seed + 1 + SHUFFLES):
        first, second = _halves(y, shuffle)
        rule = tune(goal, y[first], scores[first])
        if rule.feasible:
            met += 1
            broken += not evaluate(rule, y[second], scores[second]).holds
    return SecondLook(goal, met, broken)


def _scored(data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of the rows that the model was not trained on."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler

    x, y = data.X.to_numpy(), data.y
    first, second = _halves(y, seed)
    model = make_pipeline(
        QuantileTransformer(n_quantiles=500, output_distribution="normal", random_state=seed),
        PolynomialFeatures(degree=2),
        StandardScaler(),
        LogisticRegression(max_iter=2000),
    ).fit(x[first], y[first])
    return y[second], model.predict_proba(x[second])[:, 1]


def _halves(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the rows with the same share of positives."""
    from sklearn.model_selection import train_test_split

    halves = train_test_split(np.arange(len(y)), train_size=0.5, stratify=y, random_state=seed)
    return np.asarray(halves[0]), np.asarray(halves[1])


HELP = "The whole story on bundled data in about a minute: fit, proof, report, new rows."
EPILOG = """
Examples

  setpoint demo
  setpoint demo --out demo
  setpoint demo --json

The folder is made, or overwritten where it holds an earlier demo.

Exit codes

  0  done
  1  an unexpected error
  2  the folder holds something else, or cannot be written
"""
OUT = Path("setpoint-demo")
GOAL = "maximize recall subject to precision >= 0.6"
LOOK = "maximize recall subject to precision >= 0.9"  #: a limit that tuned thresholds often break
TARGET, NEW, SEED = "diseased", 0.2, 0
FILES = ("wilt.csv", "new.csv", "decisions.csv", "scores.csv")
SETTINGS = {
    "model": "auto",
    "method": "auto",
    "confidence": 0.95,
    "kind": None,
    "effort": "quick",
    "folds": None,
    "certify_size": None,
    "compare": True,
    "random_state": SEED,
}


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where everything is written.")
    ] = OUT,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write two tables, fit the one, decide the other, look a second time, print."""
    _refuse_others(out)
    data = load("wilt")
    told = _Demo(Screen.open(), data, out, as_json).run()
    if as_json:
        print_json(told)


def _refuse_others(out: Path) -> None:
    """Raise where the folder is not one of ours."""
    make_folder(out)
    others = [p.name for p in out.iterdir() if p.name not in (*FILES, "run")]
    if others:
        raise FileError(
            f'"{out}" holds other files ("{sorted(others)[0]}"); name another folder as --out.'
        )


@dataclass(frozen=True, eq=False)
class _Demo:
    """The demo, step by step."""

    screen: Screen
    data: Dataset
    out: Path
    quiet: bool

    @property
    def folder(self) -> Path:
        """Of the run."""
        return self.out / "run"

    def run(self) -> dict[str, Any]:
        """All steps; plain data of them."""
        known, new = self._tables()
        self._opening(len(known), len(new))
        output = self._fit()
        decided = self._predict()
        judged = EvaluatedRun.of(self.folder, self.out / "new.csv", OutputColumns())
        self._keep_scores(judged)
        with _working("a second look", self.quiet):
            look = second_look(self.data, LOOK, SEED)
        if not self.quiet:
            self._closing(decided, judged, look)
        return {
            "data": "wilt",
            "fit": output.record(),
            "predict": decided.record(),
            "evaluate": judged.record(),
            "second_look": look.to_json(),
            "written": [str(self.out / name) for name in (*FILES, "run")],
        }

    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to fit on, and new rows, by class."""
        table = self.data.X.assign(**{TARGET: self.data.y})
        rng, later = np.random.default_rng(SEED), np.zeros(len(table), bool)
        for label in (0, 1):
            rows = rng.permutation(np.flatnonzero(self.data.y == label))
            later[rows[: round(NEW * len(rows))]] = True
        parts = table.loc[~later], table.loc[later]
        for name, part in zip(FILES, parts, strict=False):
            with StringIO() as text:
                part.to_csv(text, index=False, lineterminator="\n")
                write_text(self.out / name, text.getvalue())
        return parts

    def _opening(self, known: int, new: int) -> None:
        if self.quiet:
            return
        rows, ill = len(self.data.y), int(self.data.y.sum())
        self.screen.line()
        self.screen.facts(
            [
                (
                    "Demo",
                    f"wilt: {count(rows, 'segment')} of a satellite image, {ill} show diseased "
                    f"trees ({100 * ill / rows:.1f}%).",
                ),
                ("", f"{known:,} rows go to {self.out / 'wilt.csv'}, and to fit;"),
                ("", f"{new:,} rows to {self.out / 'new.csv'}, which nothing sees until the end."),
            ]
        )
        table = self.out / "wilt.csv"
        self._typed(
            f"fit {table} --target {TARGET} \\",
            f'--goal "{GOAL}" \\',
            f"--out {self.folder} --effort quick",
        )

    def _typed(self, first: str, *more: str) -> None:
        self.screen.line()
        for line in (f"$ {command()} {first}", *(f"    {words}" for words in more)):
            self.screen.line(Text(self.screen.say(line), "bold cyan"))

    def _fit(self) -> FitOutput:
        uses = Uses(target=(TARGET,))
        goal = Goal.parse(GOAL)
        job = FitJob(self.out / "wilt.csv", goal, uses, SETTINGS, quiet=self.quiet)
        output = job.make(self.folder, force=True)
        if not self.quiet:
            show_outcome(self.screen, output.run)
        return output

    def _predict(self) -> PredictOutput:
        new, out = self.out / "new.csv", self.out / "decisions.csv"
        job = PredictJob(Scorer.open(self.folder), new, PredictOptions())
        tally = job.write(out, lambda share: None)
        return PredictOutput(SavedRun.open(self.folder), new, out, tally)

    def _keep_scores(self, judged: EvaluatedRun) -> None:
        """Labels and scores of the new rows, for the commands that take scores from anywhere."""
        pairs = zip(judged.rows.y.tolist(), judged.rows.scores.tolist(), strict=True)
        lines = "".join(f"{label},{score!r}\n" for label, score in pairs)
        write_text(self.out / "scores.csv", "label,score\n" + lines)

    def _closing(self, decided: PredictOutput, judged: EvaluatedRun, look: SecondLook) -> None:
        screen, run = self.screen, self.folder
        self._typed(f"predict {run} {decided.file} \\", f"--out {decided.out}")
        decided.show(screen)
        self._typed(f"evaluate {run} {decided.file}")
        screen.line()
        screen.facts(judged.outcome())
        screen.line()
        screen.facts([("Why a proof", look.sentence())])
        screen.line()
        screen.facts(
            [
                ("Report", Text(screen.say(str(run / "report.html")), "bold")),
                ("Try next", f"{command()} explain {run}"),
                ("", f"{command()} monitor {run} {decided.file}"),
                ("", f'{command()} tune {self.out / "scores.csv"} --goal "maximize f_beta(2)"'),
                ("", f"{command()} fit your.csv --target COL --goal TEXT --out run"),
            ]
        )


@contextmanager
def _working(what: str, quiet: bool) -> Iterator[None]:
    """A spinner on stderr, if a person is looking at it."""
    screen = Screen.open(stderr=True)
    if quiet or not screen.console.is_terminal:
        yield
        return
    with screen.console.status(screen.say(f"{what} …")):
        yield
