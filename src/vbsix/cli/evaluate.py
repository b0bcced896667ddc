"""`vbsix evaluate`: how good the seeds of a run are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbsix.cli.domains import MODEL_HELP, OwnDomain, own_domain
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.jax_settings import prepare_jax
from vbsix.utilities.numbers import mean, mean_std, percent

if TYPE_CHECKING:
    from rich.table import Table

    from vbsix.evaluation.calibration import Calibration
    from vbsix.evaluation.report import Prediction, Report

BEST_HELP = "Take each seed at the step at which it was best on dev, not at its newest checkpoint."
ENSEMBLE_HELP = "Take all seeds of the run as one ensemble: the mean of their probabilities."
IN_BOLD = ("3", "5")
"""The numbers of utterances that papers report."""


def evaluate(
    path: Annotated[Path, typer.Argument(metavar="RUN", help=MODEL_HELP)],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|synthetic", help="A folder with SCONE's files, or JSON lines. Default: the run's data."
        ),
    ] = None,
    domain: OwnDomain = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="dev (the default), test, train or train-orig; of the synthetic corpus, dev or held-out. Of JSON "
            "lines given as --data all are taken."
        ),
    ] = None,
    best: Annotated[bool, typer.Option("--best", help=BEST_HELP)] = False,
    ensemble: Annotated[bool, typer.Option("--ensemble", help=ENSEMBLE_HELP)] = False,
    predictions: Annotated[
        Path | None,
        typer.Option(dir_okay=False, metavar="FILE", help="Write every prediction, as a line of JSON each."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Measure the accuracy of each seed of a run after 1, 2, ... instructions; of a sweep, that of each run.

    With cross-validation, a sweep also has the mean over folds: that of each seed, then over seeds. Each fold counts
    the same.

    A prediction is right if its last world is. It is spurious if it comes to the right world through wrong ones.

    Examples: vbsix evaluate runs/scene --data data --split test; the same with --ensemble
    """
    prepare_jax()
    from rich.console import Console
    from rich.progress import track

    from vbsix.cli.sweep import evaluate_sweep
    from vbsix.data.dataset import describe_cut, share_cut
    from vbsix.data.json_lines import SUFFIX
    from vbsix.evaluation.report import report
    from vbsix.parsing.evaluation import predict_rows, read_split
    from vbsix.parsing.loading import load, load_all
    from vbsix.runs.sweep import is_sweep, open_sweep, run_source

    if data and data.endswith(SUFFIX):
        if split:
            raise VbsixError(f"--split: all of {data} is taken; JSON lines that are given have no splits.")
        split = Path(data).name
    split = split or "dev"
    own = own_domain(domain)
    if is_sweep(path):
        if predictions:
            raise VbsixError(f"{path}: holds a sweep; --predictions takes one of its runs.")
        return evaluate_sweep(open_sweep(path), data, split, own, best=best, ensemble=ensemble, as_json=as_json)
    parsers = [load(path, best=best, ensemble=True, domain=own)] if ensemble else load_all(path, best=best, domain=own)
    rows = read_split(parsers[0].domain, parsers[0].config, data or run_source(path), split, own=data is None)
    stderr = Console(stderr=True)
    shown = track(parsers, "evaluating", console=stderr, transient=True, disable=not stderr.is_terminal)
    by_seed = [predict_rows(parser, rows) for parser in shown]
    names = [_name(parser.provenance["seed"]) for parser in parsers]
    if predictions:
        _write_predictions(predictions, names, by_seed)
    found, most, words = report(by_seed), parsers[0].config.data.max_words, parsers[0].words
    share = share_cut(rows, most, words)
    if as_json:
        cut = {"max_words": most, "cut": share}
        typer.echo(json.dumps({"format": 1, "split": split, "seeds": names, **cut, **asdict(found)}))
    else:
        _print_report(found, names, split)
        if described := describe_cut({split: share}, most, words):
            typer.echo(described)


def _name(seed: int | list[int]) -> int | str:
    """A seed as tables and JSON have it; those of an ensemble are one."""
    return "+".join(map(str, seed)) if isinstance(seed, list) else seed


def _write_predictions(path: Path, seeds: Sequence[int | str], by_seed: Sequence[Sequence[Prediction]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for seed, predictions in zip(seeds, by_seed, strict=True):
            file.writelines(json.dumps(_line(seed, prediction)) + "\n" for prediction in predictions)


def _line(seed: int | str, prediction: Prediction) -> dict[str, Any]:
    row, parse = prediction.row, prediction.parse
    first = parse.readings[0] if parse.readings else None
    best = asdict(first) if first else {}
    return {
        "id": row.id,
        "seed": seed,
        "context": parse.context,
        "instructions": parse.instructions,
        "utterances": parse.utterances,
        "world": parse.world,
        "target": row.worlds[prediction.length],
        "correct": prediction.correct,
        "spurious": prediction.spurious,
        "denotations": first and first.denotations,
        **{name: best.get(name) for name in ("commands", "worlds", "probability", "confidence")},
    }


def _print_report(report: Report, seeds: Sequence[int | str], split: str) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    means = new_table(
        f"accuracy on {split}, %", "instructions", "examples", "accuracy", "95% interval", "passing", "spurious"
    )
    own = new_table("each seed, % (95% interval)", "seed")
    for name, accuracies in report.accuracy.items():
        style = "bold" if name in IN_BOLD else ""
        low, high = report.intervals[name]
        means.add_row(
            name,
            str(report.examples[name]),
            mean_std(accuracies, 100),
            f"{percent(low)} to {percent(high)}",
            percent(mean(report.intermediate[name])),
            percent(mean(report.spurious[name])),
            style=style,
        )
        own.add_column(name, justify="right", style=style, no_wrap=True)
    for place, seed in enumerate(seeds):
        cells = []
        for name, intervals in report.seed_intervals.items():
            low, high = intervals[place]
            cells.append(f"{percent(report.accuracy[name][place])} ({100 * low:.0f}-{100 * high:.0f})")
        own.add_row(str(seed), *cells)
    console.print(means)
    console.print(
        "accuracy: mean over seeds ± standard deviation, and the mean's bootstrap interval over examples.\n"
        "passing: the share of right worlds after that many instructions when whole rows are parsed.\n"
        "spurious: of the right predictions, those that pass through a wrong world.\n",
        soft_wrap=True,
    )
    console.print(own)
    console.print(_calibration_table(report.calibration))
    console.print(f"expected calibration error: {percent(report.calibration.error)}%")


def _calibration_table(calibration: Calibration) -> Table:
    table = new_table("confidence and accuracy, %", "confidence from", "to", "predictions", "confidence", "accuracy")
    for one in calibration.bins:
        if one.count:
            bounds = f"{100 * one.low:.0f}", f"{100 * one.high:.0f}"
            table.add_row(*bounds, str(one.count), percent(one.confidence), percent(one.accuracy))
    return table


def new_table(title: str, *headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
