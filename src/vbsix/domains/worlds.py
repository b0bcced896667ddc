"""Reading SCONE's text form of worlds: `1:... 2:...`, positions in order."""

from __future__ import annotations

from vbsix.utilities.errors import InvalidWorld, shorten


def split_positions(text: str, *, fewest: int, most: int) -> list[str]:
    """What stands at each position. Raises `InvalidWorld` naming the element that is wrong."""
    if not isinstance(text, str):
        raise InvalidWorld(f"a world is a text such as '1:... 2:...', not {shorten(str(text))}")
    elements = text.split(" ") if text else []
    contents = []
    for number, element in enumerate(elements, start=1):
        position, colon, content = element.partition(":")
        if not colon:
            raise InvalidWorld(f"element {number} ({shorten(element)}): a world lists its positions, '1:... 2:...'")
        if position != str(number):
            raise InvalidWorld(f"element {number} ({shorten(element)}): expected position {number}, in order")
        if number > most:
            raise InvalidWorld(f"element {number} ({shorten(element)}): a world has at most {most} positions")
        contents.append(content)
    if len(contents) < fewest:
        raise InvalidWorld(f"position {len(contents) + 1} is missing: a world has {fewest} positions")
    return contents
