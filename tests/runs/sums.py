"""A language of sums, small enough to train teachers and students in a test."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from random import Random

import jax.numpy as jnp
import numpy as np
from training.tiny_config import tiny_config

from vbsix import Domain, InvalidWorld, hash_words
from vbsix.config.schema import override
from vbsix.domains.base import Observation

WORDS = ("one", "two", "three")
MOST = 9


class Sums(Domain):
    """Each token adds a number, and is a command. 4 is 1 + 3, but also 2 + 2: programs may be spurious."""

    name = "sums"
    tokens = WORDS
    max_tokens_per_instruction = 1
    slots, objects, elements = 1, 0, 1
    values = 2
    attributes = {"sum": MOST + 1}

    def start(self, world, instructions):
        return {"sum": jnp.asarray(world, jnp.int32), "done": jnp.int32(0)}

    def expand(self, state):
        sums = state["sum"] + jnp.arange(1, 4, dtype=jnp.int32)
        return {"sum": sums, "done": jnp.broadcast_to(state["done"] + 1, (3,))}, sums <= MOST

    def instructions_done(self, state):
        return state["done"]

    def matches(self, state, target):
        return state["sum"] == target

    def key(self, state):
        return hash_words(jnp.stack([state["sum"], state["done"]]))

    def observe(self, state):
        return Observation(jnp.ones(1, jnp.int32), jnp.zeros((1, 0, 1), jnp.int32))

    def observe_world(self, state):
        return state["sum"][None, None] + 1

    def observe_target(self, target):
        return jnp.asarray(target)[None, None] + 1

    def parse_world(self, text):
        if not text.isdigit() or int(text) > MOST:
            raise InvalidWorld(f"expected a number up to {MOST}")
        return np.int32(text)

    def format_world(self, world):
        return str(int(world))

    def world(self, state):
        return state["sum"]

    def format_state(self, state):
        return [str(int(state["sum"]))]

    def explain(self, state, token):
        return None if int(state["sum"]) + 1 + self.tokens.index(token) <= MOST else f"{token}: too much"


SUMS = Sums()
CONFIG = override(
    tiny_config("execution-only", domain="sums"),
    {
        "data.lengths": (2,),
        "data.evaluation": (2,),
        "data.max_words": 4,
        "data.glove_words": 0,
        "search.beam": 9,
        "training.steps": 5,
        "run.chunk": 1,
        "run.log_every": 2,
        "run.evaluate_every": 3,
        "run.checkpoint_every": 2,
    },
)


def write_sums(
    folder: Path,
    rows: int = 24,
    noise: int = 1,
    between: int = 0,
    dev: int = 8,
    planted: int = 0,
    utterances: int = 2,
) -> str:
    """Files in SCONE's form. Each utterance has a number and words that no other has, which can be memorised.

    Args:
        folder: where the files go.
        rows: training rows.
        noise: words of each utterance that say nothing.
        between: by how much the world after the first utterance is wrong; in dev, all worlds before the last.
        dev: rows of dev.
        planted: in so many training rows, the world after the first utterance is that of another correct program.
        utterances: of each row, up to three; two for planted worlds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chance, vocabulary = Random(0), list(WORDS)
    for split, count in (("train", rows), ("dev", dev)):
        lines = []
        for number in range(count):
            values = [chance.randint(1, 3) for _ in range(utterances)]
            said = []
            for place, value in enumerate(values):
                own = [f"{split}{number}n{place}n{which}" for which in range(noise)]
                vocabulary += own
                said.append(" ".join([*own, WORDS[value - 1]]))
            worlds = list(accumulate(values))
            if split == "train" and number < planted:  # 2 and 6 are sums of one program alone
                others = (other for other in (1, 2, 3) if other != values[0] and 1 <= worlds[1] - other <= 3)
                worlds[0] = next(others, values[0])
            for place in range(1 if split == "train" else utterances - 1):
                worlds[place] = (worlds[place] + between) % (MOST + 1)
            steps = [part for step in zip(said, map(str, worlds), strict=True) for part in step]
            lines.append("\t".join([f"{split}-{number}", "0", *steps]))
        (folder / f"sums-{split}.tsv").write_text("\n".join(lines) + "\n")
    vectors = np.random.default_rng(0).normal(size=(len(vocabulary), 100))
    text = "\n".join(
        " ".join([word, *(f"{x:.4f}" for x in row)]) for word, row in zip(vocabulary, vectors, strict=True)
    )
    (folder / "glove.6B.100d.txt").write_text(text + "\n")
    return str(folder.resolve())
