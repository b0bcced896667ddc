"""Pictures as SVG, written directly: worlds, and searches as graphs of them."""

from vbsix.show.svg.elements import Picture, document, inline
from vbsix.show.svg.search import draw_search
from vbsix.show.svg.worlds import world_html, world_svg

__all__ = ["Picture", "document", "draw_search", "inline", "world_html", "world_svg"]
