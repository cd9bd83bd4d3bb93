"""What a run is about, in one word, so that another run's checkpoint is known as such."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor


def digest(parts: Iterable[object], tensors: Iterable[Tensor | None]) -> str:
    """SHA-256 of some texts and of the bytes of some tensors.

    >>> digest(["a goal"], [torch.zeros(2)])[:8] == digest(["a goal"], [torch.ones(2)])[:8]
    False
    """
    found = hashlib.sha256("|".join(map(str, parts)).encode())
    for tensor in tensors:
        if tensor is not None:
            plain = tensor.detach().cpu().contiguous().reshape(-1)
            found.update(plain.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
