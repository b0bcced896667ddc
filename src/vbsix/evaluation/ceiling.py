"""How well any policy could do that maps an utterance to one command: what the choice of a language allows.

Worlds in between are read here, as an analysis of data and language. Nothing learns from them.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool

from vbsix.data.examples import Row
from vbsix.domains.base import Domain, State
from vbsix.domains.execution import run_batch
from vbsix.utilities.errors import InvalidData

COMPARED = 16
"""Occurrences of an utterance for which commands are searched jointly."""
NODES = 128
"""Prefixes of commands that are expanded in one call."""
MOST_NODES = 2048
"""Prefixes of one length that are kept: those that are valid for the most occurrences."""
KEPT = 32
"""Commands of a joint search that are tried on all occurrences."""
BATCH = 256
"""Commands that are run in one call."""

Command = tuple[int, ...]
"""Token numbers."""


@dataclass(frozen=True)
class Ceiling:
    """What a policy could reach that always gives an utterance the same command."""

    rows: int
    right: int
    """Rows with the right world after every instruction; utterances seen less often count as right."""
    steps: int
    frequent: int
    """Steps whose utterance is frequent in training."""
    right_frequent: int
    unexplained: int
    """Rows with a step that no command explains, which are wrong."""
    unexplained_train: int
    """The same in training, where such a row counts up to that step."""

    @property
    def share(self) -> float:
        return self.right / self.rows


class _Step(NamedTuple):
    """An utterance in a row, and the state in which it is said."""

    row: int
    text: str
    state: State
    target: Any


def measure_ceiling(domain: Domain, train: Sequence[Row], rows: Sequence[Row], least: int = 5) -> Ceiling:
    """The share of rows that one command for each utterance gets right.

    For each utterance that is in the training rows at least `least` times, the command is searched that is right most
    often there. It is applied to the rows. Utterances that are rarer count as right, so the ceiling is optimistic.

    Args:
        domain: the language.
        train: the rows that commands are chosen on.
        rows: the rows that they are applied to.
        least: how often an utterance must occur in training.

    Raises:
        InvalidData: a row of several instructions does not have the worlds in between.
    """
    longest = max(len(row.utterances) for row in (*train, *rows))
    pool: Counter[Command] = Counter()
    trained, unexplained_train = _explain(domain, train, longest, pool)
    by_text: dict[str, list[_Step]] = {}
    for step in trained:
        by_text.setdefault(step.text, []).append(step)
    chosen = {text: choose_command(domain, steps) for text, steps in by_text.items() if len(steps) >= least}
    asked, unexplained = _explain(domain, rows, longest, pool)
    frequent = [step for step in asked if step.text in chosen]
    right = [False] * len(frequent)
    for command in set(chosen.values()):
        places = [place for place, step in enumerate(frequent) if chosen[step.text] == command]
        for place, is_right in zip(places, _are_right(domain, [frequent[one] for one in places], command), strict=True):
            right[place] = is_right
    wrong = {step.row for step, is_right in zip(frequent, right, strict=True) if not is_right} | unexplained
    return Ceiling(
        rows=len(rows),
        right=len(rows) - len(wrong),
        steps=len(asked),
        frequent=len(frequent),
        right_frequent=sum(right),
        unexplained=len(unexplained),
        unexplained_train=len(unexplained_train),
    )


def choose_command(domain: Domain, steps: Sequence[_Step]) -> Command:
    """The command that is right for the most of some steps."""
    sample = [steps[place] for place in np.linspace(0, len(steps) - 1, min(COMPARED, len(steps))).astype(int)]
    found = search_commands(domain, sample)
    if not found:
        return ()
    return max(found, key=lambda command: (sum(_are_right(domain, steps, command)), -len(command)))


def normalise(text: str) -> str:
    """An utterance without what does not matter: capitals and white space."""
    return " ".join(text.lower().split())


def _explain(domain: Domain, rows: Sequence[Row], longest: int, pool: Counter[Command]) -> tuple[list[_Step], set[int]]:
    """All steps of the rows, up to one that no command explains, and the rows that have such a step.

    Commands that explained a step before are tried first, the most frequent first; `pool` has them.
    """
    for row in rows:
        if None in row.worlds:
            raise InvalidData([f"{row.origin or row.id}: the ceiling needs the world after each instruction"])
    parse_world, parse_target = functools.cache(domain.parse_world), functools.cache(domain.parse_target)
    targets = [[parse_target(str(world)) for world in row.worlds[1:]] for row in rows]
    first = _stack([parse_world(str(row.worlds[0])) for row in rows])
    with domain.alone():
        started = _unstack(jax.jit(jax.vmap(lambda world: domain.start(world, longest)))(first), len(rows))
        domain.raise_failure()
    states, found, lost = dict(enumerate(started)), [], set()
    for number in range(longest):
        waiting = {
            place: _Step(place, normalise(row.utterances[number]), states[place], targets[place][number])
            for place, row in enumerate(rows)
            if place not in lost and number < len(row.utterances)
        }
        for command in _candidates(domain, waiting, pool):
            steps = list(waiting.values())
            after, right = _run(domain, steps, command)
            for step, state, is_right in zip(steps, after, right, strict=True):
                if is_right:
                    states[step.row] = state
                    pool[command] += 1
                    found.append(waiting.pop(step.row))
        lost |= waiting.keys()
    return found, lost


def _candidates(domain: Domain, waiting: dict[int, _Step], pool: Counter[Command]) -> Iterator[Command]:
    """Commands to try, as long as steps wait for one; a step that none explains is tried once."""
    for command, _ in pool.most_common():
        if waiting:
            yield command
    tried: set[int] = set()
    while left := [step for place, step in waiting.items() if place not in tried]:
        tried.add(left[0].row)
        yield from search_commands(domain, left[:1])[:1]


def _are_right(domain: Domain, steps: Sequence[_Step], command: Command) -> list[bool]:
    return _run(domain, steps, command)[1] if command else [False] * len(steps)


def _run(domain: Domain, steps: Sequence[_Step], command: Command) -> tuple[list[State], list[bool]]:
    """The states after a command, and whether it is valid, ends one instruction and leads to the target."""
    states: list[State] = []
    right: list[bool] = []
    program = np.full((BATCH, domain.max_tokens_per_instruction), -1, np.int32)
    program[:, : len(command)] = command
    for first in range(0, len(steps), BATCH):
        part = steps[first : first + BATCH]
        padded = [*part, *[part[-1]] * (BATCH - len(part))]
        with domain.alone():
            before = _stack([step.state for step in padded])
            after, valid = run_batch(domain, before, program)
            ends_right = _ends_right(domain, before, after, _stack([step.target for step in padded]))
            is_right = np.asarray(valid) & np.asarray(ends_right)
            domain.raise_failure()
        states += _unstack(after, len(part))
        right += is_right[: len(part)].tolist()
    return states, right


@functools.partial(jax.jit, static_argnums=0)
def _ends_right(domain: Domain, before: State, after: State, targets: Any) -> Bool[Array, " N"]:
    done = jax.vmap(domain.instructions_done)
    return (done(after) == done(before) + 1) & jax.vmap(domain.matches)(after, targets)


class _Frontier(NamedTuple):
    """Beginnings of commands, with the states that they lead to in each step."""

    prefixes: Sequence[Command]
    states: State
    alive: Bool[np.ndarray, "nodes steps"]
    """Where they are valid."""


def search_commands(domain: Domain, steps: Sequence[_Step]) -> list[Command]:
    """The commands that are right for the most of up to `COMPARED` steps, best first, then by length.

    Breadth-first over token sequences, each with the states that it leads to in all steps. Of sequences that lead to
    the same states everywhere, one is kept; one that is valid in fewer steps than the best command is right in is
    given up.
    """
    padded = [*steps, *[steps[-1]] * (COMPARED - len(steps))]
    targets = _stack([step.target for step in padded])
    states = jax.tree.map(lambda leaf: leaf[None], _stack([step.state for step in padded]))
    frontier = _Frontier([()], states, (np.arange(COMPARED) < len(steps))[None])
    scores: dict[Command, int] = {}
    known: set[int] = set()
    for _ in range(domain.max_tokens_per_instruction):
        longer: list[tuple[Command, State, np.ndarray]] = []
        for first in range(0, len(frontier.prefixes), NODES):
            longer += _lengthen(domain, _part(frontier, first), targets, scores, known)
        best = max(scores.values(), default=1)
        longer = sorted((one for one in longer if one[2].sum() >= best), key=lambda one: -one[2].sum())[:MOST_NODES]
        if not longer:
            break
        prefixes, states, alive = zip(*longer, strict=True)
        frontier = _Frontier(prefixes, _stack(states), np.stack(alive))
    return sorted(scores, key=lambda command: (-scores[command], len(command)))[:KEPT]


def _lengthen(
    domain: Domain, frontier: _Frontier, targets: Any, scores: dict[Command, int], known: set[int]
) -> Iterator[tuple[Command, State, np.ndarray]]:
    """The frontier with one more token.

    Args:
        domain: the language.
        frontier: up to `NODES` beginnings.
        targets: of the steps.
        scores: gets the commands that end, with the number of steps that they are right in.
        known: the identities of what was kept before; gets those of what is kept.
    """
    size = len(frontier.prefixes)
    with domain.alone():
        seen = jax.tree.map(np.asarray, _expand(domain, _pad(frontier.states, NODES), targets))
        domain.raise_failure()
    seen = jax.tree.map(lambda leaf: leaf[:size], seen)
    usable = seen.valid & frontier.alive[:, :, None]
    live = usable & ~seen.ended & ~seen.dead
    right = np.sum(usable & seen.ended & seen.right, axis=1)
    for node, token in np.argwhere(right > 0).tolist():
        scores[*frontier.prefixes[node], token] = int(right[node, token])
    keys = np.where(live[..., None], seen.keys.astype(np.uint64) + np.uint64(1), np.uint64(0))
    joint = np.sum(keys * _MIXER[None, :, None, :], axis=(1, 3))
    for node, token in np.argwhere(live.any(axis=1)).tolist():
        if (key := int(joint[node, token])) not in known:
            known.add(key)
            state = jax.tree.map(lambda leaf, node=node, token=token: leaf[node, :, token], seen.states)
            yield (*frontier.prefixes[node], token), state, live[node, :, token]


def _part(frontier: _Frontier, first: int) -> _Frontier:
    rows = slice(first, first + NODES)
    states = jax.tree.map(lambda leaf: leaf[rows], frontier.states)
    return _Frontier(frontier.prefixes[rows], states, frontier.alive[rows])


_MIXER = np.random.default_rng(0).integers(1, 1 << 62, (COMPARED, 2), dtype=np.uint64) | np.uint64(1)
"""Weights that make one 64-bit identity of the keys of all steps."""


class _Expanded(NamedTuple):
    """What tokens lead to, by node, step and token."""

    states: State
    valid: Any
    dead: Any
    ended: Any
    right: Any
    keys: Any


@functools.partial(jax.jit, static_argnums=0)
def _expand(domain: Domain, nodes: State, targets: Any) -> _Expanded:
    def of_state(state: State, target: Any) -> _Expanded:
        successors, valid = domain.expand(state)
        return _Expanded(
            successors,
            valid,
            jax.vmap(domain.is_dead_end)(successors),
            jax.vmap(domain.instructions_done)(successors) > domain.instructions_done(state),
            jax.vmap(domain.matches, in_axes=(0, None))(successors, target),
            jax.vmap(domain.key)(successors),
        )

    return jax.vmap(jax.vmap(of_state), in_axes=(0, None))(nodes, targets)


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _unstack(tree: Any, count: int) -> list[Any]:
    tree = jax.tree.map(np.asarray, tree)
    return [jax.tree.map(lambda leaf, place=place: leaf[place], tree) for place in range(count)]


def _pad(tree: Any, size: int) -> Any:
    def pad(leaf: np.ndarray) -> np.ndarray:
        return np.concatenate([leaf, np.repeat(leaf[-1:], size - len(leaf), axis=0)]) if len(leaf) < size else leaf

    return jax.tree.map(pad, tree)
