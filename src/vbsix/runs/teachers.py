"""Teachers: trained policies that infer the world after every instruction of training rows, before others learn.

The runs of a sweep over folds infer the worlds of the rows that they have not seen: they cannot have memorised a
spurious program for one of them. The seeds of a single run, or an exported model, infer those of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from vbsix.config.schema import OBJECTIVES, Config, to_settings
from vbsix.config.variation import program_of
from vbsix.data.dataset import rows_to_infer
from vbsix.data.examples import Example, Targets, prefixes, targets_of, to_arrays
from vbsix.data.inferred import Inferred, InferredRow, identify_rows, longest_examples, read_inferred, write_inferred
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.domains.names import base_name
from vbsix.models.ensemble import Ensemble
from vbsix.runs.folder import SWEEP_FILE, Run, load_best, open_run, open_words
from vbsix.runs.identity import domain_of
from vbsix.runs.loop import Interrupted, Observer
from vbsix.search.inference import infer_batch
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json
from vbsix.utilities.trees import choose

OTHER_ROWS = "was trained on other rows than those to learn from; teachers and student need the same data."
BEAM = 96
"""How many programs the search for a row keeps."""
ROWS = ("data.split", "data.dev_file", "data.dev_share", "data.synthetic_rows")
"""Settings that say which rows there are to divide into folds."""
ObserveRuns = Callable[[Sequence[Run], str], AbstractContextManager[Observer]]
"""Opens a display of runs, given the runs and a title."""


class Policies(NamedTuple):
    """What a teacher infers with."""

    language: Domain
    ensemble: Ensemble
    words: Words
    projections: Float[Any, "V projected"]
    """Of all words; those of the members are side by side."""


@dataclass(frozen=True)
class Teacher:
    """The seeds of a run, or an exported model."""

    file: Path
    """Holds its parameters."""
    config: Config
    read: Callable[[Domain | None], Policies]
    """Given its language, or None for the one that is registered."""


@dataclass(frozen=True)
class Teachers:
    """Who infers worlds."""

    path: Path
    teachers: tuple[Teacher, ...]
    """One that teaches all rows; or one for each fold, in their order, which teaches the rows of the fold that it has
    not seen.
    """
    runs: tuple[Run, ...] = ()
    """Those of the teachers; a model has none."""

    def digest(self) -> str:
        """Identifies them."""
        return sha256(b"".join(sha256(one.file.read_bytes()).digest() for one in self.teachers)).hexdigest()


def find_teachers(path: Path, config: Config, source: str) -> Teachers:
    """The teachers in the folder of a run, or of a sweep over folds. Arguments as for `require_same_data`."""
    runs = _runs(path)
    for run in runs:
        if not run.best.exists() or not (run.folder / "result.json").exists():
            raise VbsixError(f"{run.folder}: has not ended yet, so it cannot teach.")
    found = Teachers(path, tuple(map(_teacher, runs)), runs)
    require_same_data(found, config, source)
    return found


def require_same_data(teachers: Teachers, config: Config, source: str) -> None:
    """Refuses teachers of other worlds, and runs that were trained on other rows.

    Args:
        teachers: who teaches.
        config: the settings of a run that learns from them; `require_teachable` checks those of all.
        source: where its data comes from.
    """
    taught = teachers.teachers[0].config
    if base_name(taught.domain) != base_name(config.domain):  # languages of the same worlds may differ
        raise VbsixError(f"{teachers.path}: teaches {taught.domain}, not {config.domain}.")
    there, here = to_settings(taught), to_settings(config)
    if teachers.runs and (teachers.runs[0].source != source or any(there[name] != here[name] for name in ROWS)):
        raise VbsixError(f"{teachers.path}: {OTHER_ROWS}")


def require_teachable(configs: Sequence[Config]) -> None:
    """Refuses settings with which runs cannot learn from the same inferred worlds."""
    for config in configs:
        if OBJECTIVES.get(config.training.objective).samples:
            raise VbsixError(
                f"{config.training.objective} learns from samples, so that it cannot use the worlds that teachers "
                "infer: take a method that searches."
            )
    if len({frozenset(config.data.lengths) for config in configs}) > 1:
        raise VbsixError(
            "data.lengths must be the same in all runs and stages that learn from the same teachers: the targets that "
            "one knows would reach the others."
        )


def infer_once(
    path: Path,
    teachers: Teachers,
    configs: Sequence[Config],
    source: str,
    observe: Callable[[], AbstractContextManager[Observer]],
    again: str,
    domain: Domain | None = None,
) -> Path:
    """Lets teachers infer the worlds of all training rows and writes them, unless they are there already.

    Args:
        path: where to write them.
        teachers: who infers them.
        configs: the settings of the runs that learn from them.
        source: where the data comes from.
        observe: opens a display.
        again: how to continue, for the message when it was stopped.
        domain: the language of those who learn; None for the one of that name.

    Returns:
        The path.

    Raises:
        Interrupted: the observer wanted to stop; nothing was written.
        VbsixError: what is there was inferred by other teachers or for other rows, or a world is not known.
    """
    require_teachable(configs)
    lengths = tuple(sorted(set(configs[0].data.lengths)))
    taught = [
        teacher.read(domain if domain and domain.name == teacher.config.domain else None)
        for teacher in teachers.teachers
    ]
    rows, folds = rows_to_infer(configs[0].data, taught[0].language, source, lengths, len(taught))
    if teachers.runs:  # folds of other rows would be others; a model has no folds
        _require_same_rows(teachers.runs[0], taught[0].language)
    about = lengths, teachers.digest(), identify_rows(rows, lengths)
    if path.exists():
        found = read_inferred(path)
        if (found.lengths, found.teachers, found.data) != about:
            raise VbsixError(
                f"{path}: was inferred by other teachers than those in {teachers.path}, or for other rows. Give "
                "another folder, or remove the file and what was learned from it."
            )
        return path
    targets, examples = targets_of(prefixes(rows, lengths)), longest_examples(rows, lengths)
    inferred: dict[int, InferredRow] = {}
    with observe() as observer:
        for fold, (teacher, policies) in enumerate(zip(teachers.teachers, taught, strict=True)):
            places = [place for place, own in enumerate(folds) if own == fold]
            batches = _infer(policies, teacher.config, [examples[place] for place in places], targets)
            for place, (worlds, posterior) in zip(places, batches, strict=True):
                inferred[place] = InferredRow(rows[place].id, worlds, posterior)
                if observer.wants_to_stop():
                    raise Interrupted(f"Stopped before all worlds were inferred.{again}")
    write_inferred(path, Inferred(tuple(inferred[place] for place in range(len(rows))), *about))
    return path


def _require_same_rows(run: Run, domain: Domain) -> None:
    """Refuses data that has changed since the teachers were trained: their folds would be others."""
    begun = read_json(run.folder / "run.json").get("rows")
    rows, _ = rows_to_infer(run.config.data, domain, run.source, run.config.data.lengths, 1)
    if begun is not None and begun != identify_rows(rows, run.config.data.lengths):
        raise VbsixError(f"{run.folder}: {OTHER_ROWS} The data has changed since then.")


def _teacher(run: Run) -> Teacher:
    """The seeds of a run, each at its best step on dev."""

    def read(given: Domain | None) -> Policies:
        language = domain_of(run.config, run.folder, given, run.identity)
        words, ensemble = open_words(run.folder), Ensemble(load_best(run, language).policies)
        members = [choose(ensemble.members, seed) for seed in range(ensemble.size)]
        each = [member.utterances.project(jnp.asarray(words.vectors)) for member in members]
        return Policies(language, ensemble, words, jnp.concatenate(each, axis=-1))

    return Teacher(run.best, run.config, read)


def _infer(
    policies: Policies, config: Config, examples: Sequence[Example], targets: Targets
) -> Iterator[tuple[tuple[str, ...], float]]:
    """The worlds that a teacher infers for examples, as texts, and their posteriors."""
    domain, ensemble, words, projections = policies
    size, most = config.run.evaluation_batch, max(len(example.instructions) for example in examples)
    for first in range(0, len(examples), size):
        part = examples[first : first + size]
        filled = [*part, *[part[-1]] * (size - len(part))]
        with domain.alone():
            arrays = to_arrays(domain, filled, words, most, config.data.max_words, targets)
            inferred = infer_batch(domain, ensemble, projections, arrays, beam=BEAM)
            states, posteriors = jax.tree.map(np.asarray, inferred)
            domain.raise_failure()
            found = []
            for place, (example, posterior) in enumerate(zip(part, posteriors.tolist(), strict=False)):
                after = [choose(states, (place, number)) for number in range(len(example.instructions))]
                worlds = [domain.format_target(domain.world(state)) for state in after] if posterior else []
                found.append((tuple(worlds), posterior))
        yield from found


def _runs(path: Path) -> tuple[Run, ...]:
    """The runs that teach, those of a sweep in the order of their folds."""
    if not (path / SWEEP_FILE).exists():
        return (open_run(path),)
    runs = [open_run(path / str(name)) for name in read_json(path / SWEEP_FILE).get("runs", ())]
    by_fold = {run.config.data.fold: run for run in runs}
    folds = runs[0].config.data.folds if runs else 0
    if set(by_fold) != set(range(folds)) or len(runs) != folds or len({program_of(run.config) for run in runs}) > 1:
        raise VbsixError(f"{path}: teachers are the seeds of a run, or of a sweep with --folds and nothing else.")
    return tuple(by_fold[fold] for fold in range(folds))
