"""A batch sharded over a CPU's cores, where JAX treats each core as a device, or over the devices of several processes.

One process uses one GPU: its time depends on how many kernels there are, not on how large they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from vbsix.domains.base import Domain
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.processes import is_distributed

_BATCH = "batch"
Function = Callable[[Any, Any], Any]
"""Of what every device needs, and of a batch: a tree whose leaves have the examples along their first axis."""


def sharded_sum(function: Function, domain: Domain, size: int) -> Function:
    """A function that returns sums over the batch, with each device of all processes summing over its shard."""
    mesh = _mesh(domain, size)
    if mesh is None:
        return function

    def of_shard(needed: Any, shard: Any) -> Any:
        return jax.lax.psum(function(needed, shard), _BATCH)

    return _shard(of_shard, mesh, PartitionSpec())


def sharded_map(function: Function, domain: Domain, size: int) -> Function:
    """A function that returns a result for each example, along the second axis, with each device mapping its shard.

    Each process maps the whole batch on devices of its own, so that it has all results.
    """
    mesh = _mesh(domain, size, everywhere=False)
    return function if mesh is None else _shard(function, mesh, PartitionSpec(None, _BATCH))


def replicate(tree: Any, domain: Domain, size: int) -> Any:
    """Arrays on all devices that take part in batches of that size."""
    mesh = _mesh(domain, size)
    if mesh is None:
        return jax.tree.map(jnp.asarray, tree)
    sharding = NamedSharding(mesh, PartitionSpec())
    if not is_distributed():
        return jax.device_put(tree, sharding)

    def place(leaf: Any) -> jax.Array:
        array = np.asarray(jnp.asarray(leaf))
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    return jax.tree.map(place, tree)


def to_host(tree: Any) -> Any:
    """Arrays that are bound to no device, so that functions with another sharding can use them."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)


def count_devices(domain: Domain, size: int, *, everywhere: bool = True) -> int:
    """How many devices of each process take equal shards of a batch of that size; a domain with JAX callbacks uses one.

    Args:
        domain: the language.
        size: of the batch.
        everywhere: share it out over all processes; else, over the devices of this one.
    """
    devices = _devices(everywhere)
    several = jax.default_backend() == "cpu" or len(devices) > 1
    most = min(map(len, devices)) if domain.compiled and several else 1
    counts = [count for count in range(1, most + 1) if size % (count * len(devices)) == 0]
    if not counts:
        raise VbsixError(
            f"training.batch={size} cannot be divided evenly among {len(devices)} processes; give a multiple of that."
        )
    return max(counts)


def _devices(everywhere: bool) -> list[list[Any]]:
    """The devices of each process."""
    if not everywhere:
        return [jax.local_devices()]
    by_process: dict[int, list[Any]] = {}
    for device in jax.devices():
        by_process.setdefault(device.process_index, []).append(device)
    return list(by_process.values())


def _mesh(domain: Domain, size: int, *, everywhere: bool = True) -> Mesh | None:
    """The devices that take part, if there are several."""
    count = count_devices(domain, size, everywhere=everywhere)
    devices = [device for own in _devices(everywhere) for device in own[:count]]
    return Mesh(devices, (_BATCH,)) if len(devices) > 1 else None


def _shard(function: Function, mesh: Mesh, gives: PartitionSpec) -> Function:
    takes = PartitionSpec(), PartitionSpec(_BATCH)
    return jax.shard_map(function, mesh=mesh, in_specs=takes, out_specs=gives, check_vma=False)
