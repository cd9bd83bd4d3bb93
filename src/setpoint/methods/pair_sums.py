"""Losses of a ranking over all pairs of rows, in O(n log n): one sort and a few running sums.

AUROC is a mean over pairs (positive p, negative n), average precision a mean over positives of a
ratio of ranks, which are sums over rows. Written out, a batch of 8192 rows has millions of pairs.
Sorted, each sum over "the rows above this one" is a running sum, and so is its derivative: value
and gradient are those of the written-out form, in float64 whatever the dtype of the logits.

Every finite input has a finite value and gradient: a batch of one class has value 0 and gradient 0.
NaN among the logits, targets or weights makes the value NaN. The gradient is in closed form, found
together with the value; it is taken of the logits only, once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import pad

from setpoint._core.errors import DataError, GoalError, KindError
from setpoint._core.options import choice, number

# Sums over pairs of rows, read off the sorted scores.
#
# With the rows sorted, x₁ ≤ … ≤ xₙ, a sum over the rows below (or above) each row is a running sum:
#
# * ``mass_beyond``: Σ_{j<k} vⱼ or Σ_{j>k} vⱼ;
# * ``Decay``: Σ_{j≤k} vⱼ e^{−(xₖ − xⱼ)} and Σ_{j≥k} vⱼ e^{−(xⱼ − xₖ)}.
#
# They work on the gaps between neighbours rather than on the scores, so that every sum adds terms
# of one sign: nothing cancels, and the relative error is that of float64 wherever the scores lie.
# Shapes
# never depend on values and nothing is read back to the host, so no accelerator is waited for.


BLOCK = 16
"""Rows of one block of ``Decay``; BLOCK × FAR / 2 = 640 stays below log(1e308) = 709."""
FAR = 80.0
"""A longer gap counts as this one: e⁻⁸⁰ = 2e-35 of a weight is lost beside any other."""


class PairRows(NamedTuple):
    """Rows sorted by key, rising; each is of one class, its weight in the other class is 0."""

    key: Tensor  # (n,) float64
    order: Tensor  # (n,) int64: the row's place before sorting
    positive: Tensor  # (n,) float64: weights of positives
    negative: Tensor  # (n,) float64

    @property
    def gaps(self) -> Tensor:
        """From each row to the next, (n - 1,)."""
        return self.key[1:] - self.key[:-1]


def sorted_rows(key: Tensor, positive: Tensor, weight: Tensor | None) -> PairRows:
    """Sort; ``positive`` is boolean, ``key`` of any real dtype, weights default to 1."""
    key, order = key.sort()
    hit = positive.index_select(0, order).double()
    miss = 1.0 - hit
    if weight is None:
        return PairRows(key.double(), order, hit, miss)
    weight = weight.index_select(0, order).double()
    return PairRows(key.double(), order, hit * weight, miss * weight)


def over(values: Tensor, total: Tensor) -> Tensor:
    """``values / total``, and 0 / 0 = 0."""
    return values / torch.where(total == 0, 1.0, total)


def mass_beyond(values: Tensor) -> Tensor:
    """Σ_{j<k} vⱼ along the last dimension; (..., n) -> (..., n). Flip for the rows above."""
    return pad(values.cumsum(-1)[..., :-1], (1, 0))


class _Level(NamedTuple):
    """Exponentials of one level of blocks."""

    rise: Tensor  # (..., blocks, BLOCK)
    fall: Tensor  # 1 / rise
    drop: Tensor  # (..., blocks, 1): from the middle of the block to its start


class Decay:
    """Sums over all rows that fade with the distance, in both directions.

    Upwards Dₖ = Σ_{j≤k} vⱼ e^{−(xₖ − xⱼ)}, downwards Eₖ = Σ_{j≥k} vⱼ e^{−(xⱼ − xₖ)}, for v ≥ 0.

    Inside a block of 16 rows, D = e^{−r} cumsum(v eʳ), r the distance from the middle of the
    block, |r| ≤ 640, so that no exponential leaves float64. The sums at the ends of the blocks are
    the same problem on n / 16 rows. (``logcumsumexp`` takes five times as long on a CPU; a single
    cumsum of v eˣ overflows where scores are far apart.)

    Parameters
    ----------
    gaps : (..., n - 1) float64 tensor
        From each row to the next; several sets of gaps, as g, 2g, 3g, are summed over at once.
    """

    def __init__(self, gaps: Tensor) -> None:
        self.levels: list[_Level] = []
        reach = torch.stack((pad(gaps, (1, 0)), pad(gaps.flip(-1), (1, 0)))).unsqueeze(-2)
        while True:
            size = min(reach.shape[-1], BLOCK)
            reach = _blocks(reach.clamp(max=FAR), size).cumsum(-1)  # (2, ..., 1, blocks, size)
            half = 0.5 * reach[..., -1:]
            rise = (reach - half).exp_()
            self.levels.append(_Level(rise, rise.reciprocal(), (-half).exp_()))
            reach = reach[..., -1]
            if reach.shape[-1] == 1:
                return

    def sums(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """D and E of each signal; (signals, n) -> (..., signals, n) twice."""
        both = torch.stack((values, values.flip(-1)))
        sets = self.levels[0].rise.ndim - 4
        both = self._sums(both[(slice(None), *(None,) * sets)], 0)
        return both[0], both[1].flip(-1)

    def _sums(self, values: Tensor, depth: int) -> Tensor:
        rise, fall, drop = self.levels[depth]
        sums = (_blocks(values, rise.shape[-1]) * rise).cumsum_(
            -1
        )  # (2, ..., signals, blocks, size)
        if depth + 1 < len(self.levels):
            ends = self._sums(sums[..., -1] * fall[..., -1], depth + 1)  # (2, ..., signals, blocks)
            sums += pad(ends[..., :-1], (1, 0)).unsqueeze(-1) * drop
        sums *= fall
        return sums.flatten(-2)[..., : values.shape[-1]]


def _blocks(values: Tensor, size: int) -> Tensor:
    """Cut the last dimension into blocks, the last of them filled up with 0."""
    spare = -values.shape[-1] % size
    if spare:
        values = pad(values, (0, spare))
    return values.unflatten(-1, (-1, size))


TAILS: dict[str, tuple[float, ...]] = {
    "laplace": (0.5,),
    # ∫ of the polynomial that meets 1 / (1 + z) at the 13 Chebyshev nodes of [0, 1]: value and
    # derivative are within 2.3e-10 of log(1 + z) and 1 / (1 + z), relatively, for z in [0, 1].
    "logistic": (
        0.9999999997767136,
        -0.49999996215296344,
        0.3333318993139569,
        -0.24997567948315877,
        0.19976801785113107,
        -0.165269035708699,
        0.13715473190399977,
        -0.1084894148860053,
        0.07595330117868114,
        -0.04305700519102116,
        0.017836655469907425,
        -0.004682654180643954,
        0.0005763266683869482,
    ),
}
"""cᵢ of ψ(t) = max(0, t) + Σᵢ cᵢ e^{−i|t|}, i = 1, 2, …"""

SURROGATES = ("squared-hinge", *TAILS)
HUGE = 1e100  # its square, times weights, is far inside float64


def auroc_loss(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    surrogate: str = "squared-hinge",
    margin: float = 1.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    temperature: float = 1.0,
) -> Tensor:
    """Weighted mean over pairs of a positive and a negative of ψ(s_p − s_n).

    Σ_p Σ_n w_p w_n ψ(s_p − s_n) / Σ_p Σ_n w_p w_n, where with t = −d / temperature

    * ``squared-hinge``: ψ(d) = max(0, margin − d)²;
    * ``laplace``: ψ = ½ eᵗ for t ≤ 0 and t + ½ e⁻ᵗ for t > 0. Its derivative in t is the
      distribution function of the Laplace distribution, as that of the logistic loss is the
      logistic one: both are max(0, t) plus a tail in e^{−|t|}, here ½ e^{−|t|}, there
      log(1 + e^{−|t|}); ψ is at most log 2 − ½ = 0.19 below the logistic loss;
    * ``logistic``: ψ = log(1 + eᵗ), within 2.3e-10 relatively, at three times the cost of laplace.

    With ``max_fpr`` below 1 only the highest-scoring negatives count, up to that share of their
    weight; those on the border count with the fraction that fits, equal scores alike. With
    ``min_tpr`` above 0 only the lowest-scoring positives count likewise, up to a share 1 − min_tpr:
    together the two-way partial area, FPR <= max_fpr and TPR >= min_tpr.

    Parameters
    ----------
    logits : (n,) or (n, 1) floating tensor
        Any real scores. float16 and bfloat16 are computed in float64 and give a float32 value.
    target : (n,) or (n, 1) tensor
        Above 0 for positives: 0/1 of any dtype.
    weight : (n,) or (n, 1) tensor, optional
        At least 0. Not differentiated.
    surrogate : {"squared-hinge", "laplace", "logistic"}
        ψ.
    margin : float
        Of the squared hinge, at least 0.
    max_fpr : float
        In (0, 1].
    min_tpr : float
        In [0, 1).
    temperature : float
        Of the other two, above 0.

    Returns
    -------
    () tensor
        float64 where the logits are, else float32. 0 where a class is missing.

    References
    ----------
    Yan, Dodier, Mozer & Wolniewicz (2003), Optimizing classifier performance via an approximation
    to the Wilcoxon-Mann-Whitney statistic; Rust & Hocking (2023), A log-linear gradient descent
    algorithm for unbalanced binary classification using the all pairs squared hinge loss;
    Narasimhan & Agarwal (2013), A structural SVM based approach for optimizing partial AUC; Yang,
    Lu, Lyu & Hu (2019), Two-way partial AUC and its properties.

    Examples
    --------
    >>> logits = torch.tensor([2.0, 0.5, 1.0, -1.0], requires_grad=True)
    >>> loss = auroc_loss(logits, torch.tensor([1, 1, 0, 0]))
    >>> loss.backward()
    >>> loss.item(), logits.grad.tolist()
    (0.5625, [0.0, -0.75, 0.75, 0.0])
    """
    options = {"surrogate": surrogate, "margin": margin}
    options |= {"max_fpr": max_fpr, "min_tpr": min_tpr, "temperature": temperature}
    loss_and_slope = auroc_and_gradient(logits, target, weight, **options)
    return _nothing(logits) if loss_and_slope is None else _Attach.apply(logits, *loss_and_slope)


def auroc_and_gradient(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    surrogate: str = "squared-hinge",
    margin: float = 1.0,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    temperature: float = 1.0,
) -> tuple[Tensor, Tensor] | None:
    """The value of :func:`auroc_loss` and its gradient in the logits; None of no rows."""
    scores, positive, weight = _taken("auroc_loss", logits, target, weight)
    choice("surrogate", surrogate, SURROGATES, error=GoalError)
    number("margin", margin, 0, error=GoalError)
    number("max_fpr", max_fpr, 0, 1, open_low=True, error=GoalError)
    number("min_tpr", min_tpr, 0, 1, open_high=True, error=GoalError)
    number("temperature", temperature, 0, open_low=True, error=GoalError)
    if scores.numel() == 0:
        return None
    if surrogate == "squared-hinge":  # a pair counts where s_n > s_p − margin
        rows = sorted_rows(scores.double() - margin * positive.double(), positive, weight)
        value, slope = _squared_hinge(_part(rows, max_fpr, min_tpr))
    else:
        rows = sorted_rows(scores, positive, weight)
        value, slope = _tailed(_part(rows, max_fpr, min_tpr), temperature, TAILS[surrogate])
    return _unsorted(logits, value, slope, rows.order)


def average_precision_loss(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    temperature: float = 0.1,
) -> Tensor:
    """1 − AP, the ranks in it smoothed by the Laplace distribution function H.

    AP = Σᵢ wᵢ R⁺ᵢ / Rᵢ / Σᵢ wᵢ over positives i, with the smooth weighted rank among the positives
    R⁺ᵢ = wᵢ + Σ_{j≠i, positive} wⱼ H((sⱼ − sᵢ) / temperature), and Rᵢ the same over all rows j;
    H(t) = ½ eᵗ for t ≤ 0 and 1 − ½ e⁻ᵗ for t > 0. As the temperature falls to 0, AP becomes average
    precision where no scores are equal; rows of equal score count half against each other.

    Parameters
    ----------
    logits, target, weight
        As in :func:`auroc_loss`.
    temperature : float
        Above 0, in the unit of the logits.

    Returns
    -------
    () tensor
        float64 where the logits are, else float32. 0 where a class is missing.

    References
    ----------
    Brown, Xie, Kalogeiton & Zisserman (2020), Smooth-AP: smoothing the path towards large-scale
    image retrieval (there with the logistic function for H).

    Examples
    --------
    >>> logits = torch.tensor([3.0, 2.0, 1.0])
    >>> round(average_precision_loss(logits, torch.tensor([1, 0, 1]), temperature=0.01).item(), 6)
    0.166667
    """
    loss_and_slope = average_precision_and_gradient(logits, target, weight, temperature=temperature)
    return _nothing(logits) if loss_and_slope is None else _Attach.apply(logits, *loss_and_slope)


def average_precision_and_gradient(
    logits: Tensor, target: Tensor, weight: Tensor | None = None, *, temperature: float = 0.1
) -> tuple[Tensor, Tensor] | None:
    """The value of :func:`average_precision_loss` and its gradient; None of no rows."""
    scores, positive, weight = _taken("average_precision_loss", logits, target, weight)
    number("temperature", temperature, 0, open_low=True, error=GoalError)
    if scores.numel() == 0:
        return None
    rows = sorted_rows(scores, positive, weight)
    total = rows.positive.sum()  # AP does not depend on the unit of the weights
    rows = rows._replace(positive=over(rows.positive, total), negative=over(rows.negative, total))
    value, slope = _average_precision(rows, temperature)
    return _unsorted(logits, value, slope, rows.order)


def _squared_hinge(rows: PairRows) -> tuple[Tensor, Tensor]:
    """Σ_p Σ_{n above p} w_p w_n (k_n − k_p)², and its derivative in the keys k.

    With gₖ the gaps, Uₖ = Σ_{p<k} w_p (xₖ − x_p) = Σ g × (positives below), Vₖ the same of the
    negatives above: ∂/∂x = 2 w U at negatives, −2 w V at positives, and by Euler's theorem
    (degree 2 in the gaps) the value is Σₖ gₖ (U × negatives above + V × positives below), U and V
    at the row under the gap.
    """
    gaps = rows.gaps
    mass = torch.stack((rows.positive, rows.negative.flip(0))).cumsum_(1)[:, :-1]  # (2, n - 1)
    moments = torch.stack((gaps, gaps.flip(0))).mul_(mass).cumsum_(1)
    below, above = mass[0], mass[1].flip(0)  # (n - 1,), at each gap
    up, down = moments[0], moments[1].flip(0)  # U at the row over the gap, V at the row under it
    value = (gaps[1:] * above[1:]) @ up[:-1] + (gaps * below) @ down
    slope = torch.zeros_like(rows.key)
    slope[1:].addcmul_(rows.negative[1:], up, value=2.0)
    slope[:-1].addcmul_(rows.positive[:-1], down, value=-2.0)
    return value, slope


def _tailed(rows: PairRows, temperature: float, tail: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Σ_p Σ_n w_p w_n ψ(x_n − x_p), ψ(t) = max(0, t) + Σᵢ cᵢ e^{−i|t|}, and its derivative.

    ψ′(t) = Σᵢ i cᵢ e^{it} for t ≤ 0 and 1 − Σᵢ i cᵢ e^{−it} for t > 0.
    """
    gaps = rows.gaps / temperature
    signals = torch.stack((rows.positive, rows.negative))  # (2, n)
    below = mass_beyond(rows.positive)  # (n,): positives below each row
    above = mass_beyond(rows.negative.flip(0)).flip(0)  # (n,): negatives above each row
    value = gaps @ (below[1:] * above[:-1])  # every pair out of order crosses its gaps
    slope = rows.negative * below - rows.positive * above
    rates = torch.arange(1, len(tail) + 1, device=gaps.device).unsqueeze(1)
    up, down = Decay(gaps * rates).sums(signals)  # (rates, 2, n) each
    height, pull = torch.zeros_like(rows.key), torch.zeros_like(signals)
    for i, c in enumerate(tail):  # a tensor of c would be copied from the host in every step
        height.add_(up[i, 1] + down[i, 1], alpha=c)
        pull.add_(down[i] - up[i], alpha=(i + 1) * c)
    value = value + rows.positive @ height
    slope = slope.addcmul_(rows.positive, pull[1]).addcmul_(rows.negative, pull[0])
    return value, slope / temperature


def _average_precision(rows: PairRows, temperature: float) -> tuple[Tensor, Tensor]:
    """Σᵢ wᵢ R⁻ᵢ / Rᵢ over positives, R⁻ = R − R⁺, and its derivative.

    Σⱼ wⱼ H(xⱼ − xᵢ) = ½ Dᵢ + Σ_{j above i} wⱼ − ½ Eᵢ, and H′(t) = ½ e^{−|t|}. A row's own terms
    cancel in the sums over all j; R⁺ counts the row itself in full.
    """
    decay = Decay(rows.gaps / temperature)
    signals = torch.stack((rows.positive, rows.negative))  # (2, n)
    up, down = decay.sums(signals)
    ranks = mass_beyond(signals.flip(1)).flip(1) + 0.5 * (up - down)
    same, other = ranks[0] + rows.positive, ranks[1]
    share = over(rows.positive, same + other)  # 0 at negatives
    value = share @ other
    share = over(share, same + other)
    pushes = torch.stack((share * other, share * same))  # −∂/∂R⁺ and ∂/∂R⁻, both ≥ 0
    near = sum(decay.sums(pushes))
    pairs = signals * near - pushes * (up + down)  # a row counted, minus a row that counts
    return value, (pairs[1] - pairs[0]) * (0.5 / temperature)


def _means(rows: PairRows) -> PairRows:
    """Weights of each class that sum to 1, or to 0 where there is none of it."""
    positive, negative = (over(w, w.sum()) for w in (rows.positive, rows.negative))
    return rows._replace(positive=positive, negative=negative)


def _part(rows: PairRows, max_fpr: float, min_tpr: float) -> PairRows:
    """The negatives that score highest and the positives that score lowest, as means."""
    rows = _means(rows)
    if max_fpr < 1:
        rows = rows._replace(negative=_highest(rows.negative, rows.key, max_fpr))
    if min_tpr > 0:
        lowest = _highest(rows.positive.flip(0), -rows.key.flip(0), 1 - min_tpr).flip(0)
        rows = rows._replace(positive=lowest)
    return rows


def _highest(mass: Tensor, key: Tensor, share: float) -> Tensor:
    """Keep the rows of highest key, up to ``share`` of their mass 1; sum to 1 again.

    Keys rise. Equal keys on the border count with the same fraction, as in a curve.
    """
    above = mass_beyond(mass.flip(0)).flip(0)
    reached = (above < share) & (mass > 0)
    border = torch.where(reached, key, math.inf).amin()
    inside, tied = mass * (key > border), mass * (key == border)
    fits = over(share - inside.sum(), tied.sum()).clamp(0.0, 1.0)
    return (inside + tied * fits) / share


class _Attach(torch.autograd.Function):
    """A value whose gradient in the logits is known."""

    @staticmethod
    def forward(ctx: FunctionCtx, logits: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        ctx.dtype = logits.dtype  # type: ignore[attr-defined]
        return value.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        # once_differentiable would let a second derivative pass as 0 (torch.compile has none)
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise KindError(
                "this loss can be differentiated once, and create_graph=True asks for twice; keep "
                "it out of what is differentiated twice"
            )
        (gradient,) = ctx.saved_tensors
        return (gradient * upstream).to(ctx.dtype), None, None


def _unsorted(logits: Tensor, value: Tensor, slope: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """The value and its gradient, from ``slope`` in sorted order. Both end inside their dtype."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    most = torch.finfo(logits.dtype).max  # a saved float16 would lose 1e-8 before it is scaled
    slope = slope.clamp(-most, most).to(dtype)
    gradient = torch.empty_like(slope).scatter_(0, order, slope).view_as(logits)
    return value.clamp(max=torch.finfo(dtype).max).to(dtype), gradient


def _nothing(logits: Tensor) -> Tensor:
    """0 of no rows, still connected to the graph."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).sum()


def _taken(
    name: str, logits: Any, target: Any, weight: Any
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Scores (float32 or float64), positives (bool) and weights, (n,) each, outside the graph."""
    for word, column in (("logits", logits), ("target", target), ("weight", weight)):
        if not isinstance(column, Tensor) and not (word == "weight" and column is None):
            kind = type(column).__name__
            raise KindError(f"{name}: {word} is a {kind}; pass a torch tensor, one value a row")
    if not logits.is_floating_point():
        raise KindError(
            f"{name}: logits are of {logits.dtype}; pass real scores, as logits.float()"
        )
    if logits.ndim not in (1, 2) or (logits.ndim == 2 and logits.shape[1] != 1):
        raise DataError(
            f"{name}: logits have shape {tuple(logits.shape)}; one score a row is needed, of shape "
            "(n,) or (n, 1)"
        )
    n = logits.shape[0]
    for word, column in (("target", target), ("weight", weight)):
        if column is not None and column.shape not in ((n,), (n, 1)):
            raise DataError(
                f"{name}: {word} has shape {tuple(column.shape)} and the logits are of {n} rows; "
                f"pass one value a row, of shape ({n},)"
            )
    if weight is not None and weight.requires_grad:
        raise KindError(f"{name}: the loss is not differentiated by weight; pass weight.detach()")
    target = target.detach().reshape(n)
    scores = logits.detach().reshape(n).to(torch.promote_types(logits.dtype, torch.float32))
    if scores.dtype == torch.float64:
        scores = scores.clamp(-HUGE, HUGE)
    if target.is_floating_point():
        scores = scores + 0.0 * target  # a target of NaN is no negative: let it be seen
    return scores, target > 0, None if weight is None else weight.detach().reshape(n)
