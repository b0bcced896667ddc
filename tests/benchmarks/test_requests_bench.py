from __future__ import annotations

import json
import sys
from itertools import islice

import pytest

from vbsix.benchmarks import requests
from vbsix.benchmarks.requests import DRIVER, MOST_INSTRUCTIONS, PARTS, ROWS, SERVICE, WORKER
from vbsix.utilities.errors import VbsixError

CHILDREN = """
import subprocess, sys
code = "import time; held = bytearray(100 * 2**20)\\nwhile time.process_time() < 0.3: pass"
both = [subprocess.Popen([name, "-c", code], executable=sys.executable) for name in ("ray::_answer", "raylet")]
for one in both: one.wait()
"""


def test_memory_and_time_of_all_processes_are_measured(monkeypatch):
    monkeypatch.setattr(requests, "EVERY", 0.02)
    measured = requests._watch([sys.executable, "-c", CHILDREN])
    assert measured.memory.keys() == {DRIVER, WORKER, SERVICE}
    assert all(len(peaks) == PARTS for peaks in measured.memory.values())
    assert max(measured.memory[WORKER]) > 100 * 2**20 > max(measured.memory[DRIVER])
    assert measured.cpu_seconds > 0.3
    assert measured.seconds > 0.3


def test_a_command_that_fails_is_an_error():
    with pytest.raises(VbsixError, match=r"failed: .*nothing"):
        requests._watch([sys.executable, "-c", "raise SystemExit('nothing')"])


def test_requests_have_all_lengths_and_come_again(monkeypatch):
    monkeypatch.setattr(requests, "ROWS", 2)
    made = [json.loads(line) for line in islice(requests._requests("tangrams"), 2 * 2 * MOST_INSTRUCTIONS)]
    assert ROWS > 100
    assert [one["id"] for one in made] == list(range(20))
    assert [len(one["instructions"]) for one in made] == [1, 2, 3, 4, 5] * 4
    assert made[0]["instructions"] != made[5]["instructions"]
    assert made[0]["instructions"] == made[10]["instructions"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_small_file_is_measured(vbsix, engine):
    if engine == "ray":
        pytest.importorskip("ray")
    ended = vbsix("bench", "requests", "--number", "12", "--engine", engine, "--json")
    assert (ended.code, ended.err) == (0, "")
    result = json.loads(ended.out)
    assert (result["engine"], result["requests"]) == (engine, 12)
    assert (WORKER in result["memory_bytes"]) == (engine == "ray")
    assert result["cpu_seconds"] > 0 and result["requests_per_second"] > 0
