from __future__ import annotations

import pytest
from training.toy import Toy

from vbsix import Domain


@pytest.fixture(scope="session")
def toy() -> Domain:
    return Toy()
