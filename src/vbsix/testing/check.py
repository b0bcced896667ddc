"""`check_domain`, and what it finds out along random programs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import jax
import numpy as np

from vbsix.domains.base import Domain, Observation
from vbsix.domains.interning import describe_error
from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import declaration_problems
from vbsix.testing.languages import language_problems
from vbsix.testing.symmetries import exchange_problems
from vbsix.testing.walks import Seen, Walk, follow, look_at, start_states, walk_programs
from vbsix.utilities.errors import InvalidDomain, InvalidWorld, shorten
from vbsix.utilities.trees import choose

WALKS = 16
"""How many random programs are tried, from one world after the other."""
MOST_EXPLAINED = 3
"""Invalid tokens that a reason is asked for."""


def check_domain(domain: Domain, worlds: Iterable[Any], *, instructions: int = 2, seed: int = 0) -> None:
    """Verifies what searches and networks rely on, along random programs that begin in some worlds.

    Declared sizes and shapes, texts that come back as they went in, determinism, which tokens are valid, the count of
    instructions, and keys that tell states apart. Of a `PythonDomain` also that its states can be compared. Where the
    domain declares symmetries, that a permuted program leads from a permuted world to the permuted world.

    Args:
        domain: the language.
        worlds: first worlds in their text form, or as JSON; at least one of them.
        instructions: how many instructions the programs have.
        seed: of the random programs.

    Raises:
        InvalidDomain: with every problem found, a sentence each.
    """
    _raise_any(domain, declaration_problems(domain))
    texts = list(dict.fromkeys(map(domain.world_text, worlds)))
    _raise_any(domain, _world_problems(domain, texts))
    texts = list(islice(cycle(texts), WALKS))
    if isinstance(domain, PythonDomain):
        _raise_any(domain, language_problems(domain, texts, instructions, random.Random(seed)))
    _raise_any(domain, _shape_problems(domain, texts[0], instructions))
    walk = walk_programs(domain, texts, instructions, random.Random(seed))
    problems = *_transition_problems(domain, walk), *_key_problems(domain, walk), *_target_problems(domain, walk)
    _raise_any(domain, problems)
    if domain.symmetries:
        _raise_any(domain, exchange_problems(domain, texts, instructions, random.Random(seed)))


def _raise_any(domain: Domain, problems: Iterable[str]) -> None:
    if found := list(dict.fromkeys(problems)):
        raise InvalidDomain(type(getattr(domain, "language", domain)).__name__, found)


def _world_problems(domain: Domain, texts: Sequence[str]) -> Iterator[str]:
    if not texts:
        yield "No world was given to check the domain with."
    for text in texts:
        try:
            world = domain.parse_world(text)
            again = domain.parse_world(domain.format_world(world))
        except InvalidWorld as error:
            yield f"The world {shorten(text)} does not parse: {error}."
            continue
        if not _same(world, again):
            yield f"The world {shorten(text)} is another one after format_world and parse_world."


def _shape_problems(domain: Domain, text: str, instructions: int) -> Iterator[str]:
    """Shapes are known without running anything."""
    state = jax.eval_shape(lambda world: domain.start(world, instructions), domain.parse_world(text))
    tokens, things = len(domain.tokens), len(domain.attributes)
    try:
        successors, valid = jax.eval_shape(domain.expand, state)
        if jax.tree.structure(successors) != jax.tree.structure(state):
            yield "expand gives successors of another structure than the state has."
            return
        for name, wanted, found in zip(_names(state), jax.tree.leaves(state), jax.tree.leaves(successors), strict=True):
            if found.shape != (tokens, *wanted.shape) or found.dtype != wanted.dtype:
                yield (
                    f"expand gives {found.dtype}{list(found.shape)} for {name} of the successors, expected "
                    f"{wanted.dtype}{[tokens, *wanted.shape]}: that of a state, once for each token."
                )
        seen = jax.eval_shape(lambda state: (domain.observe(state), domain.observe_world(state)), state)
        context = jax.eval_shape(domain.observe_context, state)
        done, key = jax.eval_shape(lambda state: (domain.instructions_done(state), domain.key(state)), state)
    except Exception as error:  # whatever a domain's own functions do with a state
        yield f"a function of the domain cannot be traced: {describe_error(error)}."
        return
    observation = seen[0] if isinstance(seen[0], Observation) else Observation(*seen[0])
    shapes = {
        "expand's validity": (valid, (tokens,), np.bool_),
        "instructions_done": (done, (), np.integer),
        "key": (key, (2,), np.uint32),
        "observe's values": (observation.values, (domain.slots,), np.integer),
        "observe's objects": (observation.objects, (domain.slots, domain.objects, things), np.integer),
        "observe_world": (seen[1], (domain.elements, things), np.integer),
        "observe_context's commands": (context.commands, (domain.commands, len(domain.command_fields)), np.integer),
        "observe_context's world": (context.world, (domain.elements, things), np.integer),
    }
    for name, (found, shape, kind) in shapes.items():
        if found.shape != shape or not np.issubdtype(found.dtype, kind):
            yield f"{name} is {found.dtype}{list(found.shape)}, expected {kind.__name__}{list(shape)} as declared."


def _transition_problems(domain: Domain, walk: Walk) -> Iterator[str]:
    first = walk.seen[0]
    if first.done.any():
        yield "instructions_done is not 0 in the first state."
    for place in np.flatnonzero(~first.valid.any(axis=1)).tolist():
        yield f"No token is valid at the start of {shorten(walk.texts[place])}."
    for seen, again in zip(walk.seen, walk.again, strict=True):
        if not _same(_of_valid(seen), _of_valid(again)):
            yield "A state gave two different results when it was asked twice: a domain's functions must be pure."
        difference = np.where(seen.valid, seen.done_after - seen.done[:, None], 0)
        for place, token in zip(*np.nonzero((difference < 0) | (difference > 1)), strict=True):
            yield (
                f"instructions_done goes from {seen.done[place]} to {seen.done_after[place, token]} by the token "
                f"{domain.tokens[token]!r}; a token ends one instruction or none."
            )
        ended = (difference > 0) & seen.dead_end[:, None]
        for token in np.flatnonzero(ended.any(axis=0)).tolist():
            yield f"is_dead_end is true of a state in which {domain.tokens[token]!r} ends an instruction."
        if (seen.observation.values < 0).any() or (seen.observation.values > domain.values).any():
            yield f"observe gives a value outside 0 to {domain.values}."
        for ids in (seen.observation.objects, seen.world):
            most = np.array(list(domain.attributes.values()), int)
            for attribute in np.flatnonzero(((ids < 0) | (ids > most)).reshape(-1, len(most)).any(axis=0)).tolist():
                name = list(domain.attributes)[attribute]
                yield f"the networks get an id of {name!r} outside 0 to {most[attribute]}."
    for token in np.flatnonzero(~first.valid[0]).tolist()[:MOST_EXPLAINED]:
        if domain.explain(choose(first.states, 0), domain.tokens[token]) is None:
            yield f"explain has no reason why {domain.tokens[token]!r} is invalid at the start."


def _of_valid(seen: Seen) -> Seen:
    """Without the successors, which mean something where they are valid alone: there their keys tell them."""
    return seen._replace(
        successors=(), dead_after=(), keys_after=np.where(seen.valid[..., None], seen.keys_after, 0), done_after=()
    )


def _key_problems(domain: Domain, walk: Walk) -> Iterator[str]:
    """States that have the same numbers must have one key; those that behave differently, different keys."""
    key_of: dict[bytes, bytes] = {}
    behaviour_of: dict[bytes, tuple[bytes, str]] = {}
    for seen in walk.seen:
        for place in range(len(walk.texts)):
            state = choose(seen.states, place)
            numbers, key = _bytes(state), seen.keys[place].tobytes()
            if key_of.setdefault(numbers, key) != key:
                yield "The same state has two keys."
            parts = (
                seen.valid,
                seen.done,
                np.where(seen.valid[..., None], seen.keys_after, 0),
                *seen.observation,
                seen.world,
            )
            behaviour = _bytes([part[place] for part in parts]), domain.format_target(domain.world(state))
            known = behaviour_of.setdefault(key, behaviour)
            if known != behaviour:
                yield (
                    "Two states with the same key behave differently, so that a search would take them for one: "
                    f"one has the denotation {shorten(known[1])}, the other {shorten(behaviour[1])}."
                )


def _target_problems(domain: Domain, walk: Walk) -> Iterator[str]:
    """Each program is run once more, and must come to what it came to before."""
    last = follow(walk.seen[-1], walk.tokens[-1])
    denotations, targets = [], []
    for place in range(len(walk.texts)):
        denotations.append(text := domain.format_target(domain.world(choose(last, place))))
        try:
            targets.append(domain.parse_target(text))
        except InvalidWorld as error:
            yield f"The denotation {shorten(text)} does not parse as a target: {error}."
            return
        if domain.format_target(targets[-1]) != text:
            yield f"The denotation {shorten(text)} has another text after parse_target and format_target."
    states = start_states(domain, walk.texts, walk.instructions)
    for tokens in walk.tokens:
        states = follow(look_at(domain, states), tokens)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *targets)
    matches = jax.jit(jax.vmap(lambda state, target: (domain.matches(state, target), domain.observe_target(target))))
    matched, shown = jax.tree.map(np.asarray, matches(states, stacked))
    if shown.shape[1:] != (wanted := (domain.elements, len(domain.attributes))):
        yield f"observe_target has the shape {list(shown.shape[1:])}, expected {list(wanted)}."
    for place in np.flatnonzero(~matched).tolist():
        again = domain.format_target(domain.world(choose(states, place)))
        yield (
            f"A program that led to {shorten(denotations[place])} does not match that target when run again: it leads "
            f"to {shorten(again)}."
        )


def _names(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(path) or "the array" for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def _same(one: Any, other: Any) -> bool:
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def _bytes(tree: Any) -> bytes:
    return b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in jax.tree.leaves(tree))
