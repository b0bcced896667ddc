"""Trains and measures what docs/beyond-scone.md reports, and writes `results/beyond/TASK.json`.

Usage: python docs/scripts/beyond.py TASK --data DATA [--seeds N] [--folds N] [--set NAME=VALUE ...]

DATA has the folders `sail`, `math` and `glove`. All folds of a task are trained side by side, as one program, with one
vocabulary. Accuracy is that of the last step: the fold that is tested has no say in which policy is kept.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vbsix.config.choosing import choose_config
from vbsix.config.toml import read_assignments
from vbsix.data.dataset import Dataset, Split
from vbsix.data.json_lines import read_json_lines
from vbsix.data.sail import convert_sail
from vbsix.data.words import load_vectors
from vbsix.domains.registry import import_domain
from vbsix.domains.sail_maps import MAPS
from vbsix.evaluation.accuracy import Predicted
from vbsix.evaluation.spurious import Shares, predict_longest, spurious_predictions
from vbsix.runs.display import create_display
from vbsix.runs.folder import Run, create_run, read_dataset
from vbsix.runs.loop import Trained, train_together
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import write_json
from vbsix.utilities.jax_settings import prepare_jax
from vbsix.utilities.machine import environment
from vbsix.utilities.numbers import mean

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "math"))
import word_problems  # noqa: E402

GLOVE = Path("glove/glove.6B.100d.txt")
MAWPS_FOLDS, DRAWS = 5, 3


class Fold(NamedTuple):
    """Examples to learn from, and others to test."""

    name: str
    train: Path
    test: Path
    sequences: Path | None = None
    """Sequences of the instructions that are learned one by one, to be tested too."""


class Task(NamedTuple):
    """A row of the page."""

    domain: str
    write_folds: Callable[[Path, Path], list[Fold]]
    """Writes the JSON lines of all folds, given the folder of the data and a folder for them."""
    settings: Mapping[str, Any]
    spurious: Callable[[Path, Dataset, Predicted], Shares]
    """The spurious share of each seed's correct predictions, given the file that was tested; None where unknown."""


def main(name: str, data: Path, seeds: int, assignments: Sequence[str], most_folds: int | None = None) -> None:
    """Runs a task, or only its first folds, and writes its result."""
    prepare_jax()
    task = TASKS[name]
    settings = {**task.settings, **read_assignments(assignments)}
    with tempfile.TemporaryDirectory() as scratch:
        folds = task.write_folds(data, Path(scratch))[:most_folds]
        runs, datasets = plan(task, folds, data, Path(scratch), range(seeds), settings)
        with create_display(runs, quiet=False) as observer:
            trained = train_together(runs, datasets, observer)
        found = [measure(task, *one) for one in zip(folds, runs, datasets, trained, strict=True)]
    measured = {what: {fold.name: one[what] for fold, one in zip(folds, found, strict=True)} for what in found[0]}
    for by_fold in measured.values():
        by_fold["mean"] = [mean(of_seed) for of_seed in zip(*by_fold.values(), strict=True)]
    result = {
        "task": name,
        **measured,
        "examples": {fold.name: len(own.splits["dev"].rows) for fold, own in zip(folds, datasets, strict=True)},
        "seeds": list(range(seeds)),
        "seconds": max(one.seconds for one in trained if isinstance(one, Trained)),
        "settings": settings,
        "config": dataclasses.asdict(runs[0].config),
        "command": command_for(name, data, seeds, assignments, most_folds),
        "date": datetime.now(UTC).date().isoformat(),
        **environment(),
    }
    result["config"]["data"].update(vectors=GLOVE.name, dev_file="")
    write_json(ROOT / "results" / "beyond" / f"{name}.json", result)
    print(json.dumps(measured, indent=1))


def command_for(name: str, data: Path, seeds: int, assignments: Sequence[str], most_folds: int | None) -> str:
    """The command that repeats a task; of the data's folder it has the last part alone."""
    options = ["--data", data.name, "--seeds", str(seeds), *(["--folds", str(most_folds)] if most_folds else [])]
    options += [f"--set={assignment}" for assignment in assignments]
    return shlex.join(["python", "docs/scripts/beyond.py", name, *options])


def plan(
    task: Task, folds: Sequence[Fold], data: Path, scratch: Path, seeds: range, settings: Mapping[str, Any]
) -> tuple[list[Run], list[Dataset]]:
    """A run for each fold, all with the vocabulary of all folds."""
    domain = import_domain(task.domain)
    rows = [row for path in {path for fold in folds for path in fold[1:3]} for row in read_json_lines(path, domain)]
    texts = sorted({utterance for row in rows for utterance in row.utterances})
    words = load_vectors(data / GLOVE, texts).with_oov(texts, 1)
    runs, datasets = [], []
    for fold in folds:
        own = {**settings, "data.dev_file": str(fold.test), "data.vectors": str(data / GLOVE)}
        config = choose_config(task.domain, str(fold.train), None, None, None, None, own)
        config = dataclasses.replace(
            config, domain=domain.name, run=dataclasses.replace(config.run, evaluate_every=config.training.steps)
        )
        run = Run(scratch / "runs" / fold.name, config, tuple(seeds), str(fold.train))
        runs.append(run)
        datasets.append(read_dataset(run, domain, words))
        create_run(run, domain, words, datasets[-1])
    if any(own.words.words != datasets[0].words.words for own in datasets):
        raise VbsixError(f"{task.domain}: the folds differ in their words, so that they cannot share a program.")
    return runs, datasets


def measure(task: Task, fold: Fold, run: Run, dataset: Dataset, trained: Trained | VbsixError) -> dict[str, Shares]:
    """Accuracy and spurious share of each seed on the fold that was left out."""
    if isinstance(trained, VbsixError):
        raise trained
    tests = {"": dataset}
    if fold.sequences:
        rows = read_json_lines(fold.sequences, dataset.domain)
        tests["sequences "] = dataclasses.replace(dataset, splits={"dev": Split(rows)})
    found: dict[str, Shares] = {}
    for kind, tested in tests.items():
        predicted = predict_longest(tested, trained.learners.evaluated, run.config)["dev"]
        found[f"{kind}accuracy"] = predicted.correct.mean(axis=1).tolist()
        found[f"{kind}spurious"] = task.spurious(fold.test, tested, predicted)
    return found


# SAIL: train on two maps, test on the third.


def sentences(data: Path, out: Path) -> list[Fold]:
    """A sentence each. Whole sequences are tested with the policies that learned from sentences."""
    return [
        fold._replace(sequences=sequence.test)
        for fold, sequence in zip(_maps("sentences", data, out), _maps("sequences", data, out), strict=True)
    ]


def sequences(data: Path, out: Path) -> list[Fold]:
    """Whole sequences, of which the last pose is known."""
    return _maps("sequences", data, out)


def _maps(kind: str, data: Path, out: Path) -> list[Fold]:
    convert_sail(data / "sail", out)
    return [Fold(name, out / f"{kind}-without-{name}.jsonl", out / f"{kind}-{name}.jsonl") for name in MAPS]


def wrong_on_the_way(test: Path, dataset: Dataset, predicted: Predicted) -> Shares:
    """Of the correct predictions for several sentences, those with a wrong pose after one of them.

    Nothing shows this of a single sentence.
    """
    return spurious_predictions(dataset, "dev", 0, predicted)


# Word problems: the folds as they are distributed.


def mawps(data: Path, out: Path) -> list[Fold]:
    return [_problems(f"cv_mawps-fold{number}", data, out) for number in range(MAWPS_FOLDS)]


def svamp(data: Path, out: Path) -> list[Fold]:
    return [_problems("mawps-asdiv-a_svamp", data, out)]


def _problems(name: str, data: Path, out: Path) -> Fold:
    paths = []
    for split in ("train", "dev"):
        csv_file = data / "math" / f"{name}-{split}.csv"
        examples = word_problems.read_problems(str(csv_file))
        paths.append(out / f"{name}-{split}.jsonl")
        paths[-1].write_text("".join(json.dumps(example) + "\n" for example in examples), encoding="utf-8")
        paths[-1].with_suffix(".csv").write_bytes(csv_file.read_bytes())
    return Fold(name, *paths)


def unlike_the_equation(test: Path, dataset: Dataset, predicted: Predicted) -> Shares:
    """Of the correct predictions, those that differ from the annotated equation when the numbers are others.

    The equations are read for this alone.
    """
    problems = read_equations(test.with_suffix(".csv"))
    shares = []
    for tokens, correct in zip(predicted.tokens, predicted.correct, strict=True):
        wrong = []
        for place in np.flatnonzero(correct):
            numbers, equation = problems[int(dataset.splits["dev"].rows[place].id) - 1]
            program = [dataset.domain.tokens[token] for token in tokens[place] if token >= 0]
            wrong.append(not agree(program, equation, numbers))
        shares.append(statistics.mean(wrong) if wrong else None)
    return shares


def read_equations(path: Path) -> list[tuple[list[float], list[str]]]:
    """The numbers and the equation, in prefix notation, of each problem."""
    with path.open(newline="", encoding="utf-8") as file:
        return [([*map(float, row["Numbers"].split())], row["Equation"].split()) for row in csv.DictReader(file)]


def agree(program: Sequence[str], equation: Sequence[str], numbers: Sequence[float]) -> bool:
    """Whether a program and an equation have the same value when each number is a little larger, equal ones equally."""
    random = np.random.default_rng(0)
    for _ in range(DRAWS):
        larger = {number: number * random.uniform(1, 1.05) for number in dict.fromkeys(numbers)}
        others = [larger[number] for number in numbers]
        if not np.isclose(value_of(program, others), evaluate(equation, others), rtol=1e-9):
            return False
    return True


def value_of(program: Sequence[str], numbers: Sequence[float]) -> float:
    """The value of a program for the word problems, negative or not."""
    *tokens, answer = program
    assert answer == "answer"
    stack: list[float] = []
    for token in tokens:
        if token in word_problems.OPERATIONS:
            right, left = stack.pop(), stack.pop()
            stack.append(word_problems.OPERATIONS[token](left, right))
        else:
            stack.append(
                word_problems.CONSTANTS[token] if token in word_problems.CONSTANTS else _number(token, numbers)
            )
    return stack[-1]


def evaluate(equation: Sequence[str], numbers: Sequence[float]) -> float:
    """The value of an equation in prefix notation."""
    stack: list[float] = []
    for token in reversed(equation):
        if token in word_problems.OPERATIONS:
            stack.append(word_problems.OPERATIONS[token](stack.pop(), stack.pop()))
        else:
            stack.append(_number(token, numbers) if token.startswith("number") else float(token))
    return stack[-1]


def _number(slot: str, numbers: Sequence[float]) -> float:
    return numbers[word_problems.NUMBERS.index(slot)]


MATH = {
    "data.max_words": 60,
    "training.batch": 32,
    "training.learning_rate": 0.003,
    "training.decay_share": 0.3,
    "training.dropout": 0.1,
    "training.policy_states": 48,
    "search.beam": 16,
    "training.steps": 4000,
    "run.log_every": 50,
}
SAIL = {**MATH, "data.max_words": 30, "training.batch": 16, "training.policy_states": 64}
TASKS = {
    "sail-sentences": Task("sail", sentences, SAIL, wrong_on_the_way),
    "sail-sequences": Task("sail", sequences, SAIL, wrong_on_the_way),
    "mawps": Task("word_problems:WordProblems", mawps, MATH, unlike_the_equation),
    "svamp": Task("word_problems:WordProblems", svamp, MATH, unlike_the_equation),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--folds", type=int, help="only the first folds")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    os.environ["VBSIX_DATA"] = str(given.data)  # where the domain sail finds its maps
    main(given.task, given.data, given.seeds, given.set, given.folds)
