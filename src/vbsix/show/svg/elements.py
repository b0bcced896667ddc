"""The SVG that the pictures are made of."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

SANS = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Consolas, monospace"
INK, FAINT = "#20262d", "#59636e"
"""Colours of text; both are readable on white and on light grey."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Picture(NamedTuple):
    """A fragment of SVG whose upper left corner is at 0, 0."""

    markup: str
    width: float
    height: float


def tag(name: str, *content: str, **attributes: str | float) -> str:
    """An element around markup. In names of attributes `_` stands for `-`; one at the end is dropped: `class_`."""
    written = "".join(f" {key.rstrip('_').replace('_', '-')}={_quote(value)}" for key, value in attributes.items())
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def plain(text: str) -> str:
    """Text as markup; characters that XML does not allow are replaced."""
    return escape(_NOT_XML.sub("\ufffd", text))


def label(text: str, x: float, y: float, size: float = 12, **attributes: str | float) -> str:
    """A line of text; y is its base line."""
    return tag("text", plain(text), **{"x": x, "y": y, "font_size": size, "fill": INK, **attributes})


def place(markup: str, x: float, y: float, **attributes: str | float) -> str:
    """A fragment moved so that its corner is at x, y."""
    return tag("g", markup, transform=f"translate({_number(x)} {_number(y)})", **attributes)


def path(*commands: str | float, **attributes: str | float) -> str:
    """A path, such as `path("M", 0, 0, "H", 10)`."""
    return tag("path", d=" ".join(c if isinstance(c, str) else _number(c) for c in commands), **attributes)


def document(picture: Picture, title: str, description: str) -> str:
    """A whole SVG file; title and description are what a screen reader says."""
    background = tag("rect", width=picture.width, height=picture.height, fill="#ffffff")
    return (
        tag(
            "svg",
            tag("title", plain(title)),
            tag("desc", plain(description)),
            background,
            picture.markup,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {_number(picture.width)} {_number(picture.height)}",
            width=picture.width,
            height=picture.height,
            role="img",
            font_family=SANS,
        )
        + "\n"
    )


def inline(picture: Picture) -> str:
    """A picture inside a page, as wide as the page lets it be."""
    box = f"0 0 {_number(picture.width)} {_number(picture.height)}"
    return tag("svg", picture.markup, viewBox=box, font_family=SANS)


def _quote(value: str | float) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", value) if isinstance(value, str) else _number(value))


def _number(value: float) -> str:
    return f"{round(value, 1):g}" if abs(value) < 100_000 else str(round(value))
