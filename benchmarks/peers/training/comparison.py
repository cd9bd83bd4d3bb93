"""``python -m benchmarks.peers training``: ``GoalLoss`` beside four libraries that train on goals.

Three questions on the same tables and splits: F1 over thresholds in the loop of torch-btg's
authors; average precision and partial areas beside LibAUC; recall under a floor of precision or a
cap of the false positive rate beside Cooper and humancompatible-train. Where a way has several
settings the best on the tune rows is taken, for each split anew. About 25 minutes of one core.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.peers import ask
from benchmarks.peers.training import judging, our_side
from benchmarks.peers.training.cases import SEEDS, TABLES, Case, prepare
from benchmarks.results.recording import record

NAME = "peers-training"
SIDES = {  #: peer -> module, name, and what sets it up
    "btg": ("training.btg_side", "torch-btg", "setup_btg.sh"),
    "libauc": ("training.libauc_side", "LibAUC", "setup_libauc.sh"),
    "cooper": ("training.cooper_side", "Cooper", "setup_cooper.sh"),
    "humancompatible": (
        "training.humancompatible_side",
        "humancompatible-train",
        "setup_humancompatible.sh",
    ),
}
Logits = dict[str, np.ndarray]


def settings_of(file: Path) -> Iterator[tuple[list[str], Logits]]:
    """Each run that a side wrote for a case: the words of its name, and its logits."""
    runs: dict[str, Logits] = {}
    with np.load(file) as made:
        for key in made.files:
            name, _, part = key.rpartition("|")
            runs.setdefault(name, {})[part] = made[key]
    for name, logits in runs.items():
        yield name.split("|"), logits


def f1_lines(about: dict, case: Case, file: Path) -> list[dict[str, Any]]:
    """The best rate of each way by the mean F1 of the tune rows."""
    best: dict[str, tuple[float, str, Logits]] = {}
    for (way, rate), logits in settings_of(file):
        worth = judging.over_thresholds(case.rows.tune.y, logits["tune"])
        if worth > best.get(way, (-1.0,))[0]:
            best[way] = worth, rate, logits
    return [
        {**about, "part": "f1", "way": way, "setting": rate} | judging.judged_f1(case.rows, logits)
        for way, (_, rate, logits) in best.items()
    ]


def loop_lines(about: dict, case: Case, file: Path) -> list[dict[str, Any]]:
    """The best setting of each way by the tune rows, for each aim and threshold."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for (aim, way, setting), logits in settings_of(file):
        if not judging.finite(logits):
            continue
        for each in [aim] if aim else [*judging.RANKED, *judging.BOUNDED]:
            for at, figures in _figures(each, case, logits).items():
                found.setdefault((each, way, at), []).append({"setting": setting, **figures})
    lines = []
    for (aim, way, at), runs in found.items():
        chosen = dict(max(runs, key=lambda run: run["tune"]))
        key = "merit" if "merit" in chosen else "figure"
        chosen["hindsight"] = max(run[key] for run in runs)
        chosen.pop("tune")
        part = {"part": "ranked" if aim in judging.RANKED else "constrained", "aim": aim}
        line = {**about, **part, "way": way} | ({"at": at} if at else {}) | chosen
        lines.append({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()})
    return lines


def _figures(aim: str, case: Case, logits: Logits) -> dict[str, dict[str, Any]]:
    if aim in judging.BOUNDED:
        return judging.judged_constrained(aim, case.rows, logits)
    figure, rows = judging.RANKED[aim], case.rows
    return {
        "": {
            "tune": figure(rows.tune.y, logits["tune"]),
            "figure": figure(rows.test.y, logits["test"]),
        }
    }


def collected(folder: Path, cases: dict[str, Case]) -> list[dict[str, Any]]:
    """Lines of everything that lies beside the cases, which is then taken away."""
    lines = []
    for key, case in cases.items():
        about = {"table": case.rows.name, "seed": case.seed, "n test": case.rows.test.y.size}
        for ending, read in (("out", loop_lines), ("f1", f1_lines)):
            file = folder / f"{key}.{ending}.npz"
            if file.exists():
                lines += read(about, case, file)
                file.unlink()
    return lines


def pace_lines(side: str, part: str, paces: dict[str, float]) -> list[dict[str, Any]]:
    """Milliseconds of a step, and cross-entropy's beside it in the same process."""
    plain = next(ms for name, ms in paces.items() if name.endswith(our_side.PLAIN))
    lines = []
    for name, ms in paces.items():
        aim, _, way = name.rpartition("|")
        if way != our_side.PLAIN:
            line = {"part": "pace", "of": part, "side": side, "aim": aim, "way": way}
            lines.append({**line, "ms": ms, "plain ms": plain})
    return lines


def run(
    console: Console, tables: Sequence[str] = TABLES, seeds: Sequence[int] = SEEDS
) -> list[dict[str, Any]]:
    """Train everything; recorded."""
    logging.getLogger("setpoint").setLevel(logging.ERROR)
    versions, absent = [], []
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(text)
        cases = prepare(folder, tables, seeds)
        pace = pace_lines("ours", "loop", our_side.run(folder))
        pace += pace_lines("ours", "f1", our_side.run_f1(folder))
        lines = collected(folder, cases)
        console.print(f"{NAME}: ours")
        for peer, (module, name, setup) in SIDES.items():
            made = ask(peer, module, str(folder))
            if made is None:
                absent.append(f"{name} (sh benchmarks/peers/{setup})")
                continue
            versions.append(f"{name} {made['version']}")
            pace += pace_lines(name, "f1" if peer == "btg" else "loop", made["paces"])
            lines += collected(folder, cases)
            console.print(f"{NAME}: {name}")
    for name in absent:
        console.print(f"{NAME}: not installed: {name}")
    record(
        NAME,
        "python -m benchmarks.peers training",
        [*lines, *pace],
        packages=("torch", "scikit-learn", "numpy"),
        seeds=len(seeds),
        setup="sh benchmarks/peers/setup_NAME.sh",
        peer=f"{', '.join(versions)}, each" if versions else None,
    )
    return lines


if __name__ == "__main__":
    run(Console())
