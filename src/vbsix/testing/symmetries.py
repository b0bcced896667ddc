"""Do the constants that a domain declares as interchangeable change nothing when they are exchanged?"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from vbsix.domains.base import Domain, State
from vbsix.domains.interning import describe_error
from vbsix.testing.walks import follow, look_at, start_states
from vbsix.utilities.errors import shorten
from vbsix.utilities.trees import choose

SYMMETRY_TOKENS = 100
"""How many tokens are tried from each world with constants exchanged, of one program after the other."""


def exchange_problems(domain: Domain, texts: Sequence[str], instructions: int, chance: random.Random) -> Iterator[str]:
    """Programs and, in lockstep, the same ones with their constants exchanged, from worlds with these exchanged.

    The next token is one that was used least often so far, for tokens that do something are seldom valid. Where a
    program ends or cannot go on, the next one begins.
    """
    tokens, rows = np.array([_permutation(domain, chance) for _ in texts]), np.arange(len(texts))
    first = states = start_states(domain, texts, instructions)
    first_images = images = None
    used: Counter[int] = Counter()
    for _ in range(SYMMETRY_TOKENS):
        denotations = [domain.format_target(domain.world(choose(states, place))) for place in rows]
        try:
            permuted_texts, permuted_denotations = _permute(domain, texts, denotations, tokens)
        except Exception as error:  # whatever a domain's own function does with a world
            yield f"symmetries: permute raised {describe_error(error)}."
            return
        if images is None:
            first_images = images = start_states(domain, permuted_texts, instructions)
        for place, wanted in enumerate(permuted_denotations):
            found = domain.format_target(domain.world(choose(images, place)))
            if found != wanted:
                yield (
                    f"symmetries: a program leads from {shorten(texts[place])} to {shorten(denotations[place])}, but "
                    f"with {_exchanged(domain, tokens[place])} to {shorten(found)} and not to {shorten(wanted)}."
                )
                return
        seen, image = look_at(domain, states), look_at(domain, images)
        different = seen.valid != np.take_along_axis(image.valid, tokens, axis=1)
        for place, token in np.argwhere(different).tolist():
            one, other = domain.tokens[token], domain.tokens[tokens[place, token]]
            word = "valid" if seen.valid[place, token] else "invalid"
            yield (
                f"symmetries: with {_exchanged(domain, tokens[place])}, {other!r} should be {word} where {one!r} is, "
                f"in a program that begins in {shorten(texts[place])}."
            )
            return
        going_on = seen.valid & ~seen.dead_after & (seen.done < instructions)[:, None]
        chosen = np.array([_least_used(np.flatnonzero(possible).tolist(), chance, used) for possible in going_on])
        states = _restart(chosen < 0, first, follow(seen, chosen.tolist()))
        images = follow(image, np.where(chosen < 0, -1, tokens[rows, chosen]).tolist())
        images = _restart(chosen < 0, first_images, images)


def _restart(flags: Any, first: State, states: State) -> State:
    """The first states where the flags are up."""
    return jax.tree.map(
        lambda one, other: np.where(flags.reshape(-1, *[1] * (one.ndim - 1)), one, other), first, states
    )


def _permute(
    domain: Domain, texts: Sequence[str], denotations: Sequence[str], tokens: Any
) -> tuple[list[str], list[str]]:
    """Worlds and targets with their constants exchanged."""
    given = map(domain.parse_world, texts), map(domain.parse_target, denotations)
    worlds, targets = (jax.tree.map(lambda *leaves: np.stack(leaves), *each) for each in given)
    permuted = jax.tree.map(np.asarray, _permute_batch(domain, worlds, targets, tokens))
    domain.raise_failure()
    each_one = [choose(permuted, place) for place in range(len(texts))]
    return [domain.format_world(world) for world, _ in each_one], [domain.format_target(each) for _, each in each_one]


@functools.partial(jax.jit, static_argnums=0)
def _permute_batch(domain: Domain, worlds: Any, targets: Any, tokens: Any) -> Any:
    return jax.vmap(domain.permute)(worlds, targets, tokens)


def _permutation(domain: Domain, chance: random.Random) -> list[int]:
    """The new token of each token."""
    tokens = list(range(len(domain.tokens)))
    for symmetry in domain.symmetries:
        group = [domain.tokens.index(constant) for constant in symmetry.constants]
        for old, new in zip(group, chance.sample(group, len(group)), strict=True):
            tokens[old] = new
    return tokens


def _exchanged(domain: Domain, tokens: Any) -> str:
    pairs = [f"{domain.tokens[old]} as {domain.tokens[new]}" for old, new in enumerate(tokens) if old != new]
    return ", ".join(pairs) or "nothing exchanged"


def _least_used(possible: list[int], chance: random.Random, used: Counter[int]) -> int:
    """One of the tokens, -1 if there is none."""
    if not possible:
        return -1
    least = min(used[token] for token in possible)
    token = chance.choice([token for token in possible if used[token] == least])
    used[token] += 1
    return token
