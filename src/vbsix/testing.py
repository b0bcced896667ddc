"""Does a domain keep what searches and networks rely on? For the tests of one's own domain."""

from __future__ import annotations

import copy
import functools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vbsix.domains.base import Domain, Observation, State
from vbsix.domains.interning import VALUES, describe_error, freeze
from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import declaration_problems
from vbsix.utilities.errors import InvalidDomain, InvalidWorld, shorten
from vbsix.utilities.trees import choose

WALKS = 16
"""How many random programs are tried, from one world after the other."""


SYMMETRY_TOKENS = 100
"""How many tokens are tried from each world with constants exchanged, of one program after the other."""
MOST_EXPLAINED = 3
"""Invalid tokens that a reason is asked for."""
_SHOWN = 200
"""How much of a state a message shows."""
_VALUES = f"equal states must be equal by == and hash: {VALUES}"


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
        _raise_any(domain, _language_problems(domain, texts, instructions, random.Random(seed)))
    _raise_any(domain, _shape_problems(domain, texts[0], instructions))
    walk = _walk(domain, texts, instructions, random.Random(seed))
    problems = *_transition_problems(domain, walk), *_key_problems(domain, walk), *_target_problems(domain, walk)
    _raise_any(domain, problems)
    if domain.symmetries:
        _raise_any(domain, _symmetry_problems(domain, texts, instructions, random.Random(seed)))


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


def _language_problems(
    domain: PythonDomain, texts: Sequence[str], instructions: int, chance: random.Random
) -> Iterator[str]:
    """Of a plain-Python language: its states must be values, and its methods functions of them."""
    language, state, call = domain.language, None, ""
    seen_of: dict[Any, Any] = {}
    valid_of: dict[Any, list[bool]] = {}

    def is_new_behaviour(one: Any) -> bool:
        nonlocal call
        call = "instructions_done(state)"
        done = language.instructions_done(one)
        call = "denotation(state)"
        denotation = freeze(language.denotation(one))
        call = domain.features.call
        seen = done, denotation, domain.features.state(one)
        return seen_of.setdefault(one, seen) != seen

    try:
        for text in texts:
            context, call = domain.context(text), f"start({shorten(text)})"
            before_start = copy.deepcopy(context)
            state = language.start(context)
            if context != before_start:
                yield _changed_context(before_start, context)
                return
            again = language.start(context)
            if not _equal(state, again):
                yield f"{call} gave two states that are not equal when called twice; {_VALUES}."
                return
            if is_new_behaviour(state) or is_new_behaviour(again):
                yield _differing(domain, state)
                return
            for _ in range(instructions * domain.max_tokens_per_instruction):
                call = "instructions_done(state)"
                if language.instructions_done(state) >= instructions:
                    break
                before, successors = _Snapshot(state), []
                for token in domain.tokens:
                    call = f"step(state, {token!r})"
                    successors.append(language.step(state, token))
                    if before.differs():
                        yield (
                            f"{call} changed the state that it was given: {shorten(before.text, _SHOWN)}. "
                            f"Return a new state; {VALUES}."
                        )
                        return
                    again = language.step(state, token)
                    if not _equal(successors[-1], again):
                        yield (
                            f"{call} gave two different results when called twice; it must depend on its arguments "
                            f"alone, and {_VALUES}. The state: {shorten(before.text, _SHOWN)}."
                        )
                        return
                    if again is False:
                        yield f"{call} returned False; return None where a token is invalid."
                        return
                    if again is not None and (is_new_behaviour(successors[-1]) or is_new_behaviour(again)):
                        yield _differing(domain, again)
                        return
                if context != before_start:
                    yield _changed_context(before_start, context)
                    return
                offered = getattr(language, "valid_tokens", None)
                if offered is not None:
                    call = "valid_tokens(state)"
                    tokens = offered(state)
                    if isinstance(tokens, str):
                        yield f"{call} returned the text {tokens!r}; return a list of tokens."
                        return
                    for token, successor in zip(domain.tokens, successors, strict=True):
                        if successor is not None and token not in tokens:
                            yield (
                                f"{call} leaves out {token!r}, which step takes in the state "
                                f"{shorten(before.text, _SHOWN)}."
                            )
                            return
                valid = [one is not None for one in successors]
                if valid_of.setdefault(state, valid) != valid:
                    yield _differing(domain, state)
                    return
                state = chance.choice([one for one in successors if one is not None] or [state])
                call = "denotation(state)"
                denotation = language.denotation(state)
                call = f"denotation(state) gave {shorten(repr(denotation))}, which JSON does not have: writing it"
                if not domain.is_json(denotation):
                    yield (
                        f"denotation(state) gave {shorten(repr(denotation))}, which is not equal to itself any more "
                        "when it was written as JSON, so that no target in a file can equal it."
                    )
                    return
    except Exception as error:  # whatever the user's own methods do
        yield f"{call} raised {describe_error(error)}; the state: {shorten(repr(state), _SHOWN)}."


def _changed_context(before: Any, after: Any) -> str:
    return (
        f"start or step changed the context, from {shorten(repr(before))} to {shorten(repr(after))}: copy it in start."
    )


def _differing(domain: PythonDomain, state: Any) -> str:
    return (
        "Two states that are equal behave differently, and a search would take them for one: == must compare all that "
        f"step, instructions_done, denotation and {domain.features.call} depend on. "
        f"One: {shorten(repr(state), _SHOWN)}."
    )


class _Snapshot:
    """A state as it was, to notice that it was changed, even where it has neither `__repr__` nor a full `__eq__`."""

    def __init__(self, state: Any):
        self.state, self.text, self.hash = state, repr(state), hash(state)
        try:
            self.copy = copy.deepcopy(state)
        except Exception:  # a state that cannot be copied is compared by its text and its hash
            self.copy = None

    def differs(self) -> bool:
        if repr(self.state) != self.text or hash(self.state) != self.hash:
            return True
        fields = [getattr(one, "__dict__", None) for one in (self.state, self.copy)]
        return self.copy is not None and (self.state != self.copy or fields[0] != fields[1])


def _equal(one: Any, other: Any) -> bool:
    """Whether two results of `step` are equal. An `__eq__` is not asked about None, which it need not know."""
    if one is None or other is None:
        return one is other
    return one == other and hash(one) == hash(other)


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


class _Seen(NamedTuple):
    """A batch of states with all that a domain says of each."""

    states: State
    successors: State
    valid: Any
    dead_end: Any
    dead_after: Any
    done: Any
    done_after: Any
    keys: Any
    keys_after: Any
    observation: Observation
    world: Any


class _Walk(NamedTuple):
    """Programs, one from each world, and what was seen before each token, twice over."""

    texts: Sequence[str]
    instructions: int
    tokens: list[list[int]]
    """One for each step and program; -1 where no token was valid."""
    seen: list[_Seen]
    again: list[_Seen]


@functools.partial(jax.jit, static_argnums=0)
def _look(domain: Domain, states: State) -> _Seen:
    def of_state(state: State) -> _Seen:
        successors, valid = domain.expand(state)
        return _Seen(
            states=state,
            successors=successors,
            valid=valid,
            dead_end=domain.is_dead_end(state),
            dead_after=jax.vmap(domain.is_dead_end)(successors),
            done=domain.instructions_done(state),
            done_after=jax.vmap(domain.instructions_done)(successors),
            keys=domain.key(state),
            keys_after=jax.vmap(domain.key)(successors),
            observation=Observation(*domain.observe(state)),
            world=domain.observe_world(state),
        )

    return jax.vmap(of_state)(states)


def _walk(domain: Domain, texts: Sequence[str], instructions: int, chance: random.Random) -> _Walk:
    states = _start(domain, texts, instructions)
    walk = _Walk(texts, instructions, [], [], [])
    for _ in range(instructions * domain.max_tokens_per_instruction):
        walk.seen.append(_seen(domain, states))
        walk.again.append(_seen(domain, states))
        going_on = walk.seen[-1].valid & (walk.seen[-1].done < instructions)[:, None]
        choices = [np.flatnonzero(valid).tolist() for valid in going_on]
        tokens = [chance.choice(possible) if possible else -1 for possible in choices]
        walk.tokens.append(tokens)
        states = _follow(walk.seen[-1], tokens)
    return walk


def _start(domain: Domain, texts: Sequence[str], instructions: int) -> State:
    worlds = jax.tree.map(lambda *leaves: np.stack(leaves), *[domain.parse_world(text) for text in texts])
    states = jax.jit(jax.vmap(lambda world: domain.start(world, instructions)))(worlds)
    states = jax.tree.map(np.asarray, states)
    domain.raise_failure()
    return states


def _seen(domain: Domain, states: State) -> _Seen:
    seen = jax.tree.map(np.asarray, _look(domain, jax.tree.map(jnp.asarray, states)))
    domain.raise_failure()
    return seen


def _follow(seen: _Seen, tokens: Sequence[int]) -> State:
    """The successors by one token each; a program that has no token stays where it is."""
    chosen, rows = np.array(tokens), np.arange(len(tokens))

    def of_leaf(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        going_on = (chosen >= 0).reshape(-1, *[1] * (before.ndim - 1))
        return np.where(going_on, after[rows, np.maximum(chosen, 0)], before)

    return jax.tree.map(of_leaf, seen.states, seen.successors)


def _transition_problems(domain: Domain, walk: _Walk) -> Iterator[str]:
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
                yield f"the networks are shown an id of {name!r} outside 0 to {most[attribute]}."
    for token in np.flatnonzero(~first.valid[0]).tolist()[:MOST_EXPLAINED]:
        if domain.explain(choose(first.states, 0), domain.tokens[token]) is None:
            yield f"explain has no reason why {domain.tokens[token]!r} is invalid at the start."


def _of_valid(seen: _Seen) -> _Seen:
    """Without the successors, which mean something where they are valid alone: there their keys tell them."""
    return seen._replace(
        successors=(), dead_after=(), keys_after=np.where(seen.valid[..., None], seen.keys_after, 0), done_after=()
    )


def _key_problems(domain: Domain, walk: _Walk) -> Iterator[str]:
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


def _target_problems(domain: Domain, walk: _Walk) -> Iterator[str]:
    """Each program is run once more, and must come to what it came to before."""
    last = _follow(walk.seen[-1], walk.tokens[-1])
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
    states = _start(domain, walk.texts, walk.instructions)
    for tokens in walk.tokens:
        states = _follow(_seen(domain, states), tokens)
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


def _symmetry_problems(domain: Domain, texts: Sequence[str], instructions: int, chance: random.Random) -> Iterator[str]:
    """Programs and, in lockstep, the same ones with their constants exchanged, from worlds with these exchanged.

    The next token is one that was used least often so far, for tokens that do something are seldom valid. Where a
    program ends or cannot go on, the next one begins.
    """
    tokens, rows = np.array([_permutation(domain, chance) for _ in texts]), np.arange(len(texts))
    first = states = _start(domain, texts, instructions)
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
            first_images = images = _start(domain, permuted_texts, instructions)
        for place, wanted in enumerate(permuted_denotations):
            found = domain.format_target(domain.world(choose(images, place)))
            if found != wanted:
                yield (
                    f"symmetries: a program leads from {shorten(texts[place])} to {shorten(denotations[place])}, but "
                    f"with {_exchanged(domain, tokens[place])} to {shorten(found)} and not to {shorten(wanted)}."
                )
                return
        seen, image = _seen(domain, states), _seen(domain, images)
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
        states = _restart(chosen < 0, first, _follow(seen, chosen.tolist()))
        images = _follow(image, np.where(chosen < 0, -1, tokens[rows, chosen]).tolist())
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


def _names(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(path) or "the array" for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def _same(one: Any, other: Any) -> bool:
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def _bytes(tree: Any) -> bytes:
    return b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in jax.tree.leaves(tree))
