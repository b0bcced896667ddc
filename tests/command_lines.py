"""Command lines that documentation and workflows show, parsed without being run."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer

from vbsix.cli import app


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def unknown_options(arguments: list[str]) -> list[str]:
    """The options of a command line, complete or not, that its command does not have."""
    command = _root()
    for word in arguments:
        if hasattr(command, "commands") and word in command.commands:
            command = command.commands[word]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    given = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    return [name for name in given if name not in known]


def parse_only(arguments: list[str]) -> None:
    """Reads a command line without running it; raises for options and commands that do not exist."""
    command = _root()
    name, context = "vbsix", None
    while hasattr(command, "commands"):
        context = command.make_context(name, arguments[:1], parent=context)
        name, arguments = arguments[0], arguments[1:]
        command = command.commands[name]
    command.make_context(name, list(arguments), parent=context)
