"""`vbsix parse`: put a trained parser to use."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbsix.cli.domains import MODEL_HELP, OwnDomain, own_domain
from vbsix.cli.engine import Address, Cpus, Engine, Gpus
from vbsix.cluster.connection import LOCAL, choose_cluster, connected
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.jax_settings import prepare_jax

if TYPE_CHECKING:
    from vbsix.parsing.parser import Parser
    from vbsix.parsing.requests import Answering
    from vbsix.parsing.streaming import Answer
    from vbsix.search.prediction import Parse, Reading


def parse(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    utterances: Annotated[
        list[str] | None, typer.Argument(metavar="INSTRUCTION", help="The instructions, each quoted.")
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
    source: Annotated[
        Path | None,
        typer.Option("--input", dir_okay=False, metavar="FILE", help="A file of requests, a line of JSON each."),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option("--output", dir_okay=False, metavar="FILE", help="Where the answers to --input go, in order."),
    ] = None,
    engine: Engine = LOCAL,
    address: Address = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
) -> None:
    """Read instructions: their commands, how confident the model is, and the worlds before and after.

    Instructions whose words are unknown, whose commands are improbable or which cannot be done in their world are
    reported as not understood. With --input, fewer of those that cannot be done are recognised.

    Without instructions and --context, requests come from standard input, a line of JSON each, as in
    {"context": "1:0 2:3", "instructions": ["swap them"], "id": 7}, and a line of JSON answers each.

    With --input and --output, a file of such requests is answered in batches, and memory does not grow with the file.
    If the command is stopped or killed, the same command continues. With --engine ray, blocks of the file are tasks on
    a Ray cluster, whose nodes share the model.

    Example: vbsix parse runs/tangrams --context "1:0 2:3 3:4" "swap the first and the last shape" "undo that"
    """
    prepare_jax()
    from vbsix.parsing.loading import load
    from vbsix.parsing.requests import Answering, answer_lines, to_json
    from vbsix.parsing.streaming import answer_blocks

    if (world is None) != (not utterances):
        raise VbsixError("give --context and instructions, or neither to read requests from standard input.")
    if (source is None) != (target is None) or (source and utterances):
        raise VbsixError("give --input and --output together, and then neither --context nor instructions.")
    how, cluster = Answering(best, min_confidence), choose_cluster(engine, address, cpus, gpus, model, target)
    if cluster and not source:
        raise VbsixError("--engine ray parses files: give --input and --output.")
    parser = load(model, seed, domain=own_domain(domain))
    if source and target:
        if cluster:
            from vbsix.cluster.parsing import Model, answer_on

            answer = partial(answer_on, cluster, Model(str(model), seed, domain), how)
        else:
            answer = partial(answer_blocks, parser, how)
        with connected(cluster):
            return _parse_file(parser, source, target, how, answer)
    if world is None or not utterances:
        requests = typer.get_binary_stream("stdin")
        if requests.isatty():
            typer.echo("Reading requests from standard input, a line of JSON each.", err=True)
        for number, line in enumerate(requests, start=1):
            typer.echo(answer_lines(parser, [line], number, how, explain=True).decode(), nl=False)
        return
    found = parser.parse(world, utterances, best)
    if as_json:
        typer.echo(json.dumps(to_json(found, min_confidence)))
        return
    if found.unknown_words:
        typer.echo(f"The model does not know: {', '.join(found.unknown_words)}", err=True)
    if found.unread_words:
        typer.echo(f"The model does not read, at the end of instructions: {' '.join(found.unread_words)}", err=True)
    for utterance, reason in zip(found.utterances, found.reasons, strict=True):
        if reason:
            typer.echo(f"Cannot be done: {utterance!r}: {reason}.", err=True)
    if found.readings and not found.understood:
        typer.echo("Not understood: this is a guess.", err=True)
    if not found.readings:
        typer.echo("No program found.")
    elif found.confidence < min_confidence:
        typer.echo(f"Abstained: the confidence is {found.confidence:.4g}, less than {min_confidence:g}.")
    else:
        _print_readings(parser.domain.name, found)


def _parse_file(parser: Parser, source: Path, target: Path, how: Answering, answer: Answer) -> None:
    """Answers a file of requests, and shows how far it has come."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from vbsix.parsing.streaming import answer_file

    origin = {"model": parser.fingerprint(), **how._asdict()}
    console = Console(stderr=True, highlight=False, markup=False)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    begun = time.perf_counter()
    answers, own = 0, 0
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("parsing", total=source.stat().st_size)
            for answers, own, read in answer_file(source, target, origin, answer):
                if answers and not own:
                    console.print(f"continuing after {answers} answers")
                progress.update(bar, completed=read, description=f"{answers} answers")
    except KeyboardInterrupt:
        typer.echo(f"Stopped after {answers} answers. The same command continues.", err=True)
        raise typer.Exit(130) from None
    speed = own / max(time.perf_counter() - begun, 1e-9)
    typer.echo(f"{target}: {answers} answers ({speed:.0f} per second)")


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
