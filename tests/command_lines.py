"""Command lines that documentation and workflows show, parsed without being run."""

from __future__ import annotations

from typing import Any

import typer

from vbsix.cli import app


def parse_only(arguments: list[str]) -> None:
    """Reads a command line without running it; raises for options and commands that do not exist."""
    command: Any = typer.main.get_command(app)
    name, context = "vbsix", None
    while hasattr(command, "commands"):
        context = command.make_context(name, arguments[:1], parent=context)
        name, arguments = arguments[0], arguments[1:]
        command = command.commands[name]
    command.make_context(name, list(arguments), parent=context)
