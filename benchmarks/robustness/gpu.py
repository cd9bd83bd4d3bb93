"""``gpu``: 1000 mnist images in one batch. ``python -m benchmarks.robustness.gpu FILE.json``.

Wall time an image, float32, after one call that is not counted; median of three. The same, counted
alike, on the CPU of the same machine, all its threads and one, on fewer images. Judged in float64
with 1e-5 of room for what float32 rounds. Needs torch with CUDA; where the figures are made
elsewhere, the file is read by ``--json``.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.robustness import models
from benchmarks.robustness.judging import EPS, NORMS, Case, judged, radii, succeeds
from setpoint.robustness.attacks.max_loss import max_loss
from setpoint.robustness.attacks.min_radius import min_radius

TABLE, IMAGES, FEW, ROUNDS, BATCH = "mnist", 1000, 100, 3, 20_000
Line = dict[str, Any]


def run(file: Path | None, console: Any) -> tuple[list[Line], dict[str, Any] | None]:
    """Measured here, or read."""
    if file is not None:
        held = json.loads(file.read_text(encoding="utf-8"))
        return held["lines"], held["environment"]
    if not torch.cuda.is_available():
        console.print("no GPU here: run it where there is one and give its file by --json")
        return [], None
    found = measure()
    for line in found["lines"]:
        console.print(line, highlight=False)
    return found["lines"], found["environment"]


def measure() -> dict[str, Any]:
    """Everything, and what it was made in."""
    name = torch.cuda.get_device_name()
    threads = os.cpu_count() or 1
    lines = []
    for form in ("max", "min"):
        for norm in NORMS:
            lines.append(one(form, norm, "cuda", IMAGES, name))
            for count in (threads, 1):
                torch.set_num_threads(count)
                lines.append(one(form, norm, "cpu", FEW, f"CPU, threads: {count}"))
            print(*lines[-3:], sep="\n", flush=True)
    torch_version = torch.__version__.partition("+")[0]
    about = {"python": platform.python_version(), "threads": 1, "torch": torch_version}
    return {"environment": about, "lines": lines}


def one(form: str, norm: str, device: str, count: int, name: str) -> Line:
    """One attack on one device."""
    net = models.model(TABLE, torch.float32).to(device)
    x, y = (part.to(device) for part in models.images(TABLE, count, torch.float32))
    eps, seconds = EPS[TABLE][norm], []
    for turn in range(ROUNDS + 1):
        begun = time.perf_counter()
        if form == "max":
            found = max_loss(net, x, y, norm, eps, batch=BATCH)
        else:
            found = min_radius(net, x, y, norm, batch=BATCH)
        if device == "cuda":
            torch.cuda.synchronize()
        if turn:  # the first call of either device is not counted
            seconds.append(time.perf_counter() - begun)
    # judged in float64 on the CPU, as everybody is
    held = Case(TABLE, models.model(TABLE), x.cpu().double(), y.cpu())
    margins, far = judged(held, found.x.cpu().double(), norm)
    line = {"form": form, "norm": norm, "where": name, "images": count}
    line["seconds"] = statistics.median(seconds) / count
    if form == "max":
        # what float32 rounds is no violation: an eps of its precision
        return {**line, "success": int(succeeds(margins + 1e-5, far, eps * (1 + 1e-5)).sum())}
    far = radii(margins + 1e-5, far)
    return {
        **line,
        "success": int((far < float("inf")).sum()),
        "median": float(statistics.median(far)),
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(measure()), encoding="utf-8")
