"""The command line. Each command imports what is heavy (JAX above all) when it runs, so that help is instant."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, NoReturn

import typer

from vbsix import __version__
from vbsix.cli import bench, config, data
from vbsix.cli.ceiling import ceiling
from vbsix.cli.compare import compare
from vbsix.cli.demo import demo
from vbsix.cli.evaluate import evaluate
from vbsix.cli.execute import execute
from vbsix.cli.export import export
from vbsix.cli.parse import parse
from vbsix.cli.plot import plot
from vbsix.cli.reproduce import reproduce
from vbsix.cli.search import search
from vbsix.cli.serve import serve
from vbsix.cli.train import train
from vbsix.cli.write_report import report
from vbsix.utilities.errors import VbsixError, describe_os_error
from vbsix.utilities.processes import end_process
from vbsix.utilities.renaming import note_old_name

app = typer.Typer(
    name="vbsix",
    help="Map instructions to programs by value-based search in execution space (VBSiX).",
    epilog="Start with: vbsix demo",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command()(demo)
# A program may hold -1, which is not an option.
app.command(context_settings={"ignore_unknown_options": True})(execute)
app.command()(search)
app.command()(train)
app.command()(plot)
app.command()(report)
app.command()(evaluate)
app.command()(compare)
app.command()(ceiling)
app.command()(parse)
app.command()(serve)
app.command()(export)
app.command()(reproduce)
app.add_typer(config.app, name="config")
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"vbsix {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main(prog_name: str = "vbsix") -> None:
    """Runs the command line; a user's mistake becomes one message on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # where a glyph cannot be encoded "?" is better than a traceback
    if any(argument.partition("=")[0] == "--world" for argument in sys.argv[1:]):
        note_old_name("--world", "--context")
    try:
        try:
            app(prog_name=prog_name)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except BrokenPipeError:  # the reader has left, as in `vbsix ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(describe_os_error(error))
    except VbsixError as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    typer.echo(typer.style("error: ", fg="red", bold=True) + message, err=True)
    end_process(2)
