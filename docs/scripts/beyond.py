"""Trains and measures what docs/beyond-scone.md reports, and writes `results/beyond/TASK.json`.

Usage: python docs/scripts/beyond.py TASK --data DATA [--seeds N] [--folds N] [--set NAME=VALUE ...]
       python docs/scripts/beyond.py TASK --data DATA --only FOLD --keep RUNS --out PARTS ...
       python docs/scripts/beyond.py TASK --join PARTS

DATA has the folders `sail`, `math` and `glove`. All folds of a task are trained side by side, as one program, with one
vocabulary. Or each fold is trained by a process of its own, with the same vocabulary, and the results are joined. With
`--keep`, runs stay in the folder RUNS, and the same command continues them. Accuracy is that of the last step: the fold
that is tested has no say in which policy is kept.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
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

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from vbsix.config.choosing import choose_config
from vbsix.config.schema import Config
from vbsix.config.toml import read_assignments
from vbsix.data.dataset import Dataset, Split
from vbsix.data.examples import Arrays
from vbsix.data.json_lines import read_json_lines
from vbsix.data.sail import convert_sail
from vbsix.data.words import Words, load_vectors
from vbsix.domains.base import Domain
from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import import_domain
from vbsix.domains.sail_maps import MAPS
from vbsix.evaluation.accuracy import Predicted
from vbsix.evaluation.spurious import Shares, predict_longest, spurious_predictions
from vbsix.models.ensemble import Ensemble
from vbsix.models.policy import PolicyNetwork
from vbsix.runs.display import create_display
from vbsix.runs.folder import Run, create_run, read_dataset
from vbsix.runs.loop import Trained, train_together
from vbsix.search.prediction import predict
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_json
from vbsix.utilities.jax_settings import prepare_jax
from vbsix.utilities.machine import environment
from vbsix.utilities.numbers import mean
from vbsix.utilities.trees import choose

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "math"))
import word_problems  # noqa: E402

GLOVE = Path("glove/glove.6B.100d.txt")
MAWPS_FOLDS, DRAWS = 5, 3
KEPT_STATES = 3 << 20
"""Of word problems, so that each pass over the data need not compute them again; a few gigabytes."""


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


def main(
    name: str,
    data: Path,
    seeds: int,
    assignments: Sequence[str],
    most_folds: int | None = None,
    only: str | None = None,
    keep: Path | None = None,
    out: Path | None = None,
) -> None:
    """Runs a task, or only its first folds or one of them, and writes its result."""
    prepare_jax()
    task = TASKS[name]
    settings = {**task.settings, **read_assignments(assignments)}
    with tempfile.TemporaryDirectory() as scratch:
        place = keep / name if keep else Path(scratch)
        every = write_absent(task, data, place)[:most_folds]
        folds = [fold for fold in every if only in (None, fold.name)]
        if not folds:
            raise VbsixError(f"{only}: no such fold; there are {', '.join(fold.name for fold in every)}.")
        words = vocabulary(task, every, data)
        runs, datasets = plan(task, folds, words, data, place, range(seeds), settings)
        with create_display(runs, quiet=False) as observer:
            trained = train_together(runs, datasets, observer)
        found = [measure(task, *one) for one in zip(folds, runs, datasets, trained, strict=True)]
    result = {
        "task": name,
        **{what: {fold.name: one[what] for fold, one in zip(folds, found, strict=True)} for what in found[0]},
        "measured": list(found[0]),
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
    folder = out or ROOT / "results" / "beyond"
    if only is None:
        write_result(folder, result)
    else:
        write_json(folder / f"{name}-{only}.json", {**result, "folds": [fold.name for fold in every]})


def write_absent(task: Task, data: Path, place: Path) -> list[Fold]:
    """Writes the examples of all folds, except for files that are there: other processes may be reading those."""
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as own:
        folds = task.write_folds(data, Path(own))
        for path in Path(own).iterdir():
            if not (place / path.name).exists():
                path.replace(place / path.name)
    return [
        fold._replace(**{what: place / path.name for what, path in fold._asdict().items() if isinstance(path, Path)})
        for fold in folds
    ]


def join(name: str, parts: Path, out: Path | None = None) -> None:
    """Makes one result of those of single folds, which must have been trained alike."""
    results = [read_json(path) for path in sorted(parts.glob(f"{name}-*.json"))]
    results = [result for result in results if result["task"] == name]
    if not results:
        raise VbsixError(f"{parts}: no results of {name}.")
    joined = {**results[0], "seconds": max(result["seconds"] for result in results)}
    for result in results:
        if any(result[what] != joined[what] for what in ("folds", "settings", "seeds", "versions")):
            raise VbsixError(f"{name}: the folds {', '.join(joined['examples'])} were not trained alike.")
        for what in (*joined["measured"], "examples"):
            joined[what] = {**joined[what], **result[what]}
    if missing := [fold for fold in joined.pop("folds") if fold not in joined["examples"]]:
        raise VbsixError(f"{parts}: no results of {name} for {', '.join(missing)}.")
    write_result(out or ROOT / "results" / "beyond", joined)


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Adds means over folds, writes a result, and shows it."""
    measured = {what: result[what] for what in result.pop("measured")}
    for by_fold in measured.values():
        by_fold["mean"] = [mean(of_seed) for of_seed in zip(*by_fold.values(), strict=True)]
    write_json(folder / f"{result['task']}.json", result)
    print(json.dumps(measured, indent=1))


def command_for(name: str, data: Path, seeds: int, assignments: Sequence[str], most_folds: int | None) -> str:
    """The command that repeats a task; of the data's folder it has the last part alone."""
    options = ["--data", data.name, "--seeds", str(seeds), *(["--folds", str(most_folds)] if most_folds else [])]
    options += [f"--set={assignment}" for assignment in assignments]
    return shlex.join(["python", "docs/scripts/beyond.py", name, *options])


def vocabulary(task: Task, folds: Sequence[Fold], data: Path) -> Words:
    """The words of all folds."""
    domain = import_domain(task.domain)
    rows = [row for path in {path for fold in folds for path in fold[1:3]} for row in read_json_lines(path, domain)]
    texts = sorted({utterance for row in rows for utterance in row.utterances})
    return load_vectors(data / GLOVE, texts).with_oov(texts, 1)


def plan(
    task: Task,
    folds: Sequence[Fold],
    words: Words,
    data: Path,
    scratch: Path,
    seeds: range,
    settings: Mapping[str, Any],
) -> tuple[list[Run], list[Dataset]]:
    """A run for each fold, new or begun before."""
    domain = import_domain(task.domain)
    if isinstance(domain, PythonDomain):
        domain.full_table = domain.kept_states = KEPT_STATES
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
        if not (run.folder / "run.json").exists():
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
    networks, found = trained.learners.evaluated, dict[str, Shares]()
    for kind, tested in tests.items():
        predicted = predict_longest(tested, networks, run.config)["dev"]
        found[f"{kind}accuracy"] = predicted.correct.mean(axis=1).tolist()
        found[f"{kind}spurious"] = task.spurious(fold.test, tested, predicted)
        for what, size in (("marginal", 1), ("ensemble", len(run.seeds))):
            found[f"{kind}{what}"] = marginal_accuracies(tested, networks.policy, size, run.config)
        np.savez_compressed(run.folder / f"{kind}predictions.npz", tokens=predicted.tokens, correct=predicted.correct)
    return found


def marginal_accuracies(dataset: Dataset, policies: PolicyNetwork, size: int, config: Config) -> Shares:
    """Accuracies where the most probable target is predicted, not the most probable program.

    The seeds' policies are taken `size` together, and their probabilities are averaged.
    """
    examples = dataset.arrays(dataset.splits["dev"].examples(max(config.data.evaluation)))
    count, batch = len(examples.instructions), config.run.evaluation_batch
    shares = []
    for first in range(0, len(jax.tree.leaves(policies)[0]), size):
        members = choose(policies, slice(first, first + size))
        right = np.zeros(count, bool)
        for begin in range(0, count, batch):
            places = np.minimum(np.arange(begin, begin + batch), count - 1)  # the last batch is filled up with its end
            with dataset.domain.alone():
                part = choose(examples, places), jnp.asarray(dataset.words.vectors)
                right[places] = is_target_found(dataset.domain, members, *part, beam=config.run.evaluation_beam)
                dataset.domain.raise_failure()
        shares.append(float(right.mean()))
    return shares


@functools.partial(jax.jit, static_argnums=0, static_argnames="beam")
def is_target_found(
    domain: Domain, members: PolicyNetwork, examples: Arrays, vectors: jax.Array, *, beam: int
) -> Bool[jax.Array, " n"]:
    """Whether the most probable denotation is the target, for each example."""
    projections = jnp.concatenate(jax.vmap(lambda one: one.utterances.project(vectors))(members), axis=-1)

    def of_example(example: Arrays) -> Bool[jax.Array, ""]:
        found = predict(domain, Ensemble(members), projections, example, beam=beam)
        last = jax.tree.map(lambda leaf: leaf[0, example.instructions - 1], found.states)
        return domain.matches(last, example.target) & jnp.isfinite(found.log_probability[0])

    return jax.vmap(of_example)(examples)


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


def sentences_of_one(data: Path, out: Path) -> list[Fold]:
    """Learn from one map and test on another, to choose settings by. The map l takes no part."""
    by_name = {fold.name: fold for fold in sentences(data, out)}
    pairs = ("grid", "jelly"), ("jelly", "grid")
    return [by_name[tested]._replace(train=by_name[learned].test, sequences=None) for learned, tested in pairs]


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
    "sail-settings": Task("sail", sentences_of_one, SAIL, wrong_on_the_way),
    "sail-sequences": Task("sail", sequences, SAIL, wrong_on_the_way),
    "mawps": Task("word_problems:WordProblems", mawps, MATH, unlike_the_equation),
    "svamp": Task("word_problems:WordProblems", svamp, MATH, unlike_the_equation),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--folds", type=int, help="only the first folds")
    parser.add_argument("--only", metavar="FOLD", help="only this fold; its result can be joined with others")
    parser.add_argument("--keep", type=Path, metavar="RUNS", help="keep the runs here, and continue those that are")
    parser.add_argument("--out", type=Path, help="the folder of the result (results/beyond)")
    parser.add_argument("--join", type=Path, metavar="PARTS", help="train nothing; join the results of single folds")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    if given.join:
        join(given.task, given.join, given.out)
    elif given.data:
        os.environ["VBSIX_DATA"] = str(given.data)  # where the domain sail finds its maps
        main(given.task, given.data, given.seeds, given.set, given.folds, given.only, given.keep, given.out)
    else:
        parser.error("give --data, or --join")
