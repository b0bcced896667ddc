"""How well the critic estimates values: the paper's appendix on the value network, by rules instead of by hand.

The states are those of the last instruction that searches for training examples reach, as far as they are clear-cut:
the estimated reward is 0 or above 0.7, and the critic is off by less than 0.2 or by more than 0.5.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from vbsix.config.schema import Config
from vbsix.data.dataset import Dataset
from vbsix.data.examples import Arrays
from vbsix.domains.stack import StackDomain
from vbsix.evaluation.training_search import MOST_SEARCHED, search_training_example
from vbsix.models.heads import Networks
from vbsix.training.forward_backward import forward_backward
from vbsix.training.value_examples import graph_value_examples
from vbsix.utilities.trees import choose

STATES = 120
"""Sampled for each seed, half of them with reward and half without, if there are that many."""


class ValuedStates(NamedTuple):
    """States and the critic's values of them."""

    mask: Bool[Any, "*N"]
    reward: Float[Any, "*N"]
    """Estimated: the probability of all that the search found to lead from the state to the target."""
    value: Float[Any, "*N"]
    differences: Int[Any, "*N"]
    """Places at which the current world and the target differ. A command changes two of scene at most."""
    objects: Int[Any, "*N"]
    """In scene, people in the current world."""


RULES = {
    "many differences": (
        lambda states: (states.reward == 0) & (states.differences > 2),
        lambda states: states.value < 0.2,
    ),
    "one difference": (
        lambda states: (states.reward == 0) & (states.differences == 1),
        lambda states: states.value > 0.5,
    ),
    "few people": (
        lambda states: (states.reward > 0.7) & (states.objects <= 2),
        lambda states: states.value > 0.5,
    ),
    "many people": (
        lambda states: (states.reward > 0.7) & (states.objects > 2),
        lambda states: states.value < 0.5,
    ),
}
"""Which states the paper describes, and what it says about the critic there."""


def analyse_critic(dataset: Dataset, networks: Networks, config: Config) -> dict[str, dict[str, list[Any]]]:
    """For each rule and seed, how many states it covers, and for which share of them it holds."""
    assert isinstance(dataset.domain, StackDomain) and networks.critic is not None
    longest = [one for one in dataset.examples if len(one.instructions) == dataset.most_instructions][:MOST_SEARCHED]
    found = _value_states(dataset.domain, config, networks, jnp.asarray(dataset.words.vectors), dataset.arrays(longest))
    by_seed = zip(*(np.asarray(leaf).reshape(len(leaf), -1) for leaf in found), strict=True)
    return apply_rules([sample_states(ValuedStates(*leaves)) for leaves in by_seed])


def apply_rules(by_seed: Sequence[ValuedStates]) -> dict[str, dict[str, list[Any]]]:
    """See `analyse_critic`."""
    held = {name: [holds(states)[concerns(states)] for states in by_seed] for name, (concerns, holds) in RULES.items()}
    return {
        name: {
            "states": [len(of_seed) for of_seed in seeds],
            "share": [float(of_seed.mean()) if len(of_seed) else None for of_seed in seeds],
        }
        for name, seeds in held.items()
    }


def sample_states(states: ValuedStates) -> ValuedStates:
    """Some of the clear-cut states, always the same."""
    error = np.abs(states.value - states.reward)
    clear = states.mask & ((error < 0.2) | (error > 0.5))
    random = np.random.default_rng(0)
    places = [np.flatnonzero(clear & kind) for kind in (states.reward == 0, states.reward > 0.7)]
    some = [random.choice(each, min(STATES // 2, len(each)), replace=False) for each in places]
    return choose(states, np.concatenate(some))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _value_states(
    domain: StackDomain, config: Config, networks: Networks, vectors: Array, examples: Arrays
) -> ValuedStates:
    """Leaves [S, examples, states]."""

    def of_seed(networks: Networks) -> ValuedStates:
        def of_example(example: Arrays) -> ValuedStates:
            heads, graph = search_training_example(domain, config, networks, vectors, example)
            assert heads.critic is not None
            states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), graph.beam.states)
            last = jax.vmap(domain.instructions_done)(states) == example.instructions - 1
            labelled = graph_value_examples(graph, forward_backward(graph), last, size=config.training.value_states)
            states = choose(states, labelled.vertices)
            target = domain.appearance(example.target)
            return ValuedStates(
                labelled.mask,
                labelled.labels,
                jax.vmap(heads.critic)(states),
                jax.vmap(lambda state: jnp.sum(domain.appearance(state.world) != target))(states),
                jax.vmap(lambda state: jnp.sum(domain.present(state.world)))(states),
            )

        return jax.lax.map(of_example, examples, batch_size=config.training.batch)

    return jax.lax.map(of_seed, networks)
