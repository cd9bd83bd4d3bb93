"""Operators by name: ``"sr:2"``, ``"inpaint:0.7"``, …, each a row of :data:`OPERATORS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.restoration.operators.blind_blur import BlindBlur
from setpoint.restoration.operators.blur import gaussian_blur, motion_blur
from setpoint.restoration.operators.downsample import Downsample
from setpoint.restoration.operators.external_operator import Physics, is_physics
from setpoint.restoration.operators.image_tensors import read_range
from setpoint.restoration.operators.inpaint import box_inpaint, random_inpaint
from setpoint.restoration.operators.nonlinear_blur import BlurGamma, BlurSaturate
from setpoint.restoration.operators.phase_retrieval import PhaseRetrieval


@dataclass(frozen=True)
class OperatorSetting:
    """What a row may use beside its own numbers."""

    shape: tuple[int, int, int]
    seed: int
    batch: int | None
    range: tuple[float, float]


@dataclass(frozen=True)
class OperatorRow:
    """One operator by name.

    Attributes
    ----------
    usage : str
        An example that can be read.
    numbers : (int, int)
        How many numbers follow the name, at least and at most.
    meaning : str
        One sentence.
    make : callable
        ``(numbers, setting) -> operator``.
    """

    usage: str
    numbers: tuple[int, int]
    meaning: str
    make: Callable[[list[float], OperatorSetting], Any]


def _box(numbers: list[float], at: OperatorSetting) -> Any:
    if len(numbers) == 2:
        raise DataError("'box' takes its size, or size, row and column; such as 'box:12,4,8'")
    size, *corner = (int(n) if n == n // 1 else n for n in numbers)
    return box_inpaint(at.shape, size, tuple(corner) or None, batch=at.batch)  # type: ignore[arg-type]


OPERATORS: dict[str, OperatorRow] = {
    "sr": OperatorRow(
        "sr:2",
        (1, 1),
        "means of blocks of f × f pixels",
        lambda n, at: Downsample(n[0]),  # type: ignore[arg-type]
    ),
    "inpaint": OperatorRow(
        "inpaint:0.7",
        (1, 1),
        "that share of the pixels hidden, drawn by the seed",
        lambda n, at: random_inpaint(at.shape, n[0], at.seed, at.batch),
    ),
    "box": OperatorRow("box:12", (1, 3), "a box hidden, in the middle or at row, column", _box),
    "gaussian-blur": OperatorRow(
        "gaussian-blur:1.5",
        (1, 1),
        "blur by a Gaussian of so many pixels",
        lambda n, at: gaussian_blur(n[0]),
    ),
    "motion-blur": OperatorRow(
        "motion-blur:9,45",
        (1, 2),
        "blur by a straight motion: length in pixels, angle in degrees",
        lambda n, at: motion_blur(n[0], n[1] if n[1:] else 0.0),
    ),
    "blur-saturate": OperatorRow(
        "blur-saturate:1.0,2.0",
        (1, 2),
        "Gaussian blur, then tanh of gain times the value",
        lambda n, at: BlurSaturate(gaussian_blur(n[0]), *n[1:], range=at.range),
    ),
    "blur-gamma": OperatorRow(
        "blur-gamma:1.0,2.2",
        (1, 2),
        "Gaussian blur, then the power 1 / gamma",
        lambda n, at: BlurGamma(gaussian_blur(n[0]), *n[1:], range=at.range),
    ),
    "blind-blur": OperatorRow(
        "blind-blur:9",
        (1, 1),
        "blur by an unknown kernel of k × k pixels",
        lambda n, at: BlindBlur(n[0]),  # type: ignore[arg-type]
    ),
    "phase": OperatorRow(
        "phase:2",
        (0, 1),
        "moduli of the Fourier transform on a sheet so many times wider",
        lambda n, at: PhaseRetrieval(*n),  # type: ignore[arg-type]
    ),
}


def as_operator(
    operator: Any,
    *,
    shape: Sequence[int],
    seed: int = 0,
    batch: int | None = None,
    range: tuple[float, float] = (0.0, 1.0),
) -> Any:
    """An operator from its name; a callable is one already.

    Parameters
    ----------
    operator : str, callable or object with a method ``A``
        A name with numbers, such as ``"inpaint:0.7"``; any differentiable function of images
        (B, C, H, W), which comes back as it is; or a physics object of deepinv, whose noiseless
        ``A`` is called.
    shape : sequence of int
        Of one image, (C, H, W).
    seed : int
        Seed of what is drawn: the masks of ``inpaint``.
    batch : int or None
        How many images, each with a mask of its own; None: one mask for all.
    range : (float, float)
        The declared range of the images.

    Examples
    --------
    >>> as_operator("sr:2", shape=(1, 28, 28))
    Downsample(factor=2)
    >>> as_operator("sr:3", shape=(1, 28, 28))
    Traceback (most recent call last):
    setpoint.DataError: images of 28 × 28 pixels do not divide into blocks of 3; crop or pad
    them, or take another factor
    """
    if not isinstance(operator, str):
        return _as_callable(operator)
    name, _, rest = operator.strip().partition(":")
    row = OPERATORS.get(name.strip().lower())
    if row is None:
        hint = f"the operators are {listing((r.usage for r in OPERATORS.values()), 20)}"
        raise DataError(
            f"operator {operator!r} is not known; {did_you_mean(name, OPERATORS, hint)}"
        )
    if len(tuple(shape)) != 3:
        raise DataError(f"shape is that of one image, (C, H, W); got {tuple(shape)}")
    numbers = _numbers(operator, rest, row)
    channels, height, width = (int(side) for side in shape)
    setting = OperatorSetting((channels, height, width), seed, batch, read_range(range))
    built = row.make(numbers, setting)
    blank = torch.full((batch or 1, *setting.shape), setting.range[0])
    blind = isinstance(built, BlindBlur)
    unknowns = (built.unknowns(len(blank), blank),) if blind else ()
    built(blank, *unknowns)  # what does not fit the images says so here
    return built


def _as_callable(operator: Any) -> Any:
    if is_physics(operator):
        return Physics(operator)
    if isinstance(operator, type) or not callable(operator):
        hint = " (a class: make one of it)" if isinstance(operator, type) else ""
        raise KindError(
            f"operator is {operator!r}{hint}; give a name such as 'inpaint:0.7', or a function "
            "that takes images (B, C, H, W) and gives what is measured of them"
        )
    return operator


def _numbers(text: str, rest: str, row: OperatorRow) -> list[float]:
    try:
        numbers = [float(part) for part in rest.split(",")] if rest.strip() else []
    except ValueError:
        raise DataError(
            f"operator {text!r} holds something that is no number; write it as {row.usage!r}"
        ) from None
    least, most = row.numbers
    if not least <= len(numbers) <= most:
        count = f"{least}" if least == most else f"{least} to {most}"
        raise DataError(
            f"operator {text!r} has {len(numbers)} numbers and takes {count}; write it as "
            f"{row.usage!r}: {row.meaning}"
        )
    return numbers
