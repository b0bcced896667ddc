"""Sweeps on the command line: what `vbsix train --vary`, `--folds` and `--dry-run` do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from vbsix.cli.stopping import exit_when_stopped
from vbsix.domains.base import Domain
from vbsix.runs.display import QuietDisplay, create_display, stop_on_interrupt
from vbsix.runs.folder import Run, resume_command
from vbsix.runs.sweep import Sweep, train_sweep, try_sweep
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json
from vbsix.utilities.numbers import mean_std

if TYPE_CHECKING:
    from vbsix.cluster.connection import Cluster


def finish_sweep(sweep: Sweep, domain: Domain | None, quiet: bool, cluster: Cluster | None = None) -> None:
    """Trains a sweep to its end, here or on a cluster, and prints what came of its runs."""
    with exit_when_stopped(lambda: resume_command(sweep.runs[0])):
        if cluster:
            from vbsix.cluster.sweep import train_sweep_on

            failed = train_sweep_on(cluster, sweep, quiet)
        else:
            failed = train_sweep(sweep, observe_runs(quiet), domain)
    if not quiet:
        Console(highlight=False, markup=False).print(accuracy_table(sweep))
    if failed:
        raise VbsixError("\n".join(map(str, failed.values())))


def observe_runs(quiet: bool) -> Callable[[Sequence[Run], str], AbstractContextManager[QuietDisplay]]:
    """Opens displays of runs that are trained side by side."""

    @contextmanager
    def observe(runs: Sequence[Run], title: str) -> Iterator[QuietDisplay]:
        display = create_display(runs, quiet)
        if not quiet:
            display.on_message(f"{title}: {_count(len(runs), 'run')} of {_count(len(runs[0].seeds), 'seed')} each")
        with stop_on_interrupt(display), display:
            yield display

    return observe


def accuracy_table(sweep: Sweep) -> Table:
    """The accuracy of each run after its last step, mean and standard deviation over seeds."""
    table = Table("run", box=box.SIMPLE_HEAD, title="accuracy after the last step, %", title_justify="left")
    files = [run.folder / "result.json" for run in sweep.runs]
    results = {file.parent.name: read_json(file) for file in files if file.exists()}
    columns = list(
        dict.fromkeys(
            (split, length)
            for result in results.values()
            for split, by_length in result["accuracy"].items()
            for length in by_length
        )
    )
    for split, length in columns:
        table.add_column(f"{split}, {length}", justify="right", no_wrap=True)
    for name, result in results.items():
        cells = [mean_std(result["accuracy"].get(split, {}).get(length, []), 100) for split, length in columns]
        table.add_row(name, *cells)
    return table


def evaluate_sweep(
    sweep: Sweep, data: str | None, split: str, domain: Domain | None, *, best: bool, ensemble: bool
) -> None:
    """Prints the accuracy of each run on a split, mean and standard deviation over seeds."""
    from vbsix.api import evaluate

    table = Table("run", box=box.SIMPLE_HEAD, title=f"accuracy on {split}, %", title_justify="left")
    for run in sweep.good:
        found = evaluate(run.folder, data, split, best=best, ensemble=ensemble, domain=domain).accuracy
        if len(table.columns) == 1:
            for length in found:
                table.add_column(length, justify="right", no_wrap=True)
        table.add_row(run.folder.name, *(mean_std(shares, 100) for shares in found.values()))
    Console(highlight=False, markup=False).print(table)


def print_plan(sweep: Sweep, domain: Domain | None) -> None:
    """Prints the groups of runs that share compiled code, and the time and memory that they need."""
    table = Table("group", "runs", box=box.SIMPLE_HEAD)
    for heading in ("learners", "compile", "steps/s", "training", "memory"):
        table.add_column(heading, justify="right", no_wrap=True)
    total = 0.0
    for number, (runs, needs) in enumerate(try_sweep(sweep, domain), start=1):
        seconds = runs[0].config.training.steps / needs.steps_per_second
        total += seconds + needs.compile_seconds
        table.add_row(
            str(number),
            "\n".join(run.folder.name or "one run" for run in runs),
            str(sum(len(run.seeds) for run in runs)),
            f"{needs.compile_seconds:.0f} s",
            f"{needs.steps_per_second:.1f}",
            str(timedelta(seconds=round(seconds))),
            f"{needs.memory / 1e6:.0f} MB",
        )
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(
        f"about {timedelta(seconds=round(total))} in all, without evaluations; measured on the first steps, with a "
        "critic that ranks where there is one"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
