"""Speed and memory of `vbsix parse --input FILE`, in this process and on Ray.

Each engine runs as the command itself, in a process of its own. Its memory and processor time, and those of the
processes that it starts, are read from /proc while it runs. So this works on Linux only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from vbsix.data.synthetic import generate
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.machine import environment

MOST_INSTRUCTIONS = 5
ROWS = 1000
"""Different requests of each length; in a longer file, they come again."""
EVERY = 0.5
"""Seconds between two looks at the processes."""
PARTS = 10
"""Memory is given as its peak in each tenth of the time: it must not grow."""
WORKER, SERVICE, DRIVER = "worker", "service", "driver"
"""Processes of Ray that parse, other processes of Ray, and the command."""


def bench_requests(domain: str, requests: int, engine: str) -> dict[str, Any]:
    """Measures a file of requests of 1 to 5 instructions from the built-in corpus, with the built-in model.

    Args:
        domain: the language.
        requests: how many.
        engine: local or ray; Ray starts on this machine, with a process for each core.
    """
    if not Path("/proc/self/stat").exists():
        raise VbsixError("memory can be measured on Linux only.")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "requests.jsonl"), Path(folder, "answers.jsonl")
        with source.open("w", encoding="utf-8") as file:
            file.writelines(islice(_requests(domain), requests))
        command = [sys.executable, "-m", "vbsix", "parse", domain, f"--input={source}", f"--output={target}"]
        command += [f"--engine={engine}", *(["--address=local"] if engine == "ray" else [])]
        measured = _watch(command)
        with target.open("rb") as answers:
            answered = sum(1 for _ in answers)
    if answered != requests:
        raise VbsixError(f"{answered} of {requests} requests were answered.")
    return {
        "domain": domain,
        "engine": engine,
        "requests": requests,
        "requests_per_second": requests / measured.seconds,
        "cpu_milliseconds": 1000 * measured.cpu_seconds / requests,
        "seconds": measured.seconds,
        "cpu_seconds": measured.cpu_seconds,
        "memory_bytes": measured.memory,
        **environment(),
    }


def _requests(domain: str) -> Iterator[str]:
    """Lines without an end, of 1 to 5 instructions in turn."""
    lengths = range(1, MOST_INSTRUCTIONS + 1)
    made = [[one.row for one in generate(domain, ROWS, seed=4, utterances=length)] for length in lengths]
    number = 0
    while True:
        for rows in zip(*made, strict=True):
            for row in rows:
                request = {"id": number, "context": row.worlds[0], "instructions": list(row.utterances)}
                yield json.dumps(request) + "\n"
                number += 1


class _Measured(NamedTuple):
    seconds: float
    """From the command's start to its end."""
    cpu_seconds: float
    """Of all processes."""
    memory: dict[str, list[int]]
    """The peak of resident memory in each tenth of the time, of the processes of each kind together."""


def _watch(command: list[str]) -> _Measured:
    """Runs a command to its end."""
    looks: list[dict[str, int]] = []
    spent: dict[int, float] = {}
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        while process.poll() is None:
            memory = {DRIVER: 0}
            for one in _processes(process.pid):
                memory[one.kind] = memory.get(one.kind, 0) + one.memory
                spent[one.pid] = one.cpu_seconds
            looks.append(memory)
            time.sleep(EVERY)
        seconds = time.perf_counter() - begun
        if process.returncode:
            errors.seek(0)
            raise VbsixError(f"{' '.join(command)} failed: {errors.read().decode().strip()}")
    kinds = dict.fromkeys(kind for memory in looks for kind in memory)
    parts = [looks[len(looks) * part // PARTS : len(looks) * (part + 1) // PARTS] or looks for part in range(PARTS)]
    peaks = {kind: [max(memory.get(kind, 0) for memory in part) for part in parts] for kind in kinds}
    return _Measured(seconds, sum(spent.values()), peaks)


class _Process(NamedTuple):
    pid: int
    kind: str
    memory: int
    """Resident, in bytes."""
    cpu_seconds: float


def _processes(root: int) -> Iterator[_Process]:
    """A process and those that it has started, directly or not, as they are now."""
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
    found, new = set(), {root} & stats.keys()
    while new:
        found |= new
        new = {pid for pid, (_, parent, *_) in stats.items() if int(parent) in new}
    for pid in found:
        try:
            name = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        kind = DRIVER if pid == root else WORKER if name.startswith(b"ray::") else SERVICE
        user, system, pages = (int(stats[pid][place]) for place in (11, 12, 21))
        ticks = os.sysconf("SC_CLK_TCK")
        yield _Process(pid, kind, pages * os.sysconf("SC_PAGE_SIZE"), (user + system) / ticks)
