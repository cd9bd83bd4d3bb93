"""Other libraries beside Setpoint: the same rows, the same goal, the same judge for everybody.

scikit-learn and MAPIE are in the project's own environment. The others have one each in ``.peers``,
made by ``setup_<name>.sh``, and are asked through a subprocess: what both sides run (batches,
networks, training loops) is here and needs numpy and torch only. ``python -m benchmarks.peers``
runs every comparison and records it for docs/results.md.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_INSTALLED = "peer not installed: run benchmarks/peers/setup_libauc.sh"


def libauc(rows: int, repeats: int) -> dict | None:
    """Figures of LibAUC on the batch of so many rows; None where it is not installed."""
    return ask("libauc", "libauc_runs", str(rows), str(repeats))


def ask(peer: str, module: str, *words: str) -> dict | None:
    """What a module here prints, as JSON, in the peer's Python; None where there is none."""
    python = ROOT / ".peers" / peer / "bin" / "python"
    if not python.exists():
        return None
    command = [str(python), "-m", f"benchmarks.peers.{module}", *words]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the side of {peer} failed:\n{done.stderr}")
    return json.loads(done.stdout)
