"""Compiled functions are kept on disk, so that the second run of a command starts quickly."""

from __future__ import annotations

import os
from pathlib import Path


def use_compilation_cache() -> None:
    """Keeps them in the user's cache folder, unless JAX_COMPILATION_CACHE_DIR or JAX's config names another."""
    import jax

    if not jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "vbsix" / "jax"))
