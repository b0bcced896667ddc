"""The policy π: the next token, from the current utterance and the program stack, and from the context if it is seen.

A policy network of one's own is a `PolicyNetwork`, registered with `vbsix.register_policy`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.domains.base import ContextObservation, Domain, Observation, State
from vbsix.models.config import NetworkConfig
from vbsix.models.context import ContextReader, ContextTables
from vbsix.models.encoder import Encoder, StackEncoder, StackTable, Utterances, create_encoder
from vbsix.models.functions import AttentionFunction, PolicyFunction
from vbsix.models.layers import MASKED, TOKENS, AttributeEmbedding, Dense, draw_embeddings, glorot, pick, renormalise
from vbsix.utilities.errors import VbsixError


@runtime_checkable
class PolicyNetwork(Protocol):
    """What a policy network has. One that is trained beside a critic also has a `StackEncoder` as `stack`."""

    utterances: Encoder

    def prepare(self, utterances: Utterances, *target: Any) -> Any:
        """Computes what all states of an example share, its tables; an expert policy also gets the target."""
        ...

    def read(self, projected: Float[Array, "M T projected"], mask: Bool[Array, "M T"]) -> Any:
        """Does the same for words given by their projections; see `Encoder.project`."""
        ...

    def for_example(self, domain: Domain, tables: Any) -> PolicyFunction:
        """The policy as a function of one state and its valid tokens."""
        ...


class PolicyTables(NamedTuple):
    """All that the states of an example share. `stack` and `query_logits` are the same for every example."""

    stack: StackTable
    """What the stack contributes to the first layer."""
    first: Float[Array, "M hidden"]
    """What each utterance, and the target, contribute to it."""
    query_logits: Float[Array, "hidden A"]
    """The logits of a query."""
    keys: Float[Array, "words hidden"]
    """What a query is compared with, for each word of all the utterances."""
    word_logits: Float[Array, "words A"]
    """The logits of attention to each of these words."""
    mask: Bool[Array, "M T"]
    """Which words are attended to."""
    token_bias: Float[Array, " A"] | None
    """The logits that the biases of W₁ and W₂ add."""
    word_bias: Float[Array, " words"] | None
    """The attention scores that the bias of W₃ adds."""
    context: ContextTables | None = None
    """What the context contributes to the second layer."""


class OutputBiases(eqx.Module):
    """The biases of W₁, W₂ and W₃, which the reference code has."""

    query: Float[Array, " token"]
    words: Float[Array, " token"]
    attention: Float[Array, " units"]


class Policy(eqx.Module):
    """The policy network; with `sees_target` the expert policy, which sees the target world too."""

    utterances: Encoder
    stack: StackEncoder
    target: AttributeEmbedding | None
    first: Dense
    """From utterance, stack and, where it is seen, target."""
    second: Dense
    tokens: Float[Array, "A token"]
    """E, the token embeddings."""
    from_query: Float[Array, "token hidden"]
    """W₁."""
    from_words: Float[Array, "token units"]
    """W₂."""
    attention: Float[Array, "units hidden"]
    """W₃."""
    biases: OutputBiases | None
    context: ContextReader | None
    config: NetworkConfig = eqx.field(static=True)

    def __init__(self, domain: Domain, config: NetworkConfig, *, key: PRNGKeyArray, sees_target: bool = False):
        keys = iter(jax.random.split(key, 9))
        units, stack = 2 * config.lstm, domain.slots * config.slot
        self.config = config
        self.target = AttributeEmbedding(domain, config, key=next(keys)) if sees_target else None
        target = self.target.width(domain.elements) if self.target else 0
        self.utterances = create_encoder(config, next(keys))
        self.stack = StackEncoder(domain, config, key=next(keys))
        self.first = Dense(units + stack + target, config.hidden, key=next(keys))
        self.second = Dense(config.hidden, config.hidden, key=next(keys))
        self.tokens = draw_embeddings(
            next(keys), TOKENS, len(domain.tokens), config.token, config.token_init_std, config
        )
        self.from_query = glorot(next(keys), (config.token, config.hidden))
        self.from_words = glorot(next(keys), (config.token, units))
        self.attention = glorot(next(keys), (units, config.hidden))
        token = jnp.zeros(config.token)
        self.biases = OutputBiases(token, token, jnp.zeros(units)) if config.output_biases else None
        # A key of its own: the other parameters are the same with and without context.
        self.context = ContextReader(domain, config, key=jax.random.fold_in(key, 9)) if config.context else None

    def encode(self, words: Float[Array, "M T word"], mask: Bool[Array, "M T"]) -> Utterances:
        """Reads the utterances of an example, given as word vectors."""
        return self.utterances.encode(words, mask)

    def prepare(self, utterances: Utterances, target: Int[Array, "elements attributes"] | None = None) -> PolicyTables:
        """All that the states of an example share; `target` (the domain's observation of it) is for the expert."""
        if (target is not None) != (self.target is not None):
            raise VbsixError("the expert policy needs the target, and no other policy may see it.")
        units = 2 * self.config.lstm
        from_utterance, from_stack, from_target = jnp.split(self.first.weight, [units, units + self.stack.width])
        first = utterances.summary @ from_utterance + self.first.bias[None, :]
        if self.target is not None and target is not None:
            first += self.target.table(from_target)(target)[None, :]
        memory = utterances.memory.reshape(-1, utterances.memory.shape[-1])
        return PolicyTables(
            stack=self.stack.table(from_stack),
            first=first,
            query_logits=(self.tokens @ self.from_query).T,
            keys=memory @ self.attention,
            word_logits=memory @ (self.tokens @ self.from_words).T,
            # An utterance without words has its padding read, which is zero.
            mask=utterances.mask | ~jnp.any(utterances.mask, axis=1, keepdims=True),
            token_bias=self.tokens @ (self.biases.query + self.biases.words) if self.biases else None,
            word_bias=memory @ self.biases.attention if self.biases else None,
            context=self.context.prepare(utterances) if self.context else None,
        )

    def log_probabilities(
        self,
        tables: PolicyTables,
        instruction: Int[Array, ""],
        observation: Observation,
        seen: ContextObservation | None = None,
    ) -> Float[Array, " A"]:
        """The log π of all tokens in one state of the example; `seen` is what a policy with context sees besides."""
        query, attention = self._attend(tables, instruction, observation, seen)
        logits = query @ tables.query_logits
        if tables.token_bias is not None:
            logits = logits + tables.token_bias
        return jax.nn.log_softmax(logits + attention @ tables.word_logits)

    def _attend(
        self,
        tables: PolicyTables,
        instruction: Int[Array, ""],
        observation: Observation,
        seen: ContextObservation | None,
    ) -> tuple[Float[Array, " hidden"], Float[Array, " words"]]:
        """The query of a state, and its attention to each word of all the utterances."""
        current = jnp.arange(tables.first.shape[0]) == instruction
        hidden = jax.nn.relu(pick(current, tables.first) + tables.stack(self._on_stack(observation)))
        second = self.second(hidden)
        if tables.context is not None and seen is not None:
            second += tables.context(instruction, tables.stack.slots(observation).reshape(-1), seen)
        query = jax.nn.relu(second)
        # Attention over the words of all utterances with those of the current one unmasked: one product for all
        # states instead of a gather for each.
        readable = (tables.mask & current[:, None]).reshape(-1)
        scores = tables.keys @ query
        if tables.word_bias is not None:
            scores = scores + tables.word_bias
        return query, jax.nn.softmax(jnp.where(readable, scores, MASKED))

    def _on_stack(self, observation: Observation) -> Observation:
        """The stack as the policy sees it without context."""
        if self.config.stack_attributes:
            return observation
        return observation._replace(objects=jnp.minimum(observation.objects, 1))

    def read(self, projected: Float[Array, "M T projected"], mask: Bool[Array, "M T"]) -> PolicyTables:
        """`prepare` after `encode`, for words given by their projections."""
        return self.prepare(self.utterances.encode_projected(projected, mask))

    def for_example(self, domain: Domain, tables: PolicyTables) -> PolicyFunction:
        """The policy as a function of one state and its valid tokens, as search takes it."""
        if tables.context is not None and domain.with_context() is not domain:
            raise VbsixError(f"a policy with context needs the domain with context: {domain.name}.with_context().")

        def policy(state: State, valid: Bool[Array, " A"]) -> Float[Array, " A"]:
            log_policy = self.log_probabilities(tables, *_seen(domain, tables, state))
            return renormalise(log_policy, valid) if self.config.renormalise else log_policy

        return policy

    def attention_for_example(self, domain: Domain, tables: PolicyTables) -> AttentionFunction:
        """The attention to each word of all the utterances as a function of one state."""
        return lambda state: self._attend(tables, *_seen(domain, tables, state))[1].reshape(tables.mask.shape)


def _seen(
    domain: Domain, tables: PolicyTables, state: State
) -> tuple[Int[Array, ""], Observation, ContextObservation | None]:
    """What a policy sees of a state: the current instruction, the stack and, if it reads it, the context."""
    instruction = jnp.minimum(domain.instructions_done(state), tables.first.shape[0] - 1)
    seen = None if tables.context is None else domain.observe_context(state)
    return instruction, domain.observe(state), seen
