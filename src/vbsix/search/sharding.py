"""A batch sharded over a CPU's cores, where JAX treats each core as a device.

A GPU gains nothing from it: its time depends on how many kernels there are, not on how large they are.
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
"""Of what every device needs, and of a batch: a tree whose leaves have the examples along their first axis."""


def sharded_sum(function: Function, domain: Domain, size: int) -> Function:
    """A function that returns sums over the batch, with each device summing over its shard."""
    mesh = _mesh(domain, size)
    if mesh is None:
        return function

    def of_shard(needed: Any, shard: Any) -> Any:
        return jax.lax.psum(function(needed, shard), _BATCH)

    return _shard(of_shard, mesh, PartitionSpec())


def sharded_map(function: Function, domain: Domain, size: int) -> Function:
    """A function that returns a result for each example, along the second axis, with each device mapping its shard."""
    mesh = _mesh(domain, size)
    return function if mesh is None else _shard(function, mesh, PartitionSpec(None, _BATCH))


def replicate(tree: Any, domain: Domain, size: int) -> Any:
    """Arrays on all devices that take part in batches of that size."""
    mesh = _mesh(domain, size)
    if mesh is None:
        return jax.tree.map(jnp.asarray, tree)
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))


def to_host(tree: Any) -> Any:
    """Arrays that are bound to no device, so that functions with another sharding can use them."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)


def count_devices(domain: Domain, size: int) -> int:
    """How many devices take equal shards of a batch of that size; a domain with JAX callbacks uses one."""
    if not domain.compiled or jax.default_backend() != "cpu":
        return 1
    return max(count for count in range(1, min(size, jax.device_count()) + 1) if size % count == 0)


def _mesh(domain: Domain, size: int) -> Mesh | None:
    """These devices, if there are several."""
    count = count_devices(domain, size)
    return Mesh(jax.devices()[:count], (_BATCH,)) if count > 1 else None


def _shard(function: Function, mesh: Mesh, gives: PartitionSpec) -> Function:
    takes = PartitionSpec(), PartitionSpec(_BATCH)
    return jax.shard_map(function, mesh=mesh, in_specs=takes, out_specs=gives, check_vma=False)
