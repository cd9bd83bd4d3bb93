"""Many runs at once, one thread each; what is done is kept line by line and not done again."""

from __future__ import annotations

import json
import logging
import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from benchmarks.results.recording import PACKAGES, environment

Line = dict[str, Any]
Work = Callable[..., list[Line]]


def run(
    work: Work, jobs: Sequence[tuple[Any, ...]], file: Path, workers: int, console: Console
) -> list[Line]:
    """``work(*job)`` for every job that the file has no lines of; all lines of these jobs."""
    if not file.is_file():
        append(file, [{"about": environment(PACKAGES)}])
    names = {repr(job[:-1]): job for job in jobs}  # not the folder, which is last
    done = {x["job"] for x in load(file)}
    todo = [name for name in names if name not in done]
    context = multiprocessing.get_context("spawn")
    with (
        Progress(console=console) as progress,
        ProcessPoolExecutor(workers, context, initializer=alone) as pool,
    ):
        bar = progress.add_task(work.__module__.rpartition(".")[2], total=len(todo))
        futures = {pool.submit(work, *names[name]): name for name in todo}
        for future in as_completed(futures):
            try:
                lines = future.result()
            except Exception as error:  # one failed configuration leaves the others be
                console.print(f"{futures[future]}: {type(error).__name__}: {error}", markup=False)
                continue
            append(file, ({"job": futures[future], **line} for line in lines))
            progress.advance(bar)
    return [x for x in load(file) if x["job"] in names]


def alone() -> None:
    """One thread a process; what a loss advises is known here."""
    import warnings

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("setpoint").setLevel(logging.ERROR)


def append(file: Path, lines: Iterable[Line]) -> None:
    """Add lines of JSON."""
    with file.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def load(file: Path) -> list[Line]:
    """The lines of all runs, each once."""
    return list({json.dumps(x): x for x in _all(file) if "job" in x}.values())


def made_in(file: Path) -> dict[str, Any]:
    """The environment of the first run in the file."""
    return next((x["about"] for x in _all(file) if "about" in x), {})


def _all(file: Path) -> list[Line]:
    return [json.loads(x) for x in file.read_text(encoding="utf-8").splitlines() if x]


def chosen(lines: Iterable[Line], by: Sequence[str]) -> list[Line]:
    """Of the runs that agree in ``by``, the one of the greatest validation value."""
    best: dict[tuple[Any, ...], Line] = {}
    for line in lines:
        key = tuple(line[x] for x in by)
        if key not in best or line["valid"] > best[key]["valid"]:
            best[key] = line
    return [{k: v for k, v in line.items() if k != "job"} for _, line in sorted(best.items())]
