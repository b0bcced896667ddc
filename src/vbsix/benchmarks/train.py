"""Speed of training: steps a second on the built-in corpus, in the shapes of SCONE's rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from vbsix.benchmarks import compile_apart, peak_memory, repeat
from vbsix.config.schema import Config, override
from vbsix.data.dataset import SYNTHETIC, load_dataset
from vbsix.domains.registry import get_domain
from vbsix.search.sharding import replicate
from vbsix.training.chunk import create_learners, learners_at_once, make_members, train_chunk
from vbsix.training.objective import Metrics
from vbsix.training.symmetry import make_renaming
from vbsix.utilities.machine import environment

ROWS = {"data.synthetic_rows": 300, "data.synthetic_dev_rows": 1}
STEPS = 4
"""Of a chunk, which is what is timed; on a GPU it has as many as in a run, since to begin one takes time."""
BEAMS = 16, 32, 64, 128, 256
BATCHES = 8, 16, 32, 64
SEEDS = 1, 2, 4, 6, 8, 12


def bench_train(config: Config, seeds: int, warm: int = 0, runs: int = 1) -> dict[str, Any]:
    """Measures training with such settings, after `warm` steps; a critic ranks in all of them.

    Several runs, side by side, differ in their learning rates.
    """
    data_config, domain = override(config, ROWS).data, get_domain(config.domain)
    dataset = load_dataset(data_config, domain, SYNTHETIC, word_size=config.network.word)
    learners, step = create_learners(dataset.domain, config, jnp.tile(jnp.arange(seeds), runs)), 0
    rates = [config.training.learning_rate / (1 + number) for number in range(runs)]
    configs = [override(config, {"training.learning_rate": rate}) for rate in rates]
    renaming = make_renaming(domain, dataset.words) if config.training.symmetry else None
    data = make_members(configs, [range(seeds)] * runs), dataset.words.vectors, dataset.arrays(dataset.examples)
    learners, members, vectors, examples, renaming = replicate(
        (learners, *data, renaming), dataset.domain, config.training.batch
    )
    steps = STEPS if jax.default_backend() == "cpu" else config.run.chunk
    compiled, compile_seconds = compile_apart(
        train_chunk,
        dataset.domain,
        config,
        learners,
        members,
        vectors,
        examples,
        jnp.int32(step),
        renaming,
        steps=steps,
        critic_ranks=config.training.critic,
        at_once=learners_at_once([range(seeds)] * runs),
    )

    def chunk() -> Metrics:
        nonlocal learners, step
        learners, metrics = compiled(learners, members, vectors, examples, jnp.int32(step), renaming)
        step += steps
        return metrics

    while step < warm:
        jax.block_until_ready(chunk())
    steps_per_second = steps / repeat(chunk, compile_seconds).seconds
    return {
        "domain": config.domain,
        "method": config.method,
        "recipe": config.recipe,
        "seeds": seeds,
        "runs": runs,
        "beam": config.search.beam,
        "batch": config.training.batch,
        "chunk": steps,
        "warm": warm,
        "steps_per_second": steps_per_second,
        "examples_per_second": steps_per_second * config.training.batch * seeds * runs,
        "compile_seconds": compile_seconds,
        "peak_memory_bytes": peak_memory(compiled),
        **environment(),
    }


def grow(config: Config, seeds: int) -> list[tuple[Config, int]]:
    """Settings and seeds to measure growth with: one size changes at a time, and what is the same comes once."""
    grown = [(override(config, {"search.beam": beam}), seeds) for beam in BEAMS]
    grown += [(override(config, {"training.batch": batch}), seeds) for batch in BATCHES]
    grown += [(config, number) for number in SEEDS]
    return list(dict.fromkeys(grown))
