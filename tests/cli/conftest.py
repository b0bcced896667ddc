from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from vbsix.cli import main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def call_vbsix(*arguments: str) -> Ended:
    """Calls the command line where there is no `capsys`, as in fixtures that several tests share."""
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        patch.setattr("sys.argv", ["vbsix", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
    return Ended(int(end.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture
def vbsix(monkeypatch, capsys):
    """Calls the command line as a shell would: `vbsix("execute", "scene", ...)`."""

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr("sys.argv", ["vbsix", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return Ended(int(end.value.code or 0), *capsys.readouterr())

    return call
