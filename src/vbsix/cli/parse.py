"""`vbsix parse`: put a trained parser to use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbsix.cli.domains import MODEL_HELP, OwnDomain, own_domain
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.jax_settings import prepare_jax

if TYPE_CHECKING:
    from vbsix.parsing.parser import Parser
    from vbsix.search.prediction import Parse, Reading


def parse(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    utterances: Annotated[
        list[str] | None, typer.Argument(metavar="UTTERANCE", help="The instructions, each quoted.")
    ] = None,
    world: Annotated[
        str | None,
        typer.Option("--context", "--world", metavar="TEXT", help="The first world, in the data's text form, or JSON."),
    ] = None,
    domain: OwnDomain = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Which seed of the run. Default: the one that did best on dev.")
    ] = None,
    best: Annotated[int, typer.Option(min=1, help="How many readings to give, grouped by their last world.")] = 1,
    min_confidence: Annotated[
        float, typer.Option(min=0, max=1, help="Abstain where the best reading's confidence is lower.")
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the readings as JSON.")] = False,
) -> None:
    """Read instructions: their commands, how confident the model is, and the worlds before and after.

    Instructions whose words are unknown or whose commands are improbable are reported as not understood.

    Without instructions and --context, requests come from standard input, a line of JSON each, as in
    {"context": "1:0 2:3", "instructions": ["swap them"], "id": 7}, and a line of JSON answers each.

    Example: vbsix parse runs/tangrams --context "1:0 2:3 3:4" "swap the first and the last shape" "undo that"
    """
    prepare_jax()
    from vbsix.parsing.loading import load

    if (world is None) != (not utterances):
        raise VbsixError("give --context and instructions, or neither to read requests from standard input.")
    parser = load(model, seed, domain=own_domain(domain))
    if world is None or not utterances:
        requests = typer.get_binary_stream("stdin")
        if requests.isatty():
            typer.echo("Reading requests from standard input, a line of JSON each.", err=True)
        for answer in _answers(parser, requests, best, min_confidence):
            typer.echo(json.dumps(answer))
        return
    found = parser.parse(world, utterances, best)
    if as_json:
        typer.echo(json.dumps(_to_json(found, min_confidence)))
        return
    if found.unknown_words:
        typer.echo(f"The model does not know: {', '.join(found.unknown_words)}", err=True)
    if found.unread_words:
        typer.echo(f"The model does not read, at the end of utterances: {' '.join(found.unread_words)}", err=True)
    if found.readings and not found.understood:
        typer.echo("Not understood: this is a guess.", err=True)
    if not found.readings:
        typer.echo("No program found.")
    elif found.confidence < min_confidence:
        typer.echo(f"Abstained: the confidence is {found.confidence:.4g}, less than {min_confidence:g}.")
    else:
        _print_readings(parser.domain.name, found)


def _answers(parser: Parser, lines: Iterable[bytes], best: int, min_confidence: float) -> Iterator[dict[str, Any]]:
    """An answer to each line that is not blank, errors too."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        request: Any = None
        try:
            request = json.loads(line.decode())
            found = parser.parse(*_check_request(request), best)
            answer = _to_json(found, min_confidence)
        except (ValueError, RecursionError) as error:
            answer = {"error": f"line {number}: not JSON: {error}"}
        except VbsixError as error:
            answer = {"error": f"line {number}: {error}"}
        yield {"id": request["id"], **answer} if isinstance(request, dict) and "id" in request else answer


def _check_request(request: Any) -> tuple[Any, list[str]]:
    """The context and the instructions of a request, under these names or under their old ones."""
    if not isinstance(request, dict):
        raise VbsixError('expected an object such as {"context": "...", "instructions": ["..."]}.')
    if not {"context", "world"} & request.keys():
        raise VbsixError('"context" is missing.')
    context = request.get("context", request.get("world"))
    instructions = request.get("instructions", request.get("utterances"))
    if not isinstance(instructions, list) or not all(isinstance(instruction, str) for instruction in instructions):
        raise VbsixError('"instructions" is missing or not a list of texts.')
    return context, instructions


def _to_json(found: Parse, min_confidence: float) -> dict[str, Any]:
    """The parse; one that is not confident enough is withheld."""
    abstained = found.confidence < min_confidence
    withheld = {"readings": []} if abstained else {}
    names = {"context": found.context, "instructions": found.instructions}
    return {"format": 1, "abstained": abstained, "confidence": found.confidence, **names, **asdict(found), **withheld}


def _print_readings(domain: str, found: Parse) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for number, outcome in enumerate(found.outcomes, start=1):
        if len(found.outcomes) > 1:
            console.print(f"outcome {number}", style="reverse")
        first, *others = outcome.readings
        _print_reading(console, domain, found, first)
        for reading in others:
            console.print(f"the same by: {' / '.join(reading.commands)}", style="dim")
        if others:
            console.print()


def _print_reading(console: Any, domain: str, found: Parse, reading: Reading) -> None:
    from vbsix.show.terminal import draw_world

    console.print(draw_world(domain, found.world), end="\n\n")
    for utterance, command, world in zip(found.utterances, reading.commands, reading.worlds, strict=True):
        console.print(utterance, style="italic")
        console.print(command, style="bold")
        console.print(draw_world(domain, world), end="\n\n")
    console.print(f"confidence {reading.confidence:.0%}\n")
