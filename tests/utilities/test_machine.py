from __future__ import annotations

import os

import pytest

from vbsix.utilities import machine


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000\n", 8),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("50000 100000\n", 1),
        ("1600000 100000\n", 8),
    ],
)
def test_cores_are_those_of_the_container(tmp_path, monkeypatch, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(machine, "QUOTA", tmp_path / "cpu.max")
    assert machine.count_cores() == 8, "there is no quota"
    (tmp_path / "cpu.max").write_text(quota)
    assert machine.count_cores() == cores
