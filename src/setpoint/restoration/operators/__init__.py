"""Operators A by which images were measured: any callable (B, C, H, W) -> (B, …).

Ours say more of themselves: ``linear``, and then ``adjoint(v, shape)``; ``output``, ``"image"``
where y lies in the range of the images up to noise; ``range`` where they depend on it; and
``observed``, which entries of y are seen, where not all are. A blind one is called as
``A(x, unknowns)`` and gives its start by ``A.unknowns(batch, like)``.
"""

from setpoint.restoration.operators.blind_blur import BlindBlur
from setpoint.restoration.operators.blur import (
    Blur,
    gaussian_blur,
    gaussian_kernel,
    motion_blur,
    motion_kernel,
)
from setpoint.restoration.operators.downsample import Downsample
from setpoint.restoration.operators.external_operator import Physics
from setpoint.restoration.operators.inpaint import Inpaint, box_inpaint, random_inpaint
from setpoint.restoration.operators.nonlinear_blur import BlurGamma, BlurSaturate
from setpoint.restoration.operators.observed_entries import observed_entries
from setpoint.restoration.operators.phase_retrieval import PhaseRetrieval
from setpoint.restoration.operators.table import OPERATORS, as_operator

__all__ = [
    "as_operator",
    "OPERATORS",
    "Downsample",
    "Inpaint",
    "random_inpaint",
    "box_inpaint",
    "Blur",
    "gaussian_blur",
    "motion_blur",
    "gaussian_kernel",
    "motion_kernel",
    "BlurSaturate",
    "BlurGamma",
    "BlindBlur",
    "PhaseRetrieval",
    "Physics",
    "observed_entries",
]
