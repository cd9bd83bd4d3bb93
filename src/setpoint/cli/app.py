"""The app: its commands, its global options, and the one place where failures end."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from setpoint import __version__
from setpoint.cli.errors import report, report_json
from setpoint.cli.inputs.shared_options import Debug
from setpoint.cli.table import COMMANDS, CommandRow

HELP = "State the goal. Train for it. Prove it holds."
EPILOG = """
Exit codes

  0    done
  1    an unexpected error; --debug shows the traceback
  2    a mistake in the command, the goal or the file
  3    the goal cannot be met, is not proven, or is broken on new rows;
       the rule that comes nearest, the certificate or the figures are given
  130  stopped by Ctrl-C

First steps: setpoint demo, setpoint fit --help, setpoint metrics

A table: fit (train, choose, prove), predict (use it), evaluate (does the
promise still hold), monitor (watch it)

Scores of another model: plan (how many labels a proof takes), tune (choose),
certify (prove it, once, on rows that nothing has seen), decide (use it)

Images: robustness (what attacks leave of a model's accuracy), restore (from
incomplete, blurred or noisy measurements)
"""

# What typer raises to leave a command. The base class of mistakes in the usage has no name of its
# own in typer, and where it lives depends on the version.
_UsageError = cast("type[Exception]", typer.BadParameter.__base__)
_JSON = "setpoint.cli.json"
_LEAVING = (typer.Exit, typer.Abort, BrokenPipeError, _UsageError)


def _as_flag(option: Any) -> Any:
    """The option --help as a flag: without the name of a type that takes no value."""
    if option is not None:
        option.metavar = ""
    return option


class PlainCommand(TyperCommand):
    """A command whose help names no types where there is nothing to type."""

    def get_help_option(self, ctx: Any) -> Any:
        """``--help``."""
        return _as_flag(super().get_help_option(ctx))


class GuardedGroup(TyperGroup):
    """A group whose commands fail with a sentence and an exit code, never with a traceback.

    A program that asked for JSON gets the sentence on stdout as well, as an object.
    """

    def get_help_option(self, ctx: Any) -> Any:
        """``--help``."""
        return _as_flag(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note whether JSON is asked for: where the options are at fault none of them is read."""
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; ``--debug`` has left its mark on the context."""
        try:
            return super().invoke(ctx)
        except _LEAVING as error:
            if isinstance(error, _UsageError) and ctx.meta[_JSON]:
                report_json(error)
            raise
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, Exception) and ctx.meta[_JSON]:
                report_json(error)
            raise typer.Exit(report(error, debug=bool(ctx.obj))) from error


def _version(value: bool) -> None:
    if value:
        typer.echo(f"setpoint {__version__}")
        raise typer.Exit


def start(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    """Without a command, print the help."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def app_of(commands: Iterable[CommandRow]) -> typer.Typer:
    """The app with the commands of a table, in its order."""
    made = typer.Typer(
        name="setpoint",
        cls=GuardedGroup,
        help=HELP,
        epilog=EPILOG,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(start)
    for row in commands:
        made.command(
            row.name, cls=PlainCommand, help=row.help, epilog=row.epilog, rich_help_panel=row.panel
        )(row.run)
    return made


app = app_of(COMMANDS)


def main() -> None:
    """Run the command line; ends the process with an exit code."""
    with _leaving_readers():
        try:
            app(prog_name="setpoint")
        finally:
            with suppress(OSError, ValueError, AttributeError):  # full, closed, not there
                sys.stdout.flush()


@contextmanager
def _leaving_readers() -> Iterator[None]:
    """Where the reader of a pipe leaves (``| head``), end quietly, as other programs do."""
    pipe = getattr(signal, "SIGPIPE", None)  # Windows has none
    if pipe is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(pipe, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(pipe, signal.SIG_DFL if before is None else before)
