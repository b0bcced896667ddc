"""Worlds as pictures in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vbsix.domains.registry import as_domain
from vbsix.show.html import card, note, page_part, world_card
from vbsix.utilities.errors import VbsixError, naming


@dataclass(frozen=True)
class Drawing:
    """Some worlds, which a notebook displays as pictures; `vbsix.draw_world` makes one."""

    domain: str
    worlds: tuple[str, ...]
    """In their text form."""
    captions: tuple[str, ...] = ()
    """A line above each of the first worlds."""

    def _repr_html_(self) -> str:
        captions = [*self.captions, *[""] * (len(self.worlds) - len(self.captions))]
        worlds = [world_card(self.domain, world) for world in self.worlds]
        if self.captions:
            worlds = [note(caption) + world for caption, world in zip(captions, worlds, strict=True)]
        return page_part(*map(card, worlds))


def draw_world(domain: Any, *worlds: Any, captions: Sequence[str] = ()) -> Drawing:
    """Draws one or more worlds side by side, for a notebook.

    Domains of your own have no pictures; their worlds appear as text.

    Args:
        domain: a domain, its name, or a class that `PythonDomain` takes.
        worlds: each in its text form, or as JSON.
        captions: a line above each world, in their order.

    Raises:
        VbsixError: a world does not parse, or there are more captions than worlds.
    """
    language = as_domain(domain)
    if not worlds:
        raise VbsixError("there is no world to draw: give at least one.")
    if len(captions) > len(worlds):
        raise VbsixError(f"{len(captions)} captions for {len(worlds)} worlds.")
    texts = []
    for number, world in enumerate(worlds, start=1):
        with naming(f"world {number}"):
            texts.append(language.world_text(world))
            language.parse_world(texts[-1])
    return Drawing(language.name, tuple(texts), tuple(captions))
