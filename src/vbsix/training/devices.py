"""A batch shared out among a CPU's cores, where JAX was told to take each for a device.

A GPU gains nothing by it: its time goes into how many kernels there are, not into how large they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from vbsix.domains.base import Domain

_BATCH = "batch"
Function = Callable[[Any, Any], Any]
"""Of what every device needs, and of a batch: a tree whose leaves have its examples along their first axis."""


def add_up(function: Function, domain: Domain, size: int) -> Function:
    """The same for functions that give sums over the batch, each device doing its part."""
    mesh = _mesh(domain, size)
    if mesh is None:
        return function

    def of_part(needed: Any, part: Any) -> Any:
        return jax.lax.psum(function(needed, part), _BATCH)

    return _share_out(of_part, mesh, PartitionSpec())


def line_up(function: Function, domain: Domain, size: int) -> Function:
    """The same for functions that give something for each example, along the second axis."""
    mesh = _mesh(domain, size)
    return function if mesh is None else _share_out(function, mesh, PartitionSpec(None, _BATCH))


def put_on_all(tree: Any, domain: Domain, size: int) -> Any:
    """Numbers for training with batches of that size, on all devices that take part."""
    mesh = _mesh(domain, size)
    if mesh is None:
        return jax.tree.map(jnp.asarray, tree)
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))


def release(tree: Any) -> Any:
    """The same, but bound to no device: what takes other parts of batches can go on with it."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)


def count_devices(domain: Domain, size: int) -> int:
    """How many take equal parts of a batch of that size; a domain that asks the host has one."""
    if not domain.compiled or jax.default_backend() != "cpu":
        return 1
    return max(count for count in range(1, min(size, jax.device_count()) + 1) if size % count == 0)


def _mesh(domain: Domain, size: int) -> Mesh | None:
    """These devices, if there are several."""
    count = count_devices(domain, size)
    return Mesh(jax.devices()[:count], (_BATCH,)) if count > 1 else None


def _share_out(function: Function, mesh: Mesh, gives: PartitionSpec) -> Function:
    takes = PartitionSpec(), PartitionSpec(_BATCH)
    return jax.shard_map(function, mesh=mesh, in_specs=takes, out_specs=gives, check_vma=False)
