"""What there is to compute with, told without starting JAX."""

from __future__ import annotations

import os


def count_cores() -> int:
    """The CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
