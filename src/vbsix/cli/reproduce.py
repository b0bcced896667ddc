"""`vbsix reproduce`: the paper's tables and figures."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vbsix.cli.engine import Address, Cpus, Engine, Gpus
from vbsix.cluster.connection import LOCAL, choose_cluster
from vbsix.utilities.errors import UnknownName, VbsixError
from vbsix.utilities.jax_settings import prepare_jax

if TYPE_CHECKING:
    from vbsix.cluster.connection import Cluster
    from vbsix.reproduction.runs import Result, Results
    from vbsix.reproduction.targets import TableTarget
    from vbsix.runs.folder import Run


def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="table1, table2, figure5, figure6, analysis, prior-work, critic or spurious; page for all of them.",
        ),
    ],
    data: Annotated[
        str, typer.Option(metavar="DIR|synthetic", help="A folder with SCONE's files, or the built-in corpus.")
    ] = "data",
    domains: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only the runs in these domains: scene, alchemy, tangrams.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only the runs of these methods; see the table or figure.")
    ] = None,
    recipes: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only the runs with these recipes: stochastic, published.")
    ] = None,
    variants: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only the runs with these variants; none for those without.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds train side by side.")] = 6,
    out: Annotated[Path, typer.Option(file_okay=False, metavar="DIR", help="Where all of it lies.")] = Path(
        "reproduction"
    ),
    minutes: Annotated[float | None, typer.Option(min=0, help="Stop after so long; the same command goes on.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, as in search.beam=64.")
    ] = None,
    engine: Engine = LOCAL,
    address: Address = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
) -> None:
    """Make a table or a figure of the paper, training the runs that are missing.

    Runs that have ended are not repeated, and interrupted ones continue, also on another machine if DIR is copied
    there. Each run's numbers are in DIR/results; the table goes to DIR/TARGET.md, a figure to DIR/TARGET.png and .svg,
    those of the built-in corpus to DIR/synthetic-TARGET. Runs that are still missing appear as `-`. The test split
    is read for table1 and prior-work alone; runs that were done for another target are then measured on it. Runs on the
    built-in corpus have sequences of 1 to 5 instructions, and held-out phrasings stand in for a test split.

    With --engine ray, each run is a task on a Ray cluster, whose nodes share DIR and the data.

    The target `page` trains nothing: it updates all tables and figures of DIR/README.md and DIR/docs from DIR/results.

    Examples: vbsix reproduce table1 --data data --domains tangrams --minutes 50; vbsix reproduce page --out .
    """
    prepare_jax()
    from vbsix.config.presets import full_name
    from vbsix.data.dataset import SYNTHETIC
    from vbsix.reproduction import page, runs
    from vbsix.reproduction.runs import NO_VARIANT
    from vbsix.reproduction.targets import TARGETS, TableTarget
    from vbsix.runs.display import create_display, stop_on_interrupt
    from vbsix.runs.loop import Interrupted

    cluster = choose_cluster(engine, address, cpus, gpus, out)
    if target == "page":
        typer.echo(f"written: {', '.join(map(str, page.write_page(out)))}")
        return
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    if target not in TARGETS:
        raise UnknownName("target", target, [*TARGETS, "page"])
    chosen = TARGETS[target]
    asked_domains = _names("domain", domains, runs.DOMAINS)
    asked = {
        "methods": _names(f"method of {target}", methods, [system.method for system in chosen.systems]),
        "recipes": _names(f"recipe of {target}", recipes, [system.recipe for system in chosen.systems]),
        "variants": _names(f"variant of {target}", variants, [one.variant or NO_VARIANT for one in chosen.systems]),
    }
    source = SYNTHETIC if data == SYNTHETIC else str(Path(data).resolve())
    planned = runs.plan(chosen.systems, source, out, seeds, settings or [])
    results = {run: runs.find_result(run) for run in planned}

    def left() -> list[Run]:
        wanted = [run for run in planned if run.config.domain in asked_domains and is_asked(runs.system_of(run))]
        return [run for run in wanted if runs.lacks(chosen.needs, run, results[run])]

    def is_asked(system: runs.System) -> bool:
        named = system.method, system.recipe, system.variant or NO_VARIANT
        return all(name in names for name, names in zip(named, asked.values(), strict=True))

    interrupted = False
    if cluster:
        if minutes is not None:
            raise VbsixError("--minutes: is for runs in this process; stop with Ctrl-C, and the same command goes on.")
        interrupted = not _finish_on(cluster, target, left(), settings or [], results)
    for run in [] if cluster else left():
        display = create_display([run], quiet=False)
        display.on_message(
            f"{full_name(run.config)} learns {run.config.domain}, {seeds} seeds; run folder: {run.folder}"
        )
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


def _finish_on(
    cluster: Cluster, target: str, left: Sequence[Run], settings: list[str], results: dict[Run, Result | None]
) -> bool:
    """Finishes runs on a cluster, and notes their results. False if the user has stopped it."""
    from vbsix.cluster.jobs import Job, run_jobs
    from vbsix.reproduction import runs
    from vbsix.reproduction.targets import TARGETS

    def job(run: Run) -> Job:
        there = dataclasses.replace(run, folder=run.folder.resolve())
        arguments = TARGETS[target].needs, there, runs.command_for(target, run, settings)
        return Job(run.folder.name, runs.finish_quietly, arguments, [run])

    try:
        outcomes = run_jobs([job(run) for run in left], cluster, quiet=False)
    except KeyboardInterrupt:
        return False
    errors = [str(outcome) for outcome in outcomes if isinstance(outcome, VbsixError)]
    if errors:
        raise VbsixError("\n".join([*errors, "The other runs have ended; the same command goes on with these."]))
    results |= zip(left, outcomes, strict=True)
    return True


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
