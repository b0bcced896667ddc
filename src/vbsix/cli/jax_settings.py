"""What commands that compile much ask of JAX."""

from __future__ import annotations

import os
from pathlib import Path

GPU_GRAPHS = (
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,WHILE,CONDITIONAL"
)
"""Whole loops are handed to a GPU at once. A search has thousands of small kernels, and to launch them one by one takes
longer than to run them."""

GPU_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
"""One of them is there where there is an NVIDIA GPU. To ask JAX would be to start it, and too late for flags."""


def prepare_jax() -> None:
    """For commands that compile much: see `keep_compiled` and `prepare_gpu`."""
    keep_compiled()
    prepare_gpu()


def keep_compiled() -> None:
    """Keeps compiled functions on disk, so that the second run of a command starts quickly.

    They lie in the user's cache folder, unless JAX_COMPILATION_CACHE_DIR or JAX's config names another.
    """
    import jax

    if not jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "vbsix" / "jax"))


def prepare_gpu() -> None:
    """Has JAX launch whole loops at once, and take memory as it needs it; what the user has set stays as it is."""
    if not any(map(os.path.exists, GPU_DEVICES)):
        return
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    flags = os.environ.get("XLA_FLAGS", "")
    if "--xla_gpu_enable_command_buffer" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {GPU_GRAPHS} --xla_gpu_graph_min_graph_size=1".strip()
