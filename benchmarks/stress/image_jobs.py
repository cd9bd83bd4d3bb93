"""All image runs in several processes: taken up where they were stopped, and stopped in time.

The file has a line a run, and for each split the scores of cross-entropy's network, which the runs
of the methods are judged beside; it is all that another machine needs to go on.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from benchmarks.results.recording import PACKAGES, environment
from benchmarks.stress.images import OutOfTime, Pace, Record, method_run, plain_run, settings
from benchmarks.stress.judging import Scored

Split = tuple[float, int]  #: share of positives, seed


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file; what a killed process wrote of its last line is left out."""
    if not path.exists():
        return []
    found = []
    for text in path.read_text("utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return found


def packed(split: Split, scores: Scored) -> dict[str, Any]:
    """Scores as a line of the file: float32, as the network gave them."""
    texts = {
        name: base64.b64encode(part.astype("<f4").tobytes()).decode("ascii")
        for name, part in asdict(scores).items()
    }
    return {"split": list(split), "scores": texts}


def unpacked(line: dict[str, Any]) -> tuple[Split, Scored]:
    """What :func:`packed` made a line of."""
    share, seed = line["split"]
    parts = {
        name: np.frombuffer(base64.b64decode(text), "<f4").astype(float)
        for name, text in line["scores"].items()
    }
    return (share, seed), Scored(**parts)


def run_all(out: Path, seeds: int, methods: tuple[str, ...], pace: Pace, jobs: int) -> int:
    """Run what the file does not hold yet; the number of runs that failed.

    Raises
    ------
    ValueError
        Where the file holds runs of other networks.
    """
    lines, own = lines_of(out), (pace.epochs, pace.norm)
    others = {(line["epochs"], line["norm"]) for line in lines if "epochs" in line} - {own}
    if others:
        held, asked = (f"--epochs {n} --norm {norm}" for n, norm in (min(others), own))
        raise ValueError(f"{out} holds runs of {held}, not of {asked}: name another file")
    whole = not out.exists() or out.read_bytes()[-1:] in (b"", b"\n")
    with out.open("a", encoding="utf-8") as file:
        file.write("" if whole else "\n")
        _write(file, [{"environment": environment(PACKAGES), **_place(pace)}])
        return _Lineup(file, lines, seeds, methods, pace).run(jobs)


def _place(pace: Pace) -> dict[str, Any]:
    name = torch.cuda.get_device_name(pace.device) if pace.device.startswith("cuda") else "CPU"
    return {"device": name, "epochs": pace.epochs, "norm": pace.norm}


def _write(file: TextIO, lines: list[dict[str, Any]]) -> None:
    file.write("".join(json.dumps(line) + "\n" for line in lines))
    file.flush()


class _Lineup:
    """Runs that wait: cross-entropy of each split first, then the methods beside it."""

    def __init__(
        self,
        file: TextIO,
        lines: list[dict[str, Any]],
        seeds: int,
        methods: tuple[str, ...],
        pace: Pace,
    ) -> None:
        self.file, self.methods, self.pace = file, methods, pace
        self.settings = settings(seeds)
        self.plain = dict(unpacked(line) for line in lines if "split" in line)
        self.done = {(line["number"], line["method"]) for line in lines if "number" in line}
        self.waiting: dict[Future, Split | None] = {}
        self.begun, self.count, self.failed = time.time(), 0, 0

    def run(self, jobs: int) -> int:
        """All of them, or as many as there is time for."""
        splits = list(dict.fromkeys((s.share, s.seed) for s in self.settings))
        every = sum(
            (s.number, m) not in self.done for s in self.settings for m in self.methods
        ) + sum(split not in self.plain for split in splits)
        context, given_up = multiprocessing.get_context("spawn"), 0
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            for split in splits:
                if split in self.plain:
                    self._follow(pool, split)
                else:
                    self.waiting[pool.submit(plain_run, *split, self.pace)] = split
            while self.waiting:
                finished, _ = wait(self.waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    given_up += not self._take(pool, future, self.waiting.pop(future), every)
        if given_up:
            print(f"out of time: {self.count} of {every} runs; run it again for the others")
        return self.failed

    def _follow(self, pool: ProcessPoolExecutor, split: Split) -> None:
        """The methods on a split whose plain scores are here."""
        for setting in self.settings:
            if (setting.share, setting.seed) != split:
                continue
            for method in self.methods:
                if (setting.number, method) not in self.done:
                    job = pool.submit(method_run, setting, method, self.plain[split], self.pace)
                    self.waiting[job] = None

    def _take(
        self, pool: ProcessPoolExecutor, future: Future, split: Split | None, every: int
    ) -> bool:
        """Write what a run gave; whether it had the time."""
        error = future.exception()
        if isinstance(error, OutOfTime):
            return False
        if isinstance(error, BrokenProcessPool):
            raise error
        self.count += 1
        if error is not None:  # the other runs go on; this one is tried again with the next call
            self.failed += 1
            print(f"failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return True
        if split is None:
            records = future.result()
            _write(self.file, records)
        else:
            records, self.plain[split] = future.result()
            _write(self.file, [*records, packed(split, self.plain[split])])
            self._follow(pool, split)
        self._tell(records, every)
        return True

    def _tell(self, records: list[Record], every: int) -> None:
        one, passed = records[0], time.time() - self.begun
        goal = one["aim"] if len(records) == 1 else "all goals"
        words = f"{one['share']:.0%} {goal} seed {one['seed']} {one['method']}"
        keys = ("collapsed", "kept", "own", "tuned", "refused")
        figures = {k: one[k] for k in keys if one.get(k) is not None and len(records) == 1}
        seconds = f"{one.get('seconds', 0):.1f} s"
        print(f"{self.count}/{every} {passed:.0f} s: {words}: {seconds} {figures}", flush=True)
