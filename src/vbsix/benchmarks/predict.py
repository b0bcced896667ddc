"""Speed of prediction: beam search with a policy alone, of examples from the embedded corpus.

The policy is freshly drawn. As shapes are fixed it takes about as long as a trained one: its beams run dry early, so
that there are fewer programs to make worlds of.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from vbsix.benchmarks import environment, measure, repeat
from vbsix.loading import make_parser
from vbsix.models import Policy
from vbsix.parser import Parse
from vbsix.search.merging import choose
from vbsix.training.chunk import predict_batch
from vbsix.training.config import Config, override
from vbsix.training.task import SYNTHETIC, load_task

UTTERANCES = 5


def bench_predict(config: Config, seeds: int = 1) -> dict[str, Any]:
    """Measures prediction of many examples at once, and of one as `vbsix parse` does it, from text to worlds.

    Args:
        config: its beam and batch for evaluation are taken.
        seeds: how many policies predict each of the many examples; the one is predicted by the first.
    """
    beam, batch = config.run.evaluation_beam, config.run.evaluation_batch
    rows = {"data.lengths": [UTTERANCES], "data.synthetic_rows": batch, "data.synthetic_dev_rows": 1}
    task = load_task(override(config, rows), SYNTHETIC)
    vectors, first = jnp.asarray(task.words.vectors), task.examples[0]
    create = jax.jit(jax.vmap(lambda key: Policy(task.domain, config.network, key=key)))
    policies = create(jax.random.split(jax.random.key(0), seeds))
    batched = measure(partial(predict_batch, task.domain, beam=beam), policies, vectors, task.arrays(task.examples))

    policy = choose(policies, 0)
    parser = make_parser(task.domain, policy, task.words, config, {})

    def parse() -> Parse:
        return parser.parse(first.context, first.instructions)

    start = time.perf_counter()
    parse()
    single = repeat(parse, time.perf_counter() - start)
    return {
        "domain": config.domain,
        "utterances": UTTERANCES,
        "seeds": seeds,
        "beam": beam,
        "batch": batch,
        "milliseconds_batched": 1000 * batched.seconds / batch,
        "milliseconds_single": 1000 * single.seconds,
        "compile_seconds": batched.compile_seconds,
        "first_single_seconds": single.compile_seconds,
        **environment(),
    }
