"""The sections of docs/results.md: recording -> section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.results.figures import table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how
from benchmarks.robustness.judging import NORMS

TELLING = {"l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞"}
PROTOCOL = (
    "200 test images that a small network gets right, float64, CPU seconds an image on one thread. "
    "One criterion for everybody: clipped to [0, 1], then margin ≥ 0"
)
ABOUT = {
    "max": f"{PROTOCOL} and distance ≤ ε (1 + 1e-6). Others at their defaults and with a large "
    "budget (100 steps; 5 restarts of APGD-CE, FAB and the projected attack, all nine classes by "
    "APGD-T and FAB-T). torchattacks has no APGD for ℓ₁ and its FAB stops there, so that its runs "
    "are called one by one. PyGRANSO on the first 30 images, one start, 100 iterations, the box "
    "folded; on the first 10, which are easier, it took 14 to 15 times ours on mnist, ℓ₂.",
    "min": f"{PROTOCOL}; no success is a radius of ∞. Large budgets: DDN 1000 steps, FMN the best, "
    "image by image, of four step lengths with 300 steps each. Closer and farther: images on which "
    "ours is, beyond 1e-6. PyGRANSO on the first 10 images, one start, 100 iterations, the box "
    "folded.",
    "perceptual": f"{PROTOCOL} and d ≤ ε (1 + 1e-6), d the distance between the features of a "
    "second network. A penalty attack and a projected attack after Laidlaw et al. 2021. Passes: "
    "images through either network, forwards, for each image. Large: ours with 10 restarts and "
    "400 iterations. ε was chosen on some of these images, so that about half can be beaten.",
    "gpu": "1000 mnist images in one batch, float32, wall time, median of three after a call that "
    "is not counted; on the CPU of the same machine 100 images, counted alike, with the threads "
    "that its columns name.",
}
TITLES = {
    "max": "Misclassified within ε",
    "min": "The nearest misclassified point",
    "perceptual": "Within a perceptual distance",
    "gpu": "On a GPU",
}


def maximal(recording: Recording) -> Section:
    """Ways by norms."""
    return _section(recording, "max", _tables(recording, _success, "success, CPU s"))


def minimal(recording: Recording) -> Section:
    """Ways by norms."""
    return _section(recording, "min", _tables(recording, _radius, "median, CPU s"))


def perceptual(recording: Recording) -> Section:
    """Ways by tables."""
    rows = [
        [
            f"{x['table']}, ε = {x['eps']:g}",
            x["budget"],
            x["way"],
            f"{x['success']} of {x['images']}",
            x["violated"],
            f"{x['passes']:.0f}",
            f"{x['seconds']:.3f}",
        ]
        for x in recording.lines
    ]
    head = ["table", "others' budget", "", "success", "violated", "passes", "CPU s"]
    return _section(recording, "perceptual", table(head, rows))


def gpu(recording: Recording) -> Section:
    """Devices by norms."""
    places = recording.distinct("where")
    rows = []
    for form in ("max", "min"):
        for norm in NORMS:
            cells = []
            for where in places:
                found = recording.where(form=form, norm=norm, where=where)
                cells.append(f"{1e3 * found[0]['seconds']:.2f} ms" if found else "–")
            rows.append([f"{TITLES[form]}, {TELLING[norm]}", *cells])
    return _section(recording, "gpu", table(["", *places], rows))


def _tables(recording: Recording, cell: Callable[[Any], str], what: str) -> str:
    text = ""
    for name in recording.distinct("table"):
        lines = recording.where(table=name)
        ways = list(dict.fromkeys(x["way"] for x in lines))
        heads = [f"{_norm(lines, norm)}: {what}" for norm in NORMS]
        rows = [[way, *_cells(lines, way, cell)] for way in ways]
        text += f"**{name}**\n\n" + table(["", *heads], rows) + "\n"
    return text.rstrip("\n") + "\n"


def _cells(lines: Sequence[Any], way: str, cell: Callable[[Any], str]) -> list[str]:
    found = {x["norm"]: x for x in lines if x["way"] == way}
    return [cell(found[norm]) if norm in found else "–" for norm in NORMS]


def _norm(lines: Sequence[Any], norm: str) -> str:
    eps = next((x["eps"] for x in lines if x["norm"] == norm and "eps" in x), None)
    return TELLING[norm] if eps is None else f"{TELLING[norm]}, ε = {eps:g}"


def _success(x: Any) -> str:
    text = f"{x['success']} of {x['images']}"
    over = f", {x['violated']:.0%} beyond ε" if x.get("violated") else ""
    time = f", {x['seconds']:.4f}" if x["seconds"] is not None else ""
    return text + over + time + _faster(x)


def _radius(x: Any) -> str:
    part = "" if x["success"] == x["images"] else f" ({x['success']} of {x['images']})"
    middle = "∞" if x["median"] is None else f"{x['median']:.4f}"
    pairs = f"; ours closer {x['wins']}, farther {x['losses']}" if "wins" in x else ""
    return f"{middle}{part}, {x['seconds']:.4f}{_faster(x)}{pairs}"


def _faster(x: Any) -> str:
    return f" ({x['ratio']:.0f} × less than PyGRANSO)" if x.get("ratio") else ""


def _section(recording: Recording, part: str, text: str) -> Section:
    return Section(TITLES[part], how(recording, ABOUT[part]) + "\n" + text)


_MAKE = {"max": maximal, "min": minimal, "perceptual": perceptual, "gpu": gpu}
#: recording -> its section, title and command
SECTIONS = {
    f"robustness-{part}": (
        make,
        TITLES[part],
        f"python -m benchmarks.robustness {part} --record",
    )
    for part, make in _MAKE.items()
}
