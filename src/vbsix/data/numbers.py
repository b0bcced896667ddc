"""Numbers in a text as slots that tokens can refer to: `Ann has 8 cups` is `Ann has number0 cups` and the number 8."""

from __future__ import annotations

import re

SLOT = "number{}"
"""The word that stands for a number, counted from 0 on, as in the files that come with SVAMP."""
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?!\w|[.,]\d)")
_PUNCTUATION = re.compile(r"\s*([?!,;:$%()]|\.(?!\w))\s*")


def numbers_to_slots(text: str) -> tuple[str, list[float]]:
    """The text with each number as a slot and punctuation as words of its own, and the numbers in order.

    Ordinals such as `3rd` and names such as `A4` are no numbers.
    """
    numbers: list[float] = []

    def replace(found: re.Match[str]) -> str:
        numbers.append(float(found[0].replace(",", "")))
        return SLOT.format(len(numbers) - 1)

    slotted = _NUMBER.sub(replace, text)
    return " ".join(_PUNCTUATION.sub(r" \1 ", slotted).split()), numbers
