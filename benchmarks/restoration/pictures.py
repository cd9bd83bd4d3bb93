"""Contact sheets of the table: test images by tasks and ways, from what its jobs kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.restoration.data import NAMES, PICTURES, images
from benchmarks.restoration.listing import made
from benchmarks.restoration.running import unpacked
from benchmarks.restoration.shelf import Found, Job, Shelf
from benchmarks.restoration.tasks import SHORT, TASKS, pose
from benchmarks.restoration.ways import WAYS
from setpoint.restoration.contact_sheet import HIDDEN, as_shades
from setpoint.restoration.image_scores import psnr

EACH = 2  #: images of a task
BOX = (0.0, 1.0)


def draw(jobs: Sequence[Job], shelf: Shelf, into: Path = PICTURES) -> list[Path]:
    """One sheet a set; the files."""
    into.mkdir(parents=True, exist_ok=True)
    results = made(jobs, shelf)
    paths = []
    for data in dict.fromkeys(job.data for job, _ in results):
        found = {(job.task, job.way): (job, x) for job, x in results if job.data == data}
        path = into / f"restoration-table-{data}.png"
        sheet(data, found).savefig(path, dpi=80)
        paths.append(path)
    return paths


def sheet(data: str, found: dict[tuple[str, str], tuple[Job, Found]]) -> Figure:
    """Rows: images of each task. Columns: truth, measurement, ways."""
    tasks = [task for task in TASKS if any(t == task for t, _ in found)]
    ways = [way for way in WAYS if any(w == way for _, w in found)]
    rows = len(tasks) * EACH
    size = (1.15 * (len(ways) + 2) + 0.4, 1.3 * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, len(ways) + 2, squeeze=False)
    for number, task in enumerate(tasks):
        first = next(job for (t, _), (job, _) in found.items() if t == task)
        posed = pose(task, images(data, "test", first.images))
        for at in range(EACH):
            places = axes[number * EACH + at]
            _show(places[0], posed.truth[at], "truth", task)
            _measured(places[1], posed.y[at], posed.observed, at)
            for way, place in zip(ways, places[2:], strict=True):
                held = found.get((task, way))
                if held is None:
                    place.set_frame_on(False)
                    _bare(place, WAYS[way].title, "")
                    continue
                image = unpacked(held[1]["shown"])[at]
                score = float(psnr(image[None], posed.truth[at][None], BOX))
                _show(place, image, WAYS[way].title, f"{score:.1f} dB")
    for row, places in enumerate(axes):
        places[0].set_xlabel("")
        if row % EACH == 0:
            places[0].set_ylabel(SHORT[tasks[row // EACH]], fontsize=6)
        for place in places if row else ():
            place.set_title("")
    figure.suptitle(f"{NAMES[data]}, test images, noise σ = 0.02", fontsize="small")
    return figure


def _show(place: Any, image: Tensor, title: str, caption: str) -> None:
    place.imshow(as_shades(image.numpy(), BOX), interpolation="nearest")
    _bare(place, title, caption)


def _measured(place: Any, y: Tensor, observed: Tensor | None, at: int) -> None:
    shades = as_shades(y.numpy(), BOX)
    if observed is not None:
        shades[~observed[at].expand_as(y).any(0).numpy()] = HIDDEN
    place.imshow(shades, interpolation="nearest")
    _bare(place, "measured", "")


def _bare(place: Any, title: str, caption: str) -> None:
    place.set_title(title.replace(" ", "\n", 1), fontsize=6)
    place.set_xlabel(caption, fontsize=6, labelpad=1)
    place.set_xticks([])
    place.set_yticks([])
