"""`vbsix execute`: run a program by hand and look at what it does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from vbsix.cli.domains import DOMAIN_HELP, complete_domain, open_domain
from vbsix.utilities.errors import InvalidProgram, VbsixError, shorten

SHOWN = 40
"""How many tokens an error message quotes before an invalid one, and from it on."""

if TYPE_CHECKING:
    from vbsix.domains.execution import Step


def execute(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help=DOMAIN_HELP, autocompletion=complete_domain)],
    program: Annotated[list[str], typer.Argument(metavar="PROGRAM", help="Tokens separated by spaces, quoted or not.")],
    world: Annotated[
        str, typer.Option("--context", "--world", metavar="TEXT", help="The first world, in the data's text form.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the state after every token as JSON.")] = False,
) -> None:
    """Run a program and draw the world before and after each of its commands.

    An invalid world or program ends with exit code 2 and a message that names the wrong element or token.

    Example: vbsix execute tangrams --context "1:0 2:3 3:4" "all-objects 1 index ARemove"
    """
    tokens, domain = " ".join(program).split(), open_domain(domain).name
    steps = run_program(domain, world, tokens)
    if as_json:
        from vbsix.domains.execution import to_value

        report = {"format": 1, "domain": domain, "context": to_value(world), "world": world}
        report["steps"] = [{**step._asdict(), "denotation": step.denotation} for step in steps]
        typer.echo(json.dumps(report))
    else:
        print_run(domain, world, steps)


def run_program(domain: str, world: str, tokens: Sequence[str]) -> list[Step]:
    """Executes, and shows in the error where in the program an invalid token stands."""
    from vbsix.domains.execution import execute

    try:
        return execute(domain, world, tokens)
    except InvalidProgram as error:
        shown = [shorten(token)[1:-1] for token in tokens[max(0, error.position - SHOWN) : error.position + SHOWN]]
        place = min(error.position, SHOWN)
        before = " ".join(shown[:place])
        column = len(before) + bool(before)
        raise VbsixError(f"{error}\n  {' '.join(shown)}\n  {' ' * column}{'^' * len(shown[place])}") from None


def print_run(domain: str, world: str, steps: Sequence[Step], captions: Sequence[str] = ()) -> None:
    """Draws the first world, then the world after each command under the command's caption, if any, and its tokens."""
    from rich.console import Console

    from vbsix.show.terminal import draw_world

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(draw_world(domain, world), end="\n\n")
    tokens, commands = [], 0
    for step in steps:
        tokens.append(step.token)
        if step.commands > commands:
            if captions:
                console.print(captions[commands], style="italic")
            console.print(" ".join(tokens), style="bold")
            console.print(draw_world(domain, step.world), end="\n\n")
            tokens, commands = [], step.commands
    if tokens:
        console.print(" ".join(tokens), style="bold")
        console.print(f"  no command yet; on the stack: {' '.join(steps[-1].stack)}")
