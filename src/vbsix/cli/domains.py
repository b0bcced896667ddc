"""Domains on the command line: by name, or as `module:Class` for those of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vbsix.utilities.errors import UnknownName, VbsixError

if TYPE_CHECKING:
    from vbsix.domains.base import Domain

DOMAIN_HELP = "alchemy, scene, tangrams, NAME-where, sail or MODULE:CLASS for a domain of your own."
MODEL_HELP = (
    "A run's folder, an exported model, or one that comes with vbsix: alchemy, scene, tangrams, tangrams-critic."
)


def complete_domain() -> list[str]:
    """Domain names, for the shell's completion."""
    from vbsix.domains.names import FROM_FILES
    from vbsix.domains.registry import available_domains

    return [*available_domains(), *FROM_FILES]


OwnDomain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="MODULE:CLASS",
        help="The domain of your own that the model is for; a model never says what code to run.",
    ),
]


def open_domain(name: str) -> Domain:
    """The domain that the user named."""
    from vbsix.domains.registry import import_domain

    try:
        return import_domain(name)
    except UnknownName as error:
        raise VbsixError(f"{error} One of your own is named MODULE:CLASS.") from None


def own_domain(name: str | None) -> Domain | None:
    """The domain that the user named for a model, if any."""
    return open_domain(name) if name else None
