"""Losses that an attack makes large: how far an image is on the wrong side.

    margin(z, y)        = max_{j ≠ y} z_j − z_y              ≥ 0: misclassified (untargeted)
    target_margin(z, t) = z_t − max_{j ≠ t} z_j              ≥ 0: classified as t (targeted)
    cross_entropy(z, y) = log(1 + exp(log Σ_{j ≠ y} e^{z_j} − z_y)), cut off at ``clip``

The last line is −log softmax(z)_y written through the *soft margin* inside the exponential. In this
form its gradient does not round to zero on a confident network, and since the function is
increasing, whoever makes the soft margin large makes the cross-entropy large.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError, Name

#: The losses an attack can be asked for. Past its ceiling a loss is flat: the image is done.
LOSSES = ("margin", "cross_entropy")
#: Where the margin is cut off, and where the cross-entropy is (PWCF, arXiv 2303.13401).
MARGIN_CLIP, CROSS_ENTROPY_CLIP = 0.01, 10.0


def checked_loss(loss: str) -> str:
    """The name of a loss, or an error that lists them."""
    if loss not in LOSSES:
        raise DataError(
            "{argument} is {loss!r}; it is one of {known}",
            argument=Name("loss"),
            loss=loss,
            known=", ".join(map(repr, LOSSES)),
        )
    return loss


def of_class(logits: Tensor, labels: Tensor) -> Tensor:
    """z_y for each row: (B, K), (B,) -> (B,)."""
    return logits.gather(1, labels[:, None]).squeeze(1)


def without(logits: Tensor, labels: Tensor) -> Tensor:
    """The logits with −∞ at y, so that a maximum over them is one over the other classes."""
    return logits.scatter(1, labels[:, None], float("-inf"))


def margin(logits: Tensor, y: Tensor) -> Tensor:
    """max_{j ≠ y} z_j − z_y of each row; at least 0 where the row is misclassified.

    Examples
    --------
    >>> import torch
    >>> margin(torch.tensor([[3.0, 1.0, 2.5], [0.0, 1.0, 0.5]]), torch.tensor([0, 0]))
    tensor([-0.5000,  1.0000])
    """
    return without(logits, y).amax(1) - of_class(logits, y)


def target_margin(logits: Tensor, target: Tensor) -> Tensor:
    """z_t − max_{j ≠ t} z_j of each row; at least 0 where the row is classified as its target."""
    return of_class(logits, target) - without(logits, target).amax(1)


def soft_margin(logits: Tensor, y: Tensor) -> Tensor:
    """The margin with a soft maximum, log Σ_{j ≠ y} e^{z_j} − z_y: at most log(K − 1) more."""
    return torch.logsumexp(without(logits, y), 1) - of_class(logits, y)


def cross_entropy(logits: Tensor, y: Tensor, clip: float = CROSS_ENTROPY_CLIP) -> Tensor:
    """−log softmax(z)_y of each row, at most ``clip``.

    Examples
    --------
    >>> import torch
    >>> cross_entropy(torch.tensor([[0.0, 0.0], [-50.0, 0.0]]), torch.tensor([0, 0]))
    tensor([ 0.6931, 10.0000])
    """
    return torch.nn.functional.softplus(soft_margin(logits, y)).clamp(max=clip)
