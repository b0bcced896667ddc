"""Small parts of HTML for notebooks.

A notebook may be dark or light, so text has the notebook's own colours, and pictures are on a white ground. All styles
are attributes, and all pictures are images: Jupyter removes other styles and inline SVG from a notebook that it does
not trust yet, such as one that was just downloaded.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from vbsix.domains.registry import get_domain
from vbsix.show.svg.elements import Picture, document, plain, tag
from vbsix.show.svg.worlds import has_picture, world_svg
from vbsix.utilities.errors import VbsixError

PAD = 6
CELL = "text-align:left;vertical-align:middle;padding:3px 16px 3px 0;white-space:normal"
QUIET = "opacity:0.7;font-size:90%"
GROUND = "background:#ffffff;border-radius:6px"


def page_part(*parts: str) -> str:
    """The whole of a display."""
    return tag("div", *parts, style="margin:4px 0;line-height:1.45")


def heading(text: str) -> str:
    """The first line of a display."""
    return tag("div", tag("b", plain(text)), style="margin-bottom:4px")


def note(text: str) -> str:
    """A line of less importance."""
    return tag("div", plain(text) or "&#160;", style=QUIET)


def code(text: str) -> str:
    """A program, a world, or another text that is code."""
    return tag("code", plain(text), style="white-space:pre-wrap;overflow-wrap:anywhere")


def card(*parts: str) -> str:
    """Some parts below each other, beside other cards."""
    return tag("div", *parts, style="display:inline-block;vertical-align:top;margin:0 14px 8px 0")


def table(rows: Sequence[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """A table of cells that are HTML already; `heads` are text."""
    head = [tag("tr", *(tag("th", plain(text) or "&#160;", style=CELL) for text in heads))] if heads else []
    lines = [tag("tr", *(tag("td", cell or "&#160;", style=CELL) for cell in row)) for row in rows]
    return tag("table", tag("tbody", *head, *lines), style="border-collapse:collapse;margin:4px 0")


def image(svg: str, words: str, *, scroll: bool = False) -> str:
    """An SVG file as an image, with words for those who cannot see it.

    It is no wider than the page, unless it scrolls. Nothing in the file can act on the page around it.
    """
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    size = "max-width:none" if scroll else "max-width:100%"
    picture = tag("img", src=source, alt=words, style=f"{GROUND};{size};display:block;margin:0")
    return tag("div", picture, style="overflow-x:auto") if scroll else picture


def world_card(domain: str, world: str) -> str:
    """A world as a picture or, where its domain has none, as text."""
    if not _can_draw(domain, world):
        return code(world)
    picture = world_svg(domain, world)
    markup = tag("g", picture.markup, transform=f"translate({PAD} {PAD})")
    padded = Picture(markup, picture.width + 2 * PAD, picture.height + 2 * PAD)
    return image(document(padded, domain, world), f"the world {world or '(empty)'}")


def _can_draw(domain: str, world: str) -> bool:
    """Whether there is a picture; a domain of one's own may have the name of a built-in one, and other worlds."""
    try:
        return has_picture(domain) and get_domain(domain).parse_world(world) is not None
    except VbsixError:
        return False
