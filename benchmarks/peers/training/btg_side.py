"""torch-btg's side, by its own Python: ``python -m benchmarks.peers.training.btg_side FOLDER``.

Its F1 loss at its defaults (linear approximation, mean over the thresholds .1 … .9) on the sigmoid
of the logits. It calls ``.cuda()`` on tensors without asking: here that is made the identity, so
that it runs on a CPU; nothing else of it is changed. Prints version and times.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib import metadata
from pathlib import Path

import torch

from benchmarks.peers.training.early_stopping import everybody


def stay(tensor, *ignored, **more):
    """The tensor where it is."""
    del ignored, more
    return tensor


torch.Tensor.cuda = stay
warnings.simplefilter("ignore")  # torch.range is deprecated, which it calls when imported
from torch_btg.loss import fb_loss  # noqa: E402


def soft_f1():
    """The loss and its value; it returns the confusion beside it."""
    criterion = fb_loss(beta=1.0)

    def loss(z, y):
        return criterion(torch.sigmoid(z), y.to(z.dtype))[0]

    return loss, loss


if __name__ == "__main__":
    paces = everybody(Path(sys.argv[1]), {"torch-btg": soft_f1})
    json.dump({"version": metadata.version("torch-btg"), "paces": paces}, sys.stdout)
