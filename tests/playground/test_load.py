"""Many clients at once, and for long, against `vbsix serve` as a user starts it, with the built-in model of scene."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlencode

import numpy as np
import pytest
from browser import go, key_presses, open_browser

from vbsix.data.examples import Row
from vbsix.data.synthetic import generate
from vbsix.playground.answers import random_rows

pytestmark = [pytest.mark.browser, pytest.mark.slow]

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
        rows()  # before anybody types
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


@functools.cache
def rows() -> list[Row]:
    """More than the clients come to, each with a random world."""
    return [made.row for made in generate("scene", 700, seed=12, utterances=3)]


def key_presses_of(number: int) -> Iterator[dict]:
    """What a client asks after each of its key presses, row by row."""
    for row in itertools.islice(itertools.cycle(rows()), 13 * number, None):
        for count, text in enumerate(row.utterances):
            for end in (end for end in range(1, len(text) + 1) if text[end - 1] != " "):
                said = [*row.utterances[:count], text[:end]]
                yield {"model": "scene", "world": row.worlds[0], "utterances": said, "explain": False}


async def type_along(address: str, asked: Iterator[dict], moments: Iterable[float], waits: list[float]) -> int:
    """Presses keys at set moments, whether or not the answer is there, and counts the answers.

    As on the page, one question is under way at a time, and the next one has all that was typed meanwhile. The wait of
    a key press ends with the answer to the first question that has it.
    """
    presses: asyncio.Queue[tuple[float, dict] | None] = asyncio.Queue()

    async def press() -> None:
        for pressed in moments:
            await asyncio.sleep(pressed - time.monotonic())
            presses.put_nowait((pressed, next(asked)))
        presses.put_nowait(None)

    async def ask() -> int:
        async with Client(address) as client:
            for answered in itertools.count():
                if (press := await presses.get()) is None:
                    return answered
                pressed, body = [press[0]], press[1]
                while not presses.empty() and (press := presses.get_nowait()):
                    pressed.append(press[0])
                    body = press[1]
                status, answer = await client.post("/api/parse", body)
                assert status == 200 and answer["pictures"], answer
                waits.extend(time.monotonic() - one for one in pressed)
                if press is None:
                    return answered + 1
        raise AssertionError

    return (await asyncio.gather(ask(), press()))[0]


async def type_together(
    address: str, clients: Sequence[Iterator[dict]], seconds: float, pause: float
) -> tuple[list[float], int]:
    """The wait of each key press, and how many answers there were.

    The clients begin one after the other, within the time between two presses.
    """
    waits: list[float] = []
    began = time.monotonic() + 0.1
    moments = began + pause * np.arange(seconds / pause)
    later = pause * np.arange(len(clients)) / len(clients)
    typing = (type_along(address, one, (moments + at).tolist(), waits) for one, at in zip(clients, later, strict=True))
    return waits, sum(await asyncio.gather(*typing))


async def rest_together(address: str, clients: int, seconds: float, pause: float) -> list[float]:
    """The wait for each explanation, where each client rests every so many seconds after a new instruction."""
    waits: list[float] = []

    async def rest(number: int) -> None:
        row = rows()[-number - 1]
        async with Client(address) as client:
            began = time.monotonic() + pause * number / clients
            for place in range(int(seconds / pause)):
                await asyncio.sleep(began + pause * place - time.monotonic())
                said = [row.utterances[place % len(row.utterances)]]
                asked = time.monotonic()
                status, answer = await client.post(
                    "/api/parse", {"model": "scene", "world": row.worlds[0], "utterances": said, "explain": True}
                )
                assert status == 200 and len(answer["reasons"]) == 1, answer
                waits.append(time.monotonic() - asked)

    await asyncio.gather(*(rest(number) for number in range(clients)))
    return waits


async def search(address: str, row: Row, beam: int) -> int:
    """The status of a search."""
    asked = {"model": "scene", "world": row.worlds[0], "target": row.worlds[-1], "utterances": row.utterances}
    async with Client(address) as client:
        return (await client.post("/api/search", {**asked, "beam": beam}))[0]


def memory(process: int) -> float:
    """Resident memory in MB."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) / 1024


def test_a_key_press_is_drawn_at_once(served):
    _, address = served
    row = random_rows("scene")[0].row
    asked = urlencode([("model", "scene"), ("world", row.worlds[0]), ("say", row.utterances[0])])
    with open_browser() as browser:
        page = browser.new_page()
        go(page, f"{address}/#{asked}")
        waits = key_presses(page, row.utterances[1])
    print(f"key press to drawn world: median {median(waits):.3f} s, slowest {max(waits):.3f} s of {len(waits)}")
    assert max(waits) < 0.2


@pytest.mark.timeout(900)
@pytest.mark.parametrize("words", PAUSES)
def test_fifty_clients_type_at_once(served, words):
    _, address = served
    clients = [key_presses_of(number) for number in range(CLIENTS)]
    waits, _ = asyncio.run(type_together(address, clients, 30, PAUSES[words]))
    deciles = quantiles(waits, n=10)
    summary = f"median {median(waits):.3f} s, 9 of 10 in {deciles[8]:.3f} s, slowest {max(waits):.3f} s"
    print(f"{len(waits)} key presses of {CLIENTS} clients at {words} words a minute: {summary}")
    assert len(waits) == CLIENTS * round(30 / PAUSES[words])
    assert median(waits) < 0.3


@pytest.mark.timeout(900)
def test_explanations_of_fifty_clients_delay_no_typing(served):
    """Each client stops to think once in 15 seconds, as at 40 words a minute between two instructions."""
    _, address = served
    clients = [key_presses_of(number) for number in range(CLIENTS)]

    async def type_and_rest():
        typing = type_together(address, clients, 30, PAUSES[40])
        return await asyncio.gather(typing, rest_together(address, CLIENTS, 30, 15))

    alone, _ = asyncio.run(type_together(address, clients, 30, PAUSES[40]))
    (waits, _), explained = asyncio.run(type_and_rest())
    told = [f"median {median(each):.3f} s, 9 of 10 in {quantiles(each, n=10)[8]:.3f} s" for each in (waits, explained)]
    print(f"{len(waits)} key presses: {told[0]}, without explanations median {median(alone):.3f} s")
    print(f"{len(explained)} explanations: {told[1]}")
    assert len(explained) == 2 * CLIENTS
    assert median(waits) < max(0.3, 3 * median(alone))


def test_the_first_search_with_another_beam_is_quick(served):
    _, address = served
    began = time.monotonic()
    status = asyncio.run(search(address, rows()[0], 64))
    took = time.monotonic() - began
    print(f"first search with a beam of 64: {took:.2f} s")
    assert status == 200 and took < 5


@pytest.mark.timeout(900)
def test_memory_does_not_grow(served):
    process, address = served
    clients = [key_presses_of(number) for number in range(20)]
    others = iter(rows())

    def play() -> int:
        """Parses, and a few searches."""
        _, answered = asyncio.run(type_together(address, clients, 10, PAUSES[60]))
        for beam in (4, 16, 64):
            assert asyncio.run(search(address, next(others), beam)) == 200
            answered += 1
        return answered

    for _ in range(2):  # what is kept for the next request, such as pictures, is filled
        play()
    before, answered = memory(process), 0
    while answered < 10_000:
        answered += play()
    after = memory(process)
    print(f"{answered} requests: from {before:.0f} to {after:.0f} MB")
    assert after - before < 32
