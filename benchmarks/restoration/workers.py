"""Several processes work off a list of jobs on one device.

``python -m benchmarks.restoration.workers FOLDER DEVICE DEADLINE OTHERS`` is one of them: it reads
the folder's ``todo``, takes the first job that nobody has, makes it and takes the next, until there
is none or the deadline (seconds since 1970) has passed. Processes, not threads: at these sizes a
GPU waits for the interpreter that feeds it, and several interpreters keep it busy.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks.restoration.data import ROOT
from benchmarks.restoration.running import code, run
from benchmarks.restoration.shelf import Job, Shelf

TODO = "todo.list"
GRACE = 5.0  #: seconds after the deadline at which workers are ended
RESTARTS = 12  #: of workers that died, the device's memory full for example
POLL = 1.0


def work_off(
    jobs: Sequence[Job],
    shelf: Shelf,
    *,
    workers: int,
    device: str,
    seconds: float,
    alone: bool = False,
    bundle: Path | None = None,
    say: Callable[[str], None] = print,
) -> list[Job]:
    """Make what is not there yet, in the given order; what is left when the time is up.

    ``alone``: one process, and results that are told their seconds. Jobs for which the device had
    no memory are made again at the end, by fewer processes.
    """
    deadline = time.time() + seconds
    count = 1 if alone else workers
    todo = shelf.open(jobs, alone=alone)
    while todo:
        count = min(count, len(todo))
        say(f"{len(jobs)} jobs, {len(todo)} to be made by {count} processes on {device}")
        _round(jobs, todo, shelf, count, device, deadline, alone, bundle, say)
        for sentence in shelf.errors(todo):
            say(f"failed: {sentence}"[:200])
        if count == 1 or time.time() > deadline:
            break
        todo = shelf.open(shelf.full(todo), alone=alone)
        count = max(1, count // 3)
    return shelf.left(jobs, alone=alone)


def _round(
    jobs: Sequence[Job],
    todo: Sequence[Job],
    shelf: Shelf,
    count: int,
    device: str,
    deadline: float,
    alone: bool,
    bundle: Path | None,
    say: Callable[[str], None],
) -> None:
    """So many processes until there is nothing to take or the time is up."""
    text = "".join(json.dumps(asdict(job)) + "\n" for job in todo)
    (shelf.folder / TODO).write_text(text, encoding="utf-8")
    running = [_start(shelf, device, deadline, count - 1) for _ in range(count)]
    restarts, told, begun = RESTARTS, 0, time.time()
    try:
        while running and time.time() < deadline + GRACE:
            time.sleep(POLL)
            died = [p for p in running if p.poll() not in (None, 0)]
            running = [p for p in running if p.poll() is None]
            for _ in died[:restarts]:
                restarts -= 1
                running.append(_start(shelf, device, deadline, count - 1))
            if died:
                say(f"{len(died)} processes died; {restarts} may still be started again")
            done = len(jobs) - len(shelf.left(jobs, alone=alone))
            if done > told:
                told = done
                say(f"{time.time() - begun:5.0f} s  {done} of {len(jobs)} jobs")
                if bundle is not None:
                    shelf.bundle(bundle)
    finally:
        for process in running:
            process.kill()
            process.wait()
        if bundle is not None:
            shelf.bundle(bundle)


def _start(shelf: Shelf, device: str, deadline: float, beside: int) -> subprocess.Popen[bytes]:
    words = [str(shelf.folder.resolve()), device, str(deadline), str(beside)]
    command = [sys.executable, "-m", "benchmarks.restoration.workers", *words]
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **threads, "PYTHONPATH": paths.rstrip(os.pathsep)}
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def work(folder: Path, device: str, deadline: float, beside: int) -> int:
    """One process: job after job; 1 where the device is in a state that only an end cures."""
    torch.set_num_threads(1)
    shelf = Shelf(folder)
    for text in (folder / TODO).read_text(encoding="utf-8").splitlines():
        if time.time() > deadline:
            return 0
        job = Job.of(json.loads(text))
        if not shelf.claim(job):
            continue
        try:
            found = run(job, device, beside=beside)
        except Exception:  # one failed job must not cost the others; the parent tells it
            found = {"error": traceback.format_exc()}
        shelf.put(job, {**found, "code": code()})
        error = found.get("error", "")
        if "CUDA error" in error or "CUBLAS" in error:
            return 1
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()  # what is kept here the others cannot have
    return 0


if __name__ == "__main__":
    sys.exit(work(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
