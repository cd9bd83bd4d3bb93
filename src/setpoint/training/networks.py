"""Small networks for tables."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class Head(nn.Module):
    """The last layer: one column of outputs becomes one number per row."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        z = self.linear(x)
        return z.squeeze(-1) if z.shape[-1] == 1 else z


def linear(inputs: int, outputs: int) -> nn.Module:
    """One linear layer that starts at 0: every class equally likely."""
    head = Head(inputs, outputs)
    nn.init.zeros_(head.linear.weight)
    nn.init.zeros_(head.linear.bias)
    return nn.Sequential(head)


def mlp(
    inputs: int, outputs: int, hidden: Sequence[int] = (128, 64), dropout: float = 0.1
) -> nn.Module:
    """Linear, ReLU, dropout for each hidden layer, then the head."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        inputs = width
    return nn.Sequential(*layers, Head(inputs, outputs))
