r"""Train a prior from images: one loop for the diffusion model and for the flow.

Images x are brought from their declared range to u in [−1, 1]; noise ε ~ N(0, I). The network
learns, in mean square,

    diffusion   u_t = √ᾱ_t u + √(1 − ᾱ_t) ε  ->  v = √ᾱ_t ε − √(1 − ᾱ_t) u      [1], app. D
    flow        u_t = t u + (1 − t) ε        ->  u − ε                           [2], sec. 2

with t spread evenly over its values within every batch (one random shift, the values dealt at
random), which leaves the mean of the loss as it is and takes most of the variance that t brings.
The weights that come back are the moving average of the trained ones.

References
----------
.. [1] Salimans and Ho, Progressive distillation for fast sampling of diffusion models, ICLR 2022.
.. [2] Liu, Gong and Liu, Flow straight and fast, ICLR 2023.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from setpoint._core.errors import DataError
from setpoint._core.progress import Progress
from setpoint.restoration.priors.diffusion import DiffusionPrior
from setpoint.restoration.priors.flow import FlowPrior
from setpoint.restoration.priors.noise_schedule import cosine
from setpoint.restoration.priors.unet import UNet

Augment = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(frozen=True, kw_only=True)
class PriorTrainingProgress(Progress):
    """How far a training is, counted in steps.

    Attributes
    ----------
    loss : float
        Mean of the training loss over the steps since the last report.
    seconds : float
        Time since the first step.
    rate : float
        Images per second since the last report.
    """

    done: int
    total: int  # pyright: ignore[reportGeneralTypeIssues]  # by keyword, so the order is free
    loss: float
    seconds: float
    rate: float

    @property
    def step(self) -> int:
        """Steps made."""
        return self.done

    @property
    def steps(self) -> int:
        """Steps asked for."""
        return self.total


def flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror each image left to right with probability ½: an ``augment`` for natural images."""
    coin = torch.rand(len(images), 1, 1, 1, generator=generator, device=images.device) < 0.5
    return torch.where(coin, images.flip(-1), images)


def train_prior(
    images: Any,
    *,
    kind: Literal["diffusion", "flow"] = "diffusion",
    network: nn.Module | None = None,
    alpha_bar: Tensor | None = None,
    range: tuple[float, float] = (0.0, 1.0),
    steps: int = 2000,
    batch: int = 128,
    learning_rate: float = 1e-3,
    warmup: int = 100,
    ema: float = 0.999,
    seed: int = 0,
    augment: Augment | None = None,
    callback: Callable[[PriorTrainingProgress], Any] | None = None,
    every: int = 200,
    device: str | torch.device = "cpu",
    channels_last: bool = False,
    graph: bool = True,
) -> DiffusionPrior | FlowPrior:
    """A prior learned from images.

    Adam with decoupled weight decay, a linear start and a cosine end of the learning rate, clipped
    gradients; bfloat16 arithmetic on a GPU. Ctrl-C ends early: the average so far comes back.

    Parameters
    ----------
    images : tensor or array of shape (N, C, H, W)
        In the declared range; they are kept on the device.
    kind : {"diffusion", "flow"}, default "diffusion"
        Which prior.
    network : nn.Module, optional
        ``network(u_t, t)`` with t (B,) in [0, 1]; trained where it is, from the weights it has. A
        small :class:`UNet` when not given, drawn with ``seed``.
    alpha_bar : Tensor of shape (T,), optional
        The noise schedule of a diffusion model; the cosine one with T = 1000 when not given.
    range : tuple of float, default (0, 1)
        Declared value range of the images.
    steps, batch : int
        Steps and images a step.
    learning_rate : float
        The highest one; reached after ``warmup`` steps, zero at the end.
    warmup : int, default 100
        Steps of the linear start, at most a tenth of all.
    ema : float, default 0.999
        Weight of the past in the moving average; smaller at the beginning, (1 + k)/(10 + k).
    seed : int, default 0
        Seed of all that is random.
    augment : callable, optional
        ``augment(images, generator) -> images``, on the device, in [−1, 1] units.
    callback : callable, optional
        Called with a :class:`PriorTrainingProgress` every ``every`` steps and at the end; False
        stops.
    every : int, default 200
        Steps between two reports: the only times the host waits for the device.
    device : str or torch.device, default "cpu"
        Where to train.
    channels_last : bool, default False
        Lay the pixels' channels side by side in memory.
    graph : bool, default True
        On a GPU, record one step as a CUDA graph and replay it; no effect elsewhere.

    Returns
    -------
    DiffusionPrior or FlowPrior
        With the averaged weights, in evaluation mode, without gradients of its own.
    """
    place = torch.device(device)
    low, high = _checked(images, kind, range, steps, batch)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    data = torch.as_tensor(images).to(device=place, dtype=torch.float32)
    data = ((data - low) * (2.0 / (high - low)) - 1.0).contiguous(memory_format=layout)
    shape = tuple(int(side) for side in data.shape[1:])
    model = (_drawn(shape, seed) if network is None else network).to(place)
    if channels_last:
        model.to(memory_format=layout)  # type: ignore[call-overload]  (not in torch's stubs)
    table = None
    if kind == "diffusion":
        table = (cosine(1000) if alpha_bar is None else alpha_bar).to(place, torch.float64)
    drawn = _batches(data, table, batch, seed, augment)
    learner = _Learner(model, table, drawn, learning_rate, graph)
    _run(
        learner=learner,
        steps=steps,
        batch=batch,
        learning_rate=learning_rate,
        warmup=warmup,
        ema=ema,
        callback=callback,
        every=max(1, every),
    )
    learner.keep_average()
    if table is None:
        return FlowPrior(model, shape=shape, range=range)
    return DiffusionPrior(model, shape=shape, range=range, alpha_bar=table, prediction="v")


def _checked(
    images: Any, kind: str, limits: tuple[float, float], steps: int, batch: int
) -> tuple[float, float]:
    if kind not in ("diffusion", "flow"):
        raise DataError(f'kind is "{kind}"; a prior is trained as "diffusion" or "flow".')
    values = torch.as_tensor(images)
    if values.ndim != 4 or not len(values):
        raise DataError(f"images have shape {tuple(values.shape)}; give (N, C, H, W) with N ≥ 1.")
    if steps < 1 or batch < 1:
        raise DataError(f"steps = {steps} and batch = {batch}; both must be at least 1.")
    low, high = (float(end) for end in limits)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise DataError(f"range is ({low}, {high}); two finite numbers are needed, low < high.")
    least, most = float(values.min()), float(values.max())
    if not (low - 1e-4 <= least and most <= high + 1e-4):  # NaN fails too
        raise DataError(
            f"images have values from {least:.6g} to {most:.6g}, outside the declared range "
            f"({low:g}, {high:g}): rescale them or declare their range."
        )
    return low, high


def _drawn(shape: tuple[int, ...], seed: int) -> UNet:
    """A small UNet; torch draws initial weights from its global state, which is put back."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return UNet(channels=shape[0], size=shape[1])


def _batches(
    data: Tensor, alpha_bar: Tensor | None, batch: int, seed: int, augment: Augment | None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Clean images, noise and time: a value in [0, 1), or an index of the schedule."""
    generator = torch.Generator(device=data.device).manual_seed(seed)
    options: dict[str, Any] = {"generator": generator, "device": data.device}
    ranks = torch.arange(batch, device=data.device)
    while True:
        clean = data[torch.randint(len(data), (batch,), **options)]  # (B, C, H, W)
        if augment is not None:
            clean = augment(clean, generator)
        noise = torch.randn(clean.shape, **options)
        spread = (ranks / batch + torch.rand((), **options)) % 1.0  # rows are dealt at random
        if alpha_bar is not None:
            spread = (spread * len(alpha_bar)).long().clamp_(max=len(alpha_bar) - 1)
        yield clean, noise, spread


class _Learner:
    """Weights, their average, the optimiser; on a GPU one step is recorded and replayed."""

    def __init__(
        self,
        network: nn.Module,
        alpha_bar: Tensor | None,
        drawn: Iterator[tuple[Tensor, Tensor, Tensor]],
        learning_rate: float,
        graph: bool,
    ) -> None:
        self.network, self.alpha_bar, self.drawn = (
            network.train().requires_grad_(True),
            alpha_bar,
            drawn,
        )
        self.weights: list[Tensor] = list(network.parameters())
        self.cuda = self.weights[0].is_cuda
        self.average = [weight.detach().clone() for weight in self.weights]
        place = self.weights[0].device
        rate: Any = torch.tensor(learning_rate, device=place) if self.cuda else learning_rate
        self.optimiser = torch.optim.AdamW(
            self.weights,
            lr=rate,
            betas=(0.9, 0.99),
            weight_decay=1e-4,
            fused=True,
            capturable=self.cuda,
        )
        self.total = torch.zeros((), device=place)
        self.graph, self.recorded = graph and self.cuda, None
        self.held = next(drawn) if self.graph else ()

    def loss(self, clean: Tensor, noise: Tensor, time: Tensor) -> Tensor:
        """The mean squared error of the velocity, of either kind."""
        if self.alpha_bar is None:
            part = time.view(-1, 1, 1, 1)
            point, target, moment = part * clean + (1.0 - part) * noise, clean - noise, time
        else:
            level = self.alpha_bar[time].view(-1, 1, 1, 1)  # float64: 1 − ᾱ is 2e-6 at t = 0
            signal, spread = level.sqrt().float(), (1.0 - level).sqrt().float()
            point, target = signal * clean + spread * noise, signal * noise - spread * clean
            moment = time / len(self.alpha_bar)
        with torch.autocast(point.device.type, dtype=torch.bfloat16, enabled=self.cuda):
            prediction = self.network(point, moment)
        return (prediction.float() - target).square().mean()

    def descend(self, clean: Tensor, noise: Tensor, time: Tensor) -> None:
        """One step, without a word to the host."""
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(clean, noise, time)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimiser.step()
        self.total += loss.detach()

    def step(self, number: int, rate: float, past: float) -> None:
        """Draw, descend, average."""
        group = self.optimiser.param_groups[0]
        if self.cuda:
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
        batch = next(self.drawn)
        if not self.graph:
            self.descend(*batch)
        else:
            for buffer, new in zip(self.held, batch, strict=True):
                buffer.copy_(new)
            self._replay(number)
        with torch.no_grad():
            get_ema_multi_avg_fn(past)(self.average, self.weights, None)

    def _replay(self, number: int) -> None:
        """The first steps warm up on a stream of their own, as recording needs; then replay."""
        if number < 3:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                self.descend(*self.held)
            torch.cuda.current_stream().wait_stream(aside)
            return
        if self.recorded is None:
            self.optimiser.zero_grad(set_to_none=True)
            self.recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.recorded):  # records, does not run
                self.descend(*self.held)
        self.recorded.replay()

    def keep_average(self) -> None:
        """Put the averaged weights into the network."""
        self.recorded = None
        self.optimiser.zero_grad(set_to_none=True)
        with torch.no_grad():
            for weight, mean in zip(self.weights, self.average, strict=True):
                weight.copy_(mean)


def _run(
    learner: _Learner,
    steps: int,
    batch: int,
    learning_rate: float,
    warmup: int,
    ema: float,
    callback: Callable[[PriorTrainingProgress], Any] | None,
    every: int,
) -> None:
    rise = max(1, min(warmup, steps // 10))
    start = last = time.perf_counter()
    done = reported = 0
    go_on = True
    try:
        while done < steps and go_on:
            part = max(0.0, (done - rise) / max(1, steps - rise))
            rate = (
                learning_rate * min(1.0, (done + 1) / rise) * (0.5 + 0.5 * math.cos(math.pi * part))
            )
            learner.step(done, rate, min(ema, (1 + done) / (10 + done)))
            done += 1
            if done % every == 0 or done == steps:
                loss = float(learner.total) / (done - reported)
                if not math.isfinite(loss):
                    raise DataError(
                        f"the training loss is {loss} by step {done}: it diverged; "
                        f"lower learning_rate (now {learning_rate:g})."
                    )
                now = time.perf_counter()
                speed = batch * (done - reported) / max(now - last, 1e-9)
                learner.total.zero_()
                if callback is not None:
                    progress = PriorTrainingProgress(
                        what=f"loss {loss:.4g}",
                        done=done,
                        total=steps,
                        loss=loss,
                        seconds=now - start,
                        rate=speed,
                    )
                    go_on = callback(progress) is not False
                last, reported = now, done
    except KeyboardInterrupt:
        if not done:
            raise
