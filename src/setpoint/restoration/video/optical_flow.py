"""Optical flow between frames: given, or estimated from what has been restored so far.

An estimate made from a half-restored clip is poor, so it is made anew every so many iterations and
smoothed: with g the new estimate, both directions alike,

    f ← β f + (1 − β) g,        β = ``smoothing``.

A pixel counts where p + f(p) is in the frame and the way back returns
(:func:`setpoint.restoration.video.flow_warp.consistent`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.video.flow_warp import consistent, inside

#: (frames (B, C, H, W), the next ones) -> flows (B, 2, H, W)
Estimator = Callable[[Tensor, Tensor], Tensor]
#: OpenCV's estimators look for patches of 8 pixels at several scales: smaller images are enlarged
LEAST_SIDE = 64
NEEDS_OPENCV = (
    "optical flow by OpenCV needs the package opencv-python-headless, which is not here: "
    "pip install opencv-python-headless, give flow= a tensor (T-1, 2, H, W), or say pixel=False."
)


@dataclass(frozen=True, eq=False)
class Motion:
    """The flow of some clips as it is held now.

    Attributes
    ----------
    forward : torch.Tensor
        (N, T − 1, 2, H, W), from each frame to the next.
    backward : torch.Tensor or None
        The same from each frame to the one before; None where only one direction was given.
    valid : torch.Tensor
        (N, T − 1, 1, H, W) bool, where a pixel counts.
    given : torch.Tensor or None
        A mask that came with the flow, kept in ``valid``.
    """

    forward: Tensor
    backward: Tensor | None
    valid: Tensor
    given: Tensor | None = None

    def repeated(self, times: int) -> Motion:
        """The same clips so many times, one copy of all after the other."""
        parts = (self.forward, self.backward, self.valid, self.given)
        return Motion(*(x if x is None else torch.cat([x] * times) for x in parts))  # type: ignore[arg-type]


def motion(forward: Tensor, backward: Tensor | None, mask: Tensor | None = None) -> Motion:
    """Flows with the pixels that count."""
    valid = inside(forward)
    if backward is not None:
        valid = valid & consistent(forward, backward)
    if mask is not None:
        valid = valid & mask
    return Motion(forward, backward, valid, mask)


@torch.no_grad()
def refined(
    current: Motion | None, frames: Tensor, estimate: Estimator, smoothing: float
) -> Motion:
    """The flow estimated anew from frames (N, T, C, H, W), smoothed with what was held."""
    here, there = frames[:, :-1].flatten(0, 1), frames[:, 1:].flatten(0, 1)
    clips, pairs = len(frames), frames.shape[1] - 1
    forward = _estimated(estimate, here, there).unflatten(0, (clips, pairs))
    backward = _estimated(estimate, there, here).unflatten(0, (clips, pairs))
    if current is None:
        return motion(forward, backward)
    forward = torch.lerp(forward, current.forward, smoothing)
    if current.backward is not None:
        backward = torch.lerp(backward, current.backward, smoothing)
    return motion(forward, backward, current.given)


def opencv_flow(here: Tensor, there: Tensor, range: tuple[float, float], kind: str) -> Tensor:
    """Flows between images by OpenCV, on the CPU; (B, C, H, W) twice -> (B, 2, H, W).

    Images become gray, the mean of their channels, of 256 levels over ``range``; small ones are
    enlarged until their shorter side has 64 pixels, and the flow is scaled back.

    Parameters
    ----------
    here, there : torch.Tensor
        Pairs of images.
    range : tuple of float
        Their declared value range.
    kind : "dis" or "farneback"
        Dense inverse search (Kroeger et al. 2016) or polynomial expansion (Farnebäck 2003).
    """
    cv2 = _opencv()
    high, wide = here.shape[-2:]
    enlarged = max(1, -(-LEAST_SIDE // min(high, wide)))
    size = (wide * enlarged, high * enlarged)
    first, second = _gray(here, range), _gray(there, range)
    flows = np.empty((len(here), high, wide, 2), dtype=np.float32)
    search = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM) if kind == "dis" else None
    if search is not None:
        search.setFinestScale(0)
    for row, (a, b) in enumerate(zip(first, second, strict=True)):
        a, b = (cv2.resize(x, size, interpolation=cv2.INTER_CUBIC) for x in (a, b))
        if search is not None:
            flow = search.calc(a, b, None)
        else:
            flow = cv2.calcOpticalFlowFarneback(a, b, None, 0.5, 3, 15, 3, 5, 1.2, 0)
        flows[row] = cv2.resize(flow, (wide, high), interpolation=cv2.INTER_AREA) / enlarged
    return torch.from_numpy(flows).permute(0, 3, 1, 2).to(here)


def as_estimator(flow: str | Estimator, range: tuple[float, float]) -> Estimator:
    """What estimates flow, by its name or as it is."""
    if not isinstance(flow, str):
        return flow
    kinds = {"opencv": "dis", "dis": "dis", "farneback": "farneback"}
    if flow not in kinds:
        raise DataError(
            f"flow={flow!r} is not known: give a tensor (T-1, 2, H, W), a callable "
            f"(frames, next frames) -> flows, or one of {', '.join(kinds)}."
        )
    if not np.isfinite(range).all():
        raise DataError(
            f"OpenCV's flow needs images of a bounded range and the prior declares {range}: give "
            "flow= a tensor or a callable."
        )
    _opencv()
    return lambda here, there: opencv_flow(here, there, range, kinds[flow])


def _estimated(estimate: Estimator, here: Tensor, there: Tensor) -> Tensor:
    """A flow of the right size without NaN."""
    flows = estimate(here, there)
    wanted = (len(here), 2, *here.shape[-2:])
    if not isinstance(flows, Tensor) or tuple(flows.shape) != wanted:
        got = tuple(flows.shape) if isinstance(flows, Tensor) else type(flows).__name__
        raise DataError(f"the flow estimator gives {got} for {len(here)} pairs; wanted {wanted}.")
    flows = flows.detach().to(here)
    if not bool(flows.isfinite().all()):
        raise DataError("the flow estimator gives values that are not finite.")
    return flows


def _gray(images: Tensor, range: tuple[float, float]) -> np.ndarray:
    low, high = range
    gray = images.detach().mean(1).cpu().double().numpy()  # (B, H, W)
    return np.clip(np.rint((gray - low) * (255.0 / (high - low))), 0, 255).astype(np.uint8)


def _opencv() -> Any:
    try:
        import cv2  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise DataError(NEEDS_OPENCV) from None
    return cv2
