"""Programs that come to the right world through wrong ones.

The worlds in between are looked at after training alone: nothing learns from them.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from vbsix.domains.base import Domain, State
from vbsix.training.task import Split, Task


def spurious_shares(task: Task, split: Split, length: int, tokens: Int[np.ndarray, "S N L"]) -> list[float | None]:
    """For each seed, how many of its right programs are spurious; None if none is right.

    Args:
        task: the data.
        split: where the rows are from; those with an unknown world in between are passed over.
        length: how many of the rows' first utterances the programs are for; of whole rows (0) it is not known.
        tokens: each seed's program for each row.
    """
    known = [place for place, row in enumerate(split.rows) if length and None not in row.worlds[: length + 1]]
    if not known:
        return [None] * len(tokens)
    rows = Split([split.rows[place] for place in known])
    by_length = [task.arrays(rows.examples(end)) for end in range(1, length + 1)]
    between = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *(arrays.target for arrays in by_length))
    right = np.asarray(passes_through(task.domain, by_length[-1].world, between, jnp.asarray(tokens[:, known])))
    correct = right[:, :, -1]
    spurious = correct & ~right.all(axis=-1)
    return [
        float(wrong.sum() / count) if (count := of_seed.sum()) else None
        for wrong, of_seed in zip(spurious, correct, strict=True)
    ]


@functools.partial(jax.jit, static_argnums=0)
def passes_through(domain: Domain, starts: Any, worlds: Any, tokens: Int[Array, "S N L"]) -> Bool[Array, "S N M"]:
    """Whether the world after each command of each program is the one wanted.

    Args:
        domain: the language.
        starts: first worlds; leaves [N, ...].
        worlds: those wanted after each command; leaves [N, M, ...].
        tokens: valid programs, padded with -1.
    """
    commands = jax.tree.leaves(worlds)[0].shape[1]

    def of_program(start: Any, worlds: Any, tokens: Int[Array, " L"]) -> Bool[Array, " M"]:
        def step(carry: tuple[State, Bool[Array, " M"]], token: Int[Array, ""]):
            state, right = carry
            successors, valid = domain.expand(state)
            moved = (token >= 0) & valid[token]
            after = jax.tree.map(lambda new, old: jnp.where(moved, new[token], old), successors, state)
            done = domain.instructions_done(after)
            ended = (done > domain.instructions_done(state)) & (jnp.arange(commands) == done - 1)
            return (after, right | (ended & jax.vmap(lambda world: domain.matches(after, world))(worlds))), None

        nothing = jnp.zeros(commands, bool)
        return jax.lax.scan(step, (domain.start(start, commands), nothing), tokens)[0][1]

    return jax.vmap(lambda programs: jax.vmap(of_program)(starts, worlds, programs))(tokens)
