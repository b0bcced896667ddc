"""Runs that start from a trained policy: that of another run or of an exported model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vbsix.config.schema import Config
from vbsix.data.dataset import Dataset
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.models import Ensemble
from vbsix.parsing.loading import find_model, load
from vbsix.parsing.parser import Parser
from vbsix.runs.checkpoints import to_tensors
from vbsix.runs.continuing import continue_run, seed_places
from vbsix.runs.folder import Run, Start, open_run, open_words
from vbsix.runs.identity import domain_of
from vbsix.runs.sweep import is_sweep
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.trees import choose

MOST_LOST = 0.01
"""How much of a model's projections of words its recovered weights may miss, by root mean squares. Half precision loses
less than a thousandth."""


class Source(NamedTuple):
    """What a run is continued from."""

    config: Config
    """Its settings, which are those of the new run unless others are given."""
    data: str | None
    """Where its data comes from; a model does not know."""
    words: Words | None
    """A run's vocabulary; a model has none that can be trained with."""
    start: Start


def open_source(path: str | Path, domain: Domain | None = None) -> Source:
    """What to continue from: a run's folder, an exported model, or the name of a model that comes with vbsix.

    Of a run, each seed continues the policy of the same seed at its best step on dev; a seed that it does not have
    continues its best one. Critics start from scratch.
    """
    path = find_model(path)
    if not path.is_dir():
        parser = load(path, domain=domain)
        return Source(parser.config, None, None, lambda run, dataset: _from_model(parser, path, run, dataset))
    if is_sweep(path):
        raise VbsixError(f"{path}: holds a sweep; continue one of its runs.")
    source = open_run(path)
    language = domain_of(source.config, path, domain, source.identity)
    return Source(source.config, source.source, open_words(source.folder), continue_run(source, language))


def _from_model(parser: Parser, path: Path, run: Run, dataset: Dataset) -> Mapping[str, np.ndarray]:
    """The policies of a model, whose projection of words is recovered from the words that the data has, too."""
    known = {word: place for place, word in enumerate(parser.words.words)}
    shared = [(place, known[word]) for place, word in enumerate(dataset.words.words) if word in known]
    if len(shared) < len(dataset.words.words) and len(shared) <= dataset.words.vectors.shape[1] + 1:
        # Any vectors would fit the shared words, and say nothing of the others.
        raise VbsixError(f"{path}: shares only {len(shared)} words with the data, too few to know how it reads others.")
    here, there = (np.array(places) for places in zip(*shared, strict=True))
    vectors, members = dataset.words.vectors[here], _members(parser)
    projections = np.split(parser.words.vectors[there], len(members), axis=1)

    def restore(policy: Any, projected: np.ndarray) -> Any:
        encoder = policy.utterances.with_projection(jnp.asarray(vectors), jnp.asarray(projected))
        lost = np.asarray(encoder.project(jnp.asarray(vectors))) - projected
        if np.sqrt(np.mean(lost**2)) > MOST_LOST * np.sqrt(np.mean(projected**2)):
            raise VbsixError(
                f"{path}: was trained with other word vectors than those of the data. Continue the run that it was "
                "exported from, or train with the same data and GloVe file; for JSON lines, name it: --set "
                "data.vectors=FILE."
            )
        return eqx.tree_at(lambda policy: policy.utterances, policy, encoder)

    restored = [restore(*one) for one in zip(members, projections, strict=True)]
    policies = jax.tree.map(lambda *leaves: jnp.stack(leaves), *restored)
    seeds = parser.provenance["seed"]
    seeds = seeds if isinstance(seeds, list) else [seeds]
    return to_tensors(choose(policies, seed_places(run, seeds, seeds[0])))


def _members(parser: Parser) -> list[Any]:
    if not isinstance(parser.policy, Ensemble):
        return [parser.policy]
    return [choose(parser.policy.members, place) for place in range(parser.policy.size)]
