"""Lists of scored rows, one per query, and the border between the first t rows and the others.

With memberships mⱼ = σ(κ (sⱼ − λ)) of the rows j of one query, the border λ of the first t rows is

    soft     the solution h(s) of  Σⱼ mⱼ = t,
    exact    midway between the t-th score and the next one.

What the first t rows hold of a gain g is G = Σⱼ gⱼ mⱼ, and the border moves along with the scores:

    dG/dsⱼ = dⱼ (gⱼ − ḡ),      dⱼ = ∂mⱼ/∂sⱼ = κ mⱼ (1 − mⱼ),      ḡ = Σ d g / Σ d,

where ḡ comes from the implicit function theorem. The gradient sums to 0 over the query, exactly
differentiates G(s, h(s)) at the soft border, and trades rows near the border for each other. A list
of t rows or fewer is in as a whole and pulls nothing.

Rows are sorted by query and falling score, sums are taken by segment, and no loop runs over
queries: O(n · borders) time and memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

#: least Σ m (1 − m) of a border: where the rows on its two sides lie so far apart that none is
#: near it, the nearest are pulled as if this much were left
FLOOR = 1e-3
TURNS = 40  #: of the solver at most; it needs 5 to 8
FAR = 1e30  #: greatest distance from a border, in units of 1/κ


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows by query and falling score; n rows, Q queries.

    Attributes
    ----------
    order : torch.Tensor
        (n,) which of the given rows is at each place.
    scores : torch.Tensor
        (n,) in that order.
    query : torch.Tensor
        (n,) 0 … Q − 1, rising.
    rank : torch.Tensor
        (n,) 0 for the first row of a query.
    start, size : torch.Tensor
        (Q,) first place and number of rows. Off the host Q is n, so that nobody waits for the
        number of queries, and the lists that are not there have size 0.
    """

    order: Tensor
    scores: Tensor
    query: Tensor
    rank: Tensor
    start: Tensor
    size: Tensor

    def sums(self, x: Tensor) -> Tensor:
        """Sums over each query of (n,) or (n, T)."""
        return x.new_zeros(self.size.shape + x.shape[1:]).index_add_(0, self.query, x)

    def given(self, x: Tensor) -> Tensor:
        """Values (n,) in the order in which the rows were given."""
        return torch.empty_like(x).index_copy_(0, self.order, x)


def listed(scores: Tensor, codes: Tensor) -> Lists:
    """Sort rows by query and falling score."""
    order = torch.argsort(scores, descending=True, stable=True)
    order = order[torch.argsort(codes[order], stable=True)]
    codes = codes[order]
    first = torch.ones_like(codes, dtype=torch.bool)
    first[1:] = codes[1:] != codes[:-1]
    query = torch.cumsum(first, 0) - 1
    count = int(query[-1]) + 1 if _host(scores) else len(scores)
    places = torch.arange(len(scores), device=scores.device)
    size = torch.zeros(count, dtype=torch.long, device=scores.device)
    size.index_add_(0, query, torch.ones_like(query))
    start = torch.cumsum(size, 0) - size
    return Lists(order, scores[order], query, places - start[query], start, size)


def exact_borders(lists: Lists, ranks: Tensor) -> Tensor:
    """(Q, T) midway between the score at each rank and the next one; any number where all are in.

    ``ranks`` (T,) are numbers of rows, 1 or more.
    """
    last, following = _sides(lists, ranks)
    return last / 2 + following / 2


def soft_borders(lists: Lists, ranks: Tensor, sharpness: float) -> Tensor:
    """(Q, T) λ with Σⱼ σ(κ (sⱼ − λ)) = t over each query.

    The same equation says that what the rows after the first t are in is what the first t are out:

        log Σ_{j > t} mⱼ − log Σ_{j ≤ t} (1 − mⱼ) = 0,

    whose slope in λ lies between −κ and −2κ because rows are sorted. So Newton halves the error at
    least, from wherever it starts, and nothing is lost where memberships are all but 0 and 1.
    """
    borders = exact_borders(lists, ranks)
    last, following = _sides(lists, ranks)
    query, after = lists.query, lists.rank[:, None] >= ranks  # (n, T)
    for _ in range(TURNS):
        x = _distance(lists.scores[:, None], borders[query], sharpness)
        wrong = F.logsigmoid(torch.where(after, x, -x))  # log of how far in, or how far out
        top_in = F.logsigmoid(_distance(following, borders, sharpness))  # the greatest of each
        top_out = F.logsigmoid(-_distance(last, borders, sharpness))
        part = torch.exp(wrong - torch.where(after, top_in[query], top_out[query]))
        into, out = part * after, part * ~after
        rest = 1 - torch.exp(wrong)
        sum_in, sum_out = lists.sums(into).clamp(min=1e-30), lists.sums(out).clamp(min=1e-30)
        off = top_in + sum_in.log() - top_out - sum_out.log()
        slope = lists.sums(into * rest) / sum_in + lists.sums(out * rest) / sum_out
        new = borders + torch.where(_open(lists, ranks), off / (sharpness * slope), 0.0)
        moved = abs(new - borders) > 4 * torch.finfo(new.dtype).eps * (abs(new) + 1 / sharpness)
        borders = new
        if _host(new) and not bool(moved.any()):
            break
    return borders


def soft_shares(lists: Lists, ranks: Tensor, borders: Tensor, sharpness: float) -> Tensor:
    """(n, T) memberships m in the first t rows."""
    m = torch.sigmoid(_distance(lists.scores[:, None], borders[lists.query], sharpness))
    return torch.where(_open(lists, ranks)[lists.query], m, 1.0)


def hard_shares(lists: Lists, ranks: Tensor) -> Tensor:
    """(n, T): 1 above the border, 0 below; rows tied on it share what is left."""
    border = _sides(lists, ranks)[0][lists.query]  # (n, T) the score at the rank
    scores = lists.scores[:, None]
    above, tied = (scores > border).to(scores.dtype), (scores == border).to(scores.dtype)
    left = ranks - lists.sums(above)
    part = (left / lists.sums(tied).clamp(min=1)).clamp(0, 1)
    return above + tied * part[lists.query]


def pull(
    lists: Lists, ranks: Tensor, borders: Tensor, gain: Tensor, worth: Tensor, sharpness: float
) -> Tensor:
    """(n,) gradient in the scores of Σ_t worth_t Σⱼ gⱼ mⱼₜ, over all queries.

    ``gain`` is (n,) and ``worth`` (Q, T). Densities are taken in logarithms, so that ḡ stays a mean
    of the gains nearest to the border where every density is too small to be written.
    """
    query = lists.query
    x = _distance(lists.scores[:, None], borders[query], sharpness).abs()
    log_density = -x - 2 * torch.log1p(torch.exp(-x))  # of m (1 − m)
    top = torch.full_like(borders, -torch.inf)
    top.scatter_reduce_(0, query[:, None].expand_as(x), log_density, "amax")
    near = torch.exp(log_density - top[query])
    total = lists.sums(near)
    whole = total.clamp(min=1e-30)
    mean = lists.sums(near * gain[:, None]) / whole
    density = (torch.exp(top) * total).clamp(min=FLOOR)  # Σ m (1 − m)
    scale = torch.where(_open(lists, ranks), sharpness * worth * density / whole, 0.0)
    return (scale[query] * near * (gain[:, None] - mean[query])).sum(1)


def _sides(lists: Lists, ranks: Tensor) -> tuple[Tensor, Tensor]:
    """(Q, T) the score at each rank and the next one; the last one where there are too few."""
    end = (lists.start + lists.size - 1)[:, None]
    place = torch.minimum(lists.start[:, None] + ranks - 1, end).clamp(min=0)
    return lists.scores[place], lists.scores[torch.minimum(place + 1, end).clamp(min=0)]


def _distance(scores: Tensor, borders: Tensor, sharpness: float) -> Tensor:
    """κ (s − λ), finite."""
    return (sharpness * (scores - borders)).clamp(-FAR, FAR)


def _host(x: Tensor) -> bool:
    """Whether a value may be looked at."""
    return x.is_cpu and not torch.compiler.is_compiling()


def _open(lists: Lists, ranks: Tensor) -> Tensor:
    """(Q, T) whether there are rows on both sides of the border."""
    return ranks < lists.size[:, None]
