"""What there is to compute with. Counting cores does not start JAX."""

from __future__ import annotations

import math
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vbsix import __version__

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""How much time a container may have of a period, as Linux tells it: `200000 100000`, or `max 100000`."""


def count_cores() -> int:
    """The CPU cores that this process may use, of the machine and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        time, period = map(int, QUOTA.read_text(encoding="utf-8").split())
    except (OSError, ValueError):  # no container, or one without a quota
        return cores
    return min(cores, math.ceil(time / period))


def environment() -> dict[str, Any]:
    """The hardware and the versions that a number was measured with."""
    import jax

    device = jax.devices()[0]
    packages = {name: version(name) for name in ("jax", "jaxlib", "numpy")}
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "processor": platform.processor() or platform.machine(),
        "cores": count_cores(),
        "versions": {"vbsix": __version__, "python": platform.python_version(), **packages},
    }
