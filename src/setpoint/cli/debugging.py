"""``--debug``, which is understood before and after the name of a command."""

from __future__ import annotations

from typing import Annotated

import typer


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
