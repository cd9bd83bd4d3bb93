"""Peak extra memory of one call, in a fresh process for each case and each way of counting.

The process imports what the case needs, loads the data, makes the same call once on the first
thousand rows (so that late imports and first-call caches are not counted), collects garbage, and
then measures the call, in one of two ways:

traced
    The peak of :mod:`tracemalloc` during the call. Exact, and numpy reports its arrays to it;
    torch does not, so for torch this is next to nothing.
resident
    High-water mark of the resident set during the call, less the resident set before it. Sees all
    allocators, in whole pages. On Linux the mark is ``VmHWM``, reset just before the call:
    ``ru_maxrss`` would not do, since a new process inherits there the mark of the one that started
    it, and the peak of its own imports hides what comes later. Elsewhere it is ``ru_maxrss``.
    glibc is told to give large blocks back at once, or a freed array would count as resident.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def peak(way: str, benchmark: str, case: dict[str, str]) -> int:
    """Bytes that ``benchmarks.<benchmark>.prepare(**case)`` needs on top, counted by ``way``."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", way, benchmark, json.dumps(case)],
        env=os.environ | _GIVE_BACK,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {case} failed:\n{done.stderr}")
    return int(done.stdout.splitlines()[-1])


def traced(call: Callable[[], object]) -> int:
    """Peak of tracemalloc during the call."""
    tracemalloc.start()
    call()
    _, high = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return high


def resident(call: Callable[[], object]) -> int:
    """Rise of the resident set's high-water mark during the call."""
    if not _RESET.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    _RESET.write_text("5")  # 5: set the high-water mark to the present resident set
    before = _kilobytes("VmRSS")
    call()
    return (_kilobytes("VmHWM") - before) * 1024


def _kilobytes(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_STATUS} has no line {field}.")
    return int(found[1])


def _main(way: str, benchmark: str, case: str) -> None:
    warm, call = importlib.import_module(f"benchmarks.{benchmark}").prepare(**json.loads(case))
    warm()
    gc.collect()
    print({"traced": traced, "resident": resident}[way](call))


if __name__ == "__main__":
    _main(*sys.argv[1:])
