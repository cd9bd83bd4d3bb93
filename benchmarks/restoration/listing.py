"""Which jobs a part is made of, longest first, and the lines that its results come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.restoration import noise, settings
from benchmarks.restoration.data import DATASETS
from benchmarks.restoration.judging import mean_and_error, with_verdicts
from benchmarks.restoration.shelf import Found, Job, Shelf
from benchmarks.restoration.tasks import GOAL, TASKS
from benchmarks.restoration.ways import WAYS

TUNING = 24  #: training images of a grid's point
TIMED = "inpaint"  #: the task whose seconds are told
SMOKE = ("digits",)  #: sets of a dry run
FEW = 2  #: images of one
CLIPS = 20
VIDEO_TASKS = ("sr4", "inpaint")
VIDEO_WAYS = ("base", "semantic", "pixel", "both")
#: in this order where time is short
FIRST = (
    *("fmplug", "fmplug-diffusion", "dmplug", "dps-mean", "constrained", "pnp", "dps"),
    *("tv", "nearest", "dip"),
)
LONG = ("dip", "dps-mean")  #: not made once more to be timed
#: ways of the part noise -> what each is told
TOLD: dict[str, tuple[float | None, ...]] = {
    "dmplug": (None,),
    "dmplug-robust": (None,),
    "constrained": (None,),
    "fmplug": (None,),
    "dps": noise.STATED,
    "pnp": (None, *noise.STATED),
}


def table_jobs(
    data: Sequence[str],
    ways: Sequence[str],
    tasks: Sequence[str],
    count: int | None,
    smoke: bool,
) -> list[Job]:
    """Sets by ways by tasks."""
    return ordered(
        Job("table", d, w, t, count or DATASETS[d].images, options(d, w, t, smoke), smoke)
        for d in data
        for w in ways
        for t in tasks
        if t in (WAYS[w].tasks or TASKS)
    )


def noise_jobs(
    data: Sequence[str], ways: Sequence[str], task: str, count: int | None, smoke: bool
) -> list[Job]:
    """Ways by what they are told; settings are those of the table, for nothing is retuned."""
    images = count or noise.IMAGES
    return ordered(
        Job("noise", d, w, task, images, _told(d, w, task, stated, kind, smoke), smoke)
        for d in data
        for w in ways
        for stated in TOLD.get(w, ())
        for kind in noise.KINDS
    )


def video_jobs(count: int | None, smoke: bool) -> list[Job]:
    """Tasks by ways of the part video."""
    clips = count or (FEW if smoke else CLIPS)
    return [
        Job("video", "mnist", "video", task, clips, {"way": way}, smoke)
        for task in VIDEO_TASKS
        for way in VIDEO_WAYS
    ]


def everything(
    data: Sequence[str], ways: Sequence[str], count: int | None, smoke: bool
) -> tuple[list[Job], list[Job]]:
    """What is made once more alone on the device, so that its seconds count, and everything.

    What matters most comes first: the tasks with a goal, in the order of ``FIRST``.
    """
    short = [way for way in FIRST if way in ways and way not in LONG]
    alone = table_jobs(data[:1], short, [TIMED], count, smoke)
    table = table_jobs(data, ways, TASKS, count, smoke)
    rank = {way: number for number, way in enumerate(FIRST)}
    table = sorted(table, key=lambda job: rank[job.way])
    goal = [job for job in table if job.task in GOAL]
    rest = [job for job in table if job.task not in GOAL]
    told = noise_jobs(data[:1], list(TOLD), noise.TASK, count, smoke)
    jobs = [
        *(job for job in goal if job.way != "dip"),
        *video_jobs(count, smoke),
        *(job for job in told if job.way != "pnp"),
        *(job for job in goal if job.way == "dip"),
        *rest,
        *(job for job in told if job.way == "pnp"),
    ]
    return sorted(alone, key=lambda job: WAYS[job.way].cost), jobs


def tune_jobs(
    data: Sequence[str], ways: Sequence[str], tasks: Sequence[str], count: int | None, smoke: bool
) -> list[Job]:
    """Sets by ways by tasks by points of the grid."""
    jobs = []
    for d in data:
        for w in ways:
            held = WAYS[w]
            base = {**held.options, **held.tuning, **(held.short if smoke else {})}
            points = held.grid[: 2 if smoke else None]
            jobs += [
                Job("tune", d, w, t, count or TUNING, {**base, **point}, smoke)
                for t in tasks
                for point in points
            ]
    return ordered(jobs)


def options(data: str, way: str, task: str, smoke: bool, **where: Any) -> dict[str, Any]:
    """What a way runs with: its own options, those chosen in tuning, few steps in a dry run."""
    held = WAYS[way]
    chosen = settings.options(data, way, task, **where)
    return {**held.options, **chosen, **(held.short if smoke else {})}


def _told(
    data: str, way: str, task: str, stated: float | None, kind: str, smoke: bool
) -> dict[str, Any]:
    """The rule of DPS that follows a stated level where it is told one, the other where not."""
    rule = {"rule": "norm" if stated is None else "level"} if way == "dps" else {}
    held = options(data, way, task, smoke, **rule)
    return {**held, "stated": stated, "kind": kind}


def ordered(jobs: Iterable[Job]) -> list[Job]:
    """The longest first, so that none begins when the others are done."""
    return sorted(jobs, key=lambda job: -WAYS[job.way].cost * _size(job))


def _size(job: Job) -> float:
    pixels = 3.0 if job.data == "cifar10" else 1.0
    return pixels * (1.5 if job.task == "blind" else 1.0) * (6.0 if job.part == "noise" else 1.0)


def table_lines(jobs: Sequence[Job], shelf: Shelf) -> list[dict[str, Any]]:
    """One line a job, with verdicts; PSNR image by image, of the rest mean and error."""
    lines = []
    for job, found in made(jobs, shelf):
        line: dict[str, Any] = {"data": job.data, "task": job.task, "way": job.way}
        line |= {"images": job.images, "options": _plain(job.options)}
        line["device"] = found.get("environment", {}).get("device", "CPU")
        for name in ("psnr", "oracle_psnr"):
            if name in found:
                line[name] = [round(v, 2) for v in found[name]]
        for name in ("ssim", "oracle_ssim", "residual", "manifold"):
            if name in found:
                line[name], line[f"{name}_error"] = mean_and_error(found[name])
        lines.append(line)
    order = {name: number for number, name in enumerate([*TASKS, *WAYS])}
    lines.sort(key=lambda x: (x["data"] != "mnist", order[x["task"]], order[x["way"]]))
    return with_verdicts(lines)


def noise_lines(jobs: Sequence[Job], shelf: Shelf) -> list[dict[str, Any]]:
    """One line a way, what it was told, and a setting."""
    lines = []
    for job, found in made(jobs, shelf):
        line = {"data": job.data, "task": job.task, "way": job.way, "stated": found["stated"]}
        if "environment" in found:
            line["device"] = found["environment"].get("device", "CPU")
        lines += [{**line, **setting} for setting in found["settings"]]
    return lines


def tune_lines(jobs: Sequence[Job], shelf: Shelf) -> list[dict[str, Any]]:
    """One line a point: its own options and the mean PSNR at the selected iterates."""
    lines = []
    for job, found in made(jobs, shelf):
        base = {**WAYS[job.way].options, **WAYS[job.way].tuning}
        own = {k: v for k, v in job.options.items() if k not in base}
        line = {"data": job.data, "task": job.task, "way": job.way, "options": own}
        lines.append({**line, "images": job.images, "psnr": float(np.mean(found["psnr"]))})
    return lines


def time_lines(jobs: Sequence[Job], shelf: Shelf) -> list[dict[str, Any]]:
    """One line a job that was made on a device: seconds of a CPU are another matter."""
    return [
        {
            "data": job.data,
            "task": job.task,
            "way": job.way,
            "images": job.images,
            "seconds": found["seconds"] / job.images,
            "beside": found["beside"],
        }
        for job, found in made(jobs, shelf)
        if "device" in found["environment"] or job.smoke
    ]


def video_lines(jobs: Sequence[Job], shelf: Shelf) -> list[dict[str, Any]]:
    """As the part itself makes them."""
    return [line for _, found in made(jobs, shelf) for line in found["lines"]]


def made(jobs: Sequence[Job], shelf: Shelf) -> list[tuple[Job, Found]]:
    """The jobs that there are results of."""
    pairs = [(job, shelf.get(job)) for job in jobs]
    return [(job, found) for job, found in pairs if found is not None]


def _plain(held: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in held.items() if isinstance(v, bool | int | float | str)}
