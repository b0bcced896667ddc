"""The models that a playground shows, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from vbsix.domains.base import Domain
from vbsix.models import Critic
from vbsix.parsing.loading import load_all
from vbsix.parsing.parser import Parser
from vbsix.runs.checkpoints import load_networks
from vbsix.runs.folder import Run, open_run, open_words
from vbsix.runs.metrics import read_metrics
from vbsix.training.chunk import learner_shapes
from vbsix.utilities.trees import choose


@dataclass(frozen=True, eq=False)
class CriticWithWords:
    """A critic and the word vectors that it reads."""

    critic: Critic
    vectors: np.ndarray


@dataclass(frozen=True, eq=False)
class Model:
    """A parser with its name and, where it comes from a run that has one, its critic."""

    name: str
    parser: Parser
    critic: CriticWithWords | None = None
    accuracy: Mapping[str, float] = field(default_factory=dict)
    """The share of right outcomes on dev, by number of instructions, where it is known."""

    @property
    def domain(self) -> str:
        return self.parser.domain.name


def load_models(paths: Sequence[Path], domain: Domain | None = None) -> dict[str, Model]:
    """All models of run folders (each seed is one) and of exported files, by name."""
    models: dict[str, Model] = {}
    for path in paths:
        for name, parser, critic, accuracy in _load(path, domain):
            unique = next(wanted for wanted in _numbered(name) if wanted not in models)
            models[unique] = Model(unique, parser, critic, accuracy)
    return models


def _load(
    path: Path, domain: Domain | None
) -> Iterator[tuple[str, Parser, CriticWithWords | None, Mapping[str, float]]]:
    parsers = load_all(path, domain=domain)
    name = path.resolve().name if path.is_dir() else path.stem
    run = open_run(path) if path.is_dir() else None
    critics = [None] if run is None else _critics(run, parsers[0].domain)
    for parser, critic in zip(parsers, critics, strict=True):
        seed, own = parser.provenance["seed"], parser.provenance.get("accuracy")
        accuracy = _accuracy(run, seed) if run is not None else own if isinstance(own, dict) else {}
        yield f"{name}, seed {seed}" if len(parsers) > 1 else name, parser, critic, accuracy


def _accuracy(run: Run, seed: int) -> Mapping[str, float]:
    """The newest accuracy of a seed on dev."""
    rows = [row for row in read_metrics(run.metrics) if row["seed"] == seed and row.get("accuracy", {}).get("dev")]
    return rows[-1]["accuracy"]["dev"] if rows else {}


def _critics(run: Run, domain: Domain) -> list[CriticWithWords | None]:
    """The critic of each seed at its newest checkpoint."""
    if not run.config.training.critic:
        return [None] * len(run.seeds)
    found = load_networks(run.checkpoints, learner_shapes(domain, run.config, run.seeds).networks, run.seeds)
    assert found is not None, "the parsers come from it too"
    critics, vectors = jax.tree.map(jnp.asarray, found[1].critic), open_words(run.folder).vectors
    return [CriticWithWords(choose(critics, place), vectors) for place in range(len(run.seeds))]


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name} ({number})"
        number += 1
