"""`vbsix config`: all settings of a run, and what they mean."""

from __future__ import annotations

from typing import Annotated

import typer

from vbsix.cli.domains import DOMAIN_HELP, complete_domain, open_domain
from vbsix.cli.train import METHOD_HELP

app = typer.Typer(help="Show the settings of a run.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def show(
    domain: Annotated[
        str, typer.Argument(metavar="[DOMAIN]", help=DOMAIN_HELP, autocompletion=complete_domain)
    ] = "tangrams",
    method: Annotated[str | None, typer.Option(help=METHOD_HELP)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Those for the embedded corpus, not for SCONE.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, as in search.beam=64.")
    ] = None,
) -> None:
    """Print a method's settings as TOML, which `vbsix train --config FILE` reads.

    Example: vbsix config show scene --method mml > mml.toml
    """
    from vbsix.domains.registry import is_built_in
    from vbsix.training import config

    language = open_domain(domain)
    base = config.own if not is_built_in(language) else config.quick if quick else config.preset
    shown = base(language.name, *([method] if method else []))
    typer.echo(config.to_toml(config.override_from_text(shown, settings or [])), nl=False)
