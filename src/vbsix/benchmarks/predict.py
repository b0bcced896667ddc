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
from vbsix.models import Policy
from vbsix.parser import Parse, make_parser
from vbsix.training.chunk import predict_batch
from vbsix.training.config import Config, override
from vbsix.training.task import SYNTHETIC, load_task

UTTERANCES = 5


def bench_predict(config: Config) -> dict[str, Any]:
    """Measures prediction of many examples at once, and of one as `vbsix parse` does it, from text to worlds."""
    beam, batch = config.run.evaluation_beam, config.run.evaluation_batch
    rows = {"data.lengths": [UTTERANCES], "data.synthetic_rows": batch, "data.synthetic_dev_rows": 1}
    task = load_task(override(config, rows), SYNTHETIC)
    vectors, first = jnp.asarray(task.words.vectors), task.examples[0]
    policy = jax.jit(lambda key: Policy(task.domain, config.network, key=key))(jax.random.key(0))
    policies = jax.tree.map(lambda leaf: leaf[None], policy)
    batched = measure(partial(predict_batch, task.domain, beam=beam), policies, vectors, task.arrays(task.examples))

    parser = make_parser(task.domain, policy, task.words, config, {})

    def parse() -> Parse:
        return parser.parse(first.context, first.instructions)

    start = time.perf_counter()
    parse()
    single = repeat(parse, time.perf_counter() - start)
    return {
        "domain": config.domain,
        "utterances": UTTERANCES,
        "beam": beam,
        "batch": batch,
        "milliseconds_batched": 1000 * batched.seconds / batch,
        "milliseconds_single": 1000 * single.seconds,
        "compile_seconds": batched.compile_seconds,
        "first_single_seconds": single.compile_seconds,
        **environment(),
    }
