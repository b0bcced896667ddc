from __future__ import annotations

from typing import NamedTuple

import pytest

from vbsix.cli import main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def vbsix(monkeypatch, capsys):
    """Calls the command line as a shell would: `vbsix("execute", "scene", ...)`."""

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr("sys.argv", ["vbsix", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return Ended(int(end.value.code or 0), *capsys.readouterr())

    return call
