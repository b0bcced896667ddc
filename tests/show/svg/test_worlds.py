from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import vbsix
from vbsix.show.svg import Picture, document, inline, world_html, world_svg
from vbsix.show.svg.worlds import FIGURES

STAGE = "1:r_ 2:__ 3:by 4:__ 5:__ 6:__ 7:__ 8:__ 9:__ 10:po"
BEAKERS = "1:ggg 2:_ 3:yo 4:_ 5:rr 6:_ 7:pbro"
ROW = "1:0 2:3 3:4 4:1 5:2"


def parse(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(picture.markup)


def letters(picture: Picture) -> list[str]:
    """What is written in bold: the letters of colours."""
    return [text.text or "" for text in parse(picture).iter("text") if text.get("font-weight") == "bold"]


def pieces(picture: Picture) -> list[tuple[str, tuple[float, float]]]:
    """What can move, and where it is."""
    found = []
    for group in parse(picture).iter("g"):
        if piece := group.get("data-piece"):
            x, y = group.get("transform", "").removeprefix("translate(").removesuffix(")").split()
            found.append((piece, (float(x), float(y))))
    return found


@pytest.mark.parametrize(
    ("domain", "world", "names"),
    [
        ("scene", STAGE, ["r_", "by", "po"]),
        ("alchemy", BEAKERS, list("gggyorrpbro")),
        ("tangrams", ROW, list("03412")),
    ],
)
def test_what_moves_is_marked(domain, world, names):
    assert [piece for piece, _ in pieces(world_svg(domain, world))] == names


def test_people_carry_the_letters_of_shirt_and_hat():
    assert letters(world_svg("scene", STAGE)) == ["r", "b", "y", "p", "o"]


def test_beakers_are_filled_from_the_bottom():
    picture = world_svg("alchemy", "1:yo 2:_ 3:_ 4:_ 5:_ 6:_ 7:_")
    assert letters(picture) == ["y", "o"]
    (_, yellow), (_, orange) = (place for _, place in pieces(picture))
    assert orange < yellow


def test_figures_are_neutral_and_differ_in_their_outline_only():
    """They carry no number, which would be taken for a position, and no colour."""
    picture = world_svg("tangrams", ROW)
    assert letters(picture) == []
    figures = [path for path in parse(picture).iter("path") if path.get("fill")]
    assert len({path.get("d") for path in figures}) == 5 and len({path.get("fill") for path in figures}) == 1


def test_the_playground_offers_the_same_figures():
    script = Path(vbsix.__file__).parent.joinpath("playground", "static", "worlds.js").read_text(encoding="utf-8")
    assert dict(re.findall(r'(\d): "(M[^"]*)"', script)) == FIGURES


@pytest.mark.parametrize(
    ("domain", "world", "words"),
    [
        ("scene", STAGE, "position 1: red shirt, no hat; position 3: blue shirt, yellow hat; "),
        ("scene", " ".join(f"{n}:__" for n in range(1, 11)), "an empty stage"),
        ("alchemy", BEAKERS, "beaker 2: empty; beaker 3: yellow, orange; "),
        ("alchemy", BEAKERS, "beaker 7: purple, brown, red, orange"),
        ("tangrams", ROW, "position 1: figure A; position 2: figure D; "),
        ("tangrams", "", "an empty row"),
    ],
)
def test_a_title_says_what_is_seen(domain, world, words):
    assert words in (parse(world_svg(domain, world)).findtext("title") or "")


@pytest.mark.parametrize(
    ("domain", "one", "other"),
    [
        ("scene", STAGE, STAGE.replace("by", "__")),
        ("alchemy", BEAKERS, BEAKERS.replace("ggg", "_")),
        ("tangrams", ROW, ""),
    ],
)
def test_worlds_of_a_domain_have_one_size(domain, one, other):
    assert world_svg(domain, one)[1:] == world_svg(domain, other)[1:]


def test_blue_and_brown_differ():
    assert "#6aa5ff" in world_svg("scene", STAGE).markup
    assert "#6aa5ff" not in world_svg("alchemy", BEAKERS).markup


def test_another_domain_shows_its_text():
    picture = world_svg("chess", "e4 <e5> & \x00")
    assert parse(picture).text == "e4 <e5> & \ufffd"
    assert picture.width > 0 and picture.height > 0


def test_in_a_page_it_is_a_text_that_breaks_into_lines():
    assert world_html("blocks", "<a> & b") == "<code>&lt;a&gt; &amp; b</code>"
    assert world_html("tangrams", "1:0") == inline(world_svg("tangrams", "1:0"))


def test_a_fragment_fits_into_a_page():
    root = ElementTree.fromstring(inline(world_svg("tangrams", ROW)))
    assert root.get("viewBox") == "0 0 130 40"
    assert (root.tag, root.get("width")) == ("svg", None)
    assert root[0].get("role") == "img" and root[0][0].tag == "title"  # what a screen reader says


def test_a_fragment_makes_a_document():
    root = ElementTree.fromstring(document(world_svg("tangrams", ROW), "a <row>", "five shapes"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root[0].text == "a <row>" and root[1].text == "five shapes"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
