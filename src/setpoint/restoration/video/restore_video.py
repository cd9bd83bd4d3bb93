"""Clips restored frame by frame together: seeds that share a part, pixels that move with the flow.

    minimise   Σ_t ‖A(prior(Z_t)) − y_t‖²  +  semantic and pixel consistency over the frames

after Wang et al. (2025, "Temporal-consistent video restoration with pre-trained diffusion models",
arXiv:2503.14863). Ground truth has no way in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.measurement.iterate_history import Callback, IterateHistory
from setpoint.restoration.measurement.windowed_variance import WindowedVariance
from setpoint.restoration.priors.prior import Prior
from setpoint.restoration.video.clip_inputs import clips_of, flow_of, plan_of, read_flow
from setpoint.restoration.video.frame_descent import BestFrames, FramePlan, search
from setpoint.restoration.video.frame_seeds import start_seeds
from setpoint.restoration.video.optical_flow import Estimator, as_estimator, motion

# What came of restoring clips.


@dataclass(frozen=True, eq=False)
class RestoredVideo:
    """Restored clips, the iterate that was selected and why.

    Sizes are for N clips of T frames; where one clip was given without N, ``frames``, ``seeds``,
    ``residual``, ``flow``, ``valid`` and ``unknowns`` are without it too.

    Attributes
    ----------
    frames : torch.Tensor
        (N, T, C, H, W), the selected iterate.
    seeds : torch.Tensor
        (N, T, *seed_shape), of which the frames are made.
    chosen : torch.Tensor
        (N,) long, the iteration selected.
    why : tuple of str
        For each clip, why that one.
    residual : torch.Tensor
        (N, T), root mean squared over the observed entries, in the units of the measurement.
    flow : torch.Tensor or None
        (N, T − 1, 2, H, W), as it was last held; None where pixel consistency was not asked for.
    valid : torch.Tensor or None
        (N, T − 1, 1, H, W) bool, the pixels that counted.
    history : mapping of str to torch.Tensor
        Each (K, N), one row an iteration: ``loss``; ``residual``, mean squared; ``warping``, the
        warping error with the flow held then (0 while there is none); ``slack`` of the seeds;
        ``variance``, of the window that ends there (infinite before the first is full).
    trail : torch.Tensor or None
        (K', N, T, C, H, W), every so many iterates, where asked for.
    trail_steps : torch.Tensor
        (K',) long, their iterations.
    unknowns : torch.Tensor or None
        (N, n), what was found of a blind operator, one for all frames of a clip.
    status : str
        How it ended, in a sentence.
    interrupted : bool
        Whether it was ended from outside.
    seconds : float
    settings : mapping
        The options it ran with.
    range : tuple of float
        The declared value range of the frames.
    """

    frames: Tensor
    seeds: Tensor
    chosen: Tensor
    why: tuple[str, ...]
    residual: Tensor
    flow: Tensor | None
    valid: Tensor | None
    history: Mapping[str, Tensor]
    trail: Tensor | None
    trail_steps: Tensor
    unknowns: Tensor | None
    status: str
    interrupted: bool = False
    seconds: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    range: tuple[float, float] = (0.0, 1.0)

    def __str__(self) -> str:
        *_, frames, _, _, _ = self.frames.shape
        clips = len(self.chosen)
        return (
            f"{clips} clip{'s' if clips > 1 else ''} of {frames} frames: {self.status} "
            f"Residual {float(self.residual.square().mean().sqrt()):.4g}."
        )


@torch.inference_mode(False)
def restore_video(
    y: Tensor,
    operator: Any,
    prior: Prior,
    *,
    flow: Tensor | str | Estimator | None = None,
    valid: Tensor | None = None,
    semantic: bool = True,
    pixel: bool = True,
    rank: int = 4,
    slack: float | None = None,
    weight: float = 0.5,
    iterations: int = 300,
    rate: float = 0.1,
    shell: bool = True,
    warmup: int = 50,
    refine: int | None = None,
    smoothing: float = 0.5,
    window: int = 20,
    patience: int = 100,
    starts: int = 1,
    seed: int = 0,
    trail: int = 0,
    callback: Callback | None = None,
) -> RestoredVideo:
    """Restore clips from measurements of their frames.

    For each clip, with x_t = prior(Z_t) and m observed entries in a frame,

        minimise (1/T) Σ_t ‖A(x_t) − y_t‖²/m + weight · WE(x, flow) + slack · Σ_t ‖e_t‖²/(T d)

    over Z_t = s + u_t V + e_t, each on the shell ‖Z_t‖ = √d.

    Parameters
    ----------
    y : torch.Tensor
        (T, ...) or (N, T, ...), T at least 2.
    operator : callable or str
        Of images (B, C, H, W), here all frames of all clips, B = N T, clip after clip. Unknowns of
        a blind one are shared by the frames of a clip.
    prior : Prior
        From seeds to images; its range is that of the frames.
    flow : torch.Tensor, str or callable, optional
        (T − 1, 2, H, W) or (N, T − 1, 2, H, W), from each frame to the next, in pixels (see
        :mod:`setpoint.restoration.video.flow_warp`); or what estimates it from the frames
        restored so
        far: "opencv", "farneback" or a callable (frames, next frames) -> flows (B, 2, H, W). None
        is "opencv".
    valid : torch.Tensor, optional
        Of the size of a given flow with one channel: False where pixels are occluded.
    semantic : bool
        Frames share a seed and differ by residuals; else each has a seed of its own.
    pixel : bool
        Whether frames are held to move with the flow.
    rank : int
        Of the residuals u_t V of a clip.
    slack : float or None
        Weight of what frames have beyond that, e_t; None lets them have nothing.
    weight : float
        Weight of the warping error, both it and the residual being mean squares.
    iterations : int
        At most so many.
    rate : float
        Step of Adam.
    shell : bool
        Whether seeds are put on the shell. False is for priors that are no networks.
    warmup : int
        Iterations before the warping error counts; its weight then grows for as many. The stopping
        rule looks from there on.
    refine : int, optional
        After the warm-up estimate the flow every so many iterations; 25 where nothing else gives
        it. A given flow is refined only where this is stated, by OpenCV.
    smoothing : float
        How much of the flow held so far stays when it is estimated anew, in [0, 1).
    window, patience : int
        Of the stopping rule: iterates in a window, and iterations without a window of less
        variance after which a clip is done.
    starts : int
        Descents of each clip from so many random seeds, side by side; the one with the least of
        the minimised sum at its selected iterate is given. Memory and time grow with it.
    seed : int
        Of the numbers drawn; the first of several starts is that of one.
    trail : int
        Keep every so many iterates; 0 keeps none.
    callback : callable, optional
        (step, iterations, mean squared residual (starts · N,)) -> None, after each iterate.

    Returns
    -------
    RestoredVideo

    Examples
    --------
    >>> import torch
    >>> from setpoint.restoration.priors.prior import Generator
    >>> from setpoint.restoration.video import restore_video
    >>> prior = Generator(lambda z: torch.sigmoid(z), shape=(1, 4, 4), range=(0.0, 1.0))
    >>> y = torch.full((3, 1, 4, 4), 0.6)
    >>> found = restore_video(y, lambda x: x, prior, flow=torch.zeros(2, 2, 4, 4), iterations=50)
    >>> found.frames.shape, found.chosen.shape
    (torch.Size([3, 1, 4, 4]), torch.Size([1]))
    """
    began = time.perf_counter()
    flow = read_flow(flow, valid)
    if refine is None:
        refine = 0 if isinstance(flow, Tensor) or not pixel else 25
    plan = plan_of(
        FramePlan(
            pixel=weight,
            slack=slack or 0.0,
            iterations=iterations,
            rate=rate,
            window=window,
            patience=patience,
            warmup=warmup,
            refine=refine,
            smoothing=smoothing,
            starts=starts,
        ),
        rank,
    )
    rows, forward, single = clips_of(y, operator, prior, seed)  # (N, T, ...)
    current, estimate = None, None
    if pixel and isinstance(flow, Tensor):
        current = motion(*flow_of(flow, valid, rows, prior)).repeated(starts)
    if pixel and (current is None or plan.refine):
        if current is None and not plan.refine:
            raise DataError("refine=0 and no flow given: there is nothing to warp with.")
        named = "opencv" if flow is None or isinstance(flow, Tensor) else flow
        estimate = as_estimator(named, prior.range)
    clips, frames = rows.shape[:2]
    seeds = start_seeds(
        (starts * clips, frames, torch.Size(prior.seed_shape).numel()),
        semantic=semantic,
        rank=rank,
        free=slack is not None,
        shell=shell,
        seed=seed,
        like=rows,
    )
    watch = IterateHistory(trail, callback)
    best, stop = search(
        rows, forward, prior, seeds, plan, motion=current, estimate=estimate, watch=watch
    )
    settings = {
        **asdict(plan),
        "slack": slack,
        "semantic": semantic,
        "rank": rank,
        "shell": shell,
        "seed": seed,
    }
    if not pixel:
        settings["pixel"] = 0.0
    record = _record(best, stop, watch, plan, prior, single)
    return replace(record, settings=settings, seconds=time.perf_counter() - began)


def _record(
    found: BestFrames,
    stop: WindowedVariance,
    watch: IterateHistory,
    plan: FramePlan,
    prior: Prior,
    single: bool,
) -> RestoredVideo:
    """Put together what a run kept of the best starts; without N where one clip was given."""
    assert found.frames is not None
    assert found.seeds is not None
    assert found.residual is not None
    if not bool(found.frames.isfinite().all()):
        raise DataError("the prior gives frames that are not finite; try a smaller rate.")

    rows = found.least(plan.starts)

    def given(part: Tensor) -> Tensor:
        """What was made of the best starts, and without N where one clip was given."""
        taken = part if len(part) == 1 else part[rows]  # clips may share the unknowns
        return taken[0] if single else taken

    best = stop.best_step[rows].cpu()
    chosen = torch.where(best < 0, found.step, best)
    current = found.motion
    trail, trail_steps = watch.images()
    seeds = found.seeds.reshape(*found.seeds.shape[:2], *prior.seed_shape)
    return RestoredVideo(
        frames=given(found.frames),
        seeds=given(seeds),
        chosen=chosen,
        why=tuple(_why(int(b), plan) for b in best),
        residual=given(found.residual).sqrt(),
        flow=None if current is None else given(current.forward),
        valid=None if current is None else given(current.valid),
        history={name: values[:, rows].cpu() for name, values in watch.history().items()},
        trail=None if trail is None else trail[:, rows],
        trail_steps=trail_steps,
        unknowns=None if found.unknowns is None else given(found.unknowns),
        status=_status(found, stop, plan),
        interrupted=found.interrupted,
        range=prior.range,
    )


def _why(best: int, plan: FramePlan) -> str:
    of = f"; of {plan.starts} starts the one of least loss" if plan.starts > 1 else ""
    if best < 0:
        return f"the last iterate: no window of {plan.window} was full{of}"
    return f"the window of {plan.window} iterates that ends at {best} varies least{of}"


def _status(best: BestFrames, stop: WindowedVariance, plan: FramePlan) -> str:
    done, clips = int(stop.done.sum()), len(stop.done)
    what = "clips" if plan.starts == 1 else f"descents, {plan.starts} a clip,"
    if best.interrupted:
        return f"Interrupted at iteration {best.step}; the best so far is given."
    if done == clips:
        return f"Stopped at iteration {best.step}: no clip has varied less for {plan.patience}."
    return f"Ended after the {best.step + 1} iterations allowed; {done} of {clips} {what} done."
