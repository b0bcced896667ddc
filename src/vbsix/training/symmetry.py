"""Training examples with their interchangeable constants permuted, in the words, the world and the target."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from vbsix.data.examples import Arrays
from vbsix.data.words import UNKNOWN, Words
from vbsix.domains.base import Domain
from vbsix.utilities.errors import VbsixError


class Renaming(NamedTuple):
    """A domain's symmetries in terms of a vocabulary."""

    groups: tuple[Int[Any, " constants"], ...]
    """For each symmetry, the tokens that are permuted: those whose usual word the vocabulary has."""
    token_of: Int[Any, " V"]
    """The token that each word names, -1 for none."""
    form_of: Int[Any, " V"]
    """Which of the token's forms the word is."""
    word_of: Int[Any, "A forms"]
    """The word for each token and form; the usual word where there is no such form in the vocabulary."""


def make_renaming(domain: Domain, words: Words) -> Renaming:
    """What permuting a domain's constants does to words.

    Raises:
        VbsixError: the domain declares no symmetry, or the vocabulary lacks the words for it.
    """
    if not domain.symmetries:
        raise VbsixError(f"training.symmetry: the domain {domain.name} declares no symmetry; see `vbsix.Symmetry`.")
    token_of, form_of = (np.full(len(words.words), value, np.int32) for value in (-1, 0))
    forms = max(len(names) for symmetry in domain.symmetries for names in symmetry.words.values())
    word_of = np.zeros((len(domain.tokens), forms), np.int32)
    groups = []
    for symmetry in domain.symmetries:
        known = [one for one in symmetry.constants if words.lookup(symmetry.words[one][0]) != UNKNOWN]
        if len(known) < 2:
            usual = ", ".join(symmetry.words[one][0] for one in symmetry.constants)
            raise VbsixError(f"training.symmetry: the vocabulary has fewer than two of the words {usual}.")
        groups.append(np.array([domain.tokens.index(one) for one in known], np.int32))
        for token, constant in zip(groups[-1].tolist(), known, strict=True):
            ids = [words.lookup(word) for word in symmetry.words[constant]]
            word_of[token] = ids[0]
            # Two forms may be one word to the vocabulary: the first of them counts, so it comes last.
            for form, id_ in reversed(list(enumerate(ids))):
                if id_ != UNKNOWN:
                    word_of[token, form], token_of[id_], form_of[id_] = id_, token, form
    return Renaming(tuple(groups), token_of, form_of, word_of)


def sample_permutation(renaming: Renaming, key: PRNGKeyArray) -> Int[Array, " A"]:
    """The new token of each token."""
    tokens = jnp.arange(renaming.word_of.shape[0])
    for number, group in enumerate(renaming.groups):
        tokens = tokens.at[group].set(jax.random.permutation(jax.random.fold_in(key, number), group))
    return tokens


def permute_example(domain: Domain, renaming: Renaming, example: Arrays, tokens: Int[Array, " A"]) -> Arrays:
    """The example in which each token's constant is exchanged for that of its new token."""
    token_of = jnp.asarray(renaming.token_of)[example.words]
    new = jnp.asarray(renaming.word_of)[tokens[token_of], jnp.asarray(renaming.form_of)[example.words]]
    world, target = domain.permute(example.world, example.target, tokens)
    waypoints = example.waypoints
    if waypoints is not None:
        permuted = jax.vmap(lambda target: domain.permute(example.world, target, tokens)[1])(waypoints.targets)
        waypoints = waypoints._replace(targets=permuted)
    words = jnp.where(token_of >= 0, new, example.words)
    return example._replace(world=world, target=target, words=words, waypoints=waypoints)
