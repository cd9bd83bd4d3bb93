"""``setpoint robustness``: what attacks leave of a model's accuracy."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from setpoint._core.errors import KindError
from setpoint.cli.display.progress_bar import ProgressBar
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.exit_codes import ExitCode
from setpoint.cli.inputs.shared_options import Debug, Several
from setpoint.cli.inputs.user_code import called, claim, imported, read_arrays, read_model
from setpoint.cli.words import in_words, number

if TYPE_CHECKING:
    from setpoint.robustness import Promise, Robustness

HELP = "Attack a model on images, and say what is left of its accuracy."
EPILOG = """
Examples

  setpoint robustness weights.safetensors test.npz \\
    --factory mypackage.nets:make --distance linf --eps 0.03 --out run

  setpoint robustness weights.safetensors test.npz --factory nets:make \\
    --distance l2 --eps 0.25 --eps 0.5 --first 1000 --floor 0.6 --out run

  setpoint robustness weights.safetensors test.npz --factory nets:make \\
    --distance perceptual:lpips --eps 0.5 --beside nets:my_attack

The factory makes the module without weights; nothing is unpickled. Images
are (N, ...) between --low and --high, labels 0 to K - 1, and training has not
seen them. An attack can only show that a model is NOT robust: every figure is
a bound from above; --floor can be refuted here and never be proven.

Exit codes

  0    done; with --floor, nothing was found against it
  1    an unexpected error
  2    a mistake in the options or a file; nothing is written
  3    the promise of --floor is REFUTED, or BROKEN on these images
  130  stopped by Ctrl-C; the images that are done are written
"""
DATA, ATTACKS = "Data", "Attacks"


def robustness(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Weights of the model: .safetensors.")
    ],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Images and labels: .npz.")],
    factory: Annotated[
        str,
        typer.Option(
            "--factory", "-f", metavar="MOD:FUN", help="Function that makes the module: mod:fun."
        ),
    ],
    distance: Annotated[
        str,
        typer.Option(
            "--distance", "-d", metavar="NAME", help="l1, l2, linf, l<p>, or mod:fun of yours."
        ),
    ],
    eps: Annotated[
        list[float],
        typer.Option("--eps", "-e", metavar="R", help="How far images are moved; may be repeated."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for record, table and plots."),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="A promise to refute: robust accuracy at least this."),
    ] = None,
    images: Annotated[
        str, typer.Option(metavar="NAME", help="Of the images in DATA.", rich_help_panel=DATA)
    ] = "X",
    labels: Annotated[
        str, typer.Option(metavar="NAME", help="Of the labels in DATA.", rich_help_panel=DATA)
    ] = "y",
    first: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only the first N images.", rich_help_panel=DATA),
    ] = None,
    low: Annotated[
        float, typer.Option(metavar="V", help="Least value of a pixel.", rich_help_panel=DATA)
    ] = 0.0,
    high: Annotated[
        float, typer.Option(metavar="V", help="Greatest value of a pixel.", rich_help_panel=DATA)
    ] = 1.0,
    no_radius: Annotated[
        bool,
        typer.Option(
            "--no-radius",
            metavar="",
            help="Do not search for least distances.",
            rich_help_panel=ATTACKS,
        ),
    ] = False,
    beside: Annotated[
        Several,
        typer.Option(
            metavar="MOD:FUN",
            help="Called with the model, gives an attack to run beside ours; repeat.",
            rich_help_panel=ATTACKS,
        ),
    ] = None,
    loss: Annotated[
        str,
        typer.Option(metavar="NAME", help="margin or cross_entropy.", rich_help_panel=ATTACKS),
    ] = "margin",
    restarts: Annotated[
        int | None, typer.Option(metavar="N", help="Of our attacks.", rich_help_panel=ATTACKS)
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(metavar="N", help="Of our attacks.", rich_help_panel=ATTACKS)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Images at a time.", rich_help_panel=ATTACKS)
    ] = None,
    confidence: Annotated[float, typer.Option(metavar="P", help="Of interval and bound.")] = 0.95,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of random starts.", rich_help_panel=ATTACKS)
    ] = 0,
    device: Annotated[str, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1.")] = "cpu",
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read, attack, save, print; see :func:`setpoint.robustness.evaluate`."""
    claim(out, force)
    if floor is not None and not 0 < floor <= 1:
        raise KindError(f"--floor is a share above 0, at most 1; got {floor:g}.")
    if first is not None and first < 1:
        raise KindError(f"--first is a number of images, 1 or more; got {first}.")
    x, y = read_arrays(data, images, labels)
    made = read_model(model, factory, device)
    settings = {
        "attacks": ["auto", *(called(spec, "--beside", made) for spec in beside or ())],
        "radius": not no_radius,
        "loss": loss,
        "restarts": restarts,
        "iterations": iterations,
        "batch_size": batch_size,
        "confidence": confidence,
        "low": low,
        "high": high,
        "seed": seed,
    }
    measure = imported(distance, "--distance") if ":" in distance else distance
    found = _evaluated(made, x[:first], y[:first], measure, eps, settings, as_json)
    promised = () if floor is None else tuple(found.promise(floor, e) for e in found.eps)
    if out is not None:
        found.save(out)
    if as_json:
        print_json(_record(found, promised, model, data, out))
    else:
        _show(Screen.open(), found, promised, data, out)
    if found.stopped:
        raise KeyboardInterrupt(_stopped(found, out))
    if not all(promise.holds for promise in promised):
        raise typer.Exit(ExitCode.GOAL_NOT_MET)


def _evaluated(
    model: Any, x: Any, y: Any, distance: Any, eps: Any, settings: dict[str, Any], quiet: bool
) -> Robustness:
    from setpoint.robustness import evaluate

    # what attacks of others print does not belong into the results
    aside = redirect_stdout(sys.stderr) if quiet else nullcontext()
    with ProgressBar(quiet) as bar, aside:
        try:
            return evaluate(model, x, y, distance, eps, listener=bar, **settings)
        except KeyboardInterrupt:
            said = "stopped before the first batch of images was done; nothing is written."
            raise KeyboardInterrupt(said) from None


def _stopped(found: Robustness, out: Path | None) -> str:
    done = f"stopped; {found.images:,} of {found.asked:,} images are done"
    return f'{done} and written to "{out}".' if out is not None else f"{done}; nothing is written."


def _record(
    found: Robustness, promised: tuple[Promise, ...], model: Path, data: Path, out: Path | None
) -> dict[str, Any]:
    return {
        **found.to_json(),
        "model": str(model),
        "data": str(data),
        "promises": [
            {"eps": e, "verdict": p.verdict, "sentence": p.sentence}
            for e, p in zip(found.eps, promised, strict=False)
        ],
        "written": None if out is None else str(out),
    }


def _show(
    screen: Screen,
    found: Robustness,
    promised: tuple[Promise, ...],
    data: Path,
    out: Path | None,
) -> None:
    pixels = " x ".join(map(str, found.clean.shape[1:])) if found.clean is not None else ""
    clean, *told = found.sentences()
    screen.line()
    screen.facts(
        [
            ("Data", f"{data.name}: {found.images:,} images of {pixels}"),
            ("Attacks", f"{_named(found)} in {in_words(found.seconds)}"),
            ("Clean", clean),
        ]
    )
    rows = [
        (
            f"{found.distance} <= {level.eps:g}",
            f"{level.right:,}",
            number(level.accuracy),
            f"[{level.interval[0]:.4g}, {level.interval[1]:.4g}]",
            number(level.at_most),
        )
        for level in found.levels
    ]
    sure = f"{100 * found.confidence:g}%"
    screen.table(
        ("robust accuracy", "left", "here at most", f"{sure} interval", "elsewhere at most"),
        rows,
        numeric=(1, 2, 3, 4),
        solid=(0,),
        legend=f"elsewhere: on images like these, {sure} confidence, exact binomial",
    )
    screen.facts(
        [
            *(("Promise", _coloured(promise)) for promise in promised),
            *_limits(told[len(found.levels) :]),
            *([] if out is None else [("Written", str(out))]),
        ]
    )


def _named(found: Robustness) -> str:
    return ", ".join(f"{ran.name} ({ran.won:,} of {ran.tried:,})" for ran in found.attacks)


def _limits(told: list[str]) -> list[tuple[str, str]]:
    caution, radii, *rest = told
    return [("Radius", radii), ("Caution", caution), *(("", said) for said in rest)]


def _coloured(promise: Promise) -> Text:
    style = "bold" if promise.holds else "bold red"
    return Text.assemble((promise.verdict, style), f": {promise.account}")
