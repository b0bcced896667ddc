from __future__ import annotations

import pytest

from vbsix.data.numbers import numbers_to_slots


@pytest.mark.parametrize(
    ("text", "slotted", "numbers"),
    [
        ("Ann has 8 cups.", "Ann has number0 cups .", [8]),
        ("1,250 and 3.5, then 7?", "number0 and number1 , then number2 ?", [1250, 3.5, 7]),
        ("It costs $5.", "It costs $ number0 .", [5]),
        ("20% of 30", "number0 % of number1", [20, 30]),
        ("the 3rd of A4 on 1.2.3", "the 3rd of A4 on 1.2.3", []),
        ("number0 cups", "number0 cups", []),
        ("", "", []),
    ],
)
def test_numbers_become_slots_in_their_order(text, slotted, numbers):
    assert numbers_to_slots(text) == (slotted, numbers)
