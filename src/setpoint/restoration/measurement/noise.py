"""Noise in the measurement, in the units of y: what is added, and how large it is expected to be.

    Gaussian   y + σ n,                n ~ N(0, 1)        variance σ²
    Shot       low + w N / P,          N ~ Poisson(P s)   variance w² s / P,   s = (y − low) / w
    Speckle    y (1 + σ n),            n ~ N(0, 1)        variance σ² y²
    Impulse    low or high, evenly, with probability p    p ((y − low)² + (high − y)²) / 2

(low, high) is the declared range and w its width. The first three leave the mean alone; impulse
does not, so its "variance" is the expected squared deviation from the clean value, as everywhere
here. Values are not clipped afterwards: clipped noise has another variance and another mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError, Name, Spelling
from setpoint._core.options import is_real
from setpoint._core.random_streams import normal_like, stream, uniform_like
from setpoint._core.words import did_you_mean, listing
from setpoint.restoration.measurement.noise_level import estimate_sigma
from setpoint.restoration.operators.image_tensors import as_real, read_bounded, read_number

__all__ = ["Noise", "Gaussian", "Shot", "Speckle", "Impulse", "as_noise", "estimate_sigma"]


class Noise(ABC):
    """A kind of noise of a known level."""

    @abstractmethod
    def drawn(self, y: Tensor, seed: int) -> Tensor:
        """The noisy measurement of a clean one."""

    @abstractmethod
    def variance(self, y: Tensor) -> Tensor:
        """E (noisy − clean)² of every entry, from the **clean** y; of the shape of y."""

    @abstractmethod
    def variance_seen(self, y: Tensor) -> Tensor:
        """An unbiased estimate of the same from the **noisy** y; of the shape of y.

        A single entry may be far off, below 0 too; its mean over an image is what is of use.
        """

    def add(self, y: Tensor, seed: int = 0, observed: Tensor | None = None) -> Tensor:
        """The clean measurement with noise on it; entries that are not observed are left alone.

        The same seed gives the same noise on every device and in every precision, and the first
        images of a longer batch get what they would get alone. Of a complex y the real and the
        imaginary part are measurements of their own: each carries noise of this level.
        """
        if isinstance(y, Tensor) and y.is_complex():
            seen = None if observed is None else observed[..., None]
            return torch.view_as_complex(self.add(as_real(y), seed, seen))
        if not isinstance(y, Tensor) or not y.is_floating_point() or y.ndim < 2:
            what = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise KindError(f"y is a tensor of floats (B, …); got {what}")
        noisy = self.drawn(y, seed)
        return noisy if observed is None else torch.where(observed.to(y.device) != 0, noisy, y)


@dataclass(frozen=True, eq=False)
class Gaussian(Noise):
    """Gaussian noise of standard deviation ``sigma``, in the units of y.

    Parameters
    ----------
    sigma : float or Tensor (B,)
        Above 0; a tensor states one for each image.

    Examples
    --------
    >>> Gaussian(0.1).variance(torch.zeros(1, 2))
    tensor([[0.0100, 0.0100]])
    """

    sigma: float | Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.sigma, Tensor) or self.sigma.ndim == 0:
            plain = self.sigma.item() if isinstance(self.sigma, Tensor) else self.sigma
            object.__setattr__(self, "sigma", _level(plain, "sigma"))
        elif self.sigma.ndim != 1 or not bool(((self.sigma > 0) & self.sigma.isfinite()).all()):
            raise DataError(
                f"sigma is a number above 0, or a tensor (B,) of such; got one of shape "
                f"{tuple(self.sigma.shape)} with the least value {float(self.sigma.min()):g}"
            )

    def of(self, y: Tensor) -> Tensor | float:
        """σ so that it multiplies y: a number, or (B, 1, …)."""
        if not isinstance(self.sigma, Tensor):
            return self.sigma
        if len(self.sigma) != len(y):
            raise DataError(
                f"there are {len(self.sigma)} sigmas and {len(y)} images; state one for each, or "
                "a single number"
            )
        return self.sigma.to(y).reshape(-1, *(1,) * (y.ndim - 1))

    def drawn(self, y: Tensor, seed: int) -> Tensor:
        return y + self.of(y) * normal_like(y, seed, "noise")

    def variance(self, y: Tensor) -> Tensor:
        return torch.zeros_like(y) + self.of(y) ** 2

    def variance_seen(self, y: Tensor) -> Tensor:
        return self.variance(y)


@dataclass(frozen=True)
class Shot(Noise):
    """Shot noise of counted photons: ``photons`` is how many the top of the range gives.

    Parameters
    ----------
    photons : float
        The expected count at the value ``high``; above 0. The fewer, the noisier.
    range : (float, float)
        The declared range; ``low`` is dark, with no photon and no noise.

    Examples
    --------
    >>> Shot(100).variance(torch.tensor([[0.0, 0.25, 1.0]]))
    tensor([[0.0000, 0.0025, 0.0100]])
    """

    photons: float
    range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "photons", _level(self.photons, "the number of photons"))
        object.__setattr__(self, "range", read_bounded(self.range))

    def drawn(self, y: Tensor, seed: int) -> Tensor:
        low, high = self.range
        share = (y.detach().double().cpu() - low) / (high - low)
        if not bool((share > -1e-4).all()):
            raise DataError(
                f"y holds {float(y.min()):g}, darker than the {low:g} of its range; shot noise "
                "needs counts of at least 0: scale y, or state range="
            )
        source = stream(seed, "noise")
        rate = self.photons * share.clamp(min=0)
        counts = torch.stack([torch.poisson(image, generator=source) for image in rate])
        return (low + (high - low) * counts / self.photons).to(y)

    def variance(self, y: Tensor) -> Tensor:
        low, high = self.range
        return (y - low).clamp(min=0) * ((high - low) / self.photons)

    def variance_seen(self, y: Tensor) -> Tensor:
        return self.variance(y)


@dataclass(frozen=True)
class Speckle(Noise):
    """Speckle: noise in proportion to y. ``sigma`` is a share of y, without units.

    Examples
    --------
    >>> Speckle(0.5).variance(torch.tensor([[0.0, 1.0]]))
    tensor([[0.0000, 0.2500]])
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _level(self.sigma, "sigma"))

    def drawn(self, y: Tensor, seed: int) -> Tensor:
        return y * (1 + self.sigma * normal_like(y, seed, "noise"))

    def variance(self, y: Tensor) -> Tensor:
        return self.sigma**2 * y.square()

    def variance_seen(self, y: Tensor) -> Tensor:
        return self.variance(y) / (1 + self.sigma**2)  # E y'² = (1 + σ²) y²


@dataclass(frozen=True)
class Impulse(Noise):
    """Impulse noise, salt and pepper: a share of the entries is low or high, evenly.

    Parameters
    ----------
    fraction : float
        The share p of entries struck, above 0 and below 1.
    range : (float, float)
        The declared range, whose ends the struck entries take.

    Examples
    --------
    >>> Impulse(0.1).variance(torch.tensor([[0.0, 0.5, 1.0]]))
    tensor([[0.0500, 0.0250, 0.0500]])
    """

    fraction: float
    range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        share = _level(self.fraction, "the fraction of struck entries")
        if share >= 1:
            raise DataError(f"the fraction of struck entries is below 1; got {self.fraction!r}")
        object.__setattr__(self, "fraction", share)
        object.__setattr__(self, "range", read_bounded(self.range))

    def drawn(self, y: Tensor, seed: int) -> Tensor:
        low, high = self.range
        chance = uniform_like(y, seed, "noise")
        struck = torch.where(chance < self.fraction, high, y.double())
        return torch.where(chance < self.fraction / 2, low, struck).to(y.dtype)

    def variance(self, y: Tensor) -> Tensor:
        low, high = self.range
        return self.fraction * ((y - low).square() + (high - y).square()) / 2

    def variance_seen(self, y: Tensor) -> Tensor:
        # The mean square m(y) is p w² / 2 at both ends: E m(y') = (1 − p) m(y) + p · p w² / 2.
        low, high = self.range
        struck = self.fraction**2 * (high - low) ** 2 / 2
        return (self.variance(y) - struck) / (1 - self.fraction)


#: Kind of noise by name -> how it is made of its level and the range.
NOISES: dict[str, Callable[[float, tuple[float, float]], Noise]] = {
    "gaussian": lambda level, range: Gaussian(level),
    "shot": lambda level, range: Shot(level, range),
    "speckle": lambda level, range: Speckle(level),
    "impulse": lambda level, range: Impulse(level, range),
}


def as_noise(noise: Any, range: tuple[float, float] = (0.0, 1.0)) -> Noise | None:
    """Noise from a number (Gaussian), a name with its level, or as it is; None: unknown.

    Parameters
    ----------
    noise : None, float, Tensor (B,), str or Noise
        ``0.02`` and ``"gaussian:0.02"`` are a standard deviation in the units of y;
        ``"speckle:0.2"`` a share of y; ``"shot:100"`` photons at the top of the range;
        ``"impulse:0.1"`` a share of the entries.
    range : (float, float)
        The declared range, for shot and impulse.

    Examples
    --------
    >>> as_noise("shot:100")
    Shot(photons=100.0, range=(0.0, 1.0))
    >>> as_noise(0)
    Traceback (most recent call last):
    setpoint.DataError: noise is 0; its level is a number above 0. Say noise=None where it is
    not known: it is estimated then
    """
    if noise is None or isinstance(noise, Noise):
        return noise
    if isinstance(noise, Tensor):
        return Gaussian(noise)
    if is_real(noise):
        if not 0 < noise < float("inf"):
            raise DataError(
                "{argument} is {noise:g}; its level is a number above 0. Say {none} where it is "
                "not known: it is estimated then",
                argument=Name("noise"),
                noise=noise,
                none=Spelling("noise=None", "--noise unknown"),
            )
        return Gaussian(float(noise))
    if not isinstance(noise, str):
        raise KindError(
            "{argument} is a {kind}; give a standard deviation such as 0.02, a text such as "
            "'shot:100', or None where it is not known",
            argument=Name("noise"),
            kind=type(noise).__name__,
        )
    name, _, level = noise.strip().partition(":")
    make = NOISES.get(name.strip().lower())
    if make is None:
        kinds = f"the kinds are {listing(NOISES)}, with a level, such as 'gaussian:0.02'"
        raise DataError(
            "{argument} {noise!r} is not known; {hint}",
            argument=Name("noise"),
            noise=noise,
            hint=did_you_mean(name, NOISES, kinds),
        )
    try:
        number = float(level)
    except ValueError:
        raise DataError(
            "{argument} {noise!r} has no number as its level; write it as '{kind}:0.1'",
            argument=Name("noise"),
            noise=noise,
            kind=name.strip(),
        ) from None
    return make(number, range)


def _level(value: Any, name: str) -> float:
    return read_number(value, name)
