from __future__ import annotations

import io

from rich.console import Console

from vbsix.show.terminal import draw_world


def coloured(domain: str, world: str) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=100)
    console.print(draw_world(domain, world))
    return console.file.getvalue()


def test_scene_shows_hats_over_shirts():
    stage = "1:r_ 2:__ 3:by 4:__ 5:__ 6:__ 7:__ 8:__ 9:__ 10:po"
    hats, shirts, positions = draw_world("scene", stage).plain.splitlines()
    assert hats.split() == ["hat", "▟y▙", "▟o▙"]
    assert shirts.split() == ["shirt", "█r█", "·", "█b█", *"······", "█p█"]
    assert positions.split() == ["position", *map(str, range(1, 11))]
    assert hats.index("y") == shirts.index("b") == positions.index("3")


def test_alchemy_fills_beakers_from_the_bottom():
    levels = draw_world("alchemy", "1:yo 2:_ 3:ggrb 4:_ 5:_ 6:_ 7:_").plain.splitlines()
    assert [level.split("│")[1].strip() for level in levels[:4]] == ["", "", "o", "y"]
    assert [level.split("│")[5].strip() for level in levels[:4]] == ["b", "r", "g", "g"]
    assert levels[-1].split() == ["beaker", *"1234567"]


def test_figures_of_tangrams_are_letters():
    """Digits would be taken for positions, and glyphs invite words that no model knows."""
    shapes, positions = draw_world("tangrams", "1:3 2:0").plain.splitlines()
    assert shapes.split() == ["figure", "D", "A"]
    assert positions.split() == ["position", "1", "2"]


def test_an_empty_row_is_said():
    assert draw_world("tangrams", "").plain == "(an empty row)"


def test_another_domain_shows_its_text():
    assert draw_world("chess", "e4 [bold]e5").plain == "e4 [bold]e5"


def test_blue_and_brown_differ():
    def colour(domain: str, world: str) -> str:
        return coloured(domain, world).split(";48;2;")[1].split("m")[0]

    empty = " 2:_ 3:_ 4:_ 5:_ 6:_ 7:_"
    assert colour("alchemy", "1:b" + empty) != colour("scene", "1:b_")
    assert colour("alchemy", "1:r" + empty) == colour("scene", "1:r_")
