"""``python -m benchmarks.exact.features``: the six tables as files that need numpy alone.

Written to ``.data/exact``, one ``NAME.npz`` each, as :mod:`benchmarks.implicit.rows` reads them.
ade-corpus-v2 is text: a sentence becomes its frozen embedding
(:mod:`benchmarks.exact.embedding`; its environment is made by ``sh
benchmarks/exact/setup_minilm.sh``). The column ``group`` holds what rows are parted by: the article
of a sentence, the published part of a row of monks-3 (0 to train, 1 to test), nothing elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.bridging_data import folder
from benchmarks.implicit.rows import Table, pack
from benchmarks.peers import ROOT

PLAIN = ("wilt", "breast-cancer-wisc", "mammography", "phoneme")
MONKS, TEXT = "monks-3", "ade-corpus-v2"
INTO = ROOT / ".data" / "exact"
PEER = ".peers/minilm/bin/python"


def main(arguments: list[str] | None = None) -> int:
    """Write all six."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exact.features")
    parser.add_argument("--data", type=Path, help="default $SETPOINT_DATA, else ../shared/data")
    parser.add_argument("--into", type=Path, default=INTO, help="default .data/exact")
    parser.add_argument("--python", type=Path, default=ROOT / PEER, help=f"default {PEER}")
    options = parser.parse_args(arguments)
    where, into = folder(options.data), options.into
    if not options.python.exists():
        parser.error(f"{options.python} is not there: run sh benchmarks/exact/setup_minilm.sh")
    into.mkdir(parents=True, exist_ok=True)
    pack(PLAIN, where, into)
    for name, table in ((MONKS, monks(where)), (TEXT, sentences(where, options.python))):
        np.savez_compressed(into / f"{name}.npz", **vars(table))
        print(f"{name}: {len(table.target)} rows")
    return 0


def monks(where: Path) -> Table:
    """Six categories; ``group`` is the published part."""
    import pandas

    frame = pandas.read_parquet(where / f"{MONKS}.parquet")
    codes = frame[[f"a{i}" for i in range(1, 7)]].to_numpy("int64")
    part = (frame["split"] == "test").to_numpy("int64")
    return Table(np.zeros((len(frame), 0), "float32"), codes, _target(frame), part)


def sentences(where: Path, python: Path) -> Table:
    """Embeddings, of each different sentence once; ``group`` is the article."""
    import pandas

    frame = pandas.read_parquet(where / f"{TEXT}.parquet")
    texts, place = np.unique(frame["text"].to_numpy(object).astype("U"), return_inverse=True)
    with tempfile.TemporaryDirectory() as held:
        given, made = Path(held) / "sentences.json", Path(held) / "made.npy"
        given.write_text(json.dumps(texts.tolist()), encoding="utf-8")
        module = "benchmarks.exact.embedding"
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        subprocess.run(
            [str(python), "-m", module, str(given), str(made)],
            cwd=ROOT,
            env=environment,
            check=True,
        )
        numbers = np.load(made)[place]
    article = np.unique(frame["qid"].to_numpy(), return_inverse=True)[1]
    return Table(numbers, np.zeros((len(frame), 0), "int64"), _target(frame), article)


def _target(frame: object) -> np.ndarray:
    return frame["target"].to_numpy("int64")  # type: ignore[index]


if __name__ == "__main__":
    sys.exit(main())
