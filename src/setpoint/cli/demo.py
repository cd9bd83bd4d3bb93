"""``setpoint demo``: bundled data, an ordinary model, four goals, a second look, and a proof."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from setpoint._core.files import write_bytes
from setpoint.cli import tradeoff
from setpoint.cli.debugging import Debug
from setpoint.cli.experiment import (
    GOALS,
    MODEL,
    RETRIED,
    SEED,
    SHUFFLES,
    Experiment,
    Told,
    run,
)
from setpoint.cli.output import Force, Json, Screen, command, count, number, print_json
from setpoint.cli.results import outcome
from setpoint.cli.saving import make_folder, refuse_existing

HELP = "Bundled data, one model, four goals and a proof: what each goal does to the threshold."
EPILOG = """
Examples

  setpoint demo
  setpoint demo --out demo
  setpoint demo --json
"""

#: By whether a constraint holds on the tune rows, and on the test rows.
_REMARKS = {
    (True, True): Text("holds on both", "green"),
    (True, False): Text("held on tune,\nbroke on test", "bold red"),
    (False, True): Text("broken on tune", "bold red"),
    (False, False): Text("broken on both", "bold red"),
}


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write scores.csv, the rules (JSON) and the trade-offs (SVG)."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train, tune, look again on untouched rows, print."""
    files = [] if out is None else [out / name for name in _names()]
    if out is not None:
        make_folder(out)
        refuse_existing(files, force)
    with _working("training and tuning", quiet=as_json):
        found = run()
        if out is not None:
            _write(out, found)
    if as_json:
        print_json({**found.to_json(), "written": [str(path) for path in files]})
    else:
        _show(Screen.open(), found, out)


@contextmanager
def _working(what: str, quiet: bool) -> Iterator[None]:
    """A spinner on stderr, if a person is looking at it."""
    screen = Screen.open(stderr=True)
    if quiet or not screen.console.is_terminal:
        yield
        return
    with screen.console.status(screen.say(f"{what} …")):
        yield


# --- files --------------------------------------------------------------------------------------


def _names() -> list[str]:
    return ["scores.csv", *(f"{name}.{kind}" for name in GOALS for kind in ("json", "svg"))]


def _write(out: Path, found: Experiment) -> None:
    """Draw everything, then write: scores of the tune rows, rules, trade-offs."""
    drawn = {t.name: tradeoff.render(t.rule, Path("plot.svg")) for t in found.told}
    pairs = zip(found.tune.y.tolist(), found.tune.scores.tolist(), strict=True)
    table = "label,score\n" + "".join(f"{label},{score!r}\n" for label, score in pairs)
    write_bytes(out / "scores.csv", table.encode())
    for told in found.told:
        told.rule.save(out / f"{told.name}.json")
        write_bytes(out / f"{told.name}.svg", drawn[told.name])


# --- the screen ---------------------------------------------------------------------------------


def _show(screen: Screen, found: Experiment, out: Path | None) -> None:
    screen.line()
    screen.facts(_opening(found))
    rows, gaps = _rows(found.told)
    screen.table(("", "tune", "test", ""), rows, numeric=(1, 2), gaps=gaps)
    for told in found.told:
        if not told.rule.feasible:
            screen.facts(outcome(told.rule))
            screen.line()
    retried = next(told for told in found.told if told.name == RETRIED)
    screen.line(f"{retried.rule.goal}, on the tune rows:", "bold")
    tradeoff.show(screen, retried.rule)
    screen.facts([("Second look", _second_look(found))])
    screen.line()
    screen.facts(_proof(found))
    screen.line()
    screen.facts(_next_steps(out))


def _opening(found: Experiment) -> list[tuple[str, str]]:
    train, tuning, testing = (p.about() for p in (found.train, found.tune, found.test))
    rows = train["rows"] + tuning["rows"] + testing["rows"]
    positives = train["positives"] + tuning["positives"] + testing["positives"]
    return [
        (
            "Data",
            f"wilt: {count(rows, 'segment')} of a satellite image, {positives} show diseased trees "
            f"({100 * positives / rows:.1f}%). The published split has a shifted prior (1.7% "
            "positive, then 37.4%), so the rows are pooled and split anew.",
        ),
        (
            "Split",
            f"train {train['rows']:,}, tune {tuning['rows']:,} ({tuning['positives']} positive), "
            f"test {testing['rows']:,} ({testing['positives']}), stratified, seed {SEED}; no "
            "threshold was chosen on the test rows",
        ),
        ("Model", f"{MODEL} (scikit-learn)"),
    ]


def _rows(told: tuple[Told, ...]) -> tuple[list[tuple[str | Text, ...]], list[int]]:
    """Rows of the table, and the places of the last row of each goal."""
    rows: list[tuple[str | Text, ...]] = []
    gaps: list[int] = []
    for t in told:
        nearest = "" if t.rule.feasible else " (nearest; NOT FEASIBLE)"
        rows.append((Text(str(t.rule.goal), "bold"), "", "", ""))
        rows.append((f"  {t.rule.operating_point()}{nearest}", "", "", ""))
        values = number(t.tuned.value), number(t.tested.value)
        rows.append((f"  {t.rule.goal.objective}", *values, ""))
        for tuned, tested in zip(t.tuned.kept, t.tested.kept, strict=True):
            remark = _REMARKS[tuned.holds, tested.holds]
            rows.append(
                (f"  {tuned.constraint}", number(tuned.value), number(tested.value), remark)
            )
        gaps.append(len(rows) - 1)
    return rows, gaps[:-1]


def _second_look(found: Experiment) -> str:
    broke = [constraint for told in found.told for constraint in told.broke()]
    here = f"{', '.join(broke)} held on tune and broke on test. " if broke else ""
    return (
        f"{here}With the tune and test rows shuffled {SHUFFLES} times, same model, "
        f'"{GOALS[RETRIED]}" was met on the tune rows and broken on the test rows in '
        f"{found.broken} of them: rows flatter the threshold that was chosen on them."
    )


def _proof(found: Experiment) -> list[tuple[str, str]]:
    proof = found.proven.certificate
    assert proof is not None
    fresh = found.plan.best_with(2 * found.plan.size)
    bought = "" if fresh is None else f"; {fresh.rows:,} would for {fresh.point}"
    return [
        ("Proof", f"{found.proven.goal}, chosen on the test rows in an order fixed on the others:"),
        ("", f"{found.proven.operating_point()}. {proof.findings[0].sentence()}."),
        ("", f"at {100 * proof.confidence:g}% confidence, {found.proven.sentence()}"),
        ("Labels", f"{found.plan.needs[0]}{bought}."),
    ]


def _next_steps(out: Path | None) -> list[tuple[str, str]]:
    setpoint = command()
    if out is None:
        return [
            ("Try next", f"{setpoint} demo --out demo"),
            ("", f"{setpoint} certify --help"),
            ("", f"{setpoint} metrics recall"),
        ]
    table = out / "scores.csv"
    return [
        ("Written", f"{out}: {', '.join(_names())}"),
        ("Try next", f'{setpoint} tune {table} --goal "maximize f_beta(2)"'),
        ("", f"{setpoint} metrics f_beta"),
    ]
