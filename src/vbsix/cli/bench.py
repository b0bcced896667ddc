"""`vbsix bench`: speed on this machine."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from vbsix.cli.execute import complete_domain
from vbsix.errors import UnknownName

app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


@app.command()
def executor(as_json: Json = False) -> None:
    """Transitions a second of the executors, each with successor, validity and key.

    The plain-Python twin of each language is measured in the same run.
    """
    from vbsix.benchmarks.executor import WORLDS, bench_executor

    results = {name: bench_executor(name) for name in sorted(WORLDS)}
    if as_json:
        typer.echo(json.dumps(results, indent=2))
        return
    _table(
        "Transitions a second, in millions",
        ["domain", "compiled", "slowest to fastest", "plain Python", "times faster", "compile, s"],
        [
            [
                name,
                f"{result['transitions_per_second'] / 1e6:.1f}",
                f"{result['slowest_transitions_per_second'] / 1e6:.1f} to "
                f"{result['fastest_transitions_per_second'] / 1e6:.1f}",
                _optional(result["reference_transitions_per_second"], 1e-6, ".2f"),
                _optional(result["times_reference"], 1, ".0f"),
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
) -> None:
    """Searches a second at the paper's sizes, where their time goes, and their memory.

    A search is one example of 5 instructions, in program or in execution space, with or without a critic. Networks
    are freshly drawn. It takes some minutes, most of them to compile.
    """
    from rich.console import Console

    from vbsix.benchmarks.search import COMBINATIONS, PARTS, bench_search
    from vbsix.data.examples import PAPER_SETTINGS

    names = domains or sorted(PAPER_SETTINGS)
    for name in names:
        if name not in PAPER_SETTINGS:
            raise UnknownName("domain", name, PAPER_SETTINGS)
    results = {}
    for name in names:
        with Console(stderr=True).status(f"measuring {name}"):
            results[name] = bench_search(name)
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


def _optional(value: float | None, scale: float, form: str, missing: str = "not installed") -> str:
    return missing if value is None else format(value * scale, form)


def _table(title: str, columns: list[str], rows: list[list[str]], measured_on: dict | None = None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    if measured_on:
        versions = ", ".join(f"{name} {number}" for name, number in measured_on["versions"].items())
        table.caption = f"{measured_on['device']}, {measured_on['cores']} cores; {versions}"
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
