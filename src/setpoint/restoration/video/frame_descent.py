"""The descent: seeds of all clips at once, by Adam, watched by windowed moving variance.

For each clip, with x_t = prior(Z_t) and weights a (pixel) and b (semantic),

    minimise   (1/T) Σ_t ‖A(x_t) − y_t‖²/m  +  a · WE(x, flow)  +  b · slack(Z)

over the numbers behind Z (:mod:`setpoint.restoration.video.frame_seeds`). The pixel term comes in
after a
warm-up: frames that show nothing yet agree best where they are blank. Clips do not touch each
other, as Adam moves every number by its own slope. What is selected is the iterate at the end of
the window of least variance (ES-WMV, Wang et al. 2023, "Early stopping for deep image prior"), clip
by clip. From a random seed a descent may end at another image that explains y nearly as well:
several starts of a clip go side by side as if they were clips, and the one of least loss is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.restoration.measurement.forward_model import Forward
from setpoint.restoration.measurement.iterate_history import IterateHistory
from setpoint.restoration.measurement.windowed_variance import WindowedVariance
from setpoint.restoration.priors.prior import Prior
from setpoint.restoration.video.flow_warp import discrepancy
from setpoint.restoration.video.frame_seeds import Seeds
from setpoint.restoration.video.optical_flow import Estimator, Motion, refined

#: iterations between two looks at whether all clips are done: a look waits for the device
LOOK = 10


@dataclass(frozen=True)
class FramePlan:
    """The options of a run; see :func:`setpoint.restoration.video.restore_video`."""

    pixel: float
    slack: float
    iterations: int
    rate: float
    window: int
    patience: int
    warmup: int
    refine: int
    smoothing: float
    starts: int = 1

    def pixel_at(self, step: int) -> float:
        """Weight of the warping error: 0 during the warm-up, then as long to its full height."""
        return self.pixel * min(max((step - self.warmup) / max(self.warmup, 1), 0.0), 1.0)

    def refines(self, step: int) -> bool:
        """Whether the flow is estimated now: at the end of the warm-up, then every so often."""
        since = step - self.warmup
        return since >= 0 and since % self.refine == 0


@dataclass(eq=False)
class BestFrames:
    """What a run keeps: the selected iterate of each clip and start, and the flow as last held."""

    loss: Tensor | None = None
    frames: Tensor | None = None
    seeds: Tensor | None = None
    residual: Tensor | None = None
    unknowns: Tensor | None = None
    step: int = -1
    motion: Motion | None = None
    interrupted: bool = False

    @torch.no_grad()
    def take(self, better: Tensor, **now: Tensor | None) -> None:
        """Replace the clips that are better, (S N,) bool, by what is there now."""
        for name, value in now.items():
            if value is None:
                continue
            held = getattr(self, name)
            chosen = better.reshape(-1, *([1] * (value.ndim - 1)))
            taken = value if held is None else torch.where(chosen, value, held)
            setattr(self, name, taken.detach().clone())

    def least(self, starts: int) -> Tensor:
        """(N,) long, for each clip the row of the start of least loss."""
        assert self.loss is not None
        loss = self.loss.reshape(starts, -1)
        return loss.argmin(0) * loss.shape[1] + torch.arange(loss.shape[1], device=loss.device)


@torch.enable_grad()
def search(
    y: Tensor,
    forward: Forward,
    prior: Prior,
    seeds: Seeds,
    plan: FramePlan,
    *,
    motion: Motion | None,
    estimate: Estimator | None,
    watch: IterateHistory,
) -> tuple[BestFrames, WindowedVariance]:
    """Run to the end, to the stop, or to an interruption.

    Parameters
    ----------
    y : torch.Tensor
        (N, T, ...).
    forward, prior, seeds, plan
        The problem and its options; seeds are of S starts of N clips, start after start.
    motion : Motion or None
        The flow to begin with, of as many.
    estimate : callable or None
        What refines it.
    watch : IterateHistory
        Is told every iterate.
    """
    best, stop = BestFrames(motion=motion), WindowedVariance(plan.window, plan.patience)
    count = plan.starts * len(y)
    unknowns = forward.start(count, y)  # one for all frames of a clip, or one for all clips
    watch.steps = plan.iterations
    moved = [*seeds.parameters]
    if unknowns is not None:
        moved.append(unknowns.requires_grad_())
    adam = torch.optim.Adam(moved, lr=plan.rate)
    # what is judged is the whole loss: before all of it is in force nothing is over
    begin = 2 * plan.warmup if motion is not None or estimate is not None else 0
    rows = torch.arange(count * y.shape[1], device=y.device)
    try:
        for step in range(plan.iterations):
            z, slack = seeds()  # (S N, T, d), (S N,)
            video, gaps = _measured(y, forward, prior, z, rows, unknowns)
            if estimate is not None and plan.refines(step):
                best.motion = refined(best.motion, video.detach(), estimate, plan.smoothing)
            warping = gaps.new_zeros(count)
            if best.motion is not None:
                warping = discrepancy(video, best.motion.forward, best.motion.valid)
            fit = gaps.mean(1)
            loss = fit + plan.pixel_at(step) * warping + plan.slack * slack  # (S N,)
            if step == begin:
                stop = WindowedVariance(plan.window, plan.patience)
            # before the first full window the newest iterate is the best there is
            better = stop.update(step, video) | (stop.best_step < 0)
            best.step = step
            best.take(better, loss=loss, frames=video, seeds=z, residual=gaps, unknowns=unknowns)
            more = {"warping": warping, "slack": slack, "variance": stop.variance}
            watch(step, video, loss, fit, **more)
            if step % LOOK == LOOK - 1 and _over(stop, loss, step) and step >= begin:
                break
            # not backward(): that would leave slopes in the parameters of the prior
            slopes = torch.autograd.grad(loss.sum(), moved)
            for part, slope in zip(moved, slopes, strict=True):
                part.grad = slope
            adam.step()
            seeds.settle()
    except KeyboardInterrupt:
        if best.frames is None:
            raise
        best.interrupted = True
    return best, stop


def _measured(
    y: Tensor, forward: Forward, prior: Prior, z: Tensor, rows: Tensor, unknowns: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Frames (S N, T, C, H, W) of seeds (S N, T, d), and their mean squared residuals (S N, T)."""
    sizes = z.shape[:2]
    x = prior(z.reshape(-1, *prior.seed_shape))  # (S N T, C, H, W)
    if unknowns is not None:
        unknowns = unknowns.expand(sizes[0], -1).repeat_interleave(sizes[1], 0)
    gaps = forward.residual_of(x, y.flatten(0, 1), rows, unknowns)
    return x.unflatten(0, sizes), gaps.unflatten(0, sizes)


def _over(stop: WindowedVariance, loss: Tensor, step: int) -> bool:
    """Whether all clips are done; a loss that is no number ends it with a sentence."""
    done, fine = torch.stack([stop.done.all(), loss.isfinite().all()]).tolist()
    if not fine:
        raise DataError(
            f"the loss is no number at iteration {step}: the operator or the prior gives NaN or "
            "infinite values, or rate is too large."
        )
    return done
