"""Maximum marginal likelihood, with or without a critic: the paper's MML and VBSiX (Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int

from vbsix.domains.base import State
from vbsix.models.functions import PolicyFunction, ValueFunction
from vbsix.search import Graph, Programs, extract_negatives, join, search_graph
from vbsix.search.beam import INVALID
from vbsix.search.program_search import find_programs
from vbsix.search.select import in_critic_window
from vbsix.search.statistics import correct_discarded, critic_window_share
from vbsix.training.forward_backward import CorrectPaths, graph_loss, tempered_paths
from vbsix.training.objective import Context, Metrics, always, over, with_longest
from vbsix.training.value_examples import build_value_examples, graph_value_examples, value_loss
from vbsix.utilities.settings import Number
from vbsix.utilities.trees import choose


def mml_objective(context: Context) -> tuple[Float[Array, ""], Metrics]:
    """Algorithm 2 for one example: search (line 5), then the losses of the policy and the critic (lines 6-8)."""
    found = search_example(context, context.frozen.policy, context.frozen.critic)
    loss, metrics = policy_loss(context, context.heads.policy, found)
    return with_critic(context, found, loss, metrics)


class Found(NamedTuple):
    """What a search found for an example; None for what no loss uses."""

    graph: Graph
    programs: Programs | None
    """Extracted programs."""
    paths: CorrectPaths | None
    """All correct paths of the layered graph."""


def search_example(context: Context, actor: PolicyFunction, critic: ValueFunction | None) -> Found:
    """Algorithm 2, line 5: ProgramSearch, and our sums over the graph."""
    training, search = context.config.training, context.config.search
    graph = search_graph(
        context.domain,
        actor,
        critic,
        context.problem,
        context.key,
        instructions=context.instructions,
        config=search,
        critic_ranks=context.critic_ranks,
        longest=context.longest,
    )
    paper_labels, graph_labels = (training.critic and training.labels == name for name in ("paper", "graph"))
    needs_programs = training.programs == "extracted" or paper_labels
    needs_paths = training.programs == "graph" or graph_labels
    return Found(
        graph,
        find_programs(context.domain, graph, context.problem, search) if needs_programs else None,
        stop_gradient(correct_paths(context, graph)) if needs_paths else None,
    )


def correct_paths(context: Context, graph: Graph, log_policy: Float[Array, "L K A"] | None = None) -> CorrectPaths:
    """All correct paths, weighed by the probabilities that the search used, or by another policy's."""
    return tempered_paths(graph, log_policy, context.beta, context.config.training.length_penalty)


def policy_loss(context: Context, policy: PolicyFunction, found: Found) -> tuple[Float[Array, ""], Metrics]:
    """MML on what was found; the policy is evaluated on at most `policy_states` vertices."""
    if context.config.training.programs == "graph":
        assert found.paths is not None
        return _graph_policy_loss(context, policy, found.graph, found.paths)
    assert found.programs is not None
    return _program_policy_loss(context, policy, found.graph, found.programs)


def _program_policy_loss(
    context: Context, policy: PolicyFunction, graph: Graph, programs: Programs
) -> tuple[Float[Array, ""], Metrics]:
    """The paper's: the loss on extracted programs."""
    vertices = graph.beam.log_chart.size
    # Programs are sorted by probability: if there are more states than `policy_states`, the last programs are dropped.
    priority = jnp.arange(programs.tokens.shape[0], 0, -1, dtype=jnp.float32)[:, None]
    visited = jnp.where(programs.vertices >= 0, programs.vertices, vertices)
    importance = jnp.zeros(vertices).at[visited].max(jnp.broadcast_to(priority, visited.shape), mode="drop")
    chosen, place = most_important(importance, min(context.config.training.policy_states, vertices))
    places = place[jnp.maximum(programs.vertices, 0)]
    complete = programs.found & jnp.all((programs.vertices < 0) | (places >= 0), axis=1)
    log_policy = jax.vmap(policy)(*expanded_states(graph, chosen))[jnp.maximum(places, 0)]
    log_probability = sequence_log_probability(log_policy, programs.tokens)
    loss = mml_loss(log_probability, complete, beta=context.beta)
    return loss, {
        "policy_loss": always(loss),
        "programs": always(jnp.sum(programs.found)),
        "dropped_programs": always(jnp.sum(programs.found & ~complete)),
    }


def _graph_policy_loss(
    context: Context, policy: PolicyFunction, graph: Graph, paths: CorrectPaths
) -> tuple[Float[Array, ""], Metrics]:
    """Ours: the loss on all correct paths of the layered graph."""
    tokens, vertices = graph.expansion.kind.shape[-1], graph.beam.log_chart.size
    weight = jnp.sum(paths.posterior, axis=-1).reshape(-1)
    chosen, _ = most_important(weight, min(context.config.training.policy_states, vertices))
    log_policy = jax.vmap(policy)(*expanded_states(graph, chosen))
    posterior = paths.posterior.reshape(-1, tokens)[chosen]
    loss = graph_loss(log_policy, posterior)
    return loss, {"policy_loss": always(loss), "dropped_weight": always(jnp.sum(weight) - jnp.sum(posterior))}


def with_critic(
    context: Context, found: Found, loss: Float[Array, ""], metrics: Metrics
) -> tuple[Float[Array, ""], Metrics]:
    """The policy's loss and the critic's, where there is one, and the metrics of the search."""
    if context.heads.critic_logit is not None:
        critic_loss, critic_metrics = value_network_loss(context, found)
        loss, metrics = loss + critic_loss, metrics | critic_metrics
    return loss, metrics | search_metrics(context, found.graph)


def value_network_loss(context: Context, found: Found) -> tuple[Float[Array, ""], Metrics]:
    """Algorithm 2, lines 6-8: the critic's log-loss on states of its window."""
    assert context.heads.critic_logit is not None
    graph, config = found.graph, context.config
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), graph.beam.states)
    in_window = in_critic_window(context.domain, context.problem, states, config.search.critic_window)
    size, metrics = config.training.value_states, {}
    if config.training.labels == "graph":
        assert found.paths is not None
        examples = graph_value_examples(graph, found.paths, in_window, size=size)
    else:
        assert found.programs is not None
        negatives = extract_negatives(graph, config.search.negatives)
        examples = build_value_examples(graph, found.programs, negatives.programs, in_window, size=size)
        metrics["dropped_negatives"] = always(negatives.dropped)
    examples = stop_gradient(examples)
    logits = jax.vmap(context.heads.critic_logit)(choose(states, examples.vertices))
    loss = value_loss(logits, examples.labels, examples.mask)
    error = jnp.abs(jax.nn.sigmoid(logits) - examples.labels)
    return loss, metrics | {
        "critic_loss": always(loss),
        "value_error": over(error, examples.mask),
        "value_error_high": over(error, examples.mask & (examples.labels > 0.7)),
        "value_states": always(jnp.sum(examples.mask)),
        "dropped_value_states": always(examples.dropped),
    }


DISCARDED_EVERY = 50
"""Steps between counts of correct discarded states, which are expensive."""


def search_metrics(context: Context, graph: Graph) -> Metrics:
    """The metrics of a search."""
    active = jnp.any(graph.beam.alive, axis=1)
    metrics = {"hit": always(graph.hit), "paths": over(jnp.sum(graph.beam.paths, axis=1), active)}
    if context.config.search.space == "execution":
        counts = context.step % DISCARDED_EVERY == 0
        discarded = jax.lax.cond(counts, lambda: correct_discarded(graph, join(graph, "execution")), lambda: 0)
        metrics["correct_discarded"] = over(discarded, counts)
    metrics = with_longest(metrics, context.example)
    if context.config.training.critic:
        share = critic_window_share(context.domain, context.problem, graph, context.config.search.critic_window)
        metrics["critic_window_share"] = over(share, active)
    return metrics


def mml_weights(log_probability: Float[Array, " P"], beta: Number = 1.0) -> Float[Array, " P"]:
    """q(z) ∝ p(z)^β over the programs given; -inf marks a place without a program. β = 1 is MML's own weight."""
    found = jnp.isfinite(log_probability)
    scaled = jnp.where(found, beta * log_probability, -jnp.inf)
    return jnp.where(jnp.any(found), jax.nn.softmax(jnp.where(jnp.any(found), scaled, 0.0)), 0.0)


def mml_loss(log_probability: Float[Array, " P"], found: Bool[Array, " P"], *, beta: Number = 1.0) -> Float[Array, ""]:
    """-Σ q(z) log p(z) over correct programs, whose gradient for β = 1 is that of -log Σ p(z).

    Args:
        log_probability: log p(z), with a gradient.
        found: which places hold a program.
        beta: see `mml_weights`; below 1, improbable programs count for more (Guu et al.'s meritocratic update).
    """
    weights = mml_weights(stop_gradient(jnp.where(found, log_probability, -jnp.inf)), beta)
    return -jnp.sum(weights * jnp.where(found, log_probability, 0.0))


def sequence_log_probability(log_policy: Float[Array, "P L A"], tokens: Int[Array, "P L"]) -> Float[Array, " P"]:
    """The log-probability of each sequence of tokens, given log π in the state before each."""
    chosen = jnp.take_along_axis(log_policy, jnp.maximum(tokens, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(tokens >= 0, chosen, 0.0), axis=-1)


def expanded_states(graph: Graph, vertices: Int[Array, " n"]) -> tuple[State, Bool[Array, "n A"]]:
    """Vertices of the graph, and which tokens are valid there, those that lead to dead ends included."""
    expanded = graph.beam.states, graph.expansion.kind != INVALID
    return choose(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), expanded), vertices)


def most_important(weight: Float[Array, " V"], size: int) -> tuple[Int[Array, " size"], Int[Array, " V"]]:
    """The vertices of largest weight, and the place of each vertex among them, -1 if it has none."""
    largest, chosen = jax.lax.top_k(weight, size)
    places = jnp.where(largest > 0, jnp.arange(size, dtype=jnp.int32), -1)
    return chosen, jnp.full(weight.shape[0], -1, jnp.int32).at[chosen].set(places)
