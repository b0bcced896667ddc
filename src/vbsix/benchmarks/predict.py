"""Speed of prediction: beam search with a policy alone, of examples from the built-in corpus.

The policy is untrained. As shapes are fixed it takes about as long as a trained one: its beams run dry early, so
that there are fewer programs to make worlds of.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from vbsix.benchmarks import measure, repeat
from vbsix.config.schema import Config, override
from vbsix.data.dataset import SYNTHETIC, load_dataset
from vbsix.domains.registry import get_domain
from vbsix.evaluation.accuracy import predict_batch
from vbsix.models import Policy
from vbsix.parsing.loading import make_parser
from vbsix.search.prediction import Parse
from vbsix.utilities.machine import environment
from vbsix.utilities.trees import choose

UTTERANCES = 5


def bench_predict(config: Config, seeds: int = 1) -> dict[str, Any]:
    """Measures prediction of many examples at once, and of one as `vbsix parse` does it, from text to worlds.

    Args:
        config: its beam and batch for evaluation are taken.
        seeds: how many policies predict each of the many examples; the one is predicted by the first.
    """
    beam, batch = config.run.evaluation_beam, config.run.evaluation_batch
    rows = {"data.lengths": [UTTERANCES], "data.synthetic_rows": batch, "data.synthetic_dev_rows": 1}
    data_config, domain = override(config, rows).data, get_domain(config.domain)
    dataset = load_dataset(data_config, domain, SYNTHETIC, word_size=config.network.word)
    vectors, first = jnp.asarray(dataset.words.vectors), dataset.examples[0]
    create = jax.jit(jax.vmap(lambda key: Policy(dataset.domain, config.network, key=key)))
    policies = create(jax.random.split(jax.random.key(0), seeds))
    batched = measure(
        partial(predict_batch, dataset.domain, beam=beam), policies, vectors, dataset.arrays(dataset.examples)
    )

    policy = choose(policies, 0)
    parser = make_parser(dataset.domain, policy, dataset.words, config, {})

    def parse() -> Parse:
        return parser.parse(first.context, first.instructions, explain=False)

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
