"""The stages of a max-loss attack: cheap climbs for all, dearer ones where an image resists."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack import Pace
from setpoint.robustness.attacks.attack_losses import CROSS_ENTROPY_CLIP, MARGIN_CLIP
from setpoint.robustness.attacks.attack_problem import Posed
from setpoint.robustness.attacks.distances import norms
from setpoint.robustness.attacks.projected_ascent import Climbed, climb
from setpoint.robustness.attacks.random_starts import Draws, rivals_of
from setpoint.robustness.attacks.start_selection import Heats, heats, race

#: Rivals that random starts climb for, and the first step of the last climb in units of ε.
AGAIN, LAST = 3, 0.25
#: Times a move that rounding has put outside the ball is shrunk, twice as much each time.
_SHRINKS = 8


@dataclass(frozen=True)
class Stages:
    """How long the stages are.

    Attributes
    ----------
    iterations : int
        Steps of the last climb.
    restarts : int
        Random starts.
    rivals : int
        Classes climbed for.
    """

    iterations: int
    restarts: int
    rivals: int

    @property
    def short(self) -> int:
        """Steps of the climbs before the last."""
        return max(3 * self.iterations // 10, 1)

    @property
    def heats(self) -> Heats:
        """The race for the least radius."""
        return heats(self.iterations, self.rivals, min(self.restarts, 1))

    @property
    def steps(self) -> int:
        """Steps one after the other, at most."""
        return (2 + self.restarts) * self.short + self.heats.turns + self.iterations


class Chase:
    """One max-loss attack on B images.

    Parameters
    ----------
    posed : Posed
        The problem.
    p : float
        The power of the norm.
    eps : Tensor (B,)
        The radii.
    stages : Stages
        Lengths.
    soft : bool
        Whether the loss is cross-entropy, in terms of its soft margin.
    pace : Pace
        Told every step.
    """

    def __init__(
        self, posed: Posed, p: float, eps: Tensor, stages: Stages, soft: bool, pace: Pace
    ) -> None:
        self.posed, self.p, self.eps = posed, p, eps
        self._stages, self._pace = stages, pace
        self.ceiling = math.log(math.expm1(CROSS_ENTROPY_CLIP)) if soft else MARGIN_CLIP
        if soft and posed.probe.sign < 0:
            self.ceiling = math.inf  # log softmax of the target rises to 0 and never gets there
        self.taken = torch.zeros(len(eps), dtype=torch.long, device=eps.device)
        self._draws = Draws(posed.seeds, posed.rows.clean)
        self._best = self._scored(torch.zeros_like(posed.rows.clean), None)
        self._rivals = rivals_of(posed.logits, posed.rows.labels, AGAIN)

    def run(self) -> Tensor:
        """All stages; the best move of each image."""
        stages = self._stages
        index = self._open()
        if len(index):
            self._climb(index, self._best.moves[index], stages.short, 1.0)
        self._against_rivals()
        for _ in range(stages.restarts):
            self._from_random()
        self._by_radius()
        index = self._open()
        if len(index):
            self._climb(index, self._best.moves[index], stages.iterations, LAST)
        self._pace.end()
        return self._fitted(self._best.moves)

    def _open(self) -> Tensor:
        """Images whose loss can still grow."""
        return (self._best.score < self.ceiling).nonzero()[:, 0]

    def _resisting(self) -> Tensor:
        """Images that are still decided rightly."""
        return (self._best.margin < self.posed.rows.floor).nonzero()[:, 0]

    def _scored(self, moves: Tensor, index: Tensor | None) -> Climbed:
        """Moves with the score of the loss itself."""
        rows = self.posed.rows if index is None else self.posed.rows.take(index)
        score, margin = self.posed.probe.scores(rows.clean + moves, rows.labels)
        return Climbed(score, margin, moves)

    def _keep(self, index: Tensor, climbed: Climbed) -> None:
        old = Climbed(*(part[index] for part in self._parts()))
        new = old.or_(climbed)
        self._best = Climbed(
            *(
                part.index_copy(0, index, fresh)
                for part, fresh in zip(
                    self._parts(), (new.score, new.margin, new.moves), strict=True
                )
            )
        )

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._best.score, self._best.margin, self._best.moves

    def _climb(self, index: Tensor, start: Tensor, iterations: int, first: float) -> None:
        """On the loss itself."""
        rows = self.posed.rows.take(index)
        climbed = climb(
            self.posed.probe, rows, start, self.eps[index], self.p, iterations,
            first=first, tick=self._pace.tick,
        )  # fmt: skip
        self.taken[index] += iterations
        self._keep(index, climbed)

    def _climb_for(self, index: Tensor, start: Tensor, rivals: Tensor) -> Tensor:
        """Against k rivals each; the gaps z_rival − z_label that were reached: (m, k)."""
        count = rivals.shape[1]
        rows = self.posed.rows.take(index).against(rivals)
        eps = self.eps[index].repeat_interleave(count)
        short = self._stages.short
        climbed = climb(
            self.posed.probe, rows, start.repeat_interleave(count, 0), eps, self.p, short,
            tick=self._pace.tick,
        )  # fmt: skip
        self.taken[index] += count * short
        each = climbed.moves.view(len(index), count, -1)
        for line in range(count):
            self._keep(index, self._scored(each[:, line], index))
        return climbed.score.view(len(index), count)

    def _against_rivals(self) -> None:
        index = self._resisting()
        if self.posed.probe.sign < 0 or not len(index):
            self._pace.skip(self._stages.short)
            return
        labels = self.posed.rows.labels
        everyone = rivals_of(self.posed.logits, labels, self._stages.rivals)
        some = everyone[index]
        gaps = self._climb_for(index, torch.zeros_like(self._best.moves[index]), some)
        order = gaps.argsort(1, descending=True)
        self._rivals = everyone.index_copy(0, index, some.gather(1, order))[:, :AGAIN]

    def _from_random(self) -> None:
        rows, index = self.posed.rows, self._resisting()
        start = self._draws.moves(rows.low, rows.high, self.eps, self.p)
        if not len(index):
            self._pace.skip(self._stages.short)
        elif self.posed.probe.sign < 0:
            self._climb(index, start[index], self._stages.short, 1.0)
        else:
            self._climb_for(index, start[index], self._rivals[index])

    def _by_radius(self) -> None:
        index, heats = self._resisting(), self._stages.heats
        if not len(index):
            self._pace.skip(heats.turns)
            return
        posed = self.posed.take(index)
        draws = Draws(posed.seeds, posed.rows.clean)
        nearest, taken = race(posed, self.p, heats, draws, self._pace.tick)
        self.taken[index] += taken
        within = nearest.radius <= self.eps[index]
        moves = torch.where(within[:, None], nearest.moves, self._best.moves[index])
        self._keep(index, self._scored(moves, index))

    def _fitted(self, moves: Tensor) -> Tensor:
        """Moves that rounding has put a little outside the ball, inside it."""
        rows, unit = self.posed.rows, 4.0 * torch.finfo(moves.dtype).eps
        for _ in range(_SHRINKS):
            size = norms(moves, self.p)
            scale = self.eps / torch.where(size > 0, size, 1.0) * (1.0 - unit)
            smaller = rows.inside(moves * scale[:, None])
            moves = torch.where((size > self.eps)[:, None], smaller, moves)
            unit *= 2.0
        return moves
