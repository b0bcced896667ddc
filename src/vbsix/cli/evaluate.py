"""`vbsix evaluate`: how good the seeds of a run are."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbsix.cli.domains import MODEL_HELP, OwnDomain, own_domain
from vbsix.cli.jax_settings import prepare_jax
from vbsix.errors import UnknownName, VbsixError

if TYPE_CHECKING:
    from rich.table import Table

    from vbsix.data.examples import Row
    from vbsix.domains.base import Domain
    from vbsix.evaluation import Calibration, Prediction, Report
    from vbsix.training.config import Config

BEST_HELP = "Take each seed at the step at which it did best on dev, not at its newest checkpoint."
COMMITTEE_HELP = "Let all seeds of the run decide together, by the mean of their probabilities."
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
    committee: Annotated[bool, typer.Option("--committee", help=COMMITTEE_HELP)] = False,
    predictions: Annotated[
        Path | None,
        typer.Option(dir_okay=False, metavar="FILE", help="Write every prediction, as a line of JSON each."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Measure the accuracy of each seed of a run after 1, 2, ... utterances.

    A prediction is right if its last world is. It is spurious if it comes to the right world through wrong ones.

    Examples: vbsix evaluate runs/scene --data data --split test; the same with --committee
    """
    prepare_jax()
    from rich.console import Console
    from rich.progress import track

    from vbsix.data.json_lines import SUFFIX
    from vbsix.evaluation import predict_rows, report
    from vbsix.loading import load_all, load_committee

    if data and data.endswith(SUFFIX):
        if split:
            raise VbsixError(f"--split: all of {data} is taken; JSON lines that are given have no splits.")
        split = Path(data).name
    split = split or "dev"
    own = own_domain(domain)
    parsers = [load_committee(path, best=best, domain=own)] if committee else load_all(path, best=best, domain=own)
    rows = read_split(parsers[0].domain, parsers[0].config, data or _own_data(path), split, own=data is None)
    stderr = Console(stderr=True)
    shown = track(parsers, "evaluating", console=stderr, transient=True, disable=not stderr.is_terminal)
    by_seed = [predict_rows(parser, rows) for parser in shown]
    names = [_name(parser.provenance["seed"]) for parser in parsers]
    if predictions:
        _write_predictions(predictions, names, by_seed)
    found = report(by_seed)
    if as_json:
        typer.echo(json.dumps({"format": 1, "split": split, "seeds": names, **asdict(found)}))
    else:
        _print_report(found, names, split)


def _name(seed: int | list[int]) -> int | str:
    """A seed as tables and JSON have it; those of a committee are one."""
    return "+".join(map(str, seed)) if isinstance(seed, list) else seed


def read_split(domain: Domain, config: Config, source: str, split: str, *, own: bool) -> Sequence[Row]:
    """The rows of a split of a data folder or of the embedded corpus, or those of a file of JSON lines.

    Such a file has splits where it is the run's own data.
    """
    from vbsix.data.json_lines import SUFFIX, read_json_lines
    from vbsix.data.scone import load_split
    from vbsix.training.task import SYNTHETIC, load_task

    if source.endswith(SUFFIX) and not own:
        return read_json_lines(Path(source), domain)
    if source != SYNTHETIC and not source.endswith(SUFFIX):
        return load_split(Path(source), domain, split)
    splits = load_task(config, source, domain).splits
    if split not in splits:
        raise UnknownName("split of this data", split, splits)
    return splits[split].rows


def _own_data(path: Path) -> str:
    from vbsix.training.run import open_run

    if not path.is_dir():
        raise VbsixError(f"{path}: a model does not know where its data is; give --data.")
    return open_run(path).source


def _write_predictions(path: Path, seeds: Sequence[int | str], by_seed: Sequence[Sequence[Prediction]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for seed, predictions in zip(seeds, by_seed, strict=True):
            file.writelines(json.dumps(_line(seed, prediction)) + "\n" for prediction in predictions)


def _line(seed: int | str, prediction: Prediction) -> dict[str, Any]:
    row, parse = prediction.row, prediction.parse
    best = asdict(parse.readings[0]) if parse.readings else {}
    return {
        "id": row.id,
        "seed": seed,
        "utterances": parse.utterances,
        "world": parse.world,
        "target": row.worlds[prediction.length],
        "correct": prediction.correct,
        "spurious": prediction.spurious,
        **{name: best.get(name) for name in ("commands", "worlds", "probability", "confidence")},
    }


def _print_report(report: Report, seeds: Sequence[int | str], split: str) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    means = _table(
        f"accuracy on {split}, %", "utterances", "examples", "accuracy", "95% interval", "passing", "spurious"
    )
    own = _table("each seed, % (95% interval)", "seed")
    for name, accuracies in report.accuracy.items():
        style = "bold" if name in IN_BOLD else ""
        spread = f" ± {_percent(statistics.stdev(accuracies))}" if len(accuracies) > 1 else ""
        low, high = report.intervals[name]
        means.add_row(
            name,
            str(report.examples[name]),
            _percent(statistics.mean(accuracies)) + spread,
            f"{_percent(low)} to {_percent(high)}",
            _percent(_mean(report.intermediate[name])),
            _percent(_mean(report.spurious[name])),
            style=style,
        )
        own.add_column(name, justify="right", style=style, no_wrap=True)
    for place, seed in enumerate(seeds):
        cells = []
        for name, intervals in report.seed_intervals.items():
            low, high = intervals[place]
            cells.append(f"{_percent(report.accuracy[name][place])} ({100 * low:.0f}-{100 * high:.0f})")
        own.add_row(str(seed), *cells)
    console.print(means)
    console.print(
        "accuracy: mean over seeds ± standard deviation, and the mean's bootstrap interval over examples.\n"
        "passing: the world after so many utterances when whole rows are parsed.\n"
        "spurious: of the right predictions, those that pass through a wrong world.\n",
        soft_wrap=True,
    )
    console.print(own)
    console.print(_calibration_table(report.calibration))
    console.print(f"expected calibration error: {_percent(report.calibration.error)}%")


def _calibration_table(calibration: Calibration) -> Table:
    table = _table("confidence and accuracy, %", "confidence from", "to", "predictions", "confidence", "accuracy")
    for one in calibration.bins:
        if one.count:
            bounds = f"{100 * one.low:.0f}", f"{100 * one.high:.0f}"
            table.add_row(*bounds, str(one.count), _percent(one.confidence), _percent(one.accuracy))
    return table


def _table(title: str, *headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
