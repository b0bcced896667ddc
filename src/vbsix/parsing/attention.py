"""Which words the policy attends to when it chooses each token of a program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vbsix.data.words import UtteranceVectors
from vbsix.domains.base import Domain, State
from vbsix.domains.execution import states_along
from vbsix.models import Ensemble, PolicyNetwork
from vbsix.models.heads import attention_head, has_attention
from vbsix.parsing.parser import Parser
from vbsix.utilities.errors import VbsixError


def attends(parser: Parser) -> bool:
    """Whether the parser's policy has attention, over words that can be distinguished."""
    return has_attention(parser.policy) and not isinstance(parser.words, UtteranceVectors)


def attention(
    parser: Parser, world: str, utterances: Sequence[str], commands: Sequence[str], room: int
) -> list[Float[np.ndarray, "tokens words"]]:
    """The attention to the words of each utterance, in the states before each token of its command.

    An ensemble's attention is the mean of its members'.

    Args:
        parser: its policy attends.
        world: the world before the first utterance.
        utterances: what is read.
        commands: a command for each utterance.
        room: for how many utterances the function is compiled.

    Returns:
        An array for each utterance; its rows sum to 1. Words that are not read have no column.

    Raises:
        VbsixError: the policy has no attention, there is not one command for each utterance, or one is not valid.
    """
    if not attends(parser):
        raise VbsixError("this model has no attention to words.")
    if not len(commands) == len(utterances) <= room:
        raise VbsixError(
            f"{len(commands)} commands for {len(utterances)} instructions: give one for each, up to {room}."
        )
    domain, words = parser.domain, parser.word_ids(utterances, room)
    lengths = [len(command.split()) for command in commands]
    most = len(commands) * domain.max_tokens_per_instruction  # of all together: one may have more than its share
    if not all(lengths) or sum(lengths) > most:
        raise VbsixError(f"commands: each has at least one token, and all together have up to {most}.")
    *along, (_, ended) = states_along(domain, world, " ".join(commands).split())
    states = [state for state, _ in along]
    places = np.repeat(np.arange(len(commands)), lengths)
    if [*places, len(commands)] != [*(done for _, done in along), ended]:
        raise VbsixError("commands: each must be one whole command.")
    padded = [*states, *[states[-1]] * (room * domain.max_tokens_per_instruction - len(states))]
    with domain.alone():
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
        found = np.asarray(_attention(domain, parser.policy, parser.words.vectors, words, stacked))
        domain.raise_failure()
    ends = np.cumsum(lengths)
    counts = np.sum(words > 0, axis=1)
    return [
        found[end - length : end, place, : counts[place]]
        for place, (end, length) in enumerate(zip(ends, lengths, strict=True))
    ]


@functools.partial(jax.jit, static_argnums=0)
def _attention(
    domain: Domain,
    policy: PolicyNetwork | Ensemble,
    projections: Float[Any, "V projected"],
    words: Int[Any, "M T"],
    states: State,
) -> Float[Array, "L M T"]:
    return jax.vmap(attention_head(domain, policy, jnp.asarray(projections), words))(states)
