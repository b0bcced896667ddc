"""`vbsix report`: runs as one page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vbsix.cli.domains import OwnDomain, own_domain
from vbsix.cli.evaluate import BEST_HELP
from vbsix.utilities.jax_settings import prepare_jax


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs or sweeps.")],
    out: Annotated[Path, typer.Option(dir_okay=False, metavar="FILE", help="The HTML file to write.")],
    data: Annotated[
        str | None, typer.Option(metavar="DIR|synthetic", help="A folder with SCONE's files. Default: the run's data.")
    ] = None,
    domain: OwnDomain = None,
    split: Annotated[
        str, typer.Option(help="dev, test, train or train-orig; of the synthetic corpus, dev or held-out.")
    ] = "dev",
    best: Annotated[bool, typer.Option("--best", help=BEST_HELP)] = False,
) -> None:
    """Make a page of what runs have learned: results, curves, and the mistakes with their worlds drawn.

    The page is one file that needs no other, and no network.

    Example: vbsix report runs/scene-vbsix runs/scene-mml --out report.html
    """
    prepare_jax()
    from vbsix.parsing.evaluation import predict_rows, read_split
    from vbsix.parsing.loading import load_all
    from vbsix.runs.folder import open_run
    from vbsix.runs.sweep import runs_of
    from vbsix.show.report import Examined, report_page
    from vbsix.utilities.files import write_bytes

    examined = []
    for folder in (run for given in runs for run in runs_of(given)):
        run = open_run(folder)
        parsers = load_all(folder, best=best, domain=own_domain(domain))
        rows = read_split(parsers[0].domain, run.config, data or run.source, split, own=data is None)
        by_seed = [predict_rows(parser, rows) for parser in parsers]
        examined.append(Examined(run, run.seeds, split, by_seed, best))
    write_bytes(out, report_page(examined).encode())
    typer.echo(f"written to {out}")
