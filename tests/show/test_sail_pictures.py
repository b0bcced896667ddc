"""Pictures of SAIL's maps, on a map of three intersections."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from vbsix.domains.sail_maps import MAPS
from vbsix.show.svg import world_svg
from vbsix.show.terminal import draw_world

MAP = """<map><node x="4" y="2" item="chair"/><node x="5" y="2" item=""/><node x="4" y="3" item="lamp"/>
<edge node1="4,2" node2="5,2" floor="blue" wall="fish"/>
<edge node1="4,2" node2="4,3" floor="wood" wall="fish"/></map>"""


@pytest.fixture(autouse=True)
def corpus(tmp_path, monkeypatch):
    (tmp_path / "sail").mkdir()
    for name in MAPS:
        (tmp_path / "sail" / f"map-{name}.xml").write_text(MAP)
    monkeypatch.setenv("VBSIX_DATA", str(tmp_path))


@pytest.mark.parametrize(
    ("world", "rows"),
    [
        ("l 5 2 270", ["c──◀", "│", "l", "l 5 2 270"]),
        ("l 4 3 0", ["c──·", "│", "▲", "l 4 3 0"]),
        ("l 4 2", ["●──·", "│", "l", "l 4 2"]),
        ("elsewhere 4 2 0", ["elsewhere 4 2 0"]),
    ],
)
def test_the_terminal_shows_the_map_and_an_arrow(world, rows):
    assert [line.rstrip() for line in draw_world("sail", world).plain.splitlines()] == rows


def test_svg_shows_hallways_items_and_where_somebody_stands():
    picture = world_svg("sail", "l 5 2 90")
    root = ElementTree.fromstring(picture.markup)
    assert root.findtext("title") == "map l: x 5, y 2, heading 90"
    assert [text.text for text in root.iter("text")] == ["c", "l"]
    assert len([path for path in root.iter("path") if path.get("stroke-width") == "6"]) == 2
    (person,) = (group for group in root.iter("g") if group.get("data-piece"))
    assert person.get("transform") == "translate(33 11)" and person[0].get("transform") == "rotate(90)"
    assert (picture.width, picture.height) == (44, 44)


def test_svg_of_a_place_without_a_heading_has_no_direction():
    root = ElementTree.fromstring(world_svg("sail", "l 4 3").markup)
    (person,) = (group for group in root.iter("g") if group.get("data-piece"))
    assert person[0].tag == "circle"
