"""`vbsix bench`: speed on this machine."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from vbsix.cli.domains import complete_domain
from vbsix.cli.engine import Engine
from vbsix.cli.train import RECIPE_HELP
from vbsix.cluster.connection import LOCAL, choose_cluster
from vbsix.utilities.errors import UnknownName
from vbsix.utilities.jax_settings import set_flags

app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True, callback=set_flags)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Out = Annotated[
    Path | None,
    typer.Option(dir_okay=False, metavar="FILE", help="Write the results with command and date to a JSON file too."),
]
OneDomain = Annotated[
    str | None, typer.Argument(metavar="DOMAIN", help="All of them by default.", autocompletion=complete_domain)
]


@app.command()
def executor(as_json: Json = False, out: Out = None) -> None:
    """Transitions a second of the executors, each with successor, validity and key.

    The plain-Python twin of each language is measured in the same run, by itself and as a PythonDomain, with what that
    adds to each `step`.
    """
    from vbsix.benchmarks.executor import WORLDS, bench_executor

    results = {name: bench_executor(name) for name in sorted(WORLDS)}
    _write(results, out)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
        return
    _table(
        "Transitions a second, in millions",
        ["domain", "compiled", "slowest to fastest", "plain Python", "PythonDomain", "beyond step, µs", "compile, s"],
        [
            [
                name,
                f"{result['transitions_per_second'] / 1e6:.1f}",
                f"{result['slowest_transitions_per_second'] / 1e6:.1f} to "
                f"{result['fastest_transitions_per_second'] / 1e6:.1f}",
                _optional(result["reference_transitions_per_second"], 1e-6, ".2f"),
                _optional(result["python_transitions_per_second"], 1e-6, ".2f"),
                _optional(result["python_microseconds_beyond_step"], 1, ".2f"),
                f"{result['compile_seconds']:.1f}",
            ]
            for name, result in results.items()
        ],
        next(iter(results.values())),
    )


@app.command()
def search(
    domains: Annotated[
        list[str] | None,
        typer.Argument(metavar="DOMAIN", help="All of them by default.", autocompletion=complete_domain),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Searches a second at the paper's sizes, where their time goes, and their memory.

    A search is one example of 5 instructions, in program or in execution space, with or without a critic. Networks
    are untrained. It takes some minutes, most of them to compile.
    """
    from rich.console import Console

    from vbsix.benchmarks.search import COMBINATIONS, PARTS, bench_search

    results = {}
    for name in _known(domains or []):
        with Console(stderr=True).status(f"measuring {name}"):
            results[name] = bench_search(name)
        _write(results, out)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
        return
    measured_on = next(iter(results.values()))
    _table(
        "Searches a second",
        ["search", "searches", "slowest to fastest", "times program", "compile, s"],
        [
            [
                f"{name} {how}",
                f"{result[how]['searches_per_second']:.0f}",
                f"{result[how]['slowest_searches_per_second']:.0f} to {result[how]['fastest_searches_per_second']:.0f}",
                f"{result[how].get('execution_over_program', 1):.2f}",
                f"{result[how]['compile_seconds']:.1f}",
            ]
            for name, result in results.items()
            for how in COMBINATIONS
        ],
        measured_on,
    )
    for name, result in results.items():
        _table(
            f"Where the time goes in {name}, in %",
            ["search", *PARTS],
            [[how, *(f"{100 * result[how]['shares'][part]:.0f}" for part in PARTS)] for how in COMBINATIONS],
        )
    _table(
        f"Memory of {measured_on['examples']} examples and {measured_on['memory_seeds']} seeds, in MB",
        ["domain", "execution+critic"],
        [[name, _optional(result["memory_bytes"], 1e-6, ".0f", "unknown")] for name, result in results.items()],
    )


@app.command()
def train(
    domain: OneDomain = None,
    method: Annotated[str, typer.Option(help="As in `vbsix train`.")] = "vbsix",
    recipe: Annotated[str, typer.Option(help=RECIPE_HELP)] = "stochastic",
    seeds: Annotated[int, typer.Option(min=1, help="How many train side by side.")] = 1,
    runs: Annotated[
        int,
        typer.Option(min=1, help="How many runs train side by side, with different learning rates."),
    ] = 1,
    beam: Annotated[int | None, typer.Option(min=1, help="That of the method by default.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Examples of a step; the paper's by default.")] = None,
    warm: Annotated[int, typer.Option(min=0, help="Steps to train before measuring.")] = 0,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Grow beam, batch and seeds in turn; rows are printed as they come.")
    ] = False,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Training steps a second at the paper's sizes, time to compile, and memory.

    A step updates all seeds of all runs; an example counts once for each. Where a method has a critic, it ranks. Rows
    are made up, with words and instructions in the shapes of SCONE's. The policy is fresh unless --warm is given, and
    its beams are nearly empty: as shapes are fixed, that matters little, but loops which stop early do so sooner. It
    takes one or two minutes a domain, most of them to compile.

    Example: vbsix bench train tangrams --seeds 6
    """
    from vbsix.benchmarks.train import bench_train, grow
    from vbsix.config.presets import preset
    from vbsix.config.schema import override
    from vbsix.utilities.machine import environment

    given = {name: size for name, size in {"search.beam": beam, "training.batch": batch}.items() if size}
    sizes = [(override(preset(name, method, recipe), given), seeds) for name in _known([domain] if domain else [])]
    if sweep:
        sizes = [grown for size in sizes for grown in grow(*size)]
    alone = bool(domain) and not sweep
    results = _measure(partial(bench_train, warm=warm, runs=runs), sizes, out, alone)
    title = f"Training with {method}, {recipe} recipe"
    sizes_shown = ["domain", *(["runs"] if runs > 1 else []), "seeds", "beam", "batch"]
    columns = [*sizes_shown, "steps/s", "examples/s", "compile, s", "MB"]
    rows = (
        [
            *(str(result[name]) for name in sizes_shown),
            f"{result['steps_per_second']:.3g}",
            f"{result['examples_per_second']:.3g}",
            f"{result['compile_seconds']:.1f}",
            _optional(result["peak_memory_bytes"], 1e-6, ".0f", "unknown"),
        ]
        for result in results
    )
    if as_json:
        _print_json(results, alone)
    elif sweep:
        _print_rows(f"{title}; {_describe(environment())}", columns, rows)
    else:
        _table(title, columns, list(rows), environment())


@app.command()
def predict(
    domain: OneDomain = None,
    seeds: Annotated[int, typer.Option(min=1, help="Policies that predict each of the 64, as in evaluation.")] = 1,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Milliseconds to predict an example of 5 instructions: among 64 at a time, and alone.

    Alone it is parsed by one policy as by `vbsix parse`, from text to worlds. Policies are untrained and their
    beams of 32 run dry early; as shapes are fixed, that matters little.

    Example: vbsix bench predict scene --json
    """
    from vbsix.benchmarks.predict import bench_predict
    from vbsix.config.presets import preset
    from vbsix.utilities.machine import environment

    sizes = [(preset(name), seeds) for name in _known([domain] if domain else [])]
    results = _measure(bench_predict, sizes, out, alone=bool(domain))
    if as_json:
        _print_json(results, alone=bool(domain))
        return
    _table(
        "Milliseconds to predict an example",
        ["domain", "batched", "alone", "compile, s", "first alone, s"],
        [
            [
                result["domain"],
                f"{result['milliseconds_batched']:.2f}",
                f"{result['milliseconds_single']:.2f}",
                f"{result['compile_seconds']:.1f}",
                f"{result['first_single_seconds']:.1f}",
            ]
            for result in results
        ],
        environment(),
    )


@app.command()
def requests(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", autocompletion=complete_domain)] = "tangrams",
    number: Annotated[int, typer.Option("--number", min=1, help="Requests in the file.")] = 100_000,
    engine: Engine = LOCAL,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Requests a second of `vbsix parse --input FILE`, its processor time, and its memory over time; on Linux.

    Requests have 1 to 5 instructions of the built-in corpus. The time counts from the start of the command to its end.

    Example: vbsix bench requests --engine ray
    """
    from vbsix.benchmarks.requests import bench_requests

    _known([domain])
    choose_cluster(engine, None, None, None)
    result = bench_requests(domain, number, engine)
    _write(result, out)
    if as_json:
        _print_json([result], alone=True)
        return
    memory = result["memory_bytes"].items()
    _table(
        "A file of requests",
        ["engine", "requests", "requests/s", "processor, ms each", "memory in each tenth of the time, MB"],
        [
            [
                engine,
                f"{number:,}",
                f"{result['requests_per_second']:.3g}",
                f"{result['cpu_milliseconds']:.3g}",
                "\n".join(f"{kind}: {' '.join(f'{peak / 1e6:.0f}' for peak in peaks)}" for kind, peaks in memory),
            ]
        ],
        result,
    )


@app.command()
def page(
    out: Annotated[Path, typer.Option(file_okay=False, metavar="DIR", help="Where docs and benchmarks lie.")] = Path(),
) -> None:
    """Update the tables and the figure of DIR/docs/speed.md from DIR/benchmarks/results; nothing is measured.

    The files there are what the other commands write with --out, under any name.

    Example: vbsix bench page --out .
    """
    from vbsix.benchmarks.page import write_page

    typer.echo(f"written: {', '.join(map(str, write_page(out)))}")


def _known(domains: list[str]) -> list[str]:
    """The domains asked for, checked, or all that can be measured."""
    from vbsix.data.examples import PAPER_SETTINGS

    for name in domains:
        if name not in PAPER_SETTINGS:
            raise UnknownName("domain", name, PAPER_SETTINGS)
    return domains or sorted(PAPER_SETTINGS)


def _measure(
    bench: Callable[..., dict[str, Any]], sizes: Iterable[tuple[Any, ...]], out: Path | None, alone: bool
) -> Iterator[dict[str, Any]]:
    """The results one by one, written as they come; what is measured begins with a config."""
    from rich.console import Console

    results = []
    for size in sizes:
        with Console(stderr=True).status(f"measuring {size[0].domain}"):
            results.append(bench(*size))
        _write(results[0] if alone else results, out)
        yield results[-1]


def _write(results: Any, out: Path | None) -> None:
    """Writes results with their date and the command that gave them, but for where it wrote them."""
    from vbsix.utilities.files import write_json

    if out is None:
        return
    words = sys.argv[1:]
    if "--out" in words:
        place = words.index("--out")
        del words[place : place + 2]
    command = shlex.join(["vbsix", *(word for word in words if not word.startswith("--out="))])
    write_json(out, {"command": command, "date": datetime.now(UTC).date().isoformat(), "results": results})


def _print_json(results: Iterable[dict[str, Any]], alone: bool) -> None:
    """A list of results, or the only one."""
    found = list(results)
    typer.echo(json.dumps(found[0] if alone else found, indent=2))


def _print_rows(title: str, columns: list[str], rows: Iterable[list[str]]) -> None:
    """A table whose rows are printed as they come, so that Ctrl-C leaves those that did."""
    typer.echo(title)
    widths = [max(len(column), 8) for column in columns]
    for row in chain([columns], rows):
        typer.echo("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _optional(value: float | None, scale: float, form: str, missing: str = "not installed") -> str:
    return missing if value is None else format(value * scale, form)


def _table(title: str, columns: list[str], rows: list[list[str]], measured_on: dict | None = None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    if measured_on:
        table.caption = _describe(measured_on)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _describe(measured_on: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in measured_on["versions"].items())
    return f"{measured_on['device']}, {measured_on['cores']} cores; {versions}"
