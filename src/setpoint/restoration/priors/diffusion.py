"""R(z): a few deterministic steps of a diffusion model as one differentiable function.

With x_{t_1} = z and the times t_1 > … > t_n (DDIM with η = 0, Song et al. 2021),

    x̂_0 = (what the network says at (x_t, t)),   ε̂ = (x_t − √ᾱ_t x̂_0)/√(1 − ᾱ_t),
    x_s = √ᾱ_s x̂_0 + √(1 − ᾱ_s) ε̂,              the last one: R(z) = x̂_0.

The seed's law is N(0, I), which is that of x_{t_1} where ᾱ is close to 0.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError
from setpoint.restoration.priors.noise_schedule import timesteps
from setpoint.restoration.priors.prior import Scaled, checked_range, column

#: what a network may say: the clean image, the noise, or v = √ᾱ ε − √(1 − ᾱ) x_0
PREDICTIONS = ("v", "epsilon", "sample")


class DiffusionPrior(Scaled):
    """A diffusion model as a map from seeds to images.

    Parameters
    ----------
    network : torch.nn.Module
        It is used as it is, without a copy: put into evaluation mode, its parameters frozen.
        (x_t, t) -> prediction, x_t in [-1, 1] units, (B, C, H, W); t (B,), float, index/T.
    shape : tuple of int
        Of one image.
    alpha_bar : torch.Tensor
        (T,), the schedule.
    range : tuple of float
        The declared value range of the images made.
    prediction : "v", "epsilon" or "sample"
        What the network says.
    steps : int
        Network calls of one R(z).
    spacing : "trailing" or "leading"
        Which times they are at.
    clip : bool
        Whether each x̂_0 is clipped to [-1, 1]. The gradient is zero where it is.
    """

    alpha_bar: Tensor

    def __init__(
        self,
        network: nn.Module,
        *,
        shape: tuple[int, ...],
        alpha_bar: Tensor,
        range: tuple[float, float] = (0.0, 1.0),
        prediction: str = "v",
        steps: int = 3,
        spacing: str = "trailing",
        clip: bool = True,
    ) -> None:
        super().__init__()
        if prediction not in PREDICTIONS:
            raise DataError(
                f"prediction={prediction!r} is not known: say what the network gives, one of "
                f"{', '.join(PREDICTIONS)}."
            )
        self.network = network.eval().requires_grad_(False)
        self.shape = self.seed_shape = tuple(shape)
        self.range = checked_range(range)
        self.register_buffer("alpha_bar", alpha_bar.double(), persistent=False)
        self.prediction, self.spacing, self.clip = prediction, spacing, clip
        self.times = timesteps(len(alpha_bar), steps, spacing)
        self.levels = [float(a) for a in alpha_bar]

    @property
    def T(self) -> int:
        """Times of the schedule."""
        return len(self.levels)

    @property
    def steps(self) -> int:
        """Network calls of one R(z)."""
        return len(self.times)

    def with_steps(self, steps: int, spacing: str | None = None) -> DiffusionPrior:
        """The same model, seen through another number of steps."""
        return DiffusionPrior(
            self.network,
            shape=self.shape,
            alpha_bar=self.alpha_bar,
            range=self.range,
            prediction=self.prediction,
            steps=steps,
            spacing=spacing or self.spacing,
            clip=self.clip,
        )

    def forward(self, z: Tensor) -> Tensor:
        """R(z), in the declared range."""
        x = z
        for now, after in zip(self.times, [*self.times[1:], None], strict=True):
            clean, noise = self.clean(x, now)
            if after is None:
                return self.to_image(clean)
            alpha = self.levels[after]
            x = alpha**0.5 * clean + (1 - alpha) ** 0.5 * noise
        raise AssertionError("a prior has at least one step")

    def carry(self, x: Tensor, t: Tensor) -> Tensor:
        """From x = t · image + (1 − t) · noise, as on a flow's path, to an image.

        With n² = t² + (1 − t)², x/n is where √ᾱ = t/n, and (x̂_0 − x)/(1 − t) is the path's
        velocity there. Euler's rule, ``steps`` times; the last step gives x̂_0.

        Parameters
        ----------
        x : torch.Tensor
            (B, C, H, W) in the network's units.
        t : torch.Tensor
            (B,) in (0, 1).
        """
        stride = column((1 - t) / self.steps, x)
        now = column(t, x)
        for _ in range(self.steps):
            size = (now**2 + (1 - now) ** 2).sqrt()
            alpha = (now / size) ** 2
            clean = self._clean(x / size, self._time(alpha.flatten()), alpha)
            x = x + stride * (clean - x) / (1 - now)
            now = now + stride
        return self.to_image(x.clamp(-1, 1) if self.clip else x)

    def clean(self, x: Tensor, t: int | Tensor) -> tuple[Tensor, Tensor]:
        """x̂_0 and ε̂ at x_t, in the network's units.

        Parameters
        ----------
        x : torch.Tensor
            (B, C, H, W) at time t.
        t : int or torch.Tensor
            The time, one for all or (B,) long.
        """
        if isinstance(t, int):
            t = torch.full((len(x),), t, device=x.device)
        alpha = column(self.alpha_bar[t].to(x.dtype), x)
        return self._said(x, t.to(x.dtype) / self.T, alpha)

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """E[clean | x = clean + sigma · noise], all in the units of the image.

        √ᾱ x is at the time whose ᾱ is 1/(1 + σ²), found between the schedule's times.
        """
        spread = self.units(sigma, x)
        alpha = 1 / (1 + spread**2)
        clean, _ = self._said(self.from_image(x) * alpha.sqrt(), self._time(alpha.flatten()), alpha)
        return self.to_image(clean)

    def _said(self, x: Tensor, time: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        clean = self._clean(x, time, alpha)
        if self.clip:
            clean = clean.clamp(-1, 1)
        return clean, (x - alpha.sqrt() * clean) / (1 - alpha).sqrt()

    def _clean(self, x: Tensor, time: Tensor, alpha: Tensor) -> Tensor:
        """x̂_0 as the network has it, not clipped."""
        prediction = self.network(x, time)
        signal, noise = alpha.sqrt(), (1 - alpha).sqrt()
        if self.prediction == "v":
            return signal * x - noise * prediction
        return (x - noise * prediction) / signal if self.prediction == "epsilon" else prediction

    def _time(self, alpha: Tensor) -> Tensor:
        """The fraction t/T at which the schedule has that ᾱ, linear in log(1 − ᾱ)."""
        table = (1 - self.alpha_bar).log()
        wanted = (1 - alpha.double()).clamp(min=1e-12).log()
        high = torch.searchsorted(table, wanted).clamp(1, self.T - 1)
        low = high - 1
        part = (wanted - table[low]) / (table[high] - table[low])
        return ((low + part.clamp(0, 1)) / self.T).to(alpha.dtype)
