"""A value and a gradient that were computed apart, as one scalar to go backward from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def attached(outputs: Tensor, value: Any, gradient: Tensor) -> Tensor:
    """A scalar with this value, and with this gradient in the outputs."""
    if outputs.dtype != gradient.dtype or torch.compiler.is_compiling():
        return _Attach.apply(outputs, value, gradient)  # type: ignore[return-value]
    # ⟨gradient, outputs⟩ has that gradient, at the cost of one operation; its value is replaced.
    if outputs.ndim > 1:
        outputs, gradient = outputs.reshape(-1), gradient.view(-1)
    result = torch.dot(gradient, outputs)
    result.detach().fill_(value)
    return result


class _Attach(torch.autograd.Function):
    """The same for half precision, multiplied first and narrowed afterwards, and for graphs."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, value: Any, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        ctx.kind = outputs.dtype, outputs.shape
        return gradient.new_zeros(()) + value

    @staticmethod
    def backward(ctx: Any, *scale: Tensor) -> Any:
        dtype, shape = ctx.kind
        return (ctx.saved_tensors[0] * scale[0]).to(dtype).view(shape), None, None
