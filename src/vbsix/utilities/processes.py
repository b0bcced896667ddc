"""Several processes that train one run, joined by `jax.distributed`. Only the first of them writes files."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from vbsix.utilities.errors import VbsixError

if TYPE_CHECKING:
    import numpy as np

WAIT_SECONDS = 300
"""How long the processes wait for each other at the start."""
_MOST_TEXT = 2000
"""Bytes of a message that other processes get."""
LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
)
"""Where Open MPI, MPICH and Slurm tell a process its number, how many there are, and its number on its host."""
_is_joined = False
"""Whether this process has joined others."""
_waits_for_others = True
"""Whether this process, when it ends, may wait for the others: it may until all have come through `joined`."""


class Peers(NamedTuple):
    """How a process finds the others. What is None is found out: numbers from what the launcher has set, by us or by
    JAX; the coordinator's address by JAX alone.
    """

    coordinator: str | None = None
    """HOST:PORT of process 0."""
    processes: int | None = None
    process: int | None = None
    """The number of this process, from 0 on."""


def is_distributed() -> bool:
    """Whether this process is one of several that compute together. Asking does not start JAX."""
    return _is_joined


def writes_files() -> bool:
    """Whether this process writes files: if it is the only one, or the first of several."""
    return not is_distributed() or sys.modules["jax"].process_index() == 0


@contextmanager
def joined(peers: Peers | None) -> Iterator[None]:
    """Joins the processes, for the rest of their lives. All come through the block, or none: each raises what one does.

    Args:
        peers: how to find the others; None for a process that is alone.

    Raises:
        VbsixError: the others were not found, or one of them failed.
    """
    global _is_joined, _waits_for_others
    if peers is None:
        yield
        return
    _connect(peers)
    _is_joined = True
    problem = None
    try:
        yield
    except (VbsixError, OSError) as error:
        problem = error
    texts = _gather_texts("" if problem is None else str(problem))
    if problem is not None:
        raise problem
    for process, text in enumerate(texts):
        if text:
            raise VbsixError(f"process {process}: {text}")
    _waits_for_others = False


def any_process(wish: bool) -> bool:
    """Whether one of the processes wishes something. All of them must ask."""
    return bool(_gather(int(wish)).any()) if is_distributed() else wish


def require_agreement(facts: Mapping[str, Any]) -> None:
    """Refuses to compute with processes that start from something else."""
    if not is_distributed():
        return
    own = sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
    for process, theirs in enumerate(_gather_texts(own)):
        if theirs != own:
            raise VbsixError(
                f"process {process} has other settings, data or checkpoints than this one. Start all processes with "
                "the same command, and let them see the same folders."
            )


def end_process(code: int) -> NoReturn:
    """Ends the process after an error. One of several does not wait for the others, which would wait for it."""
    if not _waits_for_others:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _connect(peers: Peers) -> None:
    """Joins the processes. JAX would end a process that does not find the others, without a word that helps."""
    global _waits_for_others
    import jax

    jax.config.update("jax_enable_preemption_service", False)  # it keeps SIGTERM from ending the process
    where = peers.coordinator or "the address that was detected"
    peers, devices = _ask_launcher(peers)
    errors: list[BaseException] = []

    def connect() -> None:
        try:
            _require_address(peers)
            jax.distributed.initialize(*peers, devices, initialization_timeout=2 * WAIT_SECONDS)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(WAIT_SECONDS)
    if thread.is_alive():
        _waits_for_others = False  # JAX still tries to meet them
        raise VbsixError(f"after {WAIT_SECONDS} seconds, not all processes have met at {where}.")
    if errors:
        reason = str(errors[0]).partition("\n")[0]
        if "must be defined" in reason or "should be defined" in reason:
            raise VbsixError(
                "--distributed: no other processes were detected. Give --coordinator HOST:PORT and, if no launcher "
                "such as srun or mpirun has started this one, --processes and --process."
            )
        raise VbsixError(f"the processes cannot meet at {where}: {reason.rstrip('.')}.") from errors[0]


def _ask_launcher(peers: Peers) -> tuple[Peers, list[int] | None]:
    """The peers with the numbers that a launcher has set, where they are not given; and the GPUs of this process.

    JAX does the same for the launchers that it knows. It does not know Open MPI 5.
    """
    for rank, size, local in LAUNCHERS:
        if rank in os.environ and size in os.environ:
            processes = int(os.environ[size]) if peers.processes is None else peers.processes
            process = int(os.environ[rank]) if peers.process is None else peers.process
            chosen = local not in os.environ or "JAX_LOCAL_DEVICE_IDS" in os.environ
            devices = None if chosen else [int(os.environ[local])]  # one each, as JAX does it
            return Peers(peers.coordinator, processes, process), devices
    return peers, None


def _require_address(peers: Peers) -> None:
    """Raises an error at once if there is no such host, or if its port is in use; JAX tries for minutes, or crashes."""
    if peers.coordinator is not None:
        host, _, port = peers.coordinator.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError("expected HOST:PORT")
        socket.getaddrinfo(host.strip("[]"), int(port))
        if peers.process == 0:
            socket.create_server(("", int(port))).close()


def _gather_texts(text: str) -> list[str]:
    import numpy as np

    content = text.encode()[:_MOST_TEXT]
    padded = np.zeros(_MOST_TEXT, np.uint8)
    padded[: len(content)] = np.frombuffer(content, np.uint8)
    return [row.tobytes().rstrip(b"\0").decode(errors="replace") for row in _gather(padded)]


def _gather(value: Any) -> np.ndarray:
    """The values of all processes, in their order."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    first = {device.process_index: device for device in reversed(jax.devices())}
    mesh = Mesh([first[process] for process in range(jax.process_count())], ("process",))
    own = jax.device_put(np.asarray(value)[None], first[jax.process_index()])
    shape = jax.process_count(), *np.shape(value)
    each = NamedSharding(mesh, PartitionSpec("process"))
    spread = jax.make_array_from_single_device_arrays(shape, each, [own])
    return np.asarray(jax.jit(_same, out_shardings=NamedSharding(mesh, PartitionSpec()))(spread))


def _same(array: Any) -> Any:
    """Named, so that it is compiled once."""
    return array
