"""How well a critic judges states: the paper's appendix on the value network, by rules instead of by hand.

Looked at are states of the last instruction that searches for training examples come to, and that are clear-cut: the
estimated reward is 0 or above 0.7, and the critic is off by less than 0.2 or by more than 0.5.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from vbsix.data.examples import Arrays
from vbsix.domains.stack import StackDomain
from vbsix.search.merging import choose
from vbsix.training.config import Config
from vbsix.training.objectives import correct_flow
from vbsix.training.spurious import MOST_SEARCHED, search_example
from vbsix.training.step import Networks
from vbsix.training.task import Task
from vbsix.training.values import label_graph

STATES = 120
"""Drawn for each seed, half of them with reward and half without, as far as there are so many."""


class Judged(NamedTuple):
    """States and what the critic thinks of them."""

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
"""Which states the paper speaks of, and what it says of the critic there."""


def judge(task: Task, networks: Networks) -> dict[str, dict[str, list[Any]]]:
    """For each rule and seed, of how many states it speaks, and for which share of them it holds."""
    assert isinstance(task.domain, StackDomain) and networks.critic is not None
    longest = [one for one in task.examples if len(one.instructions) == task.most_instructions][:MOST_SEARCHED]
    found = _judge(task.domain, task.config, networks, jnp.asarray(task.words.vectors), task.arrays(longest))
    by_seed = zip(*(np.asarray(leaf).reshape(len(leaf), -1) for leaf in found), strict=True)
    return apply_rules([draw(Judged(*leaves)) for leaves in by_seed])


def apply_rules(by_seed: Sequence[Judged]) -> dict[str, dict[str, list[Any]]]:
    """See `judge`."""
    held = {name: [holds(states)[concerns(states)] for states in by_seed] for name, (concerns, holds) in RULES.items()}
    return {
        name: {
            "states": [len(of_seed) for of_seed in seeds],
            "share": [float(of_seed.mean()) if len(of_seed) else None for of_seed in seeds],
        }
        for name, seeds in held.items()
    }


def draw(states: Judged) -> Judged:
    """Some of the clear-cut states, always the same."""
    error = np.abs(states.value - states.reward)
    clear = states.mask & ((error < 0.2) | (error > 0.5))
    random = np.random.default_rng(0)
    places = [np.flatnonzero(clear & kind) for kind in (states.reward == 0, states.reward > 0.7)]
    some = [random.choice(each, min(STATES // 2, len(each)), replace=False) for each in places]
    return choose(states, np.concatenate(some))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _judge(domain: StackDomain, config: Config, networks: Networks, vectors: Array, examples: Arrays) -> Judged:
    """Leaves [S, examples, states]."""

    def of_seed(networks: Networks) -> Judged:
        def of_example(example: Arrays) -> Judged:
            heads, graph = search_example(domain, config, networks, vectors, example)
            assert heads.critic is not None
            states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), graph.beam.states)
            last = jax.vmap(domain.instructions_done)(states) == example.instructions - 1
            labelled = label_graph(graph, correct_flow(graph), last, size=config.training.value_states)
            states = choose(states, labelled.vertices)
            target = domain.appearance(example.target)
            return Judged(
                labelled.mask,
                labelled.labels,
                jax.vmap(heads.critic)(states),
                jax.vmap(lambda state: jnp.sum(domain.appearance(state.world) != target))(states),
                jax.vmap(lambda state: jnp.sum(domain.present(state.world)))(states),
            )

        return jax.lax.map(of_example, examples, batch_size=config.training.batch)

    return jax.lax.map(of_seed, networks)
