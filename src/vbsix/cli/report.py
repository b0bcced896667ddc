"""What `vbsix train` says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import timedelta

from rich import box
from rich.console import Console
from rich.table import Table

from vbsix.cli.execute import print_run
from vbsix.data.dataset import Dataset
from vbsix.data.examples import Example
from vbsix.domains.execution import execute
from vbsix.domains.registry import as_domain, origin_of
from vbsix.evaluation.accuracy import WHOLE
from vbsix.evaluation.spurious import FOUND, Shares
from vbsix.runs.finish import Measured
from vbsix.runs.folder import Run
from vbsix.runs.loop import Trained
from vbsix.show.terminal import draw_world
from vbsix.utilities.numbers import MISSING, mean

SHOWN = 2
"""How many examples of each split are printed."""
_SPLITS = {"held-out": "held-out phrasings", FOUND: "found in training"}


def _longest(run: Run) -> int:
    return max(run.config.data.evaluation)


def print_report(run: Run, dataset: Dataset, trained: Trained, measured: Measured) -> None:
    """Prints the accuracies, a few predictions, and what to try next."""
    console = Console(highlight=False, markup=False)
    console.print(f"\n{run.config.training.steps} steps in {timedelta(seconds=round(trained.seconds))}\n")
    console.print(_accuracy_table(run, trained, measured.spurious, dataset.most_instructions))
    for name, split in dataset.splits.items():
        for number, example in enumerate(split.examples(_longest(run))[:SHOWN]):
            tokens = [
                dataset.domain.tokens[token] for token in measured.predictions[name].tokens[0, number] if token >= 0
            ]
            _print_prediction(console, f"{_SPLITS.get(name, name)}, example {number + 1}", run, example, tokens)
    _print_next_steps(console, run, next(iter(dataset.splits.values())).examples(_longest(run))[0])


def _print_next_steps(console: Console, run: Run, example: Example) -> None:
    folder, request = str(run.folder), [example.context, *example.instructions]
    own = origin_of(run.config.domain)
    named = ["--domain", own] if own else []
    console.print("What to try next", style="bold")
    for command, purpose in [
        (["evaluate", folder, *named], "accuracy, and how sure it is"),
        (["parse", folder, *named, "--context", *request], "then instructions of your own"),
        (["plot", folder, "--out", "curves.png"], "how the learning went"),
    ]:
        console.print(f"  {shlex.join(['vbsix', *command])}  # {purpose}", soft_wrap=True)


def _accuracy_table(run: Run, trained: Trained, spurious: dict[str, Shares], longest_trained: int) -> Table:
    table = Table("accuracy", "instructions", box=box.SIMPLE_HEAD)
    for heading in ("mean", *(f"seed {seed}" for seed in run.seeds)):
        table.add_column(heading, justify="right")
    for split, by_length in trained.accuracies.items():
        for length, shares in by_length.items():
            table.add_row(_SPLITS.get(split, split), length, *_cells(shares))
    for split, shares in spurious.items():
        length = min(_longest(run), longest_trained) if split == FOUND else _longest(run)
        if length or any(share is not None for share in shares):
            table.add_row(f"spurious, {_SPLITS.get(split, split)}", str(length) if length else WHOLE, *_cells(shares))
    return table


def _cells(shares: Sequence[float | None]) -> list[str]:
    """The mean and the shares as percentages."""
    return [MISSING if number is None else f"{number:.1%}" for number in (mean(shares), *shares)]


def _print_prediction(console: Console, title: str, run: Run, example: Example, tokens: list[str]) -> None:
    steps = execute(run.config.domain, example.context, tokens)
    right = bool(steps) and as_domain(run.config.domain).is_right(steps[-1].world, str(example.target))
    console.print(f"{title}: {'right' if right else 'wrong'}\n", style="bold reverse")
    print_run(run.config.domain, example.context, steps, captions=example.instructions)
    if not steps:
        console.print(f"no program found for: {' / '.join(example.instructions)}\n", soft_wrap=True)
    if not right:
        console.print("The world should be:")
        console.print(draw_world(run.config.domain, str(example.target)), end="\n\n", soft_wrap=True)
