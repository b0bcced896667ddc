"""What commands that compile much ask of JAX."""

from __future__ import annotations

import os
from pathlib import Path

from vbsix.utilities.machine import count_cores

GPU_GRAPHS = "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION"
"""Kernels are handed to a GPU many at once. A search has thousands of small ones, and to launch them one by one takes
longer than to run them. Whole loops (WHILE, CONDITIONAL) are not handed over."""

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
"""Matrix products of ours are too small to gain by being split among a CPU's cores; training shares out examples."""

PATIENCE = "--xla_cpu_collective_call_terminate_timeout_seconds=86400"
"""A core that others wait for may be late: XLA would end the process after 40 seconds, as when a machine sleeps."""

GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
"""One of them is there where there is an NVIDIA GPU. To ask JAX would be to start it, and too late for flags."""


def prepare_jax(cores: int | None = None) -> None:
    """For commands that compile much: see `keep_compiled` and `set_flags`."""
    keep_compiled()
    set_flags(cores)


def keep_compiled() -> None:
    """Keeps compiled functions on disk, so that the second run of a command starts quickly.

    They lie in the user's cache folder, unless JAX_COMPILATION_CACHE_DIR or JAX's config names another.
    """
    import jax

    if not jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "vbsix" / "jax"))


def set_flags(cores: int | None = None) -> None:
    """Has JAX take each core of a CPU for a device; on a GPU, launch many kernels at once and take memory as needed.

    What the user has set stays as it is. `cores` are those to use; None for all that this process may use.
    """
    flags = [ONE_THREAD, PATIENCE]
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        flags.append(f"--xla_force_host_platform_device_count={cores or count_cores()}")
    if any(map(os.path.exists, GPU_DEVICES)):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        flags += [GPU_GRAPHS, "--xla_gpu_graph_min_graph_size=1"]
    given = os.environ.get("XLA_FLAGS", "")
    own = [flag for flag in flags if flag.partition("=")[0] not in given]
    os.environ["XLA_FLAGS"] = " ".join([given, *own]).strip()
