"""`vbsix reproduce`: the paper's tables and figures."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vbsix.cli.jax_settings import prepare_jax
from vbsix.errors import UnknownName

if TYPE_CHECKING:
    from vbsix.reproduction.runs import Results
    from vbsix.reproduction.targets import TableTarget
    from vbsix.training.run import Run


def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="table1, table2, figure5, figure6, analysis, prior-work, critic or spurious; page for all of them.",
        ),
    ],
    data: Annotated[
        str, typer.Option(metavar="DIR|synthetic", help="A folder with SCONE's files, or the embedded corpus.")
    ] = "data",
    domains: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Do the runs of these alone: scene, alchemy, tangrams.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Do the runs of these alone; see the table or figure.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds train side by side.")] = 6,
    out: Annotated[Path, typer.Option(file_okay=False, metavar="DIR", help="Where all of it lies.")] = Path(
        "reproduction"
    ),
    minutes: Annotated[float | None, typer.Option(min=0, help="Stop after so long; the same command goes on.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, as in search.beam=64.")
    ] = None,
) -> None:
    """Make a table or a figure of the paper, with its settings, from runs that are done as far as they are missing.

    What has ended is not done again, and what was broken off is gone on with, on another machine too if DIR is copied
    there. Each run's numbers are in DIR/results; the table goes to DIR/TARGET.md, a figure to DIR/TARGET.png and .svg,
    those of the embedded corpus to DIR/synthetic-TARGET. Runs that are still missing are shown as `-`. The test split
    is read for table1 and prior-work alone; runs that were done for another target are then measured on it. Runs on the
    embedded corpus have sequences of 1 to 5 instructions, and held-out phrasings stand in for a test split.

    The target page makes no runs: it makes all tables and figures of DIR/docs/results.md anew from DIR/results.

    Examples: vbsix reproduce table1 --data data --domains tangrams --minutes 50; vbsix reproduce page --out .
    """
    prepare_jax()
    from vbsix.reproduction import page, runs
    from vbsix.reproduction.targets import TARGETS, TableTarget
    from vbsix.training.display import create_display, stop_on_interrupt
    from vbsix.training.run import Interrupted
    from vbsix.training.task import SYNTHETIC

    if target == "page":
        typer.echo(f"written: {', '.join(map(str, page.write_page(out)))}")
        return
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    if target not in TARGETS:
        raise UnknownName("target", target, [*TARGETS, "page"])
    chosen = TARGETS[target]
    asked_domains = _names("domain", domains, runs.DOMAINS)
    asked_methods = _names(f"method of {target}", methods, chosen.methods)
    source = SYNTHETIC if data == SYNTHETIC else str(Path(data).resolve())
    planned = runs.plan(chosen.methods, source, out, seeds, settings or [])
    results = {run: runs.find_result(run) for run in planned}

    def left() -> list[Run]:
        asked = [run for run in planned if run.config.domain in asked_domains and run.method in asked_methods]
        return [run for run in asked if runs.lacks(chosen.needs, run, results[run])]

    interrupted = False
    for run in left():
        display = create_display(run, quiet=False)
        display.on_message(f"{run.method} learns {run.config.domain}, {seeds} seeds; all of it goes to {run.folder}")
        with suppress(Interrupted), stop_on_interrupt(display), display:
            command = runs.command_for(target, run, settings or [])
            results[run] = runs.finish(chosen.needs, run, runs.Timed(display, deadline), command)
        interrupted = display.stopping
        if interrupted or time.monotonic() >= deadline:  # even without time left one chunk of steps was done
            break
    place = out / (f"{SYNTHETIC}-{target}" if source == SYNTHETIC else target)
    if isinstance(chosen, TableTarget):
        page.write_table(chosen, results, place.with_suffix(".md"))
        _print_table(chosen, results)
        typer.echo(f"written to {place.with_suffix('.md')}")
    else:
        files = page.write_figure(chosen, results, place)
        typer.echo(f"drawn in {' and '.join(map(str, files))}")
    if names := [run.folder.name for run in left()]:
        typer.echo(f"still to do: {', '.join(names)}; the same command goes on with them")
    if interrupted:
        raise typer.Exit(130)


def _names(kind: str, text: str | None, known: Sequence[str]) -> list[str]:
    """The names that an option lists, or all of them."""
    names = [name.strip() for name in text.split(",")] if text else list(known)
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)
    return names


def _print_table(target: TableTarget, results: Results) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from vbsix.reproduction.page import table_note, table_rows

    table = Table(*target.columns, box=box.SIMPLE_HEAD, title=target.title, title_justify="left")
    for row in table_rows(target, results):
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 200  # a file has room for all columns
    console.print(table)
    console.print(table_note(target, results), soft_wrap=True)
