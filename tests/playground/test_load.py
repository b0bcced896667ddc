"""Many clients at once, and for long, against `vbsix serve` as a user starts it, with the built-in model of scene."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlencode

import numpy as np
import pytest
from browser import go, key_presses, open_browser

from vbsix.playground.answers import examples

CLIENTS = 50
PAUSES = {40: 0.3, 60: 0.2}
"""Seconds between two key presses of clients that type so many words a minute, and never stop to think."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[int, str]]:
    """Process and address."""
    environment = {
        name: value for name, value in os.environ.items() if name != "XLA_FLAGS"
    }  # optimised, as users have it
    command = [sys.executable, "-m", "vbsix", "serve", "scene", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        assert process.stdout and process.stderr
        ready, began = process.stdout.readline(), time.monotonic()
        while "with any beam" not in process.stderr.readline():
            assert process.poll() is None
        print(f"{ready}and searches with any beam {time.monotonic() - began:.0f} s later")
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


def key_presses_of(number: int) -> Iterator[list[str]]:
    """What a client has typed after each of its key presses, row by row."""
    for place in itertools.count(number):
        said = examples("scene")[place % 50].row.utterances
        for count, text in enumerate(said):
            ends = (end for end in range(1, len(text) + 1) if text[end - 1] != " ")
            yield from ([*said[:count], text[:end]] for end in ends)


async def type_along(address: str, number: int, moments: Iterable[float], waits: list[float]) -> None:
    """Presses keys at set moments, whether or not the answer is there.

    As on the page, one question is under way at a time, and the next one has all that was typed meanwhile. The wait of
    a key press ends with the answer to the first question that has it.
    """
    world = str(examples("scene")[number % 50].row.worlds[0])
    presses: asyncio.Queue[tuple[float, list[str]] | None] = asyncio.Queue()

    async def press() -> None:
        for pressed, said in zip(moments, key_presses_of(number), strict=False):
            await asyncio.sleep(pressed - time.monotonic())
            presses.put_nowait((pressed, said))
        presses.put_nowait(None)

    async def ask() -> None:
        async with Client(address) as client:
            while (press := await presses.get()) is not None:
                pressed, said = [press[0]], press[1]
                while not presses.empty() and (press := presses.get_nowait()):
                    pressed.append(press[0])
                    said = press[1]
                status, answer = await client.post("/api/parse", {"model": "scene", "world": world, "utterances": said})
                assert status == 200 and answer["pictures"], answer
                waits.extend(time.monotonic() - one for one in pressed)
                if press is None:
                    return

    await asyncio.gather(press(), ask())


async def type_together(address: str, clients: int, seconds: float, pause: float) -> list[float]:
    """The wait of each key press; the clients begin one after the other, within the time between two presses."""
    waits: list[float] = []
    examples("scene")
    began = time.monotonic() + 0.1
    moments = began + pause * np.arange(seconds / pause)
    later = pause * np.arange(clients) / clients
    await asyncio.gather(*(type_along(address, n, (moments + later[n]).tolist(), waits) for n in range(clients)))
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
@pytest.mark.parametrize("words", PAUSES)
def test_fifty_clients_type_at_once(served, words):
    _, address = served
    waits = asyncio.run(type_together(address, CLIENTS, 30, PAUSES[words]))
    deciles = quantiles(waits, n=10)
    told = f"median {median(waits):.3f} s, 9 of 10 in {deciles[8]:.3f} s, slowest {max(waits):.3f} s"
    print(f"{len(waits)} key presses of {CLIENTS} clients at {words} words a minute: {told}")
    assert len(waits) == CLIENTS * round(30 / PAUSES[words])
    assert median(waits) < 0.3


@pytest.mark.slow
def test_the_first_search_with_another_beam_is_quick(served):
    _, address = served
    row = examples("scene")[0].row
    asked = {"model": "scene", "world": row.worlds[0], "target": row.worlds[-1], "utterances": row.utterances}

    async def search() -> int:
        async with Client(address) as client:
            return (await client.post("/api/search", {**asked, "beam": 64}))[0]

    began = time.monotonic()
    status = asyncio.run(search())
    took = time.monotonic() - began
    print(f"first search with a beam of 64: {took:.2f} s")
    assert status == 200 and took < 5


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_does_not_grow(served):
    process, address = served
    asyncio.run(type_together(address, 20, 10, PAUSES[60]))
    before, answered = memory(process), 0
    while answered < 10_000:
        answered += len(asyncio.run(type_together(address, 20, 10, PAUSES[60])))
    after = memory(process)
    print(f"{answered} requests: from {before:.0f} to {after:.0f} MB")
    assert after - before < 32
