"""The check of types at run time that `conftest.py` turns on."""

from __future__ import annotations

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int will do for a float, as type checkers have it
