"""Jobs of :mod:`benchmarks.portfolio`: made, run in parallel, appended to a file as they come."""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.portfolio.strategies import OURS, STRATEGIES, Record
from benchmarks.portfolio.tables import aims, read, split

Job = tuple[str, int, str, tuple[str, ...]]  #: table, split, strategy, names of goals


def work(job: Job, where: Path) -> list[Record]:
    """The records of one job."""
    table, seed, strategy, goals = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = read(table, where)
        given, test = split(rows, seed)
        wanted = tuple(aim for aim in aims(table) if aim.name in goals)
        found = list(STRATEGIES[strategy](strategy, given, test, wanted, seed))
    about = {"table": table, "split": seed, "n": int(given.y.size), "n test": int(test.y.size)}
    return [about | record for record in found]


def jobs_of(options: argparse.Namespace, have: set[tuple]) -> list[Job]:
    """What is not in the file yet; ours is one job a goal, others share their models over goals."""
    together, alone = [tuple(options.goals)], [(goal,) for goal in options.goals]
    jobs = [
        (table, seed, strategy, goals)
        for seed in options.splits
        for table in options.tables
        for strategy in options.strategies
        for goals in (alone if strategy == OURS else together)
    ]
    return [
        (t, s, how, goals)
        for t, s, how, goals in jobs
        if not {(t, s, how, g) for g in goals} <= have
    ]


def key(record: Record) -> tuple:
    """Which job a record is of."""
    family = next(s for s in STRATEGIES if (record["strategy"] + " ").startswith(s + " "))
    return record["table"], record["split"], family, record["goal"]


def load(files: Iterable[Path]) -> list[Record]:
    """The records of some files; of a record that is there twice, the last."""
    lines = [line for file in files for line in file.read_text("utf-8").splitlines() if line]
    records = [json.loads(line) for line in lines]
    return list({(r["table"], r["split"], r["strategy"], r["goal"]): r for r in records}.values())


def run(options: argparse.Namespace, console: Console) -> None:
    """Work through the jobs, append as they come."""
    have = {key(r) for r in load([options.run] if options.run.is_file() else [])}
    # MAPIE has nothing to say on a goal without a bound
    have |= {(t, s, "MAPIE", "G2") for t in options.tables for s in options.splits}
    jobs = jobs_of(options, have)
    context = multiprocessing.get_context("spawn")
    with (
        options.run.open("a", encoding="utf-8") as file,
        Progress(console=console) as progress,
        ProcessPoolExecutor(options.jobs, context, initializer=_alone) as pool,
    ):
        bar = progress.add_task("running", total=len(jobs))
        futures = {pool.submit(work, job, options.data): job for job in jobs}
        try:
            for future in as_completed(futures):
                try:
                    records = future.result()
                except Exception as error:  # the other jobs are worth keeping
                    console.print(f"[red]{futures[future]}: {type(error).__name__}: {error}[/red]")
                    continue
                file.writelines(json.dumps(record) + "\n" for record in records)
                file.flush()
                progress.advance(bar)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _alone() -> None:
    """One thread a job."""
    import torch

    torch.set_num_threads(1)
    logging.getLogger("setpoint").setLevel(logging.ERROR)
