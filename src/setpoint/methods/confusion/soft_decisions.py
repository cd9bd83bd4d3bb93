"""Soft decisions about one class: cells filled by a surrogate of the step, at any thresholds.

With H piecewise linear, H_τ(p) = α + β p on the piece that p falls into, so the soft cells at all
thresholds follow from two histograms over pieces, Σ w and Σ w p, and the gradient is one look-up:
the cost does not grow with the number of thresholds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from setpoint._core.arrays import cast, find, look_up, namespace, tally
from setpoint.methods.confusion.batch import Batch, cross_entropy_pull
from setpoint.surrogates import Linear, PiecewiseLinear, Schedule, Surrogate


class SoftSteps(nn.Module):
    """Cells of a binary or multilabel batch under H at each threshold.

    Parameters
    ----------
    surrogate : Surrogate
    thresholds : tuple of float
    tables : int
        Number of 2 × 2 tables.
    temperature : Schedule
    """

    def __init__(
        self,
        surrogate: Surrogate,
        thresholds: tuple[float, ...],
        tables: int,
        temperature: Schedule,
    ) -> None:
        super().__init__()
        self.steps = [surrogate.at(t) for t in thresholds]
        self.count = len(self.steps)
        self.tables = tables
        self.temperature = temperature
        self.pieces = isinstance(surrogate, PiecewiseLinear)
        self.even: Any = None  #: a, b, m, s, c of one threshold whose outer slopes are alike
        if self.pieces:
            pieces = self._pieces(torch.empty(0, dtype=torch.float64), 0)
            for name, part in zip(("borders", "alpha", "beta"), pieces, strict=True):
                self.register_buffer(name, part.float(), persistent=False)
            wide = tuple(part.numpy() for part in pieces)
            narrow = [part.astype(np.float32) for part in wide]
            borders, alpha, beta = wide
            if self.count == 1 and len(borders) == 2 and not temperature.moves:
                m, s = beta[0, 0], beta[0, 1] - beta[0, 0]
                if abs(beta[0, 2] - m) < 1e-12:
                    a, b = borders.tolist()
                    self.even = a, b, float(m), float(s), float(alpha[0, 0] - s * a)
            #: the same on the host, for float64 and for float32; small sums are float64 in both
            self._host: Any = wide, (narrow[0], *(wide if self.count > 1 else narrow)[1:])

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(T, cells) sums over the batch, and what ``pull`` needs."""
        if not self.pieces:
            return self._dense(batch, step)
        if self.even is not None and batch.flat and batch.table is None:
            return self._read_even(batch)
        borders, alpha, beta = self._at(batch, step)
        p = batch.p
        piece = find(borders, p)
        if self.count > 1:
            return self._histogram(batch, piece, alpha, beta)
        slope = look_up(beta[0], piece)
        high = slope * p
        high += look_up(alpha[0], piece)
        return table_cells(batch, [high], self.tables), [slope]

    def _read_even(self, batch: Batch) -> tuple[Any, Any]:
        """One threshold, outer slopes alike: H = c + m p + s clip(p, a, b), so sums need no H."""
        a, b, m, s, c = self.even
        p, unit, positive = batch.p, batch.unit, batch.positive
        middle = np.minimum(np.maximum(p, a), b)
        yes, whole = float(positive @ unit if batch.w is None else positive.sum()), batch.mass
        tp = s * float(middle @ positive) + m * float(p @ positive) + c * yes
        decided = s * float(middle @ unit) + m * float(p @ unit) + c * whole
        slope = np.multiply(middle == p, s, dtype=p.dtype)
        slope += m
        fp = decided - tp
        return np.array([[whole - yes - fp, fp, yes - tp, tp]]), [slope]

    def _histogram(self, batch: Batch, piece: Any, alpha: Any, beta: Any) -> Any:
        pieces = alpha.shape[0]
        bin_ = batch.place * pieces
        bin_ += piece
        size = self.tables * 2 * pieces
        unit = batch.unit if batch.flat else batch.w
        mass = tally(bin_, unit, size, batch.p).reshape(-1, pieces)  # (tables · 2, J)
        first = tally(bin_, batch.weighed(batch.p), size, batch.p).reshape(-1, pieces)
        cells = (mass @ alpha + first @ beta).reshape(-1, self.count, 2)
        return cells.swapaxes(0, 1).reshape(self.count, -1), (bin_, beta)

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · Σ_T prices · ∂cells/∂logits + plain · ∂cross-entropy/∂logits, (N,), weighed."""
        p = batch.p
        if isinstance(memory, tuple):
            bin_, beta = memory
            worth = prices.reshape(self.count, -1, 2).swapaxes(0, 1).reshape(-1, 2 * self.count)
            slope = look_up(cast(worth @ beta.T * share, p).reshape(-1), bin_)
        elif batch.flat and self.count * self.tables == 1:
            tn, fp, fn, tp = prices[0].tolist()
            no, yes = (fp - tn) * share, (tp - fn) * share
            slope = batch.y * (yes - no)
            slope += no
            slope *= memory[0]
        else:
            worth = prices.reshape(self.count, -1, 2)
            worth = (worth[:, :, 1] - worth[:, :, 0]) * share  # (T, tables · 2)
            slope = by_class(batch, worth[0], memory[0])
            for amounts, slopes in zip(worth[1:], memory[1:], strict=True):
                slope += by_class(batch, amounts, slopes)
        # slope · p (1 − p) + plain · (p − y)
        slope *= 1 - p
        slope += plain
        slope *= p
        slope -= plain * batch.y
        return batch.gradient(slope)

    def _dense(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        p, t = batch.probability, self.temperature.at(batch.small(step))
        cells = table_cells(batch, [batch.of(h.value(p, t)) for h in self.steps], self.tables)
        return cells, [batch.of(h.derivative(p, t)) for h in self.steps]

    def _at(self, batch: Batch, step: Tensor) -> tuple[Any, Any, Any]:
        narrow = batch.logits.dtype == torch.float32
        if self.temperature.moves or not (batch.host or narrow):
            return tuple(map(batch.of, self._pieces(batch.logits, step)))  # type: ignore[return-value]
        if batch.host:
            return self._host[narrow]
        return self.borders, self.alpha, self.beta

    def _pieces(self, like: Tensor, step: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Borders of all thresholds together, and α, β of each threshold on each piece (T, J).

        For several thresholds (J, 2 T), of 1 − H_τ and H_τ in turn: what a row adds to its cells.
        """
        temperature = self.temperature.at(step)
        parts = [h.pieces(like, temperature) for h in self.steps]  # type: ignore[attr-defined]
        if len(parts) == 1:
            borders, alpha, beta = parts[0]
            return borders, alpha[None], beta[None]
        borders = torch.cat([b for b, _, _ in parts]).sort().values
        ends = torch.cat([borders.new_zeros(1), borders, borders.new_ones(1)])
        middle = (ends[1:] + ends[:-1]) / 2
        where = [torch.bucketize(middle, b, right=True) for b, _, _ in parts]
        alpha = torch.stack([a[w] for (_, a, _), w in zip(parts, where, strict=True)])
        beta = torch.stack([b[w] for (_, _, b), w in zip(parts, where, strict=True)])
        alpha, beta = torch.stack([1 - alpha, alpha], 1), torch.stack([-beta, beta], 1)  # (T, 2, J)
        return borders, alpha.flatten(0, 1).T, beta.flatten(0, 1).T


class HardSteps(nn.Module):
    """Cells of a binary or multilabel batch decided where logit >= 0."""

    count = 1

    def __init__(self, tables: int) -> None:
        super().__init__()
        self.tables = tables

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(1, cells) sums over the batch."""
        del step
        return table_cells(batch, [cast(batch.z >= 0, batch.z)], self.tables), None


def by_class(batch: Batch, amounts: Any, times: Any = None) -> Any:
    """The amount of each row, by its table and class: amounts (tables · 2,) to (N,); fresh."""
    if batch.table is not None:
        rows = look_up(cast(amounts, batch.p), batch.place)
    else:
        no, yes = amounts.tolist() if batch.flat else amounts
        rows = batch.y * (yes - no)
        rows += no
    if times is not None:
        rows *= times
    return rows


def table_cells(batch: Batch, high: list[Any], tables: int) -> Any:
    """(T, cells) from memberships (N,) at each of T thresholds."""
    if batch.table is None:
        p = batch.total(batch.y)
        n = batch.mass - p
        if batch.flat:
            unit, positive = batch.unit, batch.positive
            pairs = [(float(h @ unit), float(h @ positive)) for h in high]
            return np.array([[n - d + t, d - t, p - t, t] for d, t in pairs])
        pairs = [(batch.total(h), batch.total(h * batch.y)) for h in high]
        return torch.stack([torch.stack([n - d + t, d - t, p - t, t]) for d, t in pairs])
    place, size = batch.place, tables * 2
    whole = tally(place, batch.w, size, batch.p)
    yes = [tally(place, batch.weighed(h), size, batch.p) for h in high]
    stack = namespace(whole).stack
    return stack([stack([whole - y, y], 1).reshape(-1) for y in yes])


# Soft decisions among several classes: the d × d soft confusion matrix.
#
# Membership of a row in class k, either
#     softmax    s = softmax(z / T), or
#     dynamic    s_k = H(p_k; τ) / Σⱼ H(pⱼ; τ), p = softmax(z), τ midway between the row's two
#                largest probabilities, H linear with its width and δ scaled by T.
# Both become the one-hot argmax, and the matrix the hard confusion matrix, as T → 0.


class SoftClasses(nn.Module):
    """Cells of a multiclass batch under soft memberships.

    Parameters
    ----------
    tables, side : int
        Number of tables and of classes.
    membership : {"softmax", "dynamic"}
    shape : Linear
        δ and width of the dynamic step.
    temperature : Schedule
    """

    count = 1

    def __init__(
        self, tables: int, side: int, membership: str, shape: Linear, temperature: Schedule
    ) -> None:
        super().__init__()
        self.tables = tables
        self.side = side
        self.membership = membership
        self.linear = shape
        self.temperature = temperature

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(1, cells) sums over the batch, and what ``pull`` needs."""
        t = self.temperature.at(step)
        if self.membership == "softmax":
            plain = not self.temperature.moves and t == 1
            s = batch.probability if plain else F.softmax(batch.logits / t, 1)
            return self.cells(batch, s), (s, t, None)
        p = batch.probability
        best = p.topk(2, 1).values
        tau = best.mean(1, keepdim=True)
        raw, slope = linear_step(p, tau, self.linear.delta * t, self.linear.width * t)
        whole = raw.sum(1, keepdim=True)
        s = raw / whole
        return self.cells(batch, s), (s, t, slope / whole)

    def cells(self, batch: Batch, membership: Tensor) -> Any:
        """Cells from memberships (N, K)."""
        empty = membership.new_zeros(self.tables * self.side, self.side)
        return batch.small(empty.index_add_(0, batch.place, batch.weighed(membership)).view(1, -1))

    def pull(self, batch: Batch, memory: Any, prices: Any, share: Any, plain: Any) -> Tensor:
        """Share · prices · ∂cells/∂logits + plain · ∂cross-entropy/∂logits, (N, K), weighed."""
        s, t, slope = memory
        worth = torch.as_tensor(prices * share).to(s).view(-1, self.side)
        worth = worth.index_select(0, batch.place)  # (N, K)
        apart = worth - (worth * s).sum(1, keepdim=True)
        rest = cross_entropy_pull(batch).mul_(plain)
        if slope is None:
            return batch.weighed(rest.add_(s * apart / t))
        p, toward = batch.probability, apart * slope
        return batch.weighed(rest.add_(p * (toward - (p * toward).sum(1, keepdim=True))))


class HardClasses(nn.Module):
    """Cells of a multiclass batch decided by argmax."""

    count = 1

    def __init__(self, tables: int, side: int) -> None:
        super().__init__()
        self.tables = tables
        self.side = side

    def read(self, batch: Batch, step: Tensor) -> tuple[Any, Any]:
        """(1, cells) sums over the batch."""
        del step
        n = self.tables * self.side * self.side
        cell = batch.place * self.side + batch.logits.argmax(1)
        ones = torch.ones_like(batch.logits[:, 0]) if batch.weight is None else batch.weight
        return batch.small(ones.new_zeros(n).index_add_(0, cell, ones).view(1, -1)), None


def linear_step(p: Tensor, tau: Tensor, delta: Any, width: Any) -> tuple[Tensor, Tensor]:
    """Value and slope of ``Linear`` at thresholds that differ by row; τ is held fixed.

    p (N, K), tau (N, 1).
    """
    w = width * torch.minimum(tau, 1 - tau)
    tiny = torch.finfo(p.dtype).tiny
    low, high = tau - w, tau + w
    first = delta / low.clamp(min=tiny)
    last = delta / (1 - high).clamp(min=tiny)
    middle = (1 - 2 * delta) / (2 * w).clamp(min=tiny)
    below, above = p < low, p >= high
    value = torch.where(
        below,
        first * p,
        torch.where(above, 1 - last * (1 - p), delta + middle * (p - low)),
    )
    slope = torch.where(below, first, torch.where(above, last, middle))
    return value, slope
