"""Where commands compute: in this process, in several processes that train one run, or on a Ray cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from vbsix.utilities.errors import VbsixError
from vbsix.utilities.processes import Peers

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
Storage = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="With --engine ray: where tasks keep their runs if nodes do not share --out; any URL of fsspec, such as "
        "s3://bucket/sweep.",
    ),
]

Distributed = Annotated[
    bool,
    typer.Option(
        "--distributed",
        help="Train one run with several processes; each is started with this command. With Slurm and Open MPI 4, they "
        "find each other; with other launchers give --coordinator, without one --processes and --process, too.",
    ),
]
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="With --distributed: where process 0 listens.")
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, help="With --distributed: how many processes there are. Default: as the launcher says."),
]
ProcessNumber = Annotated[
    int | None,
    typer.Option(
        "--process",
        min=0,
        help="With --distributed: the number of this process, from 0 on. Default: as the launcher says.",
    ),
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
