"""``max`` and ``min``: norms, ours beside torchattacks, foolbox and PyGRANSO."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any

import numpy as np
import torch

from benchmarks.peers import ROOT
from benchmarks.robustness.judging import EPS, NORMS, Case, case, judged, radii, succeeds
from benchmarks.robustness.models import INTO, TABLES
from setpoint.robustness.attacks.max_loss import max_loss
from setpoint.robustness.attacks.min_radius import min_radius

POINTS = INTO / "points"
SETUPS = {
    "attacks": "sh benchmarks/robustness/setup_attacks.sh",
    "pygranso": "sh benchmarks/solver/setup_pygranso.sh",
}
IMAGES = {("pygranso", "max"): 30, ("pygranso", "min"): 10}  #: the first ones; elsewhere all
OURS, UNION, SINGLE = "ours", "union of the others", "PyGRANSO"
CHEAPER = 20.0  #: times less CPU an image than PyGRANSO
EVEN = 1e-6  #: radii that differ by less, relatively, are even
Line = dict[str, Any]
Points = dict[str, tuple[np.ndarray, float]]


def run(form: str, console: Any) -> list[Line]:
    """Both tables, three norms."""
    lines = []
    for table in TABLES:
        held = case(table)
        for norm in NORMS:
            found = {OURS: own(held, form, norm)}
            for peer in SETUPS:
                found |= theirs(peer, form, table, norm, console)
            new = (maximal if form == "max" else minimal)(held, norm, found)
            lines += [{"form": form, "table": table, "norm": norm, **x} for x in new]
            for line in lines[-len(new) :]:
                console.print(said(line), highlight=False, soft_wrap=True)
    return lines


def own(held: Case, form: str, norm: str) -> tuple[np.ndarray, float]:
    """At the defaults; a call with two images goes first and is not counted."""

    def attack(x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
        if form == "max":
            return max_loss(held.net, x, y, norm, EPS[held.table][norm]).x.numpy()
        return min_radius(held.net, x, y, norm).x.numpy()

    attack(held.x[:2], held.y[:2])
    begun = time.process_time()
    points = attack(held.x, held.y)
    return points, time.process_time() - begun


def theirs(peer: str, form: str, table: str, norm: str, console: Any) -> Points:
    """What the other side wrote, now or before; nothing where it is not installed."""
    python = ROOT / ".peers" / peer / "bin" / "python"
    file = POINTS / f"{peer}-{form}-{table}-{norm}.npz"
    if not file.exists():
        if not python.exists():
            console.print(f"{peer} is not installed and is left out: run {SETUPS[peer]}")
            return {}
        POINTS.mkdir(parents=True, exist_ok=True)
        module = f"benchmarks.robustness.{peer}_side"
        words = form, table, norm, str(IMAGES.get((peer, form), 200)), str(file)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [str(python), "-W", "ignore", "-m", module, *words]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the side of {peer} failed:\n{done.stderr}")
    with np.load(file) as made:
        names = [x for x in made.files if "|" not in x]
        return {x: (made[x], float(made[f"{x}|seconds"])) for x in names}


def maximal(held: Case, norm: str, found: Points) -> list[Line]:
    """Successes within eps."""
    eps, lines, union = EPS[held.table][norm], [], np.zeros(len(held.x), bool)
    for way, (points, seconds) in found.items():
        part = first(held, len(points))
        margins, far = judged(part, torch.from_numpy(points), norm)
        good = succeeds(margins, far, eps)
        if way not in (OURS, SINGLE):
            union |= good
        over = (far > eps * (1 + 1e-6)).mean()
        lines.append(line(way, part, good, seconds, eps=eps, violated=over))
    if union.any():
        lines.append(line(UNION, held, union, None, eps=eps))
    least = int(union.sum()) - 0.01 * len(union)
    return [hold(x, lines, x["success"] >= least) for x in lines]


def minimal(held: Case, norm: str, found: Points) -> list[Line]:
    """Radii; ∞ where there is none."""
    lines, far = [], {}
    for way, (points, seconds) in found.items():
        part = first(held, len(points))
        far[way] = radii(*judged(part, torch.from_numpy(points), norm))
        good, middle = np.isfinite(far[way]), float(np.median(far[way]))
        lines.append(line(way, part, good, seconds, median=middle if middle < np.inf else None))
        if way != OURS:
            ours, other = far[OURS][: len(points)], far[way]
            closer = ours < other * (1 - EVEN)
            farther = ours > other * (1 + EVEN)
            lines[-1] |= {"wins": int(closer.sum()), "losses": int(farther.sum())}
    others = [x["median"] for x in lines if x["way"] not in (OURS, SINGLE) and x["median"]]
    least = min(others, default=np.inf) * (1 + EVEN)
    held_to = [x["success"] >= 0.99 * x["images"] and (x["median"] or 9e9) <= least for x in lines]
    return [hold(x, lines, good) for x, good in zip(lines, held_to, strict=True)]


def first(held: Case, count: int) -> Case:
    """The first images of a case."""
    return Case(held.table, held.net, held.x[:count], held.y[:count])


def line(way: str, part: Case, good: np.ndarray, seconds: float | None, **more: Any) -> Line:
    """One method's figures."""
    each = None if seconds is None else seconds / len(part.x)
    figures = {"images": len(part.x), "success": int(good.sum()), "seconds": each}
    return {"way": way, **figures, **more}


def hold(x: Line, lines: list[Line], good: bool) -> Line:
    """Ours with its verdict: as good as the others, and so many times cheaper than PyGRANSO."""
    if x["way"] != OURS or len(lines) == 1:
        return x
    single = [y["seconds"] for y in lines if y["way"] == SINGLE]
    ratio = single[0] / x["seconds"] if single else None
    cheap = ratio is None or ratio >= CHEAPER
    return {**x, "ratio": ratio, "verdict": "ok" if good and cheap else "MISSED"}


def said(x: Line) -> str:
    """For the screen."""
    what = f"median {x['median']}" if "median" in x else f"violated {x.get('violated')}"
    words = f"{x['form']} {x['table']} {x['norm']} {x['way']}: {x['success']} of {x['images']}"
    pairs = f" wins {x['wins']} losses {x['losses']}" if "wins" in x else ""
    end = f" {x['ratio'] or 0:.1f} x, {x['verdict']}" if "verdict" in x else ""
    return f"{words}, {what}, {x['seconds'] or 0:.4f} s an image{pairs}{end}"
