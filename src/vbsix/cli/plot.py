"""`vbsix plot`: how runs learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs or sweeps.")],
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, metavar="FILE", help="A PNG or an SVG file. Default: both, as curves in the first folder."
        ),
    ] = None,
) -> None:
    """Draw hit accuracy, dev accuracy and value-network error against steps.

    Lines are means over seeds, areas their standard deviation; several runs have panels side by side.

    Example: vbsix plot runs/scene-vbsix-1 runs/scene-mml-1 --out curves.svg
    """
    from vbsix.runs.sweep import runs_of
    from vbsix.show.curves import FORMATS, plot_runs

    folders = [run for folder in runs for run in runs_of(folder)]
    files = [out] if out else [runs[0] / f"curves{suffix}" for suffix in FORMATS]
    plot_runs(folders, *files)
    typer.echo(f"drawn in {' and '.join(map(str, files))}")
