"""Where commands compute: in this process, in several processes that train one run, or on a Ray cluster."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbsix.utilities.errors import UnknownName, VbsixError
from vbsix.utilities.processes import Peers

if TYPE_CHECKING:
    from vbsix.cluster.connection import Cluster

LOCAL, RAY = "local", "ray"
Engine = Annotated[
    str, typer.Option(metavar="local|ray", help="Where to compute: in this process, or on a Ray cluster.")
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="The Ray cluster, or auto. Default: RAY_ADDRESS, or else Ray on this machine."
    ),
]
Cpus = Annotated[int | None, typer.Option(min=1, help="With --engine ray: the CPU cores of a task; 1 by default.")]
Gpus = Annotated[
    float | None, typer.Option(min=0, help="With --engine ray: the GPUs of a task, such as 0.5; 0 by default.")
]

Distributed = Annotated[
    bool,
    typer.Option(
        "--distributed",
        help="Train one run with several processes; each is started with this command. JAX finds the others in a job "
        "of Slurm, Open MPI or Kubernetes; elsewhere, give --coordinator, --processes and --process.",
    ),
]
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="With --distributed: where process 0 listens.")
]
Processes = Annotated[int | None, typer.Option(min=1, help="With --distributed: how many processes there are.")]
ProcessNumber = Annotated[
    int | None, typer.Option("--process", min=0, help="With --distributed: the number of this process, from 0 on.")
]


def choose_peers(
    distributed: bool, coordinator: str | None, processes: int | None, process: int | None
) -> Peers | None:
    """How this process finds those that it trains a run with; None for a process that is alone."""
    if not distributed:
        if any(given is not None for given in (coordinator, processes, process)):
            raise VbsixError("--coordinator, --processes and --process are for --distributed.")
        return None
    if process is not None and processes is not None and process >= processes:
        raise VbsixError(f"--process {process}: {processes} processes have the numbers 0 to {processes - 1}.")
    return Peers(coordinator, processes, process)


def choose_cluster(
    engine: str, address: str | None, cpus: int | None, gpus: float | None, *folders: Path | None
) -> Cluster | None:
    """The cluster that the options describe; None to compute in this process.

    Args:
        engine: local or ray.
        address: of the cluster.
        cpus: of a task.
        gpus: of a task.
        folders: where tasks read or write.
    """
    if engine not in (LOCAL, RAY):
        raise UnknownName("engine", engine, [LOCAL, RAY])
    for folder in folders:
        if folder and re.match("[a-z0-9+.-]{2,}:/", str(folder)):
            raise VbsixError(
                f"{folder}: a URL. Give a folder that all nodes share, such as one on NFS or a mounted bucket."
            )
    if engine == LOCAL:
        if any(given is not None for given in (address, cpus, gpus)):
            raise VbsixError("--address, --cpus and --gpus are for --engine ray.")
        return None
    from vbsix.cluster.connection import Cluster, import_ray

    import_ray()  # before anything is written
    return Cluster(address, cpus or 1, gpus or 0.0)


def connected(cluster: Cluster | None) -> AbstractContextManager[Any]:
    """A connection to the cluster, if one is asked for. A wrong address is reported before anything is written."""
    if cluster is None:
        return nullcontext()
    from vbsix.cluster.connection import connect

    return connect(cluster)
