"""``setpoint restore``: images from incomplete, blurred or noisy measurements of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setpoint._core.errors import KindError
from setpoint._core.progress import Progress
from setpoint.cli.display.progress_bar import ProgressBar
from setpoint.cli.display.terminal import Force, Json, Screen, print_json
from setpoint.cli.inputs.shared_options import Debug, split
from setpoint.cli.words import count, in_words

if TYPE_CHECKING:
    from setpoint.cli.inputs.restore_inputs import RestoreProblem
    from setpoint.restoration.compare import Compared
    from setpoint.restoration.storage import RestorationSetting

HELP = "Restore images from incomplete, blurred or noisy measurements."
EPILOG = """
Examples

  setpoint restore digits.png --simulate --operator inpaint:0.7 \\
    --noise gaussian:0.02 --prior mnist --out run

  setpoint restore damaged.png --operator mask:mask.png --prior mnist \\
    --noise unknown --method dmplug,tv --out run

  setpoint restore blurred.npy --range 0,1 --operator blind-blur:9 \\
    --prior cifar10 --truth clean.npy --out run

IN is the measurement; with --simulate it is a clean image that is measured
here first, and then it is the truth. Files: .png, .npy, .npz, a folder of .png.

Operators: sr:2, inpaint:0.7, box:12, gaussian-blur:1.5, motion-blur:9,45,
blur-saturate:1.0,2.0, blur-gamma:1.0,2.2, blind-blur:9, phase:2, mask:FILE
(white is seen), kernel:FILE, or mod:fun of yours.
Noise, in units of the prior's range: gaussian:S, impulse:SHARE, shot:PHOTONS,
speckle:S, or unknown. Floats in .npy do not say what black and white are:
--range does. The truth is for scores alone; no method ever sees it.

Exit codes

  0    done
  1    an unexpected error
  2    a mistake in the options or a file; nothing is written
  130  stopped by Ctrl-C; the best so far is written
"""
DATA, SEARCH = "Data", "Search"


def restore(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="Measurement: .png, .npy, .npz or a folder of .png."),
    ],
    operator: Annotated[
        str,
        typer.Option("--operator", "-a", metavar="SPEC", help="How it was measured: inpaint:0.7 …"),
    ],
    prior: Annotated[
        str,
        typer.Option(
            "--prior", "-p", metavar="NAME", help="mnist, cifar10 …, a file, a folder, mod:fun."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for images, sheet, page, record."),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            "--noise", "-n", metavar="SPEC", help="gaussian:0.02 …, unknown; none to simulate."
        ),
    ] = "unknown",
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="A,B", help="One or several, side by side."),
    ] = "dmplug",
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Clean images, for scores.", rich_help_panel=DATA),
    ] = None,
    truth_array: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the array in that .npz.", rich_help_panel=DATA),
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate",
            metavar="",
            help="IN is clean: measure it here, then restore.",
            rich_help_panel=DATA,
        ),
    ] = False,
    through: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Simulate through this one; a blind --operator needs it.",
            rich_help_panel=DATA,
        ),
    ] = None,
    hide_noise: Annotated[
        bool,
        typer.Option(
            "--hide-noise",
            metavar="",
            help="Simulate with --noise and do not tell the methods.",
            rich_help_panel=DATA,
        ),
    ] = False,
    value_range: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="LOW,HIGH", help="Black and white of floats.", rich_help_panel=DATA
        ),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the array in IN, an .npz.", rich_help_panel=DATA),
    ] = None,
    first: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only the first N images.", rich_help_panel=DATA),
    ] = None,
    pad: Annotated[
        int,
        typer.Option(
            metavar="N", help="Frame of N dark pixels around images.", rich_help_panel=DATA
        ),
    ] = 0,
    training: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Images for the method nearest.", rich_help_panel=SEARCH),
    ] = None,
    training_array: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the array in that .npz.", rich_help_panel=SEARCH),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(metavar="N", help="Of each method.", rich_help_panel=SEARCH)
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of masks, noise, starts.", rich_help_panel=SEARCH)
    ] = 0,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1.", rich_help_panel=SEARCH)
    ] = "cpu",
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read, measure or take the measurement, restore, save, print; see ``setpoint.restoration``."""
    from setpoint.cli.inputs.restore_inputs import RestoreOptions, read_problem
    from setpoint.restoration.compare import checked_methods
    from setpoint.restoration.storage import claim

    _check_numbers(first=(first, 1), iterations=(iterations, 1), pad=(pad, 0), seed=(seed, 0))
    names = checked_methods(split(method))
    if out is not None:
        claim(out, force)
    asked = RestoreOptions(
        source=source,
        operator=operator,
        prior=prior,
        noise=noise,
        truth=truth,
        truth_array=truth_array,
        simulate=simulate,
        through=through,
        hidden=hide_noise,
        range=_pair(value_range),
        array=array,
        first=first,
        pad=pad,
        training=training,
        training_array=training_array,
        seed=seed,
        device=device,
        nearest="nearest" in names,
    )
    problem = read_problem(asked)
    comparison = _compared(problem, names, iterations, seed, as_json)
    setting = problem.setting(asked)
    if out is not None:
        comparison.save(out, setting=setting, force=force)
    if as_json:
        print_json(_record(comparison, setting, out))
    else:
        _show(Screen.open(), comparison, setting, problem, out)
    if comparison.stopped:
        where = "nothing is written." if out is None else f'it is written to "{out}".'
        raise KeyboardInterrupt(f"stopped; what is shown is the best so far, and {where}")


def _check_numbers(**numbers: tuple[int | None, int]) -> None:
    for name, (value, least) in numbers.items():
        if value is not None and value < least:
            raise KindError(f"--{name} is a whole number, {least} or more; got {value}.")


def _pair(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not low < high or not abs(high - low) < float("inf"):
        raise KindError(f'--range is two numbers, LOW,HIGH, such as 0,1 or 0,255; got "{text}".')
    return low, high


def _compared(
    problem: RestoreProblem, names: list[str], iterations: int | None, seed: int, quiet: bool
) -> Compared:
    from setpoint.restoration.compare import compare

    with ProgressBar(quiet) as bar:
        try:
            comparison = compare(
                problem.y,
                problem.operator,
                problem.prior,
                names,
                problem.truth,
                noise=problem.noise,
                seed=seed,
                training=problem.training,
                iterations=iterations,
                callback=_Iterates(names, bar),
            )
        except KeyboardInterrupt:
            why = "stopped before the first iterate; nothing is written."
            raise KeyboardInterrupt(why) from None
        bar(Progress(what="done", done=len(names), total=len(names)))
        return comparison


class _Iterates:
    """What a restoration tells of its iterates, as progress; it looks at most five times a second.

    A residual lives on the device; reading it at every step would make the device wait.
    """

    def __init__(self, methods: list[str], bar: ProgressBar) -> None:
        self.methods = methods
        self.bar = bar
        self.last = 0.0

    def __call__(self, method: str, step: int, steps: int | None, residual: Any) -> None:
        now = time.monotonic()
        if not self.bar.shown or now - self.last < 0.2:
            return
        self.last = now
        size = float(residual.double().mean().sqrt())
        part = step / steps if steps else 0.0
        of = f"/{steps}" if steps else ""
        self.bar(
            Progress(
                what=f"{method} {step}{of}, residual {size:.4g}",
                done=self.methods.index(method) + part,
                total=len(self.methods),
            )
        )


def _record(comparison: Compared, setting: RestorationSetting, out: Path | None) -> dict[str, Any]:
    from setpoint.restoration.storage import as_json

    return {**as_json(comparison, setting), "written": None if out is None else str(out)}


def _show(
    screen: Screen,
    comparison: Compared,
    setting: RestorationSetting,
    problem: RestoreProblem,
    out: Path | None,
) -> None:
    from setpoint.restoration.html_page import pair

    low, high = comparison.range
    size = " x ".join(map(str, problem.prior.shape))
    screen.line()
    screen.facts(
        [
            ("Data", f"{setting.source}: {count(len(setting.names), 'image')}"),
            ("Operator", setting.operator),
            ("Noise", setting.noise),
            ("Prior", f"{setting.prior}: images of {size}, values {low:g} to {high:g}"),
        ]
    )
    rows = comparison.table()
    heads = {"psnr": "PSNR dB", "ssim": "SSIM", "residual": "residual", "oracle_psnr": "oracle dB"}
    digits = {"psnr": 2, "ssim": 3, "residual": 4, "oracle_psnr": 2}
    keys = [key for key in heads if any(row[key] is not None for row in rows)]
    screen.table(
        ("method", *(heads[key] for key in keys), "time"),
        [
            (
                row["method"],
                *(pair(row[key], digits[key]) for key in keys),
                in_words(row["seconds"]),
            )
            for row in rows
        ],
        numeric=tuple(range(1, len(keys) + 2)),
        solid=(0,),
        legend="oracle: the iterate picked by the truth, which nobody has; not a result"
        if "oracle_psnr" in keys
        else "",
    )
    screen.facts(
        [
            *((row["method"], row["status"]) for row in rows),
            *((name, f"could not be used: {why}") for name, why in comparison.failed.items()),
            *_unbegun(comparison),
            ("Verdict", comparison.verdict()),
            *(("Note", note) for note in setting.notes),
            *([] if out is None else [("Written", str(out))]),
        ]
    )


def _unbegun(comparison: Compared) -> list[tuple[str, str]]:
    """Methods that Ctrl-C came before."""
    left = [
        name
        for name in comparison.asked
        if name not in comparison.restored and name not in comparison.failed
    ]
    return [("Stopped", f"{', '.join(left)} not begun")] if left else []
