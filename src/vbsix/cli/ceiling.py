"""`vbsix ceiling`: what a language allows."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from vbsix.cli.domains import DOMAIN_HELP, complete_domain, open_domain
from vbsix.utilities.jax_settings import prepare_jax
from vbsix.utilities.numbers import percent


def ceiling(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help=DOMAIN_HELP, autocompletion=complete_domain)],
    data: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="A folder with SCONE's files, a file of JSON lines (*.jsonl), where several instructions in one line "
            "need targets or programs, or synthetic, the built-in corpus (default).",
        ),
    ] = "synthetic",
    split: Annotated[str, typer.Option(help="The rows that commands are applied to: dev or test.")] = "dev",
    least: Annotated[
        int, typer.Option(min=1, metavar="N", help="Utterances that are rarer in training count as right.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure how accurate a policy can be that gives each utterance one command.

    For each utterance of the training rows, the command of this language is searched that is right most often, given
    the world after each instruction. No policy takes part. Compare languages with it before you train.

    Example: vbsix ceiling tangrams-where --data data
    """
    prepare_jax()
    from rich.console import Console

    from vbsix.cli.evaluate import new_table
    from vbsix.data.dataset import rows_of
    from vbsix.evaluation.ceiling import measure_ceiling

    language = open_domain(domain)
    train, rows = rows_of(language, data, split)
    found = measure_ceiling(language, train, rows, least)
    if as_json:
        typer.echo(json.dumps({"format": 1, "domain": language.name, "split": split, "least": least, **asdict(found)}))
        return
    table = new_table(f"{language.name}: one command for each utterance, on {split}", "of", "number", "right", "%")
    steps = f"utterances seen {least} times or more in training"
    table.add_row("rows", str(found.rows), str(found.right), percent(found.share), style="bold")
    frequent = found.right_frequent / found.frequent if found.frequent else 1.0
    table.add_row(steps, str(found.frequent), str(found.right_frequent), percent(frequent))
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(
        f"{found.steps} utterances in all; the rarer ones count as right, so this is optimistic.\n"
        f"Rows with a step that no command explains: {found.unexplained} on {split}, {found.unexplained_train} in "
        "training.",
        soft_wrap=True,
    )
