"""Options that several commands share, and how their texts are taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from setpoint.datasets.read_table import endings

ENDINGS = ", ".join(endings())
Several = list[str] | None

RuleFile = Annotated[
    Path, typer.Argument(metavar="RULE", help="A rule as tune --out wrote it (JSON).")
]
RuleOrRun = Annotated[
    Path,
    typer.Argument(
        metavar="RULE", help="A rule as tune --out wrote it (JSON), or the folder of a run."
    ),
]
Label = Annotated[
    Several,
    typer.Option(
        metavar="COL",
        help="Column of the label; several for multilabel: a,b,c. Default: label.",
    ),
]
Score = Annotated[
    Several,
    typer.Option(metavar="COL", help="Column of the score; repeat for several. Default: score."),
]
Scores = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="Columns of scores, one per class or label, in one go."),
]
Positive = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="The positive label, where they are not 0 and 1."),
]
Weight = Annotated[
    str | None, typer.Option(metavar="COL", help="Column of the weight of each row.")
]
Group = Annotated[
    Several,
    typer.Option(
        metavar="COL",
        help="Column of a group; may be repeated. Columns that the goal names are found by "
        "themselves.",
    ),
]
Query = Annotated[
    str | None, typer.Option(metavar="COL", help='Column of the query, for by="query".')
]
Confidence = Annotated[
    float, typer.Option(metavar="P", help="Of the proof: 0.95 is wrong in 1 of 20 at most.")
]
WeightBound = Annotated[
    float | None,
    typer.Option(
        metavar="X", help="The largest weight a row can have. Without it weights prove nothing."
    ),
]
Seen = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="A certificate or a rule whose rows are used up; may be repeated. Such rows are "
        "refused.",
    ),
]


def split(text: str | None) -> tuple[str, ...]:
    """Names between commas.

    >>> split("cat, dog")
    ('cat', 'dog')
    """
    return () if text is None else tuple(part.strip() for part in text.split(","))


def labels_of(label: Sequence[str] | None, task: str) -> tuple[str, ...]:
    """Columns of labels; only a multilabel task has several, and may name them between commas."""
    given = tuple(label or ())
    return tuple(name for part in given for name in split(part)) if task == "multilabel" else given


def scores_of(score: Sequence[str] | None, scores: str | None) -> tuple[str, ...]:
    """Columns of scores, from both options."""
    return (*(score or ()), *split(scores))


# ``--debug``, which is understood before and after the name of a command.


def remember(ctx: typer.Context, value: bool) -> bool:
    """Keep the option where the app finds it when something fails."""
    root = ctx.find_root()
    root.obj = bool(root.obj) or value
    return value


Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        metavar="",
        callback=remember,
        help="Show the traceback when something goes wrong.",
    ),
]
