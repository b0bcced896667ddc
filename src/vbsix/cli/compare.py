"""`vbsix compare`: two runs, row by row."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vbsix.cli.domains import MODEL_HELP, OwnDomain, own_domain
from vbsix.cli.evaluate import BEST_HELP, ENSEMBLE_HELP, new_table
from vbsix.domains.names import base_name
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.jax_settings import prepare_jax
from vbsix.utilities.numbers import percent


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help=MODEL_HELP)],
    second: Annotated[Path, typer.Argument(metavar="RUN", help="What to compare it with.")],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|synthetic", help="A folder with SCONE's files, or JSON lines. Default: the runs' data."
        ),
    ] = None,
    domain: OwnDomain = None,
    split: Annotated[
        str, typer.Option(help="dev, test, train or train-orig; of the synthetic corpus, dev or held-out.")
    ] = "dev",
    best: Annotated[bool, typer.Option("--best", help=BEST_HELP)] = False,
    ensemble: Annotated[bool, typer.Option("--ensemble", help=ENSEMBLE_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare the accuracy of two runs or models on the same rows.

    Rows differ more in difficulty than runs do in accuracy. So the difference is measured on each row, as the mean over
    seeds. Its interval comes from resampling rows and seeds; --json also has the one over rows alone. Of JSON lines
    given as --data, all are taken.

    Example: vbsix compare runs/without runs/with --best
    """
    prepare_jax()
    from rich.console import Console

    from vbsix.evaluation.comparison import compare as compare_predictions
    from vbsix.parsing.evaluation import predict_rows, read_split
    from vbsix.parsing.loading import load, load_all
    from vbsix.runs.sweep import run_source

    own = own_domain(domain)
    by_run = [
        [load(path, best=best, ensemble=True, domain=own)] if ensemble else load_all(path, best=best, domain=own)
        for path in (first, second)
    ]
    one, other = (parsers[0] for parsers in by_run)
    if base_name(one.domain.name) != base_name(other.domain.name):
        raise VbsixError(f"{first} is for {one.domain.name}, {second} for {other.domain.name}: they share no rows.")
    sources = [data] if data else sorted({run_source(path) for path in (first, second) if path.is_dir()})
    if len(sources) != 1:
        raise VbsixError("the runs do not name the same data; say with --data on which to compare them.")
    rows, others = (
        read_split(parser.domain, parser.config, sources[0], split, own=data is None) for parser in (one, other)
    )
    if [(row.worlds, row.utterances) for row in rows] != [(row.worlds, row.utterances) for row in others]:
        raise VbsixError(
            f"the runs do not have the same rows of {split}: one may have learned from those of the other. Give --data."
        )
    predictions = [[predict_rows(parser, rows) for parser in parsers] for parsers in by_run]
    found = compare_predictions(*predictions)
    if as_json:
        typer.echo(json.dumps({"format": 1, "split": split, **{name: asdict(each) for name, each in found.items()}}))
        return
    table = new_table(
        f"accuracy on {split}, %",
        *("instructions", "rows", "first", "second", "difference", "95% interval", "better", "worse"),
    )
    for name, each in found.items():
        low, high = each.interval
        table.add_row(
            name,
            str(each.examples),
            percent(each.first),
            percent(each.second),
            f"{100 * each.difference:+.1f}",
            f"{100 * low:+.1f} to {100 * high:+.1f}",
            str(each.better),
            str(each.worse),
            style="bold" if each.clear else "",
        )
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(
        f"first: {first}, second: {second}; each the mean over seeds ({len(by_run[0])} and {len(by_run[1])}).\n"
        "difference: second minus first, with its bootstrap interval over rows and seeds; bold where that leaves out "
        "0.\n"
        "better, worse: rows on which the second is right more often, or less often.",
        soft_wrap=True,
    )
