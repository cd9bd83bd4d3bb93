"""Input of a video restoration, checked once: clips, operator, flow, options."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import whole
from setpoint.restoration.measurement.forward_model import Forward
from setpoint.restoration.measurement.input_checks import check, own
from setpoint.restoration.operators import as_operator
from setpoint.restoration.priors.prior import Prior
from setpoint.restoration.video.frame_descent import FramePlan


def clips_of(y: Tensor, operator: Any, prior: Prior, seed: int) -> tuple[Tensor, Forward, bool]:
    """Measurements as (N, T, ...), the forward map, and whether one clip was given without N.

    Whether there is a size N is found by a trial: the operator makes of T images what has the size
    of y, or of N T images what has that of y with the first two sizes as one.
    """
    if not isinstance(y, Tensor) or not y.is_floating_point():
        kind = y.dtype if isinstance(y, Tensor) else type(y).__name__
        raise KindError(f"y is a tensor of floats, (T, ...) or (N, T, ...); got {kind}.")
    y = own(y)
    if isinstance(operator, str):
        batch = y.shape[0] * y.shape[1] if y.ndim == 5 else len(y)
        operator = as_operator(
            operator, shape=prior.shape, seed=seed, batch=batch, range=prior.range
        )
    for rows in (y[None], y):
        if rows.ndim > 2 and _fits(rows.flatten(0, 1), operator, prior):
            break
    else:
        # the door of single images has a sentence for whatever is wrong
        check(y if y.ndim <= 1 + len(prior.shape) else y.flatten(0, 1), operator, prior, None)
        raise DataError(
            f"y {tuple(y.shape)} is neither one clip (T, ...) nor several (N, T, ...) of what the "
            "operator makes of images."
        )
    if rows.shape[1] < 2:
        raise DataError("a clip has two frames or more; restore is for single images.")
    flat = rows.flatten(0, 1)
    check(flat, operator, prior, None)
    forward = Forward(operator, flat, shape=tuple(prior.shape), range=prior.range)
    return rows, forward, rows is not y


def _fits(y: Tensor, operator: Any, prior: Prior) -> bool:
    """Whether y (B, ...) has the size of what the operator makes of B images."""
    low, high = prior.range
    middle = 0.5 * (low + high) if math.isfinite(high - low) else 0.0
    image = torch.full((len(y), *prior.shape), middle, dtype=y.real.dtype, device=y.device)
    try:
        forward = Forward(operator, y)
        with torch.no_grad():
            measured = forward(image, forward.start(len(y), y))
        return measured.shape == y.shape
    except Exception:  # an operator of the user's may raise anything where the size is wrong
        return False


def read_flow(flow: Any, valid: Any) -> Any:
    """A flow in numbers as a tensor, a name or a callable as it is, else a sentence."""
    if flow is not None and not isinstance(flow, str) and not callable(flow):
        try:
            flow = torch.as_tensor(flow)
        except (TypeError, ValueError, RuntimeError):
            raise KindError(
                f"flow is a {type(flow).__name__}; give a tensor (T-1, 2, H, W), a callable "
                "(frames, next frames) -> flows, or 'opencv'"
            ) from None
    if valid is not None and not isinstance(flow, Tensor):
        raise DataError(
            "valid= says which pixels of a given flow count, and no flow is given: give both, or "
            "leave valid out"
        )
    return flow


def flow_of(
    flow: Tensor, valid: Any, rows: Tensor, prior: Prior
) -> tuple[Tensor, None, Tensor | None]:
    """A given flow as (N, T − 1, 2, H, W) and its mask; no backward one."""
    clips, frames = rows.shape[:2]
    high, wide = prior.shape[-2:]
    flow = own(_sized("flow", flow, (clips, frames - 1, 2, high, wide)).to(rows))
    if not bool(flow.isfinite().all()):
        raise DataError("the flow has values that are not finite: mark occluded pixels by valid=.")
    if valid is None:
        return flow, None, None
    valid = _sized("valid", torch.as_tensor(valid), (clips, frames - 1, 1, high, wide))
    return flow, None, valid.to(device=rows.device, dtype=torch.bool)


def _sized(name: str, tensor: Tensor, wanted: tuple[int, ...]) -> Tensor:
    """Of that size, or of that size without the first, then for all clips."""
    if tuple(tensor.shape) == wanted[1:]:
        tensor = tensor.expand(wanted)
    if tuple(tensor.shape) != wanted:
        raise DataError(
            f"{name} is {tuple(tensor.shape)}; wanted {wanted} or, for every clip alike, "
            f"{wanted[1:]}: one between each frame and the next."
        )
    return tensor


def plan_of(plan: FramePlan, rank: int) -> FramePlan:
    """Options that can be meant."""
    whole("rank", rank, 0)
    for name in ("iterations", "window", "patience", "starts"):
        whole(name, getattr(plan, name), 1)
    for name in ("warmup", "refine"):
        whole(name, getattr(plan, name), 0)
    for name, said in (("pixel", "weight"), ("slack", "slack")):
        if not 0 <= getattr(plan, name) < math.inf:
            raise DataError(f"{said} is a number, 0 or more; got {getattr(plan, name)!r}.")
    if not 0 < plan.rate < math.inf:
        raise DataError(f"rate is a number above 0; got {plan.rate!r}.")
    if not 0 <= plan.smoothing < 1:
        raise DataError(f"smoothing is a number in [0, 1); got {plan.smoothing!r}.")
    return plan
