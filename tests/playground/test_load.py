"""Many clients at once, and for long, against `vbsix serve` as a user starts it, with networks of full size."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlencode

import pytest
from browser import go, key_presses, open_browser
from tiny_run import make_run

from vbsix.playground.answers import examples

CLIENTS = 50
PAUSE = 0.15
"""Seconds between two key presses of a client; a quick typist's."""


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[int, str]]:
    """Process and address."""
    folder = tmp_path_factory.mktemp("runs") / "scene"
    make_run(folder, (0,), {"domain": "scene", "data.synthetic_rows": 2000, "training.critic": True})
    environment = {
        name: value for name, value in os.environ.items() if name != "XLA_FLAGS"
    }  # optimised, as users have it
    command = [sys.executable, "-m", "vbsix", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        ready = process.stdout.readline()
        print(ready)
        yield process.pid, re.findall(r"http://\S+", ready)[0]
        process.terminate()


class Client:
    """A plain HTTP client: the usual ones take as long as the server."""

    def __init__(self, address: str):
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port = int(port)

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def post(self, path: str, body: dict) -> tuple[int, dict]:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.findall(r"content-length: (\d+)", answer)[0])
        return int(answer.split()[1]), json.loads(await self.reader.readexactly(length))


async def type_along(address: str, number: int, until: float, waits: list[float]) -> None:
    """Types instructions letter by letter, asking after each key press as the page does."""
    async with Client(address) as client:
        while time.monotonic() < until:
            row = examples("scene")[number % 50].row
            number += 1
            for count, text in enumerate(row.utterances):
                for end in range(1, len(text) + 1):
                    if text[end - 1] == " " or time.monotonic() >= until:
                        continue
                    said = [*row.utterances[:count], text[:end]]
                    began = time.monotonic()
                    request = {"model": "scene", "world": row.worlds[0], "utterances": said}
                    status, answer = await client.post("/api/parse", request)
                    waits.append(time.monotonic() - began)
                    assert status == 200 and answer["pictures"], answer
                    await asyncio.sleep(max(0.0, PAUSE - waits[-1]))


async def type_together(address: str, clients: int, seconds: float) -> list[float]:
    waits: list[float] = []
    until = time.monotonic() + seconds
    await asyncio.gather(*(type_along(address, number, until, waits) for number in range(clients)))
    return waits


def memory(process: int) -> float:
    """Resident memory in MB."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) / 1024


@pytest.mark.slow
def test_a_key_press_is_drawn_at_once(served):
    _, address = served
    row = examples("scene")[0].row
    asked = urlencode([("model", "scene"), ("world", row.worlds[0]), ("say", row.utterances[0])])
    with open_browser() as browser:
        page = browser.new_page()
        go(page, f"{address}/#{asked}")
        waits = key_presses(page, row.utterances[1])
    print(f"key press to drawn world: median {median(waits):.3f} s, slowest {max(waits):.3f} s of {len(waits)}")
    assert max(waits) < 0.2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fifty_clients_type_at_once(served):
    _, address = served
    waits = asyncio.run(type_together(address, CLIENTS, 30))
    deciles = quantiles(waits, n=10)
    told = f"median {median(waits):.3f} s, 9 of 10 in {deciles[8]:.3f} s"
    print(f"{len(waits)} answers in 30 s to {CLIENTS} clients: {told}")
    assert median(waits) < 0.3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_does_not_grow(served):
    process, address = served
    asyncio.run(type_together(address, 20, 10))
    before, answered = memory(process), 0
    while answered < 10_000:
        answered += len(asyncio.run(type_together(address, 20, 10)))
    after = memory(process)
    print(f"{answered} requests: from {before:.0f} to {after:.0f} MB")
    assert after - before < 32
