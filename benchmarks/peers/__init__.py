"""Other libraries, each in an environment of its own, asked through a subprocess.

What both sides run (the batch, the written-out losses, the training loop) is here, and needs torch
only: ``.peers/libauc/bin/python -m benchmarks.peers.libauc_runs`` prints the peer's side as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBAUC = ROOT / ".peers" / "libauc" / "bin" / "python"
NOT_INSTALLED = "peer not installed: run benchmarks/peers/setup_libauc.sh"


def libauc(rows: int, repeats: int) -> dict | None:
    """Figures of LibAUC on the batch of so many rows; None where it is not installed."""
    if not LIBAUC.exists():
        return None
    words = [str(LIBAUC), "-m", "benchmarks.peers.libauc_runs", str(rows), str(repeats)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"LibAUC's side failed:\n{done.stderr}")
    return json.loads(done.stdout)
