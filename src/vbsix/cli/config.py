"""`vbsix config`: all settings of a run, and what they mean."""

from __future__ import annotations

from typing import Annotated

import typer

from vbsix.cli.domains import DOMAIN_HELP, complete_domain, open_domain
from vbsix.cli.train import Method, Recipe, Settings, Variant

app = typer.Typer(help="Show the settings of a run.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def show(
    domain: Annotated[
        str, typer.Argument(metavar="[DOMAIN]", help=DOMAIN_HELP, autocompletion=complete_domain)
    ] = "tangrams",
    method: Method = None,
    recipe: Recipe = None,
    variant: Variant = None,
    quick: Annotated[bool, typer.Option("--quick", help="Those for the built-in corpus, not for SCONE.")] = False,
    settings: Settings = None,
) -> None:
    """Print all settings of a method, a recipe and a variant as TOML, which `vbsix train --config FILE` reads.

    Example: vbsix config show scene --method mml > mml.toml
    """
    from vbsix.config.presets import DEFAULT_RECIPE, preset
    from vbsix.config.schema import override
    from vbsix.config.toml import read_assignments, to_toml
    from vbsix.domains.registry import is_built_in

    language = open_domain(domain)
    data = "json-lines" if not is_built_in(language) else "synthetic" if quick else "scone"
    chosen = preset(language.name, method, recipe or DEFAULT_RECIPE, variant or "", data=data)
    typer.echo(to_toml(override(chosen, read_assignments(settings or []))), nl=False)
