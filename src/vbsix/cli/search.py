"""`vbsix search`: search for programs by hand, and look at what the search does."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbsix.cli.domains import DOMAIN_HELP, complete_domain, open_domain
from vbsix.utilities.errors import VbsixError, naming

if TYPE_CHECKING:
    from vbsix.parsing.parser import Parser
    from vbsix.show.inspection import Inspection

UNIFORM = "uniform (no checkpoint given)"


class Space(StrEnum):
    """What the states of a search are."""

    PROGRAM = "program"
    EXECUTION = "execution"


def search(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help=DOMAIN_HELP, autocompletion=complete_domain)],
    utterances: Annotated[list[str], typer.Argument(metavar="INSTRUCTION", help="The instructions, each quoted.")],
    world: Annotated[
        str, typer.Option("--context", "--world", metavar="TEXT", help="The first world, in the data's text form.")
    ],
    target: Annotated[str, typer.Option(metavar="TEXT", help="The world that the instructions lead to.")],
    space: Annotated[Space, typer.Option(help="Whether states with the same execution result are merged.")] = (
        Space.EXECUTION
    ),
    beam: Annotated[int, typer.Option(min=1, max=16384, help="How many states each iteration keeps.")] = 4096,
    epsilon: Annotated[
        float, typer.Option(min=0, max=1, help="Probability that a place in the beam goes to a random state.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of that randomness.")] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A run's folder, or an exported model, with the policy to use.")
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(dir_okay=False, metavar="FILE", help="Draw the states found, as an SVG file.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many states to draw, and to give with --json.")] = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Print programs, iterations and states as JSON.")] = False,
) -> None:
    """Search for programs that lead from a world to a target, and show how the search went.

    Without --checkpoint the policy is uniform: every token has the same probability, whatever the instructions say;
    only their number counts. So this finds programs for one or two instructions; more need a policy that has learned
    to read.

    Example: vbsix search tangrams --context "1:0 2:3 3:4" --target "1:4 2:3 3:0" "swap the first and the last shape"
    """
    from vbsix.show.searching import search_programs

    language = open_domain(domain)
    with naming("--context"):
        language.parse_world(world)
    with naming("--target"):
        language.parse_target(target)
    parser = _read(checkpoint, language.name, utterances) if checkpoint else None
    policy = str(checkpoint) if checkpoint else UNIFORM
    options: dict[str, Any] = {"space": space.value, "beam": beam, "epsilon": epsilon, "seed": seed, "limit": limit}
    inspection = search_programs(language, world, utterances, target, parser=parser, **options).inspection
    if graph:
        from vbsix.show.svg import draw_search

        drawing = draw_search(inspection, target=target, utterances=utterances, policy=policy)
        graph.write_text(drawing, encoding="utf-8")
    if as_json:
        from vbsix.domains.execution import to_value

        asked = {"format": 1, "context": to_value(world), "instructions": utterances}
        asked |= {"world": world, "target": target, "utterances": utterances}
        asked |= {"policy": policy if checkpoint else "uniform", "beam": beam, "epsilon": epsilon, "seed": seed}
        typer.echo(json.dumps(asked | asdict(inspection)))
    else:
        print_search(inspection, policy, beam)
        if graph:
            drawn = len(inspection.states)
            typer.echo(f"{drawn} of {drawn + inspection.left_out} states are drawn in {graph}")


def _read(checkpoint: Path, domain: str, utterances: list[str]) -> Parser:
    """The parser of a checkpoint, which must be for the domain."""
    from vbsix.parsing.loading import load

    parser = load(checkpoint)
    if parser.domain.name != domain:
        raise VbsixError(f"--checkpoint: {checkpoint} was trained for {parser.domain.name}, not for {domain}.")
    if unknown := parser.unknown_words(utterances):
        typer.echo(f"The model does not know: {', '.join(unknown)}", err=True)
    return parser


def print_search(inspection: Inspection, policy: str, beam: int) -> None:
    """Prints the most probable programs found and what each iteration did."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"policy: {policy}")
    console.print(f"search: {inspection.space} space, beam {beam}\n")
    if inspection.programs:
        console.print("probability  program")
        for program in inspection.programs:
            console.print(f"{math.exp(program.log_probability):>11.2g}  {' '.join(program.tokens)}")
    else:
        console.print("No program found. A larger --beam searches more, --epsilon searches elsewhere.")
    iterations = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("tokens", "expanded", "successors", "merged", "correct", "incorrect", "kept", "dropped"):
        iterations.add_column(heading, justify="right", no_wrap=True)
    for row in inspection.iterations:
        counts = (row.successors, row.merged, row.correct, row.incorrect, row.kept, row.pruned)
        iterations.add_row(*map(str, (row.iteration, row.expanded, *counts)))
    console.print(iterations)
    console.print(
        "Each iteration expands the beam before it. Of the successors, those that reach the same state are merged,\n"
        "terminal states (correct, incorrect) are set apart, and of the rest the beam keeps the most probable."
    )
