"""What there is to compute with, told without starting JAX."""

from __future__ import annotations

import math
import os
from pathlib import Path

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
