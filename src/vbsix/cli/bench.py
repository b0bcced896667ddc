"""`vbsix bench`: speed on this machine."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


@app.callback()
def _group() -> None:
    pass


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


def _optional(value: float | None, scale: float, form: str) -> str:
    return "not installed" if value is None else format(value * scale, form)


def _table(title: str, columns: list[str], rows: list[list[str]], measured_on: dict) -> None:
    from rich.console import Console
    from rich.table import Table

    versions = ", ".join(f"{name} {number}" for name, number in measured_on["versions"].items())
    table = Table(title=title, caption=f"{measured_on['device']}, {measured_on['cores']} cores; {versions}")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
