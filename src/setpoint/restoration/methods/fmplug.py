"""FMPlug: a flow from a start that already looks like the image (Wan et al. 2025).

    x(z, t) = flow from time t to 1, started at  t · x̂ + (1 − t) · z,     z and t both sought

x̂ is a rough image made of y (:mod:`.rough`), in the network's units; t says how far it is trusted.
A diffusion model is a flow in other variables and serves as well.
The seed stays Gaussian: on its shell with Adam, or by the anchor form of :mod:`.constrained`,

    min_{z,t} ½‖z − z_k‖² + ½ d (τ − τ_0)²   s.t.   ‖A(x(z, t)) − y‖² ≤ m σ²,    τ = log t/(1 − t),

where a unit of τ costs as much as one of every coordinate of z. Where x̂ is about as good as the
mean of the copies, but errs in other directions, a share of it in the answer helps:
(1 − share) · mean of the copies + share · x̂, as long as that explains y.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from setpoint._core.errors import Argument, DataError, KindError
from setpoint._core.options import number, whole
from setpoint.restoration.measurement.restoration_task import RestorationOutcome, RestorationTask
from setpoint.restoration.measurement.windowed_variance import WindowedVariance
from setpoint.restoration.methods import seed_search as shells
from setpoint.restoration.methods.adam_descent import descend
from setpoint.restoration.methods.constrained_inversion import outcome
from setpoint.restoration.methods.dmplug import describe
from setpoint.restoration.methods.first_image import named, warm_image
from setpoint.restoration.methods.quasi_newton import quasi_newton
from setpoint.restoration.methods.regularisers import seed_energy
from setpoint.restoration.methods.seed_search import WORSE, Answer, SeedSearch, variance
from setpoint.restoration.priors.prior import column

#: Of x̂ in the answer, where x̂ is made by the prior's own denoiser and the answer is a mean.
SHARE = 0.5


class WarmSearch(SeedSearch):
    """Rows v = (z, logit t, s·u)."""

    def __init__(
        self,
        task: RestorationTask,
        copies: int,
        time: float,
        warm_from: str | Tensor,
        share: float | None,
        shell: str | None,
    ) -> None:
        super().__init__(task, copies, shell)
        prior = task.prior
        if not hasattr(prior, "carry"):
            raise KindError(
                "fmplug needs a prior with carry(x, t), a flow or a diffusion model, and {prior} "
                "has none: use {way}.",
                prior=type(prior).__name__,
                way=Argument("method", "dmplug"),
            )
        if not 0 < time < 1:
            raise DataError(f"time={time!r} must lie between 0 (the seed) and 1 (the image).")
        if share is None:
            rough = isinstance(warm_from, Tensor) or named(task, warm_from) == "smooth"
            share = 0.0 if rough or copies == 1 else SHARE
        if not 0 <= share <= 1:
            raise DataError(f"share={share!r} must lie between 0 (the copies) and 1 (the start).")
        self.first_time = math.log(time / (1 - time))
        self.share = share
        self.warm, self._unknowns = warm_image(task, warm_from)
        self.rough = prior.from_image(self.warm).repeat(copies, *([1] * len(prior.shape)))  # type: ignore[attr-defined]
        self.free += 1  # unknowns begin one later

    def start(self, seeds: Tensor) -> Tensor:
        """Rows at the first time."""
        flat = seeds.reshape(len(seeds), -1)
        return super().start(torch.cat([flat, flat.new_full((len(flat), 1), self.first_time)], 1))

    def first_unknowns(self) -> Tensor | None:
        """Those found with the rough image."""
        return self._unknowns

    def seed(self, v: Tensor) -> Tensor:
        """The seeds alone."""
        z = v[:, : self.dimension].reshape(-1, *self.task.prior.seed_shape)
        return shells.project(z) if self.shell == "project" else z

    def image(self, v: Tensor, rows: Tensor | None = None) -> Tensor:
        """The flow from the warm start."""
        t = torch.sigmoid(v[:, self.dimension])
        part = column(t, self.rough)
        warm = self.rough if rows is None or len(v) == len(self.rough) else self.rough[rows]
        return self.task.prior.carry(part * warm + (1 - part) * self.seed(v), t)  # type: ignore[attr-defined]

    def answer(self, v: Tensor, images: Tensor, residual: Tensor, bound: Tensor | None) -> Answer:
        """The copies' answer, averaged with x̂ where that explains y."""
        answer = super().answer(v, images, residual, bound)
        if not self.share:
            return answer
        both = torch.lerp(answer.image, self.warm, self.share)
        of_both = self.task.forward.residual(both, self.task.y, answer.unknowns)
        limit = answer.residual if bound is None else torch.maximum(answer.residual, bound)
        holds = (of_both <= WORSE * limit) & ~answer.alone
        image = torch.where(column(holds, both), both, answer.image)
        least = torch.where(holds, of_both, answer.residual)
        return replace(answer, image=image, residual=least, mixed=holds)


def fmplug(
    task: RestorationTask,
    *,
    copies: int = 4,
    time: float = 0.25,
    warm_from: str | Tensor = "auto",
    share: float | None = None,
    optimiser: str = "sqp",
    iterations: int | None = None,
    evaluations: int | None = None,
    learning_rate: float = 0.05,
    stopping: bool | None = True,
    window: int = 20,
    patience: int = 100,
    slack: float = 1.0,
    memory: int = 10,
) -> RestorationOutcome:
    """Search for the seed and the time.

    Parameters
    ----------
    task : RestorationTask
        What is restored; its prior has ``carry``, as flows and diffusion models do.
    copies : int
        Seeds searched from for each image; the image is their mean.
    time : float
        Where the search for t starts.
    warm_from : "auto", "pnp", "norm", "level", "best", "smooth" or torch.Tensor
        How x̂ is made of y, or x̂ itself, (B, *shape); see :mod:`.rough`.
    share : float, optional
        Of x̂ in the answer, from 0 to 1. By default a half where x̂ is made by the prior's own
        denoiser and there are several copies, else 0.
    optimiser : "sqp" or "adam"
        min ½‖z − z_k‖² s.t. ‖A(x) − y‖² ≤ m σ² by the batched solver; or min ‖A(x) − y‖² with z
        on its shell, ended by ES-WMV.
    iterations, evaluations : int, optional
        The most steps (80, or 300 of Adam) and calls of the prior.
    learning_rate, stopping, window, patience
        As of ``dmplug``.
    slack, memory
        As of ``constrained``.
    """
    if optimiser not in ("sqp", "adam"):
        raise DataError(f"optimiser={optimiser!r} is not known: say 'sqp' or 'adam'.")
    steps = (300 if optimiser == "adam" else 80) if iterations is None else iterations
    whole("iterations", steps, 1)
    number("learning_rate", learning_rate, 0, open_low=True)
    if optimiser == "adam":
        search = WarmSearch(task, copies, time, warm_from, share, "project")
        best = descend(
            search,
            search.start(search.pairs()),
            lambda v, image, residual: residual,
            iterations=steps,
            learning_rate=learning_rate,
            stopping=WindowedVariance(window, patience) if stopping else None,
            shared=search.shared(),
            decay=not stopping,
        )
        return describe(best, bool(stopping), steps, window, patience)
    search = WarmSearch(task, copies, time, warm_from, share, None)
    anchors = search.pairs()
    flat = anchors.flatten(1)
    bound, origin = variance(task)
    solved = quasi_newton(
        search,
        search.start(anchors),
        lambda v, image, residual, rows: (
            seed_energy(v[:, : search.dimension] - flat[rows]) / search.dimension
            + 0.5 * (v[:, search.dimension] - search.first_time) ** 2
        ),
        bound=slack * bound,
        iterations=steps,
        evaluations=evaluations,
        memory=memory,
    )
    return outcome(search, solved, slack * bound, origin)
