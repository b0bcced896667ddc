"""One training step: the paper's Algorithm 2, for a batch of examples and one seed.

All methods are this step: search finds programs, the policy learns from them and, where there is one, the critic
learns from the states on their way. The methods differ in who searches where, and in what is done with the finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain, State
from vbsix.models import Critic, Policy
from vbsix.models.critic import CriticTables
from vbsix.models.encoder import encode_all
from vbsix.models.policy import PolicyTables
from vbsix.search import Graph, Problem, Programs, extract_negatives, program_search, sample_programs
from vbsix.search.beam import INVALID, is_late
from vbsix.search.beam import Critic as SearchCritic
from vbsix.search.beam import Policy as SearchPolicy
from vbsix.search.graph import join
from vbsix.search.merging import choose
from vbsix.search.sampling import drawing
from vbsix.search.statistics import correct_discarded
from vbsix.training.config import Config
from vbsix.training.devices import add_up
from vbsix.training.objectives import (
    Flow,
    correct_flow,
    graph_loss,
    mml_loss,
    reinforce_loss,
    sequence_log_probability,
    value_loss,
)
from vbsix.training.values import label_graph, label_programs


class Networks(NamedTuple):
    """What is trained."""

    policy: Policy
    critic: Critic | None
    expert: Policy | None
    """The policy that sees the target, for Expert-MML."""


class Learner(NamedTuple):
    """A seed's networks and their optimiser."""

    networks: Networks
    optimiser: optax.OptState


class Mean(NamedTuple):
    """A mean in the making: totals and counts add up over examples and steps."""

    total: Float[Array, "*batch"]
    count: Float[Array, "*batch"]


Metrics = dict[str, Mean]
Keys = Key[Array, " n"]
"""Randomness of the examples of a batch."""


def create_networks(domain: Domain, config: Config, key: PRNGKeyArray) -> Networks:
    """Freshly drawn networks."""
    policy_key, critic_key, expert_key = jax.random.split(key, 3)
    expert = config.training.objective == "expert"
    return Networks(
        policy=Policy(domain, config.network, key=policy_key),
        critic=Critic(domain, config.network, key=critic_key) if config.training.critic else None,
        expert=Policy(domain, config.network, key=expert_key, sees_target=True) if expert else None,
    )


def create_optimiser(config: Config) -> optax.GradientTransformation:
    return optax.adam(config.training.learning_rate)


def create_learner(domain: Domain, config: Config, seed: Int[Array, ""]) -> Learner:
    """A seed's learner before the first step."""
    networks = create_networks(domain, config, jax.random.fold_in(jax.random.key(0), seed))
    return Learner(networks, create_optimiser(config).init(eqx.filter(networks, eqx.is_array)))


def train_step(
    domain: Domain,
    config: Config,
    learner: Learner,
    vectors: Float[Array, "V word"],
    examples: Arrays,
    key: PRNGKeyArray,
    number: Int[Array, ""],
    *,
    critic_ranks: bool,
) -> tuple[Learner, Metrics]:
    """Draws a batch, searches, and updates the networks.

    Args:
        domain: the language.
        config: all settings.
        learner: the networks so far.
        vectors: the vectors of all words.
        examples: the training examples, all of them; the shortest come first where they are drawn first.
        key: randomness of this step and seed.
        number: of the step: the learning rate may depend on it, and not all is measured in every one.
        critic_ranks: whether the critic ranks states yet.
    """
    size = config.training.batch
    batch_key, search_key, drop_key = jax.random.split(key, 3)
    chosen = jax.random.randint(batch_key, (size,), 0, _drawn_from(config, examples, number))
    batch = choose(jax.tree.map(jnp.asarray, examples), chosen)
    keys = jax.random.split(search_key, size), jax.random.split(drop_key, size)
    learn = _learn_from_samples if config.training.objective == "reinforce" else _learn_from_search

    def of_part(needed: tuple[Networks, Array], part: tuple[Arrays, Keys, Keys]) -> tuple[Networks, Metrics]:
        """The gradient and the metrics of some of the batch's examples."""
        networks, vectors = needed

        def loss(networks: Networks) -> tuple[Float[Array, ""], Metrics]:
            def of_example(example: Arrays, key: PRNGKeyArray, drop_key: PRNGKeyArray):
                reading = read_example(domain, networks, vectors, example, config.training.dropout, drop_key)
                heads = make_heads(domain, networks, reading)
                frozen = make_heads(domain, stop_gradient(networks), stop_gradient(reading))
                return learn(domain, config, heads, frozen, example, key, number, critic_ranks)

            losses, metrics = jax.vmap(of_example)(*part)
            return jnp.sum(losses) / size, jax.tree.map(jnp.sum, metrics)

        return jax.grad(loss, has_aux=True)(networks)

    gradients, metrics = add_up(of_part, domain, size)((learner.networks, vectors), (batch, *keys))
    updates, optimiser = create_optimiser(config).update(gradients, learner.optimiser)
    if config.training.decay_share:
        updates = optax.tree.scale(_decayed(config, number), updates)
    metrics["gradient_norm"] = Mean(optax.tree.norm(gradients), jnp.float32(1))
    updated = Learner(eqx.apply_updates(learner.networks, updates), optimiser)
    if config.training.objective != "reinforce":
        # A batch without a find changes nothing. Else Adam, which measures gradients by their recent size, would make
        # the first find after many steps without one a leap that leaves the policy peaked.
        hit = metrics["hit"].total > 0
        updated = jax.tree.map(lambda new, old: jnp.where(hit, new, old), updated, learner)
    return updated, metrics


def _drawn_from(config: Config, examples: Arrays, number: Int[Array, ""]) -> int | Int[Array, ""]:
    """How many of the examples a step may draw."""
    every = examples.instructions.shape[0]
    if not config.training.short_first:
        return every
    shortest = jnp.sum(examples.instructions == examples.instructions[0])
    return jnp.where(number < config.training.short_first, shortest, every)


def _decayed(config: Config, number: Int[Array, ""]) -> Float[Array, ""]:
    """How much of the learning rate is left at a step."""
    steps = config.training.steps
    return jnp.clip((steps - number) / (config.training.decay_share * steps), 0.0, 1.0)


class Reading(NamedTuple):
    """What the networks have read of an example: the tables that its states share."""

    policy: PolicyTables
    critic: CriticTables | None
    expert: PolicyTables | None


class Heads(NamedTuple):
    """The networks as functions of one state of an example."""

    policy: SearchPolicy
    critic_logit: Callable[[Any], Float[Array, ""]] | None
    expert: SearchPolicy | None

    @property
    def actor(self) -> SearchPolicy:
        """Who searches: the expert where there is one."""
        return self.expert or self.policy

    @property
    def critic(self) -> SearchCritic | None:
        """The value of a state, as search takes it."""
        logit = self.critic_logit
        return (lambda state: jax.nn.sigmoid(logit(state))) if logit is not None else None


def read_example(
    domain: Domain,
    networks: Networks,
    vectors: Float[Array, "V word"],
    example: Arrays,
    dropout: float = 0.0,
    key: PRNGKeyArray | None = None,
) -> Reading:
    """Reads an example's words once, for all its states; with `dropout`, which needs a key, not all of them."""
    policy, critic, expert = networks
    encoders = [policy.utterances, *(critic.encoders if critic else []), *([expert.utterances] if expert else [])]
    keys = iter(jax.random.split(key, 3)) if key is not None else None

    def drop(numbers: Array) -> Array:
        return eqx.nn.Dropout(dropout)(numbers, key=next(keys)) if dropout and keys else numbers

    utterances, *others = encode_all(encoders, drop(vectors[example.words]), example.words > 0)
    utterances = utterances._replace(summary=drop(utterances.summary), memory=drop(utterances.memory))
    target = domain.observe_target(example.target)
    return Reading(
        policy.prepare(utterances),
        critic.prepare(policy, utterances, others, example.instructions, target) if critic else None,
        expert.prepare(others[-1], target) if expert else None,
    )


def make_heads(domain: Domain, networks: Networks, reading: Reading) -> Heads:
    """The networks as functions of one state of the example that was read."""
    critic = expert = None
    if networks.critic is not None and reading.critic is not None:
        critic = networks.critic.logit_for_example(domain, reading.critic)
    if networks.expert is not None and reading.expert is not None:
        expert = networks.expert.for_example(domain, reading.expert)
    return Heads(networks.policy.for_example(domain, reading.policy), critic, expert)


def _learn_from_search(
    domain: Domain,
    config: Config,
    heads: Heads,
    frozen: Heads,
    example: Arrays,
    key: PRNGKeyArray,
    number: Int[Array, ""],
    critic_ranks: bool,
) -> tuple[Float[Array, ""], Metrics]:
    """The loss on one example of all methods that search, and what was measured; `frozen` heads have no gradient."""
    problem = Problem(example.world, example.instructions, example.target)
    programs, graph = program_search(
        domain,
        frozen.actor,
        frozen.critic if critic_ranks else None,
        problem,
        key,
        instructions=example.words.shape[0],
        config=config.search,
    )
    flow = own_flow = stop_gradient(correct_flow(graph))
    if heads.expert is not None:  # whose finds the policy weighs by its own probabilities
        every = jnp.arange(graph.expansion.kind[..., 0].size)
        log_policy = jax.vmap(frozen.policy)(*_expanded(domain, config, graph, every))
        own_flow = stop_gradient(correct_flow(graph, log_policy.reshape(graph.expansion.kind.shape)))
    policy_loss, metrics = _policy_loss(domain, config, heads.policy, programs, graph, own_flow)
    loss = policy_loss
    if heads.expert is not None:
        expert_loss, _ = _policy_loss(domain, config, heads.expert, programs, graph, flow)
        loss += expert_loss
        metrics["expert_loss"] = _always(expert_loss)
    if heads.critic_logit is not None:
        critic_loss, critic_metrics = _critic_loss(domain, config, heads.critic_logit, problem, programs, graph, flow)
        loss += critic_loss
        metrics |= critic_metrics
    return loss, metrics | _search_metrics(config, graph, example, number)


def _policy_loss(
    domain: Domain, config: Config, policy: SearchPolicy, programs: Programs, graph: Graph, flow: Flow
) -> tuple[Float[Array, ""], Metrics]:
    """MML on what was found. The policy is evaluated with a gradient on the distinct states that matter."""
    iterations, beam, tokens = graph.expansion.kind.shape
    size = min(config.training.policy_states, iterations * beam)
    if config.training.programs == "graph":
        weight = jnp.sum(flow.posterior, axis=-1).reshape(-1)
        chosen, _ = _most_important(weight, size)
        log_policy = jax.vmap(policy)(*_expanded(domain, config, graph, chosen))
        posterior = flow.posterior.reshape(-1, tokens)[chosen]
        loss = graph_loss(log_policy, posterior, flow.log_reward[0, 0], alpha=config.training.alpha)
        lost = jnp.sum(weight) - jnp.sum(posterior)
        return loss, {"policy_loss": _always(loss), "lost_weight": _always(lost)}
    # The first programs are the most probable: should places run out, the states of the last go without.
    rank = jnp.arange(programs.tokens.shape[0], 0, -1, dtype=jnp.float32)[:, None]
    visited = jnp.where(programs.vertices >= 0, programs.vertices, iterations * beam)
    importance = jnp.zeros(iterations * beam).at[visited].max(jnp.broadcast_to(rank, visited.shape), mode="drop")
    chosen, place = _most_important(importance, size)
    places = place[jnp.maximum(programs.vertices, 0)]
    complete = programs.found & jnp.all((programs.vertices < 0) | (places >= 0), axis=1)
    log_policy = jax.vmap(policy)(*_expanded(domain, config, graph, chosen))[jnp.maximum(places, 0)]
    log_probability = sequence_log_probability(log_policy, programs.tokens)
    loss = mml_loss(log_probability, complete, alpha=config.training.alpha, beta=config.training.beta)
    found = jnp.sum(programs.found)
    lost = jnp.sum(programs.found & ~complete)
    return loss, {
        "policy_loss": _always(loss),
        "programs": _always(found),
        "lost_programs": _always(lost),
    }


def _expanded(
    domain: Domain, config: Config, graph: Graph, chosen: Int[Array, " n"]
) -> tuple[State, Bool[Array, "n A"]]:
    """Vertices of the graph, and which tokens are valid there: those to dead ends too, as for the search's policy."""
    expanded = graph.beam.states, graph.expansion.kind != INVALID
    states, valid = choose(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), expanded), chosen)
    return states, jax.vmap(domain.expand)(states)[1] if config.search.prune else valid


def _most_important(weight: Float[Array, " V"], size: int) -> tuple[Int[Array, " size"], Int[Array, " V"]]:
    """The vertices of largest weight, and the place of each vertex among them, -1 if it has none."""
    largest, chosen = jax.lax.top_k(weight, size)
    places = jnp.where(largest > 0, jnp.arange(size, dtype=jnp.int32), -1)
    return chosen, jnp.full(weight.shape[0], -1, jnp.int32).at[chosen].set(places)


def _critic_loss(
    domain: Domain,
    config: Config,
    logit: Callable[[Any], Array],
    problem: Problem,
    programs: Programs,
    graph: Graph,
    flow: Flow,
) -> tuple[Float[Array, ""], Metrics]:
    """The critic's log-loss on states of the last instructions."""
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), graph.beam.states)
    late = is_late(domain, problem, states, config.search)
    size, metrics = config.training.value_states, {}
    if config.training.labels == "graph":
        examples = label_graph(graph, flow, late, size=size)
    else:
        negatives = extract_negatives(graph, config.search.negatives, config.search.space)
        paper = config.training.labels == "paper"
        examples = label_programs(graph, programs, negatives.programs, late, paper=paper, size=size)
        metrics["dropped_negatives"] = _always(negatives.dropped)
    examples = stop_gradient(examples)
    logits = jax.vmap(logit)(choose(states, examples.vertices))
    loss = value_loss(logits, examples.labels, examples.mask)
    error = jnp.abs(jax.nn.sigmoid(logits) - examples.labels)
    return loss, metrics | {
        "critic_loss": _always(loss),
        "value_error": _over(error, examples.mask),
        "value_error_high": _over(error, examples.mask & (examples.labels > 0.7)),
        "value_states": _always(jnp.sum(examples.mask)),
        "dropped_value_states": _always(examples.dropped),
    }


DISCARDED_EVERY = 50
"""Steps between two at which correct discarded states are counted, which costs more than it tells in every one."""


def _search_metrics(config: Config, graph: Graph, example: Arrays, number: Int[Array, ""]) -> Metrics:
    active = jnp.any(graph.beam.alive, axis=1)
    metrics = {"hit": _always(graph.hit), "paths": _over(jnp.sum(graph.beam.paths, axis=1), active)}
    if config.search.space == "execution":
        counts = number % DISCARDED_EVERY == 0
        discarded = jax.lax.cond(counts, lambda: correct_discarded(graph, join(graph, "execution")), lambda: 0)
        metrics["correct_discarded"] = _over(discarded, counts)
    return _with_longest(metrics, example) | {"late_share": _over(graph.expansion.late, active)}


def _learn_from_samples(
    domain: Domain,
    config: Config,
    heads: Heads,
    frozen: Heads,
    example: Arrays,
    key: PRNGKeyArray,
    number: Int[Array, ""],
    critic_ranks: bool,
) -> tuple[Float[Array, ""], Metrics]:
    """REINFORCE on one example."""
    del number, critic_ranks
    samples = sample_programs(
        domain,
        frozen.policy,
        Problem(example.world, example.instructions, example.target),
        key,
        instructions=example.words.shape[0],
        size=config.training.samples,
        epsilon=config.training.sample_epsilon,
    )

    # Of what the programs were drawn from, not of π alone: else what random tokens bring in for no reward is made ever
    # less probable, without end.
    def log_drawing(state: State, valid: Bool[Array, " A"]) -> Float[Array, " A"]:
        return drawing(heads.policy, state, valid, config.training.sample_epsilon)

    log_drawings = jax.vmap(jax.vmap(log_drawing))(samples.states, samples.valid)
    log_probability = sequence_log_probability(log_drawings, samples.tokens)
    loss = reinforce_loss(log_probability, samples.reward, config.training.baseline)
    hits = _with_longest({"hit": _always(jnp.any(samples.reward > 0))}, example)
    return loss, hits | {"policy_loss": _always(loss), "reward": _always(jnp.mean(samples.reward))}


def _with_longest(metrics: Metrics, example: Arrays) -> Metrics:
    """Metrics, and the same of examples of the greatest length alone."""
    longest = (example.instructions == example.words.shape[0]).astype(jnp.float32)
    return metrics | {f"{name}_longest": Mean(*(longest * part for part in mean)) for name, mean in metrics.items()}


def _always(value: Any) -> Mean:
    return Mean(jnp.asarray(value, jnp.float32), jnp.float32(1))


def _over(values: Float[Array, "*n"] | Int[Array, "*n"], mask: Bool[Array, "*n"]) -> Mean:
    return Mean(jnp.sum(jnp.where(mask, values, 0.0)), jnp.sum(mask).astype(jnp.float32))
