"""Deep image prior:  min_θ ‖A(f_θ(n)) − y‖²,  f_θ an untrained network, n fixed noise.

A network finds smooth images before noisy ones (Ulyanov et al. 2018), so the answer is in when one
stops: at the least windowed moving variance of the images (ES-WMV, Wang et al. 2023). The input is
jittered a little at every step, and what is reported is a running mean of the images, as in the
original. Blind: the unknowns are optimised with θ.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint._core.options import whole
from setpoint.restoration.baselines.hourglass import Hourglass
from setpoint.restoration.baselines.task_and_start import rows, space_of
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.measurement.windowed_variance import WindowedVariance

_INPUT = 0.1  # the input is uniform noise of this size
_JITTER = 0.03  # deviation of the noise added to the input at each step, as in the paper
_LOOK = 50  # steps between two looks at whether all images have stopped


def deep_image_prior(
    task: RestorationTask,
    *,
    iterations: int = 2000,
    rate: float = 0.01,
    window: int = 100,
    patience: int = 500,
    average: float = 0.99,
    width: int = 64,
    inputs: int = 32,
    unknowns_rate: float = 0.01,
) -> RestorationOutcome:
    """Restore by an untrained network, one an image.

    Parameters
    ----------
    task : RestorationTask
        What is to be restored.
    iterations : int
        Steps of Adam at most.
    rate : float
        Adam's, on the weights.
    window, patience : int
        Of the stopping rule.
    average : float
        Weight of the past in the running mean of images; 0 reports the images themselves.
    width : int
        Channels of the network.
    inputs : int
        Channels of its input.
    unknowns_rate : float
        Adam's rate on the unknowns of a blind operator.
    """
    whole("iterations", iterations, 1)
    network, noise, draw = _made(task, width, inputs)
    unknowns = task.forward.start(len(task.y), task.y) if task.forward.blind else None
    groups: list[dict] = [{"params": list(network.parameters()), "lr": rate}]
    if unknowns is not None:
        unknowns = unknowns.detach().clone().requires_grad_()
        groups.append({"params": [unknowns], "lr": unknowns_rate})
    learned = [parameter for group in groups for parameter in group["params"]]
    optimizer = torch.optim.Adam(groups)
    stop = WindowedVariance(window=window, patience=patience)
    run = _Kept(average)
    task.watch.steps = iterations
    shared = unknowns is not None and len(unknowns) < len(task.y)
    interrupted = False
    try:
        for step in range(iterations):
            moved = noise + _JITTER * torch.randn(
                noise.shape, dtype=noise.dtype, device=noise.device, generator=draw
            )
            with torch.enable_grad():
                image = _squashed(task, network(moved))
                residual = task.forward.residual(image, task.y, unknowns)
                grads = torch.autograd.grad(residual.sum(), learned)
            for parameter, grad in zip(learned, grads, strict=True):
                parameter.grad = grad
            mean = run.averaged(image.detach(), step)
            with torch.no_grad():
                reached = task.forward.residual(mean, task.y, unknowns)
            # unknowns that the batch shares tie its images together: one step for all
            stop.update(step, image.detach().reshape(1, -1) if shared else image.detach())
            run.keep(stop.best_step, step, mean, unknowns)
            # told when it is kept: who is told may interrupt
            task.watch(step, mean, residual, reached, unknowns=unknowns)
            optimizer.step()
            if step % _LOOK == _LOOK - 1 and bool(stop.done.all()):
                break
    except KeyboardInterrupt:
        if run.image is None:
            raise
        interrupted = True
    return run.outcome(stop, interrupted)


def _made(
    task: RestorationTask, width: int, inputs: int
) -> tuple[Hourglass, Tensor, torch.Generator]:
    """The networks and their inputs; sides below 8 are not halved."""
    space, draw, y = space_of(task), task.generator("network"), task.y.real
    channels, height, wide = space.shape
    if min(height, wide) < 4:
        raise DataError(
            f"images of {height} × {wide} are too small for a network that halves their sides: "
            "they must be at least 4 × 4 for the deep image prior."
        )
    scales = max(1, min(4, int(min(height, wide)).bit_length() - 3))
    network = Hourglass(len(y), inputs, channels, widths=(width,) * scales, draw=draw, like=y)
    shape = (len(y), inputs, height, wide)
    noise = _INPUT * torch.rand(shape, dtype=y.dtype, device=y.device, generator=draw)
    return network, noise, draw


def _squashed(task: RestorationTask, out: Tensor) -> Tensor:
    """What the network gives, in the declared range."""
    space = space_of(task)
    return space.low + 2 * space.half * out.sigmoid() if space.bounded else out


class _Kept:
    """The running mean of the images, and what it was at the step chosen for each.

    Before a window is full there is nothing to choose by, and the newest is taken.
    """

    def __init__(self, average: float) -> None:
        self.average = average
        self.taken = 0
        self.mean: Tensor | None = None
        self.image: Tensor | None = None
        self.unknowns: Tensor | None = None

    def averaged(self, image: Tensor, step: int) -> Tensor:
        """The running mean, without the pull of its start."""
        weight = min(self.average, step / (step + 10.0))
        self.mean = image if self.mean is None else weight * self.mean + (1 - weight) * image
        return self.mean

    def keep(self, best: Tensor, step: int, image: Tensor, unknowns: Tensor | None) -> None:
        """Take this step where it is the best so far."""
        self.taken = step + 1
        now = (best == step) | (best < 0)
        if self.image is None:
            self.image = image
            self.unknowns = None if unknowns is None else unknowns.detach().clone()
            return
        self.image = torch.where(rows(now, image), image, self.image)
        if unknowns is not None and self.unknowns is not None:
            self.unknowns = torch.where(now[:, None], unknowns.detach(), self.unknowns)

    def outcome(self, stop: WindowedVariance, interrupted: bool) -> RestorationOutcome:
        """The record."""
        assert self.image is not None
        best, done = (t.expand(len(self.image)) for t in (stop.best_step, stop.done))
        why = [
            "the last iterate: the window of the stopping rule was never full"
            if step < 0
            else "least windowed variance (ES-WMV)"
            + ("" if over else " when the steps ran out, before the rule stopped it")
            for step, over in zip(best.tolist(), done.tolist(), strict=True)
        ]
        stopped = int(done.sum())
        cut = "Interrupted after " if interrupted else ""
        return RestorationOutcome(
            image=self.image,
            unknowns=self.unknowns,
            chosen=torch.where(best < 0, self.taken - 1, best),
            why=why,
            status=(
                f"{cut}{self.taken} steps of an untrained network; ES-WMV stopped {stopped} of "
                f"{len(why)}"
            ),
            interrupted=interrupted,
        )
