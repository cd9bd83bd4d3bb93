"""The figures of the stress runs by method and goal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import new_table
from benchmarks.results.figures import error
from benchmarks.results.figures import table as page_table
from benchmarks.results.recording import Recording
from benchmarks.results.section import Section, how


def share(values: Iterable[bool]) -> tuple[int, int]:
    """How many hold, of how many."""
    every = [bool(v) for v in values]
    return sum(every), len(every)


def report(console: Console, records: list[dict]) -> int:
    """Print a row for each method and goal; images by the share of their positives."""
    for positives in dict.fromkeys(r.get("share") for r in records):
        some = [r for r in records if r.get("share") == positives]
        about = "" if positives is None else f", {positives:.0%} positives"
        console.print(_printed(some, about))
    return 0


def _printed(records: list[dict], about: str) -> Table:
    plain = {r["number"]: r for r in records if r["method"] == "cross-entropy"}
    methods = list(dict.fromkeys(r["method"] for r in records))
    table = new_table(
        f"{len(records):,} runs of {len(plain)} settings{about}",
        "collapsed, kept: on the training rows; merit on test rows, paired with cross-entropy's",
        ("method", "goal"),
        (
            "runs",
            "collapsed",
            "kept of feasible",
            "own − CE at ½",
            "tuned − CE tuned",
            "interval covers",
            "ms a step",
        ),
    )
    for method in methods:
        for aim in ("f1", "floor", "cap", "recall", "all"):
            rows = [
                r
                for r in records
                if r["method"] == method and aim in ("all", r["aim"]) and "refused" not in r
            ]
            if not rows:
                continue
            collapsed = share(r["collapsed"] for r in rows)
            kept = share(r["kept"] for r in rows if r["kept"] is not None and r["feasible"])
            covered = share(r["covered"] for r in rows if "covered" in r)
            table.add_row(
                method if aim == "f1" else "",
                aim,
                f"{len(rows)}",
                f"{collapsed[0]} ({collapsed[0] / collapsed[1]:.1%})",
                f"{kept[0]}/{kept[1]}" + (f" {kept[0] / kept[1]:.1%}" if kept[1] else ""),
                difference(rows, plain, "own"),
                difference(rows, plain, "tuned"),
                f"{covered[0] / covered[1]:.1%}" if covered[1] else "–",
                f"{1e3 * np.median([r['seconds'] / r.get('steps', 1500) for r in rows]):.2f}",
            )
    return table


def difference(rows: list[dict], plain: dict[int, dict], key: str, against: str = "") -> str:
    """Mean paired difference from cross-entropy, with its standard error."""
    gaps = np.array([r.get(key, -1.0) - plain[r["number"]][against or key] for r in rows])
    return f"{gaps.mean():+.3f} ± {error(gaps):.3f}"


def shown(method: str) -> str:
    """A method's name on the page: as it is with its defaults, marked where it has no guard."""
    name, _, guard = method.partition(" ")
    return name if guard or name == "cross-entropy" else f"{name}, as published"


HEAD = (
    "method",
    "collapsed",
    "constraint kept",
    "own − CE at ½",
    "own − CE tuned",
    "tuned − CE tuned",
    "interval covers",
)


def _rows(lines: list[Mapping]) -> list[list[str]]:
    """A row a method, over all goals; a setting's fields stand beside cross-entropy."""
    plain = {x["number"]: x for x in lines if x["method"] == "cross-entropy"}
    rows = []
    for method in dict.fromkeys(x["method"] for x in lines):
        ran = [x for x in lines if x["method"] == method and "refused" not in x]
        if not ran:
            continue
        collapsed = share(x["collapsed"] for x in ran)
        kept = share(x["kept"] for x in ran if x["kept"] is not None and x["feasible"])
        covered = share(x["covered"] for x in ran if "covered" in x)
        rows.append(
            [
                shown(method),
                f"{collapsed[0]} of {collapsed[1]}",
                f"{kept[0]} of {kept[1]}",
                difference(ran, plain, "own"),
                difference(ran, plain, "own", "tuned"),
                difference(ran, plain, "tuned"),
                f"{covered[0]} of {covered[1]}" if covered[1] else "–",
            ]
        )
    return rows


def section(recording: Recording) -> Section:
    """The part of the results page: each method with its defaults and as published."""
    lines = list(recording.lines)
    plain = recording.where(method="cross-entropy")
    intro = (
        f"{len(plain)} settings drawn at random from 18 tables of 2 to 46 % positives (at most "
        "6,000 training rows), four goals, batches of 32 or 256, learning rates from 3e-4 to "
        "1e-2, a linear model or a network of 64 and 32 units; 1,500 steps or six epochs of a "
        "plain loop with defaults, and of the methods as published (`guard=False`).\n"
    )
    notes = (
        "\nCollapsed: on the training rows the auroc is more than .05 below cross-entropy's, or "
        "nobody is decided although a threshold on its scores keeps the constraint with 10 rows "
        "decided. Kept: at the loss's own threshold, on the training rows, within .02 of a floor "
        "or 1.5 times a cap, where a threshold on cross-entropy's scores keeps it there: so "
        "cross-entropy with a threshold of the training rows would keep all of them, and at ½ "
        "keeps those shown. Differences: merit on test rows, a method at its own threshold (read "
        "from training rows) or tuned on tune rows, less cross-entropy's decided at ½ or tuned on "
        "the same tune rows; mean ± s.e. over settings. Most of what the own threshold gains over "
        "½ it gains by being a threshold: networks that fit their training rows need one of other "
        "rows. Interval covers: that of `status()` holds the value on all training rows, both at "
        "the threshold of the whole window. The guard's constants were chosen on these settings.\n"
    )
    text = intro + "\n" + how(recording) + "\n" + page_table(HEAD, _rows(lines)) + notes
    return Section("Plain loops with defaults", text)


def images(recording: Recording) -> Section:
    """The same of images: each method with its guard, by the share of positives."""
    plain = recording.where(method="cross-entropy")
    rows = []
    for positives in dict.fromkeys(x["share"] for x in plain):
        numbers = {x["number"] for x in plain if x["share"] == positives}
        some = [x for x in recording.lines if x["number"] in numbers]
        rows += [[f"{positives:.0%}", *row] for row in _rows(some)]
    seeds = len({x["seed"] for x in plain})
    intro = (
        "Ships of CIFAR-10 against its other classes: 12,000 images, split 60/20/20 anew with each "
        f"of {seeds} seeds; for 1 % positives the ships are thinned in each part (65 to train on). "
        "Four goals with the floors .8 and .3 of precision; a residual network of 307,000 "
        f"parameters with {recording.about['norm']} normalisation, {recording.about['epochs']} "
        "epochs in batches of 128 with flips and crops, Adam at 1e-3, "
        "all else the loss's defaults.\n"
    )
    notes = (
        "\nColumns as under “Plain loops with defaults”. Scores are those of the network in "
        "evaluation mode on images as they are; the loss saw flips and crops in training mode, so "
        "its threshold and its interval are judged across that difference.\n"
    )
    table = page_table(("positives", *HEAD), rows)
    made_on = f"{recording.about['device']}."
    return Section(
        "Plain loops on images", intro + "\n" + how(recording, made_on) + "\n" + table + notes
    )
