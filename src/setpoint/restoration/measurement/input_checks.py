"""Input of a restoration, checked once at the door: y, operator, prior, noise.

The prior and the operator are tried on one image, forward and backward. The image tried has black
and white parts: what has no gradient at the ends of the range (a square root, a logarithm) shows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError, KindError, SetpointError
from setpoint._core.random_streams import stream
from setpoint.restoration.measurement.noise import as_noise, estimate_sigma
from setpoint.restoration.operators.external_operator import Physics, is_physics
from setpoint.restoration.operators.image_tensors import read_range

#: More than this share of y far outside the range of the images means another scale.
OUTSIDE = 0.05


def check(y: Any, operator: Any, prior: Any, noise: Any = None) -> None:
    """Raise a sentence where a restoration cannot mean anything.

    Parameters
    ----------
    y : Tensor (B, …)
        What was measured, floats or complex numbers.
    operator : callable
        A(x), (B, *shape) -> (B, …).
    prior : Prior
        With ``shape``, ``seed_shape`` and ``range``.
    noise : None, float, str or Noise
        As :func:`~setpoint.restoration.measurement.noise.as_noise` takes it.

    Raises
    ------
    DataError, KindError
        One sentence that names the value and the way out.
    """
    y = read_measurement(y)
    low, high = prior_range(prior)
    as_noise(noise, (low, high) if math.isfinite(high - low) else (0.0, 1.0))
    if not callable(operator) or isinstance(operator, type):
        raise KindError(
            f"operator is {operator!r}; give a function that takes images (B, *shape) and gives "
            "what is measured of them, or a name through as_operator('inpaint:0.7', shape=…)"
        )
    operator = Physics(operator) if is_physics(operator) else operator
    _check_hidden(y, operator)
    _check_range(operator, low, high)
    x = probe_prior(prior, y)
    seen = probe_operator(operator, _test_image(x, low, high), y)
    _check_batch(operator, x, y)
    _check_scale(y, operator, seen, low, high, noise)


def _check_batch(operator: Any, x: Tensor, y: Tensor) -> None:
    """All images at once: an operator may treat one as it should and mix several."""
    if len(y) < 2:
        return
    images = x.detach()[:1].expand(len(y), *x.shape[1:])
    own = getattr(operator, "unknowns", None)
    with torch.no_grad():
        seen = operator(images, *(() if own is None else (own(len(y), images),)))
    _check_shape(seen, images, y)


def read_measurement(y: Any) -> Tensor:
    """Y as it is where it is a tensor (B, …) of finite floats, else a sentence."""
    if not isinstance(y, Tensor):
        raise KindError(
            f"y is a {type(y).__name__}; give a tensor of floats (B, …), such as torch.as_tensor(y)"
        )
    if not (y.is_floating_point() or y.is_complex()):
        way = "y.float() / 255 where 255 is white" if y.dtype == torch.uint8 else "y.float()"
        raise KindError(
            f"y holds {y.dtype}, and its range cannot be known from that; give floats in the range "
            f"of the prior's images: {way}"
        )
    if y.real.dtype not in (torch.float32, torch.float64):
        raise KindError(
            f"y holds {y.dtype}, too coarse for a search: give y.float(), and a prior in float32"
        )
    if y.ndim < 2 or y.numel() == 0:
        raise DataError(
            f"y has shape {tuple(y.shape)}; it holds one measurement for each image, (B, …), one "
            "at least. One alone is y[None]"
        )
    return own(y)


def own(y: Tensor) -> Tensor:
    """Y without its history; of inference mode a copy, which gradients can be made of."""
    with torch.inference_mode(False):
        return y.detach().clone() if y.is_inference() else y.detach()


def _check_hidden(y: Tensor, operator: Any) -> None:
    """Every entry of y is finite; a hidden one is 0, not NaN."""
    bad = ~y.isfinite()
    if not bool(bad.any()):
        return
    row = int(bad.flatten(1).any(1).nonzero()[0])
    where = f"y holds {_said(y[bad][0])} in image {row}, {int(bad.sum())} such entries in all"
    observed = getattr(operator, "observed", None)
    if isinstance(observed, Tensor) and not bool((bad & (observed.to(y.device) != 0)).any()):
        raise DataError(f"{where}, all of them hidden; a hidden entry is 0: y.nan_to_num(0.0)")
    raise DataError(
        f"{where}; leave the image out, or hide what is missing: put 0 there and use Inpaint(mask)"
    )


def _check_range(operator: Any, low: float, high: float) -> None:
    """An operator that depends on the range was made for that of the prior."""
    meant = getattr(operator, "range", None)
    if not isinstance(meant, tuple) or not math.isfinite(high - low):
        return
    if max(abs(meant[0] - low), abs(meant[1] - high)) > 1e-6 * (high - low):
        raise DataError(
            f"the operator is for images in [{meant[0]:g}, {meant[1]:g}] and the prior makes them "
            f"in [{low:g}, {high:g}]; make the operator with range=({low:g}, {high:g})"
        )


def prior_range(prior: Any) -> tuple[float, float]:
    """The declared range of a prior, or a sentence where it is none."""
    lacking = [name for name in ("shape", "seed_shape", "range") if not hasattr(prior, name)]
    if isinstance(prior, type) or not callable(prior) or lacking:
        what = f"lacks {', '.join(lacking)}" if lacking else "cannot be called"
        raise KindError(
            f"prior is a {type(prior).__name__} that {what}; wrap a network with "
            "Generator(network, shape=(C, H, W), range=(0, 1)), or load_prior('mnist')"
        )
    return read_range(prior.range)


def probe_prior(prior: Any, y: Tensor) -> Tensor:
    """One image of the prior (1, *shape), after its shape, values and gradient were checked."""
    kind = y.real.dtype
    z = torch.randn(1, *prior.seed_shape, generator=stream(0, "probe")).to(y.device, kind)
    z.requires_grad_(True)
    with torch.enable_grad():
        x = _called("the prior", prior, (z,), f"seeds {tuple(z.shape)}", z)
        shape = (1, *prior.shape)
        if not isinstance(x, Tensor) or tuple(x.shape) != shape:
            what = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise DataError(
                f"the prior gave {what} for one seed and says that an image is "
                f"{tuple(prior.shape)}; it has to give {shape}"
            )
        _check_values("the prior", x, "at a seed drawn from its law")
        _check_gradient("the prior", "the seed", x, z)
    return x.detach()


def _test_image(x: Tensor, low: float, high: float) -> Tensor:
    """An image to try: black on the left, white on the right, anything in between.

    Where the range has no ends, the image of the prior itself.
    """
    if not math.isfinite(high - low):
        return x
    drawn = torch.rand(x.shape, generator=stream(1, "probe")).to(x)
    third = x.shape[-1] // 3
    drawn[..., :third] = 0.0
    drawn[..., x.shape[-1] - third :] = 1.0
    return low + (high - low) * drawn


def probe_operator(operator: Any, x: Tensor, y: Tensor) -> Tensor:
    """What the operator makes of one image (1, *shape), after it was checked against y.

    An operator with something of its own for each image (masks, gains) cannot be tried on one: it
    is tried on as many as there are.
    """
    take = getattr(operator, "take", None)
    masks = getattr(operator, "observed", None)
    if callable(take) and isinstance(masks, Tensor) and len(masks) not in (1, len(y)):
        raise DataError(
            f"the operator has {len(masks)} masks, one for each image, and y holds {len(y)} "
            "measurements; give as many of the one as of the other, or one mask for all"
        )
    single = take([0]) if callable(take) else operator
    try:
        return _probe_on(single, x, y)
    except SetpointError:
        if len(y) == 1 or callable(take):
            raise
    return _probe_on(operator, x.expand(len(y), *x.shape[1:]), y)


def _probe_on(operator: Any, x: Tensor, y: Tensor) -> Tensor:
    x = x.clone().requires_grad_(True)
    own = getattr(operator, "unknowns", None)
    more = (own(len(x), x),) if callable(own) else ()
    with torch.enable_grad():
        description = f"images {tuple(x.shape)}, the size of the prior's"
        seen = _called("the operator", operator, (x, *more), description, x)
        _check_shape(seen, x, y)
        _check_values("the operator", seen, "at an image in the declared range")
        _check_gradient("the operator", "the image", seen, x)
    return seen.detach()


def _called(who: str, function: Any, arguments: tuple, description: str, first: Tensor) -> Any:
    """What a function gives, or a sentence with the reason why it does not."""
    try:
        return function(*arguments)
    except (torch.OutOfMemoryError, SetpointError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        home = _home(function)
        other = home is not None and home != (first.device, first.dtype)
        way = f"; it is {home[1]} on {home[0]}: bring both together" if home and other else ""
        raise DataError(
            f"{who} cannot take {description} ({first.dtype} on {first.device}){way}: "
            f"{type(error).__name__}: {reason}"
        ) from error


def _home(function: Any) -> tuple[torch.device, torch.dtype] | None:
    if isinstance(function, nn.Module):
        for weights in (*function.parameters(), *function.buffers()):
            if weights.is_floating_point():
                return weights.device, weights.dtype
    return None


def _check_shape(seen: Any, x: Tensor, y: Tensor) -> None:
    if not isinstance(seen, Tensor):
        raise KindError(
            f"the operator gave a {type(seen).__name__}; it has to give a tensor (B, …), made of "
            "the images with torch alone, so that there is a gradient"
        )
    if seen.ndim == 0 or len(seen) != len(x):
        raise DataError(
            f"the operator gave {tuple(seen.shape)} for {len(x)} image(s) {tuple(x.shape[1:])}; it "
            "has to give one measurement for each, (B, …)"
        )
    if seen.shape[1:] != y.shape[1:]:
        raise DataError(
            f"of the prior's images {tuple(x.shape[1:])} the operator makes "
            f"{tuple(seen.shape[1:])}, and a measurement in y is {tuple(y.shape[1:])}; take a "
            "prior of the size the operator was used on, or another operator"
        )
    if seen.device != y.device:
        raise DataError(
            f"the operator gave a tensor on {seen.device} and y is on {y.device}; move one of them"
        )
    if seen.is_complex() != y.is_complex():
        raise DataError(f"the operator gives {seen.dtype} and y holds {y.dtype}; make them alike")


def _check_values(who: str, values: Tensor, where: str) -> None:
    bad = ~values.isfinite()
    if bool(bad.any()):
        raise DataError(
            f"{who} gave {_said(values[bad][0])} {where} ({int(bad.sum())} of {values.numel()} "
            "entries); keep its logarithms, roots and quotients away from 0, as in "
            "x.clamp(min=1e-6)"
        )


def _check_gradient(who: str, what: str, output: Tensor, leaf: Tensor) -> None:
    """There is a gradient, it is finite and it is not 0 throughout."""
    lost = (
        f"{who} is not differentiable: {{}}; make everything of {what} with torch, without "
        "detach(), .data, numpy, no_grad, round or comparisons"
    )
    if not output.requires_grad:
        raise DataError(lost.format(f"what it gives has no gradient in {what}"))
    total = output.abs().sum() if output.is_complex() else _weighed(output)
    try:
        (slope,) = torch.autograd.grad(total, leaf, allow_unused=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise DataError(lost.format(f"its gradient fails ({reason})")) from error
    if slope is None:
        raise DataError(lost.format(f"what it gives does not depend on {what}"))
    if not bool(slope.isfinite().all()):
        raise DataError(
            f"{who} has a gradient that is no finite number at an ordinary {what.split()[-1]}, "
            "black and white parts in it; keep roots, logarithms and quotients away from 0, as "
            "in x.clamp(min=1e-6)"
        )
    if not bool((slope != 0).any()):
        raise DataError(lost.format(f"its gradient in {what} is 0 throughout"))


def _weighed(output: Tensor) -> Tensor:
    """Σ w · made with drawn weights: a plain sum may be constant (a softmax) where made is not."""
    weights = torch.rand(output.shape, generator=stream(2, "probe")).to(output)
    return ((0.5 + weights) * output).sum()


def _check_scale(
    y: Tensor, operator: Any, seen: Tensor, low: float, high: float, noise: Any
) -> None:
    """Where A of an image is an image again, y lies in the range of the images, up to noise."""
    width = high - low
    if not math.isfinite(width) or y.is_complex():
        return
    kind = getattr(operator, "output", "unknown")
    slack = 1e-3 * width
    stays = bool(((seen > low - slack) & (seen < high + slack)).all())
    if kind == "other" or (kind != "image" and not stays):
        return
    reach = max(width / 2, 4 * _strength(y, operator, noise, low, high))
    values = _observed_values(y, operator)
    share = float(((values < low - reach) | (values > high + reach)).double().mean())
    if share <= OUTSIDE:
        return
    least, most = float(values.min()), float(values.max())
    raise DataError(
        f"y goes from {least:g} to {most:g} and the prior's images lie in [{low:g}, {high:g}], "
        f"{share:.0%} of y far outside; {_way_out(least, most, low, high)}"
    )


def _observed_values(y: Tensor, operator: Any) -> Tensor:
    """The entries of y that are seen, in one row: a hidden one is 0 whatever the range."""
    observed = getattr(operator, "observed", None)
    if not isinstance(observed, Tensor):
        return y.flatten()
    return y[(observed.to(y.device) != 0).expand(y.shape)]


def _strength(y: Tensor, operator: Any, noise: Any, low: float, high: float) -> float:
    """The root mean square of the noise, as stated or as estimated; 0 where nothing is known."""
    law = as_noise(noise, (low, high))
    if law is not None:
        return math.sqrt(max(float(law.variance(y.clamp(low, high)).mean()), 0.0))
    try:
        return float(estimate_sigma(y, getattr(operator, "observed", None)).mean())
    except DataError:
        return 0.0


def _way_out(least: float, most: float, low: float, high: float) -> str:
    to = "" if (low, high) == (0.0, 1.0) else f" * {high - low:g} + {low:g}"
    if least >= -1.5 and most <= 1.5:
        return f"y seems to be in [-1, 1]: give (y + 1) / 2{to}"
    if least > -64 and 2 < most <= 320:
        return f"y seems to be in [0, 255]: give y / 255{to}"
    return f"scale y to [{low:g}, {high:g}] as the operator would have made it"


def _said(value: Tensor) -> str:
    return str(value.item())
