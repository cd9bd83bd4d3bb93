"""A ranking by query, trained with one implicit threshold for every query and rank.

What the first t rows of a query hold of its gains is Gₜ = Σⱼ gⱼ σ(κ (sⱼ − λₜ)), with λₜ the border
of the first t (:mod:`setpoint.methods.implicit.query_ranking`). The metrics are positive
combinations of them:

    precision at k   G_k / min(k, n)                     g = 1 where relevant
    recall at k      G_k / Σⱼ gⱼ                         g = 1 where relevant
    ndcg at k        Σ_{t ≤ k} Δₜ Gₜ / greatest DCG      g = relevance, or 2^relevance − 1
                     Δₜ = 1/log₂(t + 1) − 1/log₂(t + 2),  Δ_k = 1/log₂(k + 1)

and the loss is 1 − the mean over queries. A query without a relevant row counts 0.

Every query must be in one batch, and on one process, as a whole. Then the totals, Σ of the values
of queries and their number, add up over batches and processes, and no rows need to be gathered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint._core.errors import DataError, GoalError, KindError
from setpoint._core.options import choice, number
from setpoint.expressions import AtK, Curve, Ndcg
from setpoint.expressions.named_metric import unnamed
from setpoint.expressions.rows.row_events import EVERYTHING
from setpoint.goals import Goal, Task, check
from setpoint.methods.method import Recovered
from setpoint.programs import Priced, StreamProgram
from setpoint.programs.column_rules import BINARY, Checked, ColumnRule, NotNegative, check_columns

# Lists of scored rows, one per query, and the border between the first t rows and the others.
#
# With memberships mⱼ = σ(κ (sⱼ − λ)) of the rows j of one query, the border λ of the first t rows
# is
#
#     soft     the solution h(s) of  Σⱼ mⱼ = t,
#     exact    midway between the t-th score and the next one.
#
# What the first t rows hold of a gain g is G = Σⱼ gⱼ mⱼ, and the border moves along with the
# scores:
#
#     dG/dsⱼ = dⱼ (gⱼ − ḡ),      dⱼ = ∂mⱼ/∂sⱼ = κ mⱼ (1 − mⱼ),      ḡ = Σ d g / Σ d,
#
# where ḡ comes from the implicit function theorem. The gradient sums to 0 over the query, exactly
# differentiates G(s, h(s)) at the soft border, and trades rows near the border for each other. A
# list of t rows or fewer is in as a whole and pulls nothing.
#
# Rows are sorted by query and falling score, sums are taken by segment, and no loop runs over
# queries: O(n · borders) time and memory.


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


CORRECTIONS = ("exact", "soft")
SCALES = ("raw", "query")
LEAST = 1e-2  #: added, squared, to the variance of a query's scores
VALUE, QUERIES, ROWS, MUTE = range(4)  #: the totals, in order
KNOWN = 'precision_at_k(k, by="query"), recall_at_k(k, by="query") or ndcg(k)'


def query_objection(goal: Goal, task: Task) -> str | None:
    """None if the goal has thresholds by query, else a sentence why not and what has."""
    if task.kind not in ("ranking", "binary"):
        return f"a {task.kind} task has no ranking by query; ranking and binary tasks do"
    leaf = _leaf(goal)
    if leaf is None or goal.sign < 0 or goal.constraints:
        return f'"{goal}": thresholds by query maximize {KNOWN}, one of them, without constraints'
    if isinstance(leaf, Ndcg) and leaf.k is None:
        return f'"{goal}" takes a threshold for every rank: say how many ranks count, ndcg(10)'
    if isinstance(leaf, AtK) and leaf.by != "query":
        return f'"{goal}" is taken over all rows at once; thresholds by query are for by="query"'
    if leaf.where != EVERYTHING or leaf.label is not None:
        return f'"{goal}" is taken over some of the rows; thresholds by query rank all of them'
    return None


def query_program(
    goal: Goal,
    task: Task,
    *,
    sharpness: float = 5.0,
    correction: str = "soft",
    scale: str = "raw",
    cross_entropy: float = 0.0,
) -> QueryProgram:
    """The program of a goal by query.

    Parameters
    ----------
    goal : Goal
        To maximize precision_at_k(k, by="query"), recall_at_k(k, by="query") or ndcg(k).
    task : Task
        Ranking, with relevances 0, 1, 2, …, or binary.
    sharpness : float
        κ, on scores of the given scale.
    correction : {"soft", "exact"}
        Where a border lies: where the soft memberships add up to its rank, and the loss reports the
        soft metric, of which the gradient is then exactly the derivative; or midway between the
        scores at its two sides, a quarter of the work, and the loss reports the metric itself.
    scale : {"raw", "query"}
        Scores are taken as they come; or divided by their standard deviation within the query, so
        that κ means the same at every scale of the model's outputs. Then a factor common to all
        rows of a query pulls nothing.
    cross_entropy : float
        Share, in [0, 1], of the base loss mixed in: cross-entropy on relevance > 0, mean over rows
        and then over queries. It is also what a warm-up descends.

    Raises
    ------
    GoalError
        With the sentence of :func:`query_objection`.
    """
    check(goal, task)
    why = query_objection(goal, task)
    if why is not None:
        raise GoalError(why)
    return QueryProgram(goal, task, sharpness, correction, scale, cross_entropy)


def query_recovered(totals: Any) -> Recovered:
    """The metric at running totals."""
    return Recovered(float(totals[0, VALUE] / totals[0, QUERIES]))


RELEVANCE = NotNegative("relevances are finite and 0 or more")


class QueryGoal(NamedTuple):
    """A batch of rows in lists by query.

    ``logits`` (n,) are scores as given, ``scores`` those on the scale of the borders, ``deviation``
    (Q,) what they were divided by; ``gain`` and ``relevant`` (n,) are in the order of the lists.
    """

    logits: Tensor
    target: Tensor
    lists: Lists
    deviation: Tensor | None
    gain: Tensor
    relevant: Tensor
    host: bool
    rule: ColumnRule

    @property
    def checked(self) -> Checked:
        """The relevances with the rule for them."""
        return ((self.rule, self.target.reshape(-1)),)

    def small(self, x: Any) -> Any:
        """A small tensor in the form that small sums are computed in."""
        if not self.host or not isinstance(x, Tensor):
            return x
        return x.numpy() if x.ndim else x.item()


class QueryProgram(StreamProgram):
    """1 − the mean over queries of a metric of the first rows; see :func:`query_program`."""

    discounts: Tensor
    ranks: Tensor

    def __init__(
        self,
        goal: Goal,
        task: Task,
        sharpness: float,
        correction: str,
        scale: str,
        cross_entropy: float,
    ) -> None:
        super().__init__()
        self.sharpness = number("sharpness", sharpness, 0, open_low=True, error=KindError)
        self.correction = choice("correction", correction, CORRECTIONS)
        self.scale = choice("scale", scale, SCALES)
        self.mix = number("cross_entropy", cross_entropy, 0, 1, error=KindError)
        leaf = cast(AtK | Ndcg, _leaf(goal))  # the others are refused before
        self.goal = goal
        self.task = task
        self.leaf = leaf
        self.k = cast(int, leaf.k)
        self.shape = (1, 4)
        every = torch.arange(1, self.k + 1)
        ranks = every if isinstance(leaf, Ndcg) else every[-1:]
        self.register_buffer("start", torch.zeros(0), persistent=False)
        self.register_buffer("ranks", ranks, persistent=False)
        self.register_buffer("discounts", 1 / torch.log2(every.double() + 1), persistent=False)

    def rows(self, outputs: Tensor, target: Any, weight: Any, group: Any) -> QueryGoal:
        logits, relevance, codes = _taken(self.goal, outputs, target, weight, group)
        lists = listed(logits, codes)
        deviation = None
        if self.scale == "query":
            lists, deviation = _standard(lists)
        relevance = relevance[lists.order]
        relevant = (relevance > 0).to(logits.dtype)
        gain = relevant
        if isinstance(self.leaf, Ndcg):
            gain = relevance if self.leaf.gain == "linear" else torch.exp2(relevance) - 1
        host = logits.is_cpu and not torch.compiler.is_compiling()
        rule = BINARY if self.task.kind == "binary" else RELEVANCE
        return QueryGoal(logits, target, lists, deviation, gain, relevant, host, rule)

    def mass(self, rows: QueryGoal) -> tuple[Any, int]:
        """The number of queries, and that of rows."""
        return rows.small((rows.lists.size > 0).sum()), len(rows.logits)

    def measure(self, rows: QueryGoal, step: Tensor) -> tuple[Any, Any]:
        del step
        lists, ranks, worth = rows.lists, self.ranks, self._worth(rows)
        if self.correction == "soft":
            borders = soft_borders(lists, ranks, self.sharpness)
            shares = soft_shares(lists, ranks, borders, self.sharpness)
        else:
            borders = exact_borders(lists, ranks)
            shares = hard_shares(lists, ranks)
        gradient = pull(lists, ranks, borders, rows.gain, worth, self.sharpness)
        if rows.deviation is not None:
            gradient = _unscaled(lists, rows.deviation, gradient)
        value = (worth * lists.sums(shares * rows.gain[:, None])).sum()
        there = lists.size > 0
        mute = (there & (lists.sums(rows.relevant) == 0)).sum()
        totals = torch.stack([value, there.sum(), lists.size.sum(), mute])
        return rows.small(totals[None].to(rows.logits.dtype)), gradient

    def _worth(self, rows: QueryGoal) -> Tensor:
        """(Q, T) what a unit of gain among the first t rows of a query adds to its metric."""
        lists, gain = rows.lists, rows.gain
        if not isinstance(self.leaf, Ndcg):
            if self.leaf.given == "decided":
                bottom = lists.size.clamp(max=self.k).to(gain.dtype)
            else:
                bottom = lists.sums(gain)
            return _over(torch.ones_like(bottom), bottom)[:, None]
        discounts = self.discounts.to(gain.dtype)
        ideal = listed(gain, lists.query)
        first = torch.where(ideal.rank < self.k, discounts[ideal.rank.clamp(max=self.k - 1)], 0.0)
        best = lists.sums(first * ideal.scores)
        drops = discounts - F.pad(discounts[1:], (0, 1))  # (k,) Δ
        return _over(drops.expand(len(best), -1), best[:, None])

    def price(self, totals: Any, multipliers: Any) -> Priced:
        queries = totals[0, QUERIES] + (totals[0, QUERIES] <= 0)
        value = totals[0, VALUE] / queries
        prices = 0 * totals
        prices[0, VALUE], prices[0, QUERIES] = 1 / queries, -value / queries
        return Priced(1 - value, multipliers, prices)

    def pull(
        self, rows: QueryGoal, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        del step
        share = on * (1 - self.mix)
        lists = rows.lists
        gradient = memory * (-share * prices[0, VALUE] * scale)
        p = torch.sigmoid(rows.logits[lists.order])
        plain = (p - rows.relevant) / lists.size[lists.query]
        return lists.given(gradient + plain * ((1 - share) * scale))

    def base(self, rows: QueryGoal) -> Any:
        """Σ over queries of the mean cross-entropy of "relevance > 0"."""
        lists, z = rows.lists, rows.logits[rows.lists.order]
        each = (F.softplus(z) - z * rows.relevant) / lists.size[lists.query]
        return rows.small(each.sum())

    def value(self, priced: Priced, base: Any, on: Any) -> Any:
        share = on * (1 - self.mix)
        return share * priced.value + (1 - share) * base

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        del violations, share
        return multipliers

    def whole(self, totals: Any) -> Any:
        return totals[0, QUERIES]

    def presence(self, totals: Any) -> Any:
        return (totals[0, QUERIES:ROWS] > 0) * 1.0

    def notices(self, totals: Any, unseen: Any) -> list[str]:
        del unseen
        _, queries, rows, mute = (float(x) for x in totals[0])
        sentences = []
        if rows < 2 * queries:
            sentences.append(
                f"a query has {rows / max(queries, 1e-12):.1f} rows on average: a batch must hold "
                "whole queries, as those of setpoint.training.query_batches do"
            )
        elif mute > 0.5 * queries:
            sentences.append(
                f"{mute / queries:.0%} of the queries hold no relevant row: they count 0 in "
                f'"{self.goal}" in every order'
            )
        return sentences

    def check(self, rows: QueryGoal) -> None:
        check_columns(rows.checked)
        if not bool(rows.logits.isfinite().all()):
            raise DataError("the scores of the first batch hold NaN or infinity")


def _leaf(goal: Goal) -> AtK | Ndcg | None:
    body = unnamed(goal.objective)
    return body if isinstance(body, Curve) and isinstance(body, AtK | Ndcg) else None


def _over(top: Tensor, bottom: Tensor) -> Tensor:
    """The ratio, and 0 where the bottom is 0."""
    return torch.where(bottom > 0, top / bottom.clamp(min=1e-30), 0.0)


def _standard(lists: Lists) -> tuple[Lists, Tensor]:
    """Scores of mean 0 and deviation 1 within each query, and the deviations (Q,)."""
    size = lists.size.clamp(min=1)
    centred = lists.scores - (lists.sums(lists.scores) / size)[lists.query]
    deviation = (lists.sums(centred.square()) / size + LEAST**2).sqrt()
    return replace(lists, scores=centred / deviation[lists.query]), deviation


def _unscaled(lists: Lists, deviation: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in the scores as given, from that in the standardised, which sums to 0."""
    along = lists.sums(gradient * lists.scores) / lists.size.clamp(min=1)
    return (gradient - lists.scores * along[lists.query]) / deviation[lists.query]


def _taken(
    goal: Goal, outputs: Tensor, target: Any, weight: Any, group: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, relevances and query codes, (n,) each; shapes are checked, no value is looked at."""
    if not isinstance(outputs, Tensor) or not outputs.is_floating_point():
        kind = outputs.dtype if isinstance(outputs, Tensor) else type(outputs).__name__
        raise KindError(f"scores must be a tensor of floats; got {kind}")
    n = outputs.shape[0] if outputs.ndim else 0
    if outputs.numel() != n:
        raise DataError(f"scores have shape (n,) or (n, 1); got {tuple(outputs.shape)}")
    if n == 0:
        raise DataError("the batch is empty; leave it out")
    if weight is not None:
        raise DataError(f'"{goal}" takes no weight; each query counts once')
    codes = group.get("query") if isinstance(group, Mapping) else group
    if codes is None:
        raise DataError(
            f'"{goal}" is taken by query: pass group=, a tensor with the code of each row\'s query '
            '(or {"query": codes})'
        )
    for name, x in (("target", target), ("group", codes)):
        if not isinstance(x, Tensor):
            raise KindError(f"{name} must be a tensor; got {type(x).__name__}")
        if x.device != outputs.device:
            raise KindError(f"{name} is on {x.device}, the scores on {outputs.device}; move one")
        if x.numel() != n:
            raise DataError(f"{name} must have one entry for each of {n} rows; got {x.numel()}")
    if codes.is_floating_point() or codes.dtype is torch.bool:
        raise DataError(f"group must hold whole numbers, one code per query; got {codes.dtype}")
    wide = outputs.dtype if outputs.dtype is torch.float64 else torch.float32
    scores, relevance = (x.detach().reshape(-1).to(wide) for x in (outputs, target))
    return scores, relevance, codes.reshape(-1)
