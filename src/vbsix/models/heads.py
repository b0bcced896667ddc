"""Networks as functions of one state of an example. Search, training and prediction all get them here."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from vbsix.data.examples import Arrays
from vbsix.data.words import PADDING, UNKNOWN
from vbsix.domains.base import Domain, Target
from vbsix.models.config import POLICIES, NetworkConfig
from vbsix.models.critic import Critic, CriticTables, TrainedCritic
from vbsix.models.encoder import StackEncoder, encode_all
from vbsix.models.ensemble import Ensemble
from vbsix.models.functions import AttentionFunction, PolicyFunction, ValueFunction
from vbsix.models.policy import PolicyNetwork
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.settings import Number, is_off


class Networks(NamedTuple):
    """What is trained."""

    policy: PolicyNetwork
    critic: Critic | None
    expert: PolicyNetwork | None
    """The policy that sees the target, for Expert-MML."""


class Tables(NamedTuple):
    """What the networks compute once for all states of an example."""

    policy: Any
    critic: CriticTables | None = None
    expert: Any = None


class Heads(NamedTuple):
    """The networks as functions of one state of an example."""

    policy: PolicyFunction
    critic_logit: ValueFunction | None = None
    expert: PolicyFunction | None = None

    @property
    def actor(self) -> PolicyFunction:
        """The policy that searches: the expert where there is one."""
        return self.expert or self.policy

    @property
    def critic(self) -> ValueFunction | None:
        """V of a state."""
        return None if self.critic_logit is None else sigmoid_head(self.critic_logit)


def sigmoid_head(logit: ValueFunction) -> ValueFunction:
    """V of a state, from the critic's logit."""
    return lambda state: jax.nn.sigmoid(logit(state))


def create_networks(
    domain: Domain, config: NetworkConfig, key: PRNGKeyArray, *, critic: bool, expert: bool
) -> Networks:
    """Networks with initial parameters."""
    policy_key, critic_key, expert_key = jax.random.split(key, 3)
    policy = POLICIES.get(config.policy)
    networks = Networks(
        policy=policy(domain, config, key=policy_key),
        critic=Critic(domain, config, key=critic_key) if critic else None,
        expert=policy(domain, config, key=expert_key, sees_target=True) if expert else None,
    )
    for path, leaf in jax.tree_util.tree_leaves_with_path(networks):
        if not eqx.is_array(leaf):
            raise VbsixError(
                f"network.policy: {config.policy} has {leaf!r} at {jax.tree_util.keystr(path)}, which is not an array "
                "and cannot be trained; declare it as eqx.field(static=True)."
            )
    return networks


def read_example(
    domain: Domain,
    networks: Networks,
    vectors: Float[Array, "V word"],
    example: Arrays,
    dropout: Number = 0.0,
    key: PRNGKeyArray | None = None,
    *,
    word_dropout: Number = 0.0,
    context_dropout: Number = 0.0,
) -> Tables:
    """Reads an example's words once, for all its states; dropout needs a key.

    Args:
        domain: the language.
        networks: what reads.
        vectors: the vectors of all words.
        example: the example.
        dropout: the share of numbers that are dropped, of word vectors and of the policy's encodings.
        key: what is dropped.
        word_dropout: the share of words that are read as unknown ones.
        context_dropout: how often the policy does not see the context.
    """
    policy, critic, expert = networks
    encoders = [
        policy.utterances,
        *([critic.next_utterance] if critic else []),
        *([expert.utterances] if expert else []),
    ]
    keys = iter(jax.random.split(key, 3)) if key is not None else None

    def drop(numbers: Array) -> Array:
        if keys is None or is_off(dropout):
            return numbers
        return eqx.nn.Dropout(dropout)(numbers, key=next(keys))  # pyright: ignore[reportArgumentType] (an array will do)

    words = example.words
    if key is not None and not is_off(word_dropout):
        unread = jax.random.bernoulli(jax.random.fold_in(key, 3), word_dropout, words.shape)
        words = jnp.where(unread & (words > PADDING), UNKNOWN, words)
    utterances, *others = encode_all(encoders, drop(vectors[words]), words > PADDING)
    utterances = utterances._replace(summary=drop(utterances.summary), memory=drop(utterances.memory))
    target = domain.observe_target(example.target)
    read = policy.prepare(utterances)
    if key is not None and not is_off(context_dropout) and (context := getattr(read, "context", None)) is not None:
        seen = jax.random.bernoulli(jax.random.fold_in(key, 4), 1 - context_dropout)
        read = read._replace(context=context._replace(output=jnp.where(seen, context.output, 0.0)))
    return Tables(
        read,
        critic.prepare(stack_encoder(policy), utterances, others[0], example.instructions, target) if critic else None,
        expert.prepare(others[-1], target) if expert else None,
    )


def stack_encoder(policy: PolicyNetwork) -> StackEncoder:
    """The policy's stack encoder, which the critic reads too."""
    stack = getattr(policy, "stack", None)
    if not isinstance(stack, StackEncoder):
        raise VbsixError("a policy network that is trained beside a critic needs a StackEncoder as `stack`.")
    return stack


def make_heads(domain: Domain, networks: Networks, tables: Tables) -> Heads:
    """The networks as functions of one state of the example that was read."""
    critic = expert = None
    if networks.critic is not None and tables.critic is not None:
        critic = networks.critic.for_example(domain, tables.critic)
    if networks.expert is not None and tables.expert is not None:
        expert = networks.expert.for_example(domain, tables.expert)
    return Heads(networks.policy.for_example(domain, tables.policy), critic, expert)


def policy_head(
    domain: Domain, policy: PolicyNetwork | Ensemble, projections: Float[Any, "V projected"], words: Int[Any, "M T"]
) -> PolicyFunction:
    """A trained policy as a function of one state, for words given by the policy's projections of them."""
    projected, mask = jnp.asarray(projections)[words], jnp.asarray(words) > 0
    return policy.for_example(domain, policy.read(projected, mask))


def has_attention(policy: PolicyNetwork | Ensemble) -> bool:
    """Whether it says which words it attends to, as `Policy` does; a policy network of one's own need not."""
    return hasattr(policy.members if isinstance(policy, Ensemble) else policy, "attention_for_example")


def attention_head(
    domain: Domain, policy: Any, projections: Float[Array, "V projected"], words: Int[Any, "M T"]
) -> AttentionFunction:
    """The attention of a trained policy as a function of one state; that of an ensemble is its members' mean."""
    tables = policy.read(projections[words], jnp.asarray(words) > 0)
    return policy.attention_for_example(domain, tables)


def critic_tables(
    domain: Domain,
    policy: PolicyNetwork,
    projections: Float[Any, "V projected"],
    critic: TrainedCritic,
    words: Int[Any, "M T"],
    instructions: Int[Array, ""],
    target: Target,
) -> CriticTables:
    """What a parser's critic computes once for all states of an example."""
    mask = jnp.asarray(words) > 0
    utterances = policy.utterances.encode_projected(jnp.asarray(projections)[words], mask)
    network, projected = critic.network, jnp.asarray(critic.projections)[words]
    as_next = network.next_utterance.encode_projected(projected, mask)
    return network.prepare(stack_encoder(policy), utterances, as_next, instructions, domain.observe_target(target))
