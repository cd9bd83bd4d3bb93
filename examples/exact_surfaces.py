"""A step, the tie that stands for it, and the paths of optimisers over hard decisions.

    G(a, s) = s − 1{a > 0},      H(a, s) = s + [s + a − 1]₊ − [s + a]₊

H is continuous, and zero where G is and on the line a = 0. Below them a toy problem: twenty points
of the plane, flag those with z = x₁ + w x₂ − b > 0, maximize recall subject to precision >= 0.8.
Each point is a line in the plane of (w, b), each cell between the lines one way to decide, and the
best is known by trying every cell. Over it go, with one solver, the same steps, rates and starts,

    sigmoid   1/(1 + exp(−z/T)) in place of the step: T fixed, or falling
    exact     s in place of the step, tied to it by μ [±H(z, s)]₊ with a μ that grows

What is counted is what hard decisions are worth where each run ends, here and on other draws.

python examples/exact_surfaces.py docs/exact-surfaces.svg
"""

import io
import math
import pathlib
import re
import sys
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from torch.nn.functional import softplus

from setpoint.methods.exact.step_tie import exceeds, falls_short, tie
from setpoint.programs import ConstrainedProblem
from setpoint.solvers import ExactPenalty, FirstOrder

ALPHA = 0.8  # the precision that is asked for
POSITIVES, NEGATIVES = 8, 12
Y = torch.tensor([1.0] * POSITIVES + [0.0] * NEGATIVES, dtype=torch.float64)
LOW, HIGH = (torch.tensor(side, dtype=torch.float64) for side in ([-2, -1.5], [2, 3.5]))  # (w, b)
SHOWN, STARTS = 3, 40  # the draw in the picture, picked for a best cell that one can see
OTHERS, EACH = 60, 5  # draws beside it, on which no setting was chosen, and starts on each
ROUNDS, STEPS, RATE = 40, 10, 0.05
PRICE = 3.0  # of precision, to start from; the greatest gain of a unit of it is 1 / (1 − ALPHA)
METHODS = {
    "sigmoid, T = 1": {"temperature": (1.0, 1.0)},
    "sigmoid, T = 0.1": {"temperature": (0.1, 0.1)},
    "sigmoid, T 1 to 0.03": {"temperature": (1.0, 0.03)},
    "exact, s by steps": {"settled": False, "confidence": 0.0},
    "exact, s settled": {"settled": True, "confidence": 0.0},
    "exact, settled, confident": {"settled": True, "confidence": 0.3},
}


# --- the problem, and the truth about it ----------------------------------------------------------


def draw(rng):
    """Twenty points that no line can part: half of the positives to the right, half above."""
    x = rng.normal(size=(POSITIVES + NEGATIVES, 2))
    x[: POSITIVES // 2, 0] += 3.2
    x[POSITIVES // 2 : POSITIVES, 1] += 1.6
    x[POSITIVES:] *= 0.9, 1.6
    return x


def scores(x, at):
    """Z of every point at (w, b)."""
    return x[..., 0] + at[..., :1] * x[..., 1] - at[..., 1:]


def hard(x, at):
    """Recall and precision of the decisions at (w, b); 1 where nothing is flagged."""
    flagged = (scores(x, at) > 0).to(Y)
    found, count = (flagged * Y).sum(-1), flagged.sum(-1)
    return found / POSITIVES, torch.where(count > 0, found / count.clamp(min=1), 1.0)


def worth(x, at):
    """Recall where the precision is kept, −1 where it is not."""
    recall, precision = hard(x, at)
    return torch.where(precision >= ALPHA - 1e-9, recall, -1.0)


def best(x):
    """The greatest worth of all (w, b) in the box, from one try in every cell."""
    (w0, b0), (w1, b1) = LOW.tolist(), HIGH.tolist()
    i, j = np.triu_indices(len(x), 1)
    turns = [(x[j, 0] - x[i, 0]) / (x[i, 1] - x[j, 1])]  # where two lines cross
    turns += [(b - x[:, 0]) / x[:, 1] for b in (b0, b1)]  # where one leaves the box
    inside = np.concatenate(turns).clip(w0, w1)
    w = np.unique(np.concatenate([inside, [w0, w1]]))
    w = (w[1:] + w[:-1]) / 2  # between two turns the order of all lines is one
    b = np.column_stack([x[:, 0] + w[:, None] * x[:, 1], 0 * w + b0, 0 * w + b1]).clip(b0, b1)
    b = np.sort(b, 1)
    b = (b[:, 1:] + b[:, :-1]) / 2
    at = torch.tensor(np.stack([np.broadcast_to(w[:, None], b.shape), b], -1).reshape(-1, 2))
    return float(worth(torch.tensor(x), at).max())


# --- the two ways to train ------------------------------------------------------------------------


def train(x, start, temperature=None, settled=False, confidence=0.0):
    """The path (rounds + 1, runs, 2) of (w, b), all runs side by side.

    Adam moves each coordinate by itself and each constraint has a weight of its own, so that runs
    do not know of each other.
    """
    exact = temperature is None
    first, last = temperature or (1.0, 1.0)
    runs, n = len(x), len(Y)
    side = Y.expand(runs, n)
    now = {"temperature": first, "strength": confidence}

    def member(v):
        return v[1] if exact else torch.sigmoid(scores(x, v[0]) / now["temperature"])

    def objective(v):
        return -(member(v) * Y).sum() / POSITIVES

    def constraints(v):
        m = member(v)
        precision = (ALPHA * m.sum(1) - (m * Y).sum(1)) / POSITIVES
        if not exact:
            return precision
        z = scores(x, v[0])
        ties = torch.where(side > 0, exceeds(z, m, 0.0), falls_short(z, m, 0.0))
        return torch.cat([precision, ties.reshape(-1)])

    def wrong(z):  # cross-entropy of each point's label
        return softplus(torch.where(side > 0, -z, z)) / POSITIVES

    def confident(v):  # points that are given up are not taught
        return (wrong(scores(x, v[0])) * torch.where(side > 0, v[1], 1 - v[1])).sum()

    def settle(v):
        """The best s for these scores: the k cheapest positives kept, the m dearest given up."""
        z = scores(x, v[0])
        mu = now["weights"]
        cost = mu[runs:].reshape(runs, n) * torch.where(side > 0, -z, z).clamp(0, 1)
        cost = cost + now["strength"] * wrong(z)
        up, rank_up = ranked(cost[:, :POSITIVES])
        down, rank_down = ranked(-cost[:, POSITIVES:])
        k = torch.arange(POSITIVES + 1)[:, None]
        m = torch.arange(NEGATIVES + 1)
        short = (ALPHA * (k + m) - k).clamp(min=0) / POSITIVES
        total = up[:, :, None] + down[:, None] - k / POSITIVES + mu[:runs, None, None] * short
        least = total.reshape(runs, -1).argmin(1, keepdim=True)
        kept, given = least // len(m), least % len(m)
        return v[0], torch.cat([rank_up < kept, rank_down < given], 1).to(Y)

    def listen(done):
        path.append(done.state["x"][0])
        now["weights"], now["strength"] = done.weights, done.strength
        now["temperature"] = first * (last / first) ** (done.round / ROUNDS)

    weights = torch.full((runs,), PRICE, dtype=torch.float64)
    if exact:
        weights = torch.cat([weights, torch.full((runs * n,), 1 / POSITIVES).to(weights)])
    now["weights"] = weights
    path = [start]
    solver = ExactPenalty(
        FirstOrder(RATE, "adam", weight_decay=0.0, clip=math.inf, final=0.05),
        rates=(1.0, 2.0) if exact else (1.0,),
        weight_growth=1.3,
        strength=confidence,
        strength_growth=1.0,
        strength_cap=confidence,
        rounds=ROUNDS,
        steps=STEPS,
        patience=STEPS,
        stationary=0.0,
    )
    problem = ConstrainedProblem(
        objective,
        constraints,
        low=(LOW, 0.0) if exact else (LOW,),
        high=(HIGH, 1.0) if exact else (HIGH,),
        regulariser=confident if confidence else None,
    )
    variables = (start, side.clone()) if exact else (start,)
    solver.solve(
        problem, variables, weights=weights, listener=listen, settle=settle if settled else None
    )
    return torch.stack(path)


def ranked(cost):
    """Sums of the 0, 1, 2, … least costs of each row, and the place of each entry among them."""
    order = cost.argsort(1)
    sums = torch.gather(cost, 1, order).cumsum(1)
    return torch.cat([torch.zeros_like(sums[:, :1]), sums], 1), order.argsort(1)


def race(names):
    """The points of each run, the best worth there is for it, and the paths by method."""
    first, rng = np.random.default_rng(0), np.random.default_rng(1)
    shown = [draw(first) for _ in range(SHOWN + 1)][-1]
    draws = np.stack([shown, *(draw(rng) for _ in range(OTHERS))])
    order = np.repeat(np.arange(OTHERS + 1), [STARTS] + [EACH] * OTHERS)
    x = torch.tensor(draws[order])
    start = LOW + (HIGH - LOW) * torch.tensor(rng.random((len(order), 2)))
    start[0] = (LOW + HIGH) / 2  # the one that is drawn bold
    tops = torch.tensor([best(d) for d in draws], dtype=torch.float64)[order]
    return x, tops, {name: train(x, start, **METHODS[name]) for name in names}


def table(x, tops, paths):
    """A row for each method: how runs end, in the picture and elsewhere."""
    lines = [
        "| | precision kept | best recall | kept, other draws | best, other draws | at the step |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, path in paths.items():
        value = worth(x, path[-1])
        kept, reached = value >= 0, value >= tops - 1e-9
        near = (scores(x, path[-1]).abs() < 0.02).double().mean()
        cells = [f"{int(part[:STARTS].sum())} of {STARTS}" for part in (kept, reached)]
        for part in (kept, reached):
            each = part[STARTS:].double().reshape(OTHERS, EACH).mean(1)  # runs of a draw are alike
            cells.append(f"{each.mean():.0%} ± {100 * each.std() / OTHERS**0.5:.0f}")
        lines.append(f"| {name} | {' | '.join(cells)} | {near:.1%} |")
    return "\n".join(lines)


# --- the picture ----------------------------------------------------------------------------------

BLUE, VERMILION, ORANGE, INK, QUIET = "#0072b2", "#d55e00", "#e69f00", "#1c2733", "#5b6875"
SIGNED = LinearSegmentedColormap.from_list("signed", ["#6ba8cf", "#ffffff", "#eda983"])
BROKEN, GOLD = "#d3d8dd", "#f7d070"
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "setpoint",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.edgecolor": QUIET,
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    "legend.frameon": False,
}


def surfaces(figure, top, bottom):
    """G and H in space, and from above with where they are zero."""
    functions = {
        "G: the step": lambda a, s: s - (a > 0),
        "H: the tie": lambda a, s: tie(torch.tensor(a), torch.tensor(s), 0.0).numpy(),
    }
    for k, (name, f) in enumerate(functions.items()):
        space = figure.add_subplot(top[k], projection="3d", computed_zorder=False)
        for left, right in ((-1, 1),) if k else ((-1, 0), (1e-9, 1)):  # G is two pieces
            a, s = np.meshgrid(np.linspace(left, right, 17 if k else 9), np.linspace(0, 1, 9))
            space.plot_surface(
                a, s, f(a, s), rstride=1, cstride=1, cmap=SIGNED, vmin=-1, vmax=1,
                edgecolor=QUIET, linewidth=0.25, clip_on=False, zorder=1,
            )  # fmt: skip
        zero(lambda p, q, space=space, **o: space.plot(p, q, 0, zorder=3, **o), singular=k == 1)
        space.set(xlim=(-1, 1), ylim=(0, 1), zlim=(-1, 1))
        space.set(xticks=(0, 1), yticks=(0, 1), zticks=(0, 1))
        space.set_xlabel("a", labelpad=-9)
        space.set_ylabel("s", labelpad=-9)
        space.tick_params(pad=-3)
        space.set_title(name, y=1.06)
        space.view_init(elev=32, azim=-118)
        space.set_box_aspect((1, 1, 0.7), zoom=1.15)
        flat = figure.add_subplot(bottom[k])
        grid = np.meshgrid(np.linspace(-1, 1, 400), np.linspace(-0.25, 1.25, 300))
        flat.imshow(
            f(*grid), extent=(-1, 1, -0.25, 1.25), origin="lower", aspect="auto", cmap=SIGNED,
            vmin=-1, vmax=1,
        )  # fmt: skip
        zero(flat.plot, singular=k == 1)
        flat.set(xlabel="a", ylabel="" if k else "s", title=f"zero set of {name[0]}")
        flat.set(xticks=(-1, 0, 1), yticks=(0, 1))


def zero(plot, singular):
    """Where G and H are zero; H on the line a = 0 besides."""
    if singular:
        plot([0, 0], [0, 1], color=ORANGE, linewidth=2.6, solid_capstyle="butt")
    for a, s in (((-1, 0), (0, 0)), ((0, 1), (1, 1))):
        plot(a, s, color=INK, linewidth=2.6, solid_capstyle="butt")


def borders(x):
    """Pieces of the lines that have the precision kept on one side alone; nan parts them."""
    found, rows = [], torch.tensor(x)
    for i, (x1, x2) in enumerate(x):
        others = np.delete(x, i, 0)
        w = (others[:, 0] - x1) / (x2 - others[:, 1])  # where they cross this one
        w = np.unique(np.concatenate([w.clip(-2, 2), [-2, 2]]))
        middle = torch.tensor((w[1:] + w[:-1]) / 2)
        above, below = (
            worth(rows, torch.stack([middle, x1 + middle * x2 + shift], 1)) >= 0
            for shift in (1e-9, -1e-9)
        )
        for k in np.flatnonzero(above != below):
            found += [*((u, x1 + u * x2) for u in w[k : k + 2]), (np.nan, np.nan)]
    return np.array(found)


def ground(x):
    """How many positives are found at each (w, b), below 0 where the precision is broken."""
    (w0, b0), (w1, b1) = LOW.tolist(), HIGH.tolist()
    sides = np.meshgrid(np.linspace(w0, w1, 301), np.linspace(b0, b1, 301))
    return POSITIVES * worth(torch.tensor(x), torch.tensor(np.stack(sides, -1))).numpy()


def landscape(axes, x, found, lines, top, path, name):
    """The worth of every (w, b), and how the runs go over it."""
    (w0, b0), (w1, b1) = LOW.tolist(), HIGH.tolist()
    count = round(top * POSITIVES)
    blues = LinearSegmentedColormap.from_list("blues", ["#f4f9fc", "#8fc1de"])
    colours = ListedColormap([BROKEN, *blues(np.linspace(0, 1, count)), GOLD])
    axes.imshow(
        found.clip(-1), extent=(w0, w1, b0, b1), origin="lower", aspect="auto",
        interpolation="nearest", cmap=colours, vmin=-1.5, vmax=count + 0.5,
    )  # fmt: skip
    axes.plot(*lines.T, color=INK, linewidth=0.7)
    end = worth(torch.tensor(x), path[-1])
    kinds = {"best": end >= top - 1e-9, "kept": (end >= 0) & (end < top - 1e-9), "broken": end < 0}
    gap = torch.full_like(path[:1], np.nan)
    thin = torch.cat([path, gap]).transpose(0, 1).reshape(-1, 2)
    axes.plot(*thin.T, color=INK, linewidth=0.5, alpha=0.45, zorder=2)
    axes.plot(*path[:, 0].T, color=VERMILION, linewidth=1.8, zorder=4)
    axes.plot(*path[0, 0], "s", color=VERMILION, markersize=4.5, zorder=4)
    for kind, which in kinds.items():
        axes.plot(*path[-1, which].T, zorder=5, **MARKS[kind])
    sums = {kind: int(which.sum()) for kind, which in kinds.items()}
    recall, precision = (float(part) for part in hard(torch.tensor(x), path[-1, :1]))
    words = (
        (name, INK, "bold"),
        (f"{sums['best']} of {len(end)} best, {sums['broken']} broken", INK, "normal"),
        (f"■ recall {recall:.2f}, precision {precision:.2f}", VERMILION, "normal"),
    )
    for line, (text, colour, weight) in enumerate(reversed(words)):
        place = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": 9}
        axes.annotate(text, (0, 1), (0, 4 + 12.5 * line), color=colour, weight=weight, **place)
    axes.set(xlim=(w0, w1), ylim=(b0, b1), xticks=(-2, 0, 2), yticks=(0, 2))


MARKS: Any = {
    "best": {"marker": "o", "linestyle": "", "color": BLUE, "markersize": 4.5, "mec": "white"},
    "kept": {"marker": "o", "linestyle": "", "color": "white", "markersize": 4, "mec": INK},
    "broken": {"marker": "x", "linestyle": "", "color": VERMILION, "markersize": 4.5, "mew": 1.4},
}


def picture(x, tops, paths):
    """All of it."""
    figure = Figure(figsize=(4.8, 13.6))
    sides = {"left": 0.1, "right": 0.97}
    space = figure.add_gridspec(1, 2, left=0.04, right=0.96, top=0.963, bottom=0.818, wspace=0.1)
    flat = figure.add_gridspec(1, 2, **sides, top=0.785, bottom=0.7, wspace=0.2)
    rows = figure.add_gridspec(3, 2, **sides, top=0.592, bottom=0.112, wspace=0.2, hspace=0.5)
    surfaces(figure, space, flat)
    points = x[0].numpy()
    found, lines = ground(points), borders(points)
    for k, (name, path) in enumerate(paths.items()):
        axes = figure.add_subplot(rows[k % 3, k // 3])
        landscape(axes, points, found, lines, float(tops[0]), path[:, :STARTS], name)
        axes.set_xlabel("w" if k % 3 == 2 else "")
        axes.set_ylabel("b" if k < 3 else "")
    figure.legend(
        handles=[
            Line2D([], [], color=INK, linewidth=2.6, label="zero: s is the step"),
            Line2D([], [], color=ORANGE, linewidth=2.6, label="zero: any s"),
        ],
        loc="upper center", bbox_to_anchor=(0.53, 0.674), ncols=2, columnspacing=1.4,
    )  # fmt: skip
    figure.legend(
        handles=[
            Patch(facecolor=BROKEN, label="precision < 0.8"),
            Patch(facecolor="#8fc1de", label="kept (dark: more recall)"),
            Patch(facecolor=GOLD, label=f"best: recall {float(tops[0]):.2f}"),
            Line2D([], [], color=VERMILION, marker="s", markersize=4.5, label="from the middle"),
            Line2D([], [], label="ends best", **MARKS["best"]),
            Line2D([], [], label="ends kept, not best", **MARKS["kept"]),
            Line2D([], [], label="ends broken", **MARKS["broken"]),
        ],
        loc="lower center", bbox_to_anchor=(0.53, 0), ncols=2, columnspacing=1.4,
    )  # fmt: skip
    return figure


def main(file, names=tuple(METHODS)):
    """Draw into a file and print the table."""
    runs, drawn = race(names), io.StringIO()
    with matplotlib.rc_context(STYLE):
        picture(*runs).savefig(drawn, format="svg", metadata=dict.fromkeys(("Date", "Creator")))
    short = re.sub(r"(\d\.\d\d)\d+", r"\1", drawn.getvalue())  # a hundredth of a point will do
    pathlib.Path(file).write_text(short, encoding="utf-8")
    print(table(*runs))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "exact-surfaces.svg")
