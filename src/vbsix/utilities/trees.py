"""Trees of arrays."""

from __future__ import annotations

from typing import Any

import jax


def choose(tree: Any, index: Any) -> Any:
    """The entry of every leaf at an index, or its entries at several indices of the first axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)
