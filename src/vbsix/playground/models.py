"""The models that a playground shows, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

    @property
    def domain(self) -> str:
        return self.parser.domain.name


def load_models(paths: Sequence[Path], domain: Domain | None = None) -> dict[str, Model]:
    """All models of run folders (each seed is one) and of exported files, by name."""
    models: dict[str, Model] = {}
    for path in paths:
        for name, parser, critic in _load(path, domain):
            unique = next(wanted for wanted in _numbered(name) if wanted not in models)
            models[unique] = Model(unique, parser, critic)
    return models


def _load(path: Path, domain: Domain | None) -> Iterator[tuple[str, Parser, CriticWithWords | None]]:
    parsers = load_all(path, domain=domain)
    name = path.resolve().name if path.is_dir() else path.stem
    critics = _critics(open_run(path), parsers[0].domain) if path.is_dir() else [None]
    for parser, critic in zip(parsers, critics, strict=True):
        yield f"{name}, seed {parser.provenance['seed']}" if len(parsers) > 1 else name, parser, critic


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
