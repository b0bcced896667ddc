from __future__ import annotations

import pytest

from vbsix.data.numbers import numbers_to_slots
from vbsix.utilities.errors import VbsixError


@pytest.mark.parametrize(
    ("text", "slotted", "numbers"),
    [
        ("Ann has 8 cups.", "Ann has number0 cups .", [8]),
        ("1,250 and 3.5, then 7?", "number0 and number1 , then number2 ?", [1250, 3.5, 7]),
        ("It costs $5.", "It costs $ number0 .", [5]),
        ("20% of 30", "number0 % of number1", [20, 30]),
        ("the 3rd of A4 on 1.2.3", "the 3rd of A4 on 1.2.3", []),
        ("a 5-foot rope, 10-20 m", "a number0 - foot rope , number1 - number2 m", [5, 10, 20]),
        ('8/10 of Ann\'s "7"', 'number0 / number1 of Ann\'s " number2 "', [8, 10, 7]),
        ("$.50, .5 and 0.5.", "$ number0 , number1 and number2 .", [0.5, 0.5, 0.5]),
        ("ten-year-old", "ten-year-old", []),
        ("the number 0 and numbers", "the number number0 and numbers", [0]),
        ("", "", []),
    ],
)
def test_numbers_become_slots_in_their_order(text, slotted, numbers):
    assert numbers_to_slots(text) == (slotted, numbers)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Number0 of 8 cups", "'Number0 of 8 cups': 'Number0' stands for a number"),
        ("number12", "'number12' stands for a number"),
        (f"Ann has {'9' * 400} cups", "the number '9999.*' is too large"),
    ],
)
def test_what_has_no_slots_of_its_own_is_refused(text, problem):
    with pytest.raises(VbsixError, match=problem):
        numbers_to_slots(text)
