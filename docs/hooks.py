"""Pages that come with measurements are listed once they are there."""

from __future__ import annotations

from pathlib import Path

MEASURED = {"Results": "results.md", "Speed": "speed.md"}


def on_config(config):
    found = [{title: page} for title, page in MEASURED.items() if (Path(config.docs_dir) / page).exists()]
    config.nav = [*config.nav[:-2], *found, *config.nav[-2:]]
    return config
