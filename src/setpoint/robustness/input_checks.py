"""Input of an evaluation, checked at the door: images, labels, radii, the model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.arrays import to_numpy
from setpoint._core.errors import Argument, DataError, KindError, Name, Phrase, Spelling
from setpoint._core.options import is_real
from setpoint._core.words import nearest
from setpoint.robustness.attacks.distances import Distance, as_distance

#: What norms are called elsewhere.
_NORMS = {
    **{"l1": "l1", "manhattan": "l1", "taxicab": "l1"},
    **{"l2": "l2", "euclidean": "l2"},
    **{"linf": "linf", "infinity": "linf", "chebyshev": "linf", "maximum": "linf"},
}


def read_box(low: Any, high: Any) -> tuple[float, float]:
    """The range of the pixels, or a sentence."""
    if not (is_real(low) and is_real(high) and -math.inf < low < high < math.inf):
        raise DataError(f"low and high are two numbers, low below high; got {low!r} and {high!r}")
    return float(low), float(high)


def read_images(images: Any, low: float, high: float) -> Tensor:
    """Images (N, *shape) as a tensor of floats, all of them in the box.

    Raises
    ------
    DataError
        Where a pixel is no number or out of the box, or there are no images.
    """
    x = images.detach() if isinstance(images, Tensor) else _tensor(images)
    if x.ndim < 2 or len(x) == 0 or x[0].numel() == 0:
        raise DataError(
            f"X has shape {tuple(x.shape)}; it holds images one after the other, (N, …), one at "
            "least. One image alone is X[None]"
        )
    if not x.is_floating_point():
        if x.is_complex() or x.dtype == torch.bool:
            raise KindError(f"X holds {x.dtype}; images are numbers, such as float32")
        x = x.to(torch.get_default_dtype())
    if not bool(x.isfinite().all()):
        row = int((~x.isfinite()).flatten(1).any(1).nonzero()[0])
        raise DataError(f"X holds a pixel that is no finite number in image {row}; leave it out")
    least, greatest = float(x.amin()), float(x.amax())
    ends = torch.tensor([low, high], dtype=torch.float64).to(x.dtype)
    if least < min(low, float(ends[0])) or greatest > max(high, float(ends[1])):
        worst = least if low - least > greatest - high else greatest
        raise DataError(
            "X holds {worst:g} and the box is [{low:g}, {high:g}]; {way}",
            worst=worst,
            low=low,
            high=high,
            way=_way_out(least, greatest),
        )
    return x


def _tensor(images: Any) -> Tensor:
    try:
        array = np.ascontiguousarray(images)
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError) as error:
        raise KindError(
            f"X is a {type(images).__name__} that is no array of numbers ({error}); give a tensor "
            "or an array (N, *shape)"
        ) from error


def _way_out(least: float, greatest: float) -> Phrase:
    if least >= 0 and 1 < greatest <= 255:
        return Phrase(
            "divide the images by 255, or say {high} where the model wants them so",
            high=Argument("high", 255),
        )
    return Phrase(
        "say {low}, {high} or wider, or let the model do the normalising, so that images come in "
        "their natural range",
        low=Argument("low", least),
        high=Argument("high", greatest),
    )


def read_labels(labels: Any, count: int, name: str = "y") -> Tensor:
    """Labels (N,) of int64, one for each image; whether the model has so many classes comes later.

    ``name`` is what they are called in a sentence.
    """
    array = to_numpy(labels)
    if array.ndim != 1 or len(array) != count:
        raise DataError(
            f"{name} has shape {array.shape} and there are {count} images; it holds one label for "
            "each, (N,)"
        )
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array % 1 == 0).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        shown = array.flat[0].item() if array.dtype.kind in "fUSb" else array.dtype
        raise KindError(
            f"{name} holds {shown!r}; labels are the numbers of the model's classes, 0 to K − 1"
        )
    if array.min() < 0:
        raise DataError(f"{name} holds {array.min()}; the classes of the model count from 0")
    return torch.from_numpy(array.astype(np.int64))


def check_classes(labels: Tensor, classes: int, name: str = "y") -> None:
    """Raise where a label is beyond the classes of the model."""
    if int(labels.max()) >= classes:
        raise DataError(
            f"{name} holds {int(labels.max())} and the model has {classes} classes, 0 to "
            f"{classes - 1}; labels count from 0"
        )


def read_distance(distance: Any) -> Distance:
    """A distance by name or as a function; an unknown name is told the nearest known one."""
    try:
        return as_distance(distance)
    except DataError as error:
        meant = nearest(distance, _NORMS)
        if meant is None:
            raise
        raise DataError(
            "{argument} {distance!r} is not known; did you mean {norm!r}?",
            argument=Name("distance"),
            distance=distance,
            norm=_NORMS[meant],
        ) from error


def read_eps(eps: Any) -> tuple[float, ...]:
    """Radii above 0, the least first."""
    eps = eps.tolist() if isinstance(eps, Tensor | np.ndarray) else eps
    many = list(eps) if isinstance(eps, Iterable) and not isinstance(eps, str) else [eps]
    many = [e.item() if isinstance(e, Tensor | np.generic) else e for e in many]
    if not many:
        raise DataError("eps is empty; give a radius above 0, or several")
    for e in many:
        if not is_real(e) or not 0 < e < math.inf:
            raise DataError(
                "{argument} is a number above 0{several}; got {eps!r}",
                argument=Name("eps"),
                several=Spelling(", or several", ""),
                eps=e,
            )
    return tuple(sorted({float(e) for e in many}))


def read_model(model: Any) -> Any:
    """The model, if it can be called."""
    if isinstance(model, type) or not callable(model):
        hint = " (a class: make one of it)" if isinstance(model, type) else ""
        raise KindError(
            f"model is {model!r}{hint}; it is called with images (B, *shape) and gives logits "
            "(B, K), as a torch module does"
        )
    return model


def read_count(value: Any, name: str) -> int | None:
    """A whole number of 1 or more, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(
            "{argument} is a whole number, 1 or more; got {value!r}",
            argument=Name(name),
            value=value,
        )
    return int(value)


def logits_of(model: Any, x: Tensor) -> Tensor:
    """The logits (B, K) of a batch, or a sentence why there are none."""
    try:
        logits = model(x)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"the model cannot take images of shape {tuple(x.shape)} ({x.dtype} on {x.device}): "
            f"{type(error).__name__}: {reason}"
        ) from error
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(x):
        what = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise DataError(
            f"the model gave {what} for {len(x)} images; it has to give logits, a tensor (B, K)"
        )
    if logits.shape[1] < 2:
        raise DataError(
            "the model gave one logit for each image; it has to give one for each class. For a "
            "model of one score z: lambda x: torch.cat([-model(x) / 2, model(x) / 2], 1)"
        )
    return logits


def digest_of(*parts: Tensor) -> str:
    """A short mark of some tensors: the same where every bit of them is."""
    mark = hashlib.blake2b(digest_size=8)
    for part in parts:
        array = to_numpy(part)
        mark.update(f"{array.dtype.str}{array.shape}".encode())
        mark.update(np.ascontiguousarray(array).data)
    return mark.hexdigest()


def weights_of(model: Any) -> list[Tensor]:
    """All that a module has learnt; nothing where the model is a function."""
    return list(model.state_dict().values()) if isinstance(model, nn.Module) else []


def home_of(model: Any, x: Tensor) -> tuple[torch.device, torch.dtype]:
    """Where the model's weights are and their precision; those of the images where it has none."""
    if isinstance(model, nn.Module):
        for weights in (*model.parameters(), *model.buffers()):
            if weights.is_floating_point():
                return weights.device, _fine(weights.dtype)
    return x.device, _fine(x.dtype)


def _fine(kind: torch.dtype) -> torch.dtype:
    """Refuse a precision in which a pixel is rounded by as much as an attack moves it."""
    if torch.finfo(kind).bits < 32:
        raise KindError(
            f"the model or the images are in {kind}, which rounds a pixel by as much as an attack "
            "moves it; give model.float() and images in float32"
        )
    return kind


@contextmanager
def as_evaluated(model: Any) -> Iterator[tuple[str, ...]]:
    """The model in evaluation mode, every part of it put back afterwards; says what was changed."""
    if not isinstance(model, nn.Module):
        yield ()
        return
    modes = [(part, part.training) for part in model.modules()]
    training = [part for part, mode in modes if mode]
    names = sorted({type(part).__name__ for part in training if _moody(part)})
    note = (
        "the model was in training mode and was run in evaluation mode, as "
        f"{', '.join(names)} may answer otherwise; it was put back",
    )
    for part in training:
        part.training = False
    try:
        yield note if names else ()
    finally:
        for part, mode in modes:
            part.training = mode


def _moody(part: nn.Module) -> bool:
    """Whether a module may answer otherwise in training; of those not of torch nobody knows."""
    kinds = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase)
    return isinstance(part, kinds) or type(part).__module__.partition(".")[0] != "torch"
