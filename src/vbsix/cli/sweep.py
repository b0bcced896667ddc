"""Sweeps on the command line: what `vbsix train --vary`, `--folds` and `--dry-run` do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from vbsix.cli.stopping import exit_when_stopped
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.evaluation.accuracy import Accuracies
from vbsix.runs.display import QuietDisplay, create_display, stop_on_interrupt
from vbsix.runs.folder import Run, open_words, resume_command
from vbsix.runs.identity import domain_of
from vbsix.runs.sweep import Sweep, mean_over_folds, train_sweep, try_sweep
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json
from vbsix.utilities.numbers import mean_std

if TYPE_CHECKING:
    from vbsix.cluster.connection import Cluster


def finish_sweep(sweep: Sweep, domain: Domain | None, quiet: bool, cluster: Cluster | None = None) -> None:
    """Trains a sweep to its end, here or on a cluster, and prints what came of its runs."""
    with exit_when_stopped(lambda: resume_command(sweep.runs[0], *(cluster.arguments if cluster else []))):
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
    """The accuracy of each run after its last step, mean and standard deviation over seeds; and the mean over folds."""
    files = [run.folder / "result.json" for run in sweep.runs]
    results = {file.parent: read_json(file)["accuracy"] for file in files if file.exists()}
    return _accuracy_table("accuracy after the last step, %", sweep, results)


def _accuracy_table(title: str, sweep: Sweep, accuracies: Mapping[Path, Accuracies]) -> Table:
    table = Table("run", box=box.SIMPLE_HEAD, title=title, title_justify="left")
    found = {folder.name: own for folder, own in accuracies.items()} | mean_over_folds(sweep, accuracies)
    columns = list(
        dict.fromkeys(
            (split, length) for own in found.values() for split, by_length in own.items() for length in by_length
        )
    )
    for split, length in columns:
        table.add_column(f"{split}, {length}", justify="right", no_wrap=True)
    for name, own in found.items():
        table.add_row(name, *(mean_std(own.get(split, {}).get(length, []), 100) for split, length in columns))
    return table


def evaluate_sweep(
    sweep: Sweep, data: str | None, split: str, domain: Domain | None, *, best: bool, ensemble: bool, as_json: bool
) -> None:
    """Prints the accuracy of each run on a split, mean and standard deviation over seeds; and the mean over folds."""
    from vbsix.api import evaluate
    from vbsix.data.dataset import describe_cut, share_cut
    from vbsix.parsing.evaluation import read_split

    def cut(run: Run) -> tuple[float, int, Words]:
        """The share of instructions that are not read to their end, and what it follows from."""
        language = domain_of(run.config, run.folder, domain, run.identity)
        rows = read_split(language, run.config, data or run.source, split, own=data is None)
        most, words = run.config.data.max_words, open_words(run.folder)
        return share_cut(rows, most, words), most, words

    reports = [evaluate(run.folder, data, split, best=best, ensemble=ensemble, domain=domain) for run in sweep.good]
    both = list(zip(sweep.good, reports, strict=True))
    accuracies: dict[Path, Accuracies] = {run.folder: {split: found.accuracy} for run, found in both}
    if not as_json:
        table = _accuracy_table(f"accuracy on {split}, %", sweep, accuracies)
        Console(highlight=False, markup=False).print(table)
        named: dict[str, list[str]] = {}
        for run in sweep.good:
            share, most, words = cut(run)
            if described := describe_cut({split: share}, most, words):
                named.setdefault(described, []).append(run.folder.name)
        for line, names in named.items():
            typer.echo(line if len(named) == 1 else f"{'; '.join(names)}: {line}")
        return
    runs = {
        run.folder.name: {
            "seeds": ["+".join(map(str, run.seeds))] if ensemble else run.seeds,
            "max_words": run.config.data.max_words,
            "cut": cut(run)[0],
            **asdict(found),
        }
        for run, found in both
    }
    means = {name: own[split] for name, own in mean_over_folds(sweep, accuracies).items()}
    typer.echo(json.dumps({"format": 1, "split": split, "runs": runs, "mean_over_folds": means}))


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
