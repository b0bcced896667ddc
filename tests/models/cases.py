"""What the networks are tried on: states of random walks and utterances of all lengths."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from reference.language import Language
from reference.walks import Walker
from reference.worlds import random_world

from vbsix import get_domain
from vbsix.domains.base import Domain, Observation
from vbsix.models import NetworkConfig

Network = TypeVar("Network")

SMALL = NetworkConfig(word=5, lstm=3, slot=4, attribute=2, hidden=6, token=5, token_init_std=1.0)
LENGTHS = 4, 0, 6, 1
"""Words of the utterances: some, none, as many as fit, one."""
M, T = len(LENGTHS), max(LENGTHS)
WALKS = 20


class Case(eqx.Module):
    """States of a domain as the networks see them, and the utterances they are read with."""

    domain: Domain = eqx.field(static=True)
    states: Any
    """Stacked along a first axis."""
    instruction: jax.Array
    """Which utterance each state reads."""
    observations: Observation
    worlds: jax.Array
    target: jax.Array
    words: jax.Array
    mask: jax.Array

    def utterance(self, index: int) -> list[np.ndarray]:
        """The word vectors of an utterance, without padding."""
        return list(np.asarray(self.words)[index][np.asarray(self.mask)[index]])


@cache
def make_case(name: str) -> Case:
    domain, random = get_domain(name), Random(f"networks in {name}")
    mask = jnp.arange(T)[None, :] < jnp.array(LENGTHS)[:, None]
    words = 0.4 * jax.random.normal(jax.random.key(1), (M, T, NetworkConfig.word))
    target = domain.observe_target(jnp.asarray(domain.parse_world(random_world(name, random))))
    states = walk(domain, random)
    instruction = jnp.minimum(jnp.sum(states.history != 0, axis=1), M - 1)
    observations, worlds = jax.jit(jax.vmap(lambda state: (domain.observe(state), domain.observe_world(state))))(states)
    return Case(domain, states, instruction, observations, worlds, target, words, mask)


def small_case(name: str) -> Case:
    """A case for `SMALL` networks: every tenth state, short word vectors in the precision that is on."""
    case = make_case(name)
    per_state = case.states, case.instruction, case.observations, case.worlds
    return eqx.tree_at(
        lambda each: (each.states, each.instruction, each.observations, each.worlds, each.words),
        case,
        (*jax.tree.map(lambda leaf: leaf[::10], per_state), case.words[..., : SMALL.word].astype(float)),
    )


def walk(domain: Domain, random: Random) -> Any:
    """All states of random walks, most of whose commands succeed."""
    language, expand = Language(domain.name, M), jax.jit(domain.expand)
    visited = []
    for _ in range(WALKS):
        world, walker = random_world(domain.name, random), Walker(language, random, stray=0.05)
        twin, state = language.start(world), domain.start(domain.parse_world(world), M)
        visited.append(state)
        while valid := [token for token in domain.tokens if language.step(twin, token)]:
            token = walker.choose(twin, valid)
            twin = language.step(twin, token)
            state = take(jax.device_get(expand(state)[0]), domain.tokens.index(token))
            visited.append(state)
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *visited)


def take(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def draw(make: Callable[[], Network], seed: int = 3) -> Network:
    """The network that `make` makes, with other parameters: none is zero, and the policy has its preferences."""
    random = np.random.default_rng(seed)

    def fill(leaf):
        std = 1.5 * leaf.shape[-2] ** -0.5 if len(leaf.shape) > 1 else 0.2
        return jnp.asarray(random.normal(0, std, leaf.shape), leaf.dtype)

    return jax.tree.map(fill, eqx.filter_eval_shape(make))


def count_parameters(network: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(network))
