from __future__ import annotations

import pytest
from models.cases import Case, make_case


@pytest.fixture(params=["scene", "alchemy", "tangrams"])
def case(request) -> Case:
    return make_case(request.param)


@pytest.fixture
def tangrams() -> Case:
    """The domain that compiles fastest, where one will do."""
    return make_case("tangrams")
