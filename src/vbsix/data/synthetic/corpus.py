"""Rows of instructions from a grammar, every program of them verified by the domain's executor."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from vbsix.data.examples import Row
from vbsix.data.synthetic import alchemy, scene, tangrams
from vbsix.data.synthetic.grammar import MOST_TOKENS, PHRASINGS, Grammar, cells
from vbsix.domains.base import Domain, State
from vbsix.domains.execution import run_batch
from vbsix.domains.names import base_name
from vbsix.domains.registry import get_domain
from vbsix.utilities.errors import UnknownName, VbsixError
from vbsix.utilities.jax_settings import set_flags

GRAMMARS = {"alchemy": alchemy.GRAMMAR, "scene": scene.GRAMMAR, "tangrams": tangrams.GRAMMAR}


def has_corpus(domain_name: str) -> bool:
    """Whether there is a built-in corpus for the domain of that name."""
    return base_name(domain_name) in GRAMMARS


_DESKS = 1024
"""How many rows are written side by side; always the same, so that the executor compiles once."""
_COMMANDS = 5
"""Smallest capacity of the executor's history."""
_PATIENCE = 30
"""Proposals that may fail one after the other before a row is restarted."""
_MOST_STARTS = 100
"""Restarts after which a row is given up: there are too few different ones."""


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A row with the program that each of its utterances means."""

    row: Row
    programs: tuple[str, ...]


def generate(domain_name: str, rows: int, seed: int, utterances: int = 5, phrasings: str = "all") -> list[Synthetic]:
    """Makes rows of instructions, no two alike, and the same ones for the same arguments.

    Args:
        domain_name: scene, alchemy or tangrams. A language that remembers where has the rows of the paper's domain.
        rows: how many.
        seed: another seed gives other rows.
        utterances: instructions in a row.
        phrasings: `all`, `seen` or `held-out`. About one wording in seven is held out: `seen` has none of these,
            `held-out` no others.

    Raises:
        VbsixError: an argument is wrong, or there are too few different rows.
    """
    domain_name = base_name(domain_name)
    if domain_name not in GRAMMARS:
        raise UnknownName("domain", domain_name, GRAMMARS)
    if phrasings not in PHRASINGS:
        raise UnknownName("set of phrasings", phrasings, PHRASINGS)
    if rows < 0 or utterances < 1:
        raise VbsixError(f"{rows} rows of {utterances} utterances cannot be made: ask for 0 or more of 1 or more.")
    set_flags()  # a first call starts JAX, and training in the same session needs all cores
    grammar = GRAMMARS[domain_name].restricted(phrasings)
    drafts = [_Draft(f"{domain_name}-{phrasings}-{seed}-{number}", grammar, utterances) for number in range(rows)]
    _write(get_domain(domain_name), drafts, max(utterances, _COMMANDS))
    return [draft.finish() for draft in drafts]


class _Draft:
    """A row being written. It draws its own random numbers, so that it does not depend on its neighbours."""

    def __init__(self, name: str, grammar: Grammar, utterances: int):
        self.name, self.grammar, self.utterances = name, grammar, utterances
        self.random = Random(name)
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Restarts the row in another world."""
        self.starts += 1
        if self.starts > _MOST_STARTS:
            raise VbsixError(f"there are too few different rows (gave up at {self.name}): ask for fewer.")
        self.worlds = [self.grammar.first_world(self.random)]
        self.texts: list[str] = []
        self.story = self.grammar.begin(self.worlds[0], self.random)
        self.failures = 0

    @property
    def done(self) -> bool:
        return len(self.texts) == self.utterances

    @property
    def content(self) -> tuple[str, ...]:
        """What no two rows may share."""
        return (self.worlds[0], *self.texts)

    def propose(self) -> list[str]:
        """Tokens of a program for the next instruction; none where nothing can be said."""
        self.proposal = self.grammar.propose(self.story, self.random)
        return self.proposal.program.split() if self.proposal else []

    def accept(self, world: str) -> None:
        """Takes up the proposal, which led to this world."""
        assert self.proposal
        self.texts.append(self.proposal.text)
        self.worlds.append(world)
        self.story.worlds.append(cells(world))
        self.story.commands.append(self.proposal.command)
        self.story.programs.append(self.proposal.program)
        self.failures = 0

    def reject(self) -> None:
        self.failures += 1
        if self.failures == _PATIENCE:
            self.start()

    def finish(self) -> Synthetic:
        return Synthetic(Row(self.name, tuple(self.worlds), tuple(self.texts)), tuple(self.story.programs))


def _write(domain: Domain, drafts: Sequence[_Draft], commands: int) -> None:
    """Writes the drafts to their end, many at once: each proposes what comes next, and the executor decides."""
    if not drafts:
        return
    token_ids = {token: number for number, token in enumerate(domain.tokens)}
    waiting, known = iter(drafts), set()
    desks = list(islice(waiting, _DESKS))
    first_worlds = np.stack([domain.parse_world(drafts[0].worlds[0])] * _DESKS)
    states = _start(domain, commands, first_worlds)
    while active := [desk for desk, draft in enumerate(desks) if not draft.done]:
        blank, programs = np.zeros(_DESKS, bool), np.full((_DESKS, MOST_TOKENS), -1, np.int32)
        for desk in active:
            tokens = desks[desk].propose()
            programs[desk, : len(tokens)] = [token_ids[token] for token in tokens]
            if not desks[desk].texts:
                blank[desk], first_worlds[desk] = True, domain.parse_world(desks[desk].worlds[0])
        states, *outcome = _advance(domain, commands, states, blank, first_worlds, programs)
        worlds, accepted = (np.asarray(array) for array in outcome)
        for desk in active:
            draft = desks[desk]
            if accepted[desk]:
                draft.accept(domain.format_world(worlds[desk]))
            else:
                draft.reject()
            if draft.done and draft.content in known:
                draft.start()
            elif draft.done:
                known.add(draft.content)
                desks[desk] = next(waiting, draft)


def _start(domain: Domain, commands: int, worlds: Any) -> State:
    return jax.vmap(lambda world: domain.start(world, commands))(worlds)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _advance(
    domain: Domain,
    commands: int,
    states: State,
    blank: Bool[Array, " N"],
    first_worlds: Any,
    programs: Int[Array, "N T"],
) -> tuple[State, Any, Bool[Array, " N"]]:
    """Runs a program from each state, or from the first world where the row is blank.

    Returns:
        The states reached, or the old ones where the program was not accepted; their worlds; and whether the program
        was accepted, for which it must be valid and change the world.
    """
    world_of = jax.vmap(domain.world)
    states = _choose(blank, _start(domain, commands, first_worlds), states)
    reached, valid = run_batch(domain, states, programs)
    accepted = valid & ~jax.vmap(domain.matches)(reached, world_of(states))
    states = _choose(accepted, reached, states)
    return states, world_of(states), accepted


def _choose(flags: Bool[Array, " N"], yes: State, no: State) -> State:
    def choose(one: Array, other: Array) -> Array:
        return jnp.where(flags.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    return jax.tree.map(choose, yes, no)
