"""``python -m benchmarks.results --take FILE``: record what a long benchmark has written.

Known by what they hold: what ``python -m benchmarks.bridging --json`` wrote, what ``python -m
benchmarks.portfolio --run`` wrote (several files are joined), and what ``python -m benchmarks
--json`` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bridging_data import folder, split
from benchmarks.results.portfolio import fold
from benchmarks.results.recording import FOLDER, record

PLANS = ("1", "2", "4")
FIGURES = (
    *("f1 mean", "f1 half", "f1 tuned", "auroc", "accuracy mean", "accuracy half"),
    *("precision mean", "recall mean", "f2 mean", "f3 mean"),
)
ABOUT = ("machine", "repeats", "rows", "missed")  #: of ``python -m benchmarks --json``


def take(files: Sequence[Path], into: Path = FOLDER, *, elsewhere: bool = False) -> list[Path]:
    """Record what the files hold; the paths written.

    ``elsewhere``: the records of a portfolio, which name no versions, are from another machine.
    """
    written, records = [], []
    for file in files:
        text = file.read_text(encoding="utf-8")
        first = json.loads(text.splitlines()[0]) if text.startswith('{"') else None
        if first is not None and "strategy" in first:
            records += [json.loads(line) for line in text.splitlines() if line]
            continue
        held = json.loads(text)
        written += [_bridging(held, into)] if "tables" in held else _benchmarks(held, into)
    if records:
        command = "python -m benchmarks.portfolio --run FILE.jsonl"
        newest = {(r["table"], r["split"], r["strategy"], r["goal"]): r for r in records}
        made_in = {"threads": 1} if elsewhere else None
        folded = fold(newest.values())
        written.append(record("portfolio", command, folded, folder=into, made_in=made_in))
    return written


def _bridging(held: dict[str, Any], into: Path) -> Path:
    runs = [(plan, r) for plan in PLANS for r in held["tables"].get(plan, [])]
    n = {name: len(split(name, 0, folder()).test.y) for name in {r["data"] for _, r in runs}}
    lines = [
        {"plan": plan, "table": r["data"], "way": r["loss"], "seed": r["seed"]}
        | {"n test": n[r["data"]]}
        | {key: r[key] for key in FIGURES if plan != "4" or key.endswith("mean")}
        for plan, r in runs
    ]
    command = "python -m benchmarks.bridging --json FILE.json"
    return record("bridging", command, lines, folder=into, made_in=_made_in(held))


def _benchmarks(held: dict[str, Any], into: Path) -> list[Path]:
    names = [k for k in held if k not in ABOUT]
    return [
        record(
            name, f"python -m benchmarks {name}", held[name], folder=into, made_in=_made_in(held)
        )
        for name in names
    ]


def _made_in(held: dict[str, Any]) -> dict[str, Any]:
    """The environment that the file itself names."""
    versions = ("python", "numpy", "scikit-learn", "torch")
    return {"threads": 1, **{k: str(held["machine"][k]).partition("+")[0] for k in versions}}
