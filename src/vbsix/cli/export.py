"""`vbsix export`: a run's model as one file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from vbsix.cli.domains import OwnDomain, own_domain
from vbsix.cli.evaluate import BEST_HELP, ENSEMBLE_HELP
from vbsix.utilities.errors import VbsixError


def export(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file to write, by custom *.safetensors.")],
    domain: OwnDomain = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Which seed of the run. Default: the one that did best on dev.")
    ] = None,
    best: Annotated[bool, typer.Option("--best", help=BEST_HELP)] = False,
    ensemble: Annotated[bool, typer.Option("--ensemble", help=ENSEMBLE_HELP)] = False,
    half: Annotated[bool, typer.Option("--half", help="Half the precision, half the size.")] = False,
    critic: Annotated[
        bool, typer.Option("--critic", help="Keep the critic too, for searches in the playground.")
    ] = False,
) -> None:
    """Make one small file from which `vbsix parse` and `vbsix.load` work with no other file.

    It holds weights, vocabulary and config. Word vectors are folded into the weights and not passed on. The model of a
    language in plain Python also holds up to four contexts of the training data, so that a changed language is noticed.

    Example: vbsix export runs/scene --seed 0 --out scene.safetensors
    """
    from vbsix.parsing.loading import load
    from vbsix.runs.folder import open_run
    from vbsix.runs.metrics import newest_accuracy

    if ensemble and seed is not None:
        raise VbsixError("--ensemble takes all seeds; leave out --seed.")
    own = own_domain(domain)
    parser = load(path, seed, best=best, ensemble=ensemble, domain=own)
    made_by = ", ".join(f"{name} {value}" for name, value in parser.provenance.items())
    if path.is_dir() and not ensemble and not best:
        accuracy = newest_accuracy(open_run(path).metrics, parser.provenance["seed"])
        parser = replace(parser, provenance={**parser.provenance, "accuracy": accuracy})
    parser.export(out, half, critic=critic)
    size = out.stat().st_size / 1e6
    typer.echo(f"{out}: {parser.domain.name}, {len(parser.words.words)} words, {size:.1f} MB ({made_by})")
