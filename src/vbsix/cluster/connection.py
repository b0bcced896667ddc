"""The connection to a Ray cluster, and what a task does first on its node."""

from __future__ import annotations

import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from vbsix.utilities.errors import UnknownName, VbsixError, describe_os_error
from vbsix.utilities.jax_settings import prepare_jax

LOCAL, RAY = "local", "ray"
"""Where commands compute."""
NO_EXTRA = "a Ray cluster needs its extra: pip install 'vbsix[cluster]', in a checkout: pip install '.[cluster]'"
RETRIES = 5
"""How often a task is repeated whose process, node or device has failed."""

ANSWER_SECONDS = 10
"""How long an address may take to answer."""
HTTP2_SETTINGS = b"\x04"
"""The kind of the first frame that either side sends: the fourth byte, after three with the frame's length."""
HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + HTTP2_SETTINGS + b"\0\0\0\0\0"
"""What a client says first (RFC 9113, section 3.4)."""


class Cluster(NamedTuple):
    """Where tasks run, and what each of them takes."""

    address: str | None = None
    """As `ray.init` takes it; None starts Ray on this machine, unless RAY_ADDRESS names a cluster."""
    cpus: int = 1
    gpus: float = 0.0
    """A task may take a part of a GPU."""
    storage: str | None = None
    """A URL that all nodes reach, for nodes that do not share the folder of a sweep."""

    @property
    def task_options(self) -> dict[str, Any]:
        """How Ray treats a task."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": RETRIES}

    @property
    def arguments(self) -> list[str]:
        """What a command line says to compute there."""
        given = [
            (name, value) for name, value, usual in zip(self._fields, self, Cluster(), strict=True) if value != usual
        ]
        return ["--engine", RAY, *(text for name, value in given for text in (f"--{name}", str(value)))]


def choose_cluster(
    engine: str,
    address: str | None,
    cpus: int | None,
    gpus: float | None,
    *folders: Path | None,
    storage: str | None = None,
) -> Cluster | None:
    """The cluster that the options describe; None to compute in this process.

    Args:
        engine: local or ray.
        address: of the cluster.
        cpus: of a task.
        gpus: of a task.
        folders: where tasks read or write.
        storage: see `Cluster`.
    """
    if engine not in (LOCAL, RAY):
        raise UnknownName("engine", engine, [LOCAL, RAY])
    for folder in folders:
        if folder and re.match("[a-z0-9+.-]{2,}:/", str(folder)):
            raise VbsixError(
                f"{folder}: a URL. Give a folder that all nodes share, such as one on NFS or a mounted bucket; for a "
                "sweep on Ray, you can also give a folder of this machine, and the URL as its storage."
            )
    if engine == LOCAL:
        if any(given is not None for given in (address, cpus, gpus, storage)):
            raise VbsixError("address, cpus, gpus and storage are for the engine ray.")
        return None
    import_ray()  # before anything is written
    if storage is not None:
        from vbsix.cluster.storage import require_writable

        require_writable(storage)
    return Cluster(address, cpus or 1, gpus or 0.0, storage)


@contextmanager
def connect(cluster: Cluster) -> Iterator[Any]:
    """Gives the module `ray`, connected. A connection that is there already is used, and stays."""
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    _require_listener(cluster.address or os.environ.get("RAY_ADDRESS") or "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX warns of forks, and Ray starts its processes so
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, AssertionError, OSError) as error:
        where = cluster.address or os.environ.get("RAY_ADDRESS") or "this machine"
        first = str(error).strip().partition("\n")[0]
        raise VbsixError(f"no Ray cluster can be reached at {where}: {first} Check it with: ray status") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def connected(cluster: Cluster | None) -> AbstractContextManager[Any]:
    """A connection to the cluster, if one is asked for. A wrong address is reported before anything is written."""
    return nullcontext() if cluster is None else connect(cluster)


def _require_listener(address: str) -> None:
    """Raises an error if nothing listens at HOST:PORT, or something that does not speak HTTP/2, as Ray does.

    Ray itself would try for minutes.
    """
    found = re.fullmatch(r"(?:ray://)?([^:/]+):(\d+)", address)
    if not found:
        return  # auto, local, or an address that Ray refuses itself
    try:
        with socket.create_connection((found[1], int(found[2])), timeout=ANSWER_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS") in (None, "", "0"):
                connection.sendall(HTTP2_GREETING)
                if connection.recv(4)[3:] != HTTP2_SETTINGS:
                    raise OSError("something else than Ray listens there")
    except (OSError, OverflowError) as error:
        raise VbsixError(f"no Ray cluster can be reached at {address}: {error}. Check it with: ray status") from error


def import_ray() -> Any:
    """The module, if the extra is installed."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # `enter` hides GPUs; Ray warns that it will not
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise VbsixError(f"{NO_EXTRA} ({error})") from error
    return ray


def fetch_result(ray: Any, ref: Any, what: str) -> Any:
    """What a task has returned.

    Args:
        ray: the module.
        ref: what Ray gave for the task.
        what: what the task does, for messages.

    Raises:
        VbsixError: it has failed.
    """
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        cause, reason = error.cause, f"{type(error.cause).__name__}: {error.cause}"
        if isinstance(cause, VbsixError):
            reason = str(cause)
        elif isinstance(cause, OSError):
            reason = describe_os_error(cause)
        raise VbsixError(f"{what}: {reason}") from error
    except ray.exceptions.RayError as error:
        raise VbsixError(f"{what}: its process or node died too often: {str(error).partition(chr(10))[0]}") from error


class Place(NamedTuple):
    """What a task must know of the process that started it."""

    folder: str
    """The working folder, from which modules of the user's own are imported."""
    cpus: int
    gpus: float

    @classmethod
    def here(cls, cluster: Cluster) -> Place:
        return cls(str(Path.cwd()), cluster.cpus, cluster.gpus)


def enter(place: Place) -> None:
    """Prepares a task's process: JAX uses the devices that Ray has given to the task."""
    import jax

    if Path(place.folder).is_dir():
        os.chdir(place.folder)
    prepare_jax(cores=place.cpus)
    if not place.gpus and "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")


def missing_on_node(path: Path) -> VbsixError:
    """Says that a node does not see a folder."""
    return VbsixError(f"{path}: is not there on node {os.uname().nodename}. All nodes of the cluster must share it.")
