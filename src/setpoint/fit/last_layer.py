"""The last linear layer of a network, and the features it is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

CHUNK = 65536  #: rows that are put through at a time


@dataclass(frozen=True, eq=False)
class LastLayer:
    """A linear layer whose outputs are the model's, and its inputs on some rows.

    Attributes
    ----------
    layer : torch.nn.Linear
    features : numpy.ndarray
        (n, h) float64.
    """

    layer: nn.Linear
    features: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """(K, h + 1), the bias last."""
        both = torch.cat([self.layer.weight, self.layer.bias[:, None]], 1)
        return both.detach().double().cpu().numpy()

    def put(self, weights: np.ndarray) -> None:
        """Take weights over."""
        given = torch.as_tensor(weights).to(self.layer.weight)
        with torch.no_grad():
            self.layer.weight.copy_(given[:, :-1])
            self.layer.bias.copy_(given[:, -1])


def last_layer(model: nn.Module, inputs: Tensor) -> LastLayer | None:
    """The last linear layer, where what it gives is what the model gives; None otherwise."""
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    if not layers or layers[-1].bias is None:
        return None
    if not all(p.requires_grad for p in layers[-1].parameters()):  # it was frozen on purpose
        return None
    layer, seen = layers[-1], []
    hook = layer.register_forward_hook(lambda _, given, out: seen.append((given[0], out)))
    try:
        with torch.no_grad():
            parts = [model(part) for part in inputs.split(CHUNK)]
    finally:
        hook.remove()
    same = len(seen) == len(parts) and all(
        given.ndim == 2
        and out.numel() == part.numel()
        and torch.equal(out.reshape(part.shape), part)
        for (given, out), part in zip(seen, parts, strict=True)
    )
    if not same:
        return None
    return LastLayer(layer, torch.cat([given for given, _ in seen]).double().cpu().numpy())
