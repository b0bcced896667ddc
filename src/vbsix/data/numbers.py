"""Numbers in a text as slots that tokens can refer to: `Ann has 8 cups` is `Ann has number0 cups` and the number 8."""

from __future__ import annotations

import re
from math import isfinite

from vbsix.utilities.errors import VbsixError, shorten

SLOT = "number{}"
"""The word that stands for a number, counted from 0 on, as in the files that come with SVAMP."""
_SLOT = re.compile(r"\bnumber\d+\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?!\w|[.,]\d)")
_BESIDE = re.compile(r"([^\w\s']*) (number\d+) ([^\w\s']*)")
_PUNCTUATION = re.compile(r"\s*([?!,;:$%()]|\.(?!\w))\s*")


def numbers_to_slots(text: str) -> tuple[str, list[float]]:
    """The text with each number as a slot and punctuation as words of its own, and the numbers in order.

    Ordinals such as `3rd` and names such as `A4` are no numbers; `5-foot` is a number, a hyphen and a word.

    Raises:
        VbsixError: the text already has a word like a slot, or a number is too large.
    """
    if known := _SLOT.search(text):
        raise VbsixError(f"{shorten(text)}: {known[0]!r} stands for a number; write the number, or another word.")
    numbers: list[float] = []

    def replace(found: re.Match[str]) -> str:
        number = float(found[0].replace(",", ""))
        if not isfinite(number):
            raise VbsixError(f"{shorten(text)}: the number {shorten(found[0])} is too large.")
        numbers.append(number)
        return f" {SLOT.format(len(numbers) - 1)} "

    slotted = _BESIDE.sub(r" \1 \2 \3 ", _NUMBER.sub(replace, text))
    return " ".join(_PUNCTUATION.sub(r" \1 ", slotted).split()), numbers
