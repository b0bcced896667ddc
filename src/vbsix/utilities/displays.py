"""What a notebook displays for an object.

The drawings are in `vbsix.show`, a layer above the objects. So they are named here and imported when first needed.
"""

from __future__ import annotations

from typing import Any

from vbsix.utilities.registry import Registry

DISPLAYS = Registry(
    "display",
    {
        "parse": "vbsix.show.notebook:parse_html",
        "parser": "vbsix.show.notebook:parser_html",
    },
)
"""Functions from an object to HTML, by the kind of the object."""


def display_html(kind: str, thing: Any) -> str:
    """The HTML of an object, for its `_repr_html_`."""
    return DISPLAYS.get(kind)(thing)
