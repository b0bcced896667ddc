"""The critic's training examples: the paper's BuildValueExamples (Algorithm 2, lines 9-15), and ours."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vbsix.search import Graph, Programs, same_vertex
from vbsix.training.forward_backward import CorrectPaths


class ValueExamples(NamedTuple):
    """States, as vertices of the search graph, with the expected reward estimated for them."""

    vertices: Int[Array, " N"]
    labels: Float[Array, " N"]
    mask: Bool[Array, " N"]
    """Which places hold an example."""
    dropped: Int[Array, ""]
    """Number of states left out because there were more than `size`."""


def build_value_examples(
    graph: Graph, positives: Programs, negatives: Programs, in_window: Bool[Array, " V"], *, size: int
) -> ValueExamples:
    """The paper's BuildValueExamples: an example for each distinct state that a program passes before its last token.

    Line 13: L[s] sums p(z_t..|z|) over the correct programs z and the t at which z_1..t leads to s. As in the paper,
    the product begins with z_t, the token that led to s, and a suffix is added once for each prefix that it continues.
    Ours, with every recipe: the start and terminal states are left out, only states in the critic's window count, and
    L[s] is at most 1.

    Args:
        graph: what the search discovered.
        positives: correct programs.
        negatives: programs that lead to incorrect terminal states.
        in_window: which vertices the critic is trained on.
        size: at most this many examples; states on correct programs are dropped last.
    """
    vertices, same = in_window.shape[0], same_vertex(graph, "execution")

    def states_of(programs: Programs) -> Int[Array, " PL"]:
        """The states passed after each token but the last, V for places without one."""
        inside = (programs.vertices >= 0) & (jnp.arange(programs.vertices.shape[1]) > 0)[None, :]
        passed = jnp.where(inside, programs.vertices, 0)
        return jnp.where(inside & in_window[passed], same[passed], vertices).reshape(-1)

    positive = states_of(positives)
    mass = jnp.exp(suffix_log_probability(graph, positives))
    with_token_before = jnp.concatenate([mass[:, :1], mass[:, :-1]], axis=1).reshape(-1)
    reward = jnp.minimum(jnp.zeros(vertices).at[positive].add(with_token_before, mode="drop"), 1.0)
    on_correct = jnp.zeros(vertices, bool).at[positive].set(True, mode="drop")
    included = on_correct.at[states_of(negatives)].set(True, mode="drop")
    return _choose(graph, reward, included, on_correct, size)


def graph_value_examples(
    graph: Graph, paths: CorrectPaths, in_window: Bool[Array, " V"], *, size: int
) -> ValueExamples:
    """Ours: one example for each distinct state expanded in the critic's window, whether a program passes it or not.

    The label of a state is the probability of all correct suffixes that the layered graph holds.
    """
    vertices, same = in_window.shape[0], same_vertex(graph, "execution")
    # A state at several iterations gets its largest sum: each is a lower bound, because of pruning.
    reward = jnp.zeros(vertices).at[same].max(jnp.exp(paths.log_reward.reshape(-1)))
    own = jnp.arange(vertices)
    included = graph.beam.alive.reshape(-1) & in_window & (same == own) & (own > 0)  # vertex 0 is the start
    return _choose(graph, reward, included, included & (reward > 0), size)


def value_loss(logits: Float[Array, " N"], labels: Float[Array, " N"], mask: Bool[Array, " N"]) -> Float[Array, ""]:
    """The critic's log-loss, summed over states."""
    log_loss = -labels * jax.nn.log_sigmoid(logits) - (1 - labels) * jax.nn.log_sigmoid(-logits)
    return jnp.sum(jnp.where(mask, log_loss, 0.0))


def suffix_log_probability(graph: Graph, programs: Programs) -> Float[Array, "P L"]:
    """The log-probability of the tokens from each state of the programs to the program's end."""
    tokens = graph.expansion.log_policy.shape[-1]
    flat = graph.expansion.log_policy.reshape(-1, tokens)
    chosen = flat[jnp.maximum(programs.vertices, 0), jnp.maximum(programs.tokens, 0)]
    chosen = jnp.where(programs.tokens >= 0, chosen, 0.0)
    return jnp.cumsum(chosen[:, ::-1], axis=1)[:, ::-1]


def _choose(
    graph: Graph, reward: Float[Array, " V"], included: Bool[Array, " V"], on_correct: Bool[Array, " V"], size: int
) -> ValueExamples:
    """Those on correct programs come first; within each group, keys give a pseudo-random order."""
    chance = graph.expansion.keys[..., 1].reshape(-1).astype(jnp.float32) / 2.0**33
    priority = jnp.where(included, 1.0 + on_correct + chance, 0.0)
    largest, chosen = jax.lax.top_k(priority, min(size, included.shape[0]))
    mask = largest > 0
    return ValueExamples(chosen, jnp.where(mask, reward[chosen], 0.0), mask, jnp.sum(included) - jnp.sum(mask))
