from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from vbsix.utilities.trees import choose


def test_choose():
    tree = {"a": np.arange(5), "b": np.arange(10).reshape(5, 2)}
    chosen = choose(tree, jnp.array([3, 0]))
    assert chosen["a"].tolist() == [3, 0]
    assert chosen["b"].tolist() == [[6, 7], [0, 1]]
    one = choose(tree, 3)
    assert (one["a"], one["b"].tolist()) == (3, [6, 7])
