from __future__ import annotations

import asyncio
import json
import threading

import httpx
import pytest

from vbsix.playground.app import create_app
from vbsix.playground.limits import MOST_BYTES, MOST_HEARD, Busy, Gate, Gone, LimitBody, TooSlow
from vbsix.playground.messages import ParseAnswer
from vbsix.playground.models import Model


def test_a_gate_lets_some_run_some_wait_and_refuses_the_rest():
    hold = threading.Event()

    async def use() -> list:
        gate = Gate(running=1, waiting=1, seconds=10)
        inside = [asyncio.create_task(gate.run(hold.wait)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(Busy):
            await gate.run(int)
        hold.set()
        waited = await asyncio.gather(*inside)
        return [*waited, await gate.run(int, "7")]  # there is room again

    assert asyncio.run(use()) == [True, True, 7]


def test_what_takes_too_long_holds_its_place_until_it_ends():
    hold = threading.Event()

    async def use() -> int:
        gate = Gate(running=1, waiting=0, seconds=0.05)
        with pytest.raises(TooSlow):
            await gate.run(hold.wait)
        with pytest.raises(Busy):
            await gate.run(int)
        hold.set()
        while True:
            try:
                return await gate.run(int, "7")
            except Busy:
                await asyncio.sleep(0.01)

    assert asyncio.run(use()) == 7


async def disconnect() -> dict:
    return {"type": "http.disconnect"}


def test_who_leaves_while_waiting_frees_the_place():
    hold, called = threading.Event(), []

    async def use() -> None:
        gate = Gate(running=1, waiting=1, seconds=10)
        first = asyncio.create_task(gate.run(hold.wait, 2))
        await asyncio.sleep(0)
        for _ in range(5):
            with pytest.raises(Gone):
                await gate.run(called.append, "left", receive=disconnect)
        second = asyncio.create_task(gate.run(called.append, "stayed"))
        await asyncio.sleep(0.05)
        hold.set()
        await asyncio.gather(first, second)

    asyncio.run(use())
    assert called == ["stayed"]


def test_the_server_notices_who_leaves(monkeypatch):
    hold, called, sent = threading.Event(), [], []

    def answer(_: object, request) -> ParseAnswer:
        called.append(request.world)
        hold.wait(2)
        return ParseAnswer(
            readings=[], outcomes=[], understood=False, reasons=[], unknown_words=[], unread_words=[], pictures={}
        )

    async def ask(world: str, leaves: bool) -> None:
        body = json.dumps({"model": "model", "world": world, "utterances": []}).encode()
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> dict:
            if not messages and not leaves:
                await asyncio.sleep(60)
            return messages.pop() if messages else await disconnect()

        async def send(message: dict) -> None:
            sent.append((world, message.get("status")))

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/api/parse", "query_string": b"", "headers": headers}
        await app(scope, receive, send)

    async def use() -> None:
        held = [asyncio.create_task(ask(f"held {number}", False)) for number in range(2)]
        await asyncio.sleep(0.1)
        await ask("left", True)
        assert sent[0] == ("left", 499)
        hold.set()
        await asyncio.wait(held)

    monkeypatch.setattr("vbsix.playground.app.answer_parse", answer)
    app = create_app({"model": object.__new__(Model)})
    asyncio.run(use())
    assert {status for _, status in sent} == {499, 200, None}
    assert sorted(called) == ["held 0", "held 1"]


@pytest.mark.parametrize(("error", "status", "words"), [(Busy, 429, "too many"), (TooSlow, 503, "too long")])
def test_the_server_says_so(monkeypatch, error, status, words):
    async def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Gate, "run", run)
    app = create_app({"model": object.__new__(Model)})

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/api/parse", json={"model": "model", "world": "", "utterances": ["go"]})

    answer = asyncio.run(ask())
    assert answer.status_code == status
    assert words in answer.json()["detail"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_errors_of_the_call_come_through():
    async def use() -> None:
        await Gate(running=1, waiting=0, seconds=10).run(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(use())


def send_body(parts: list[bytes]) -> tuple[int | None, bytes, int]:
    """The status of a refusal, or none and the body that the server saw; and how many parts were heard."""
    sent, seen = [], []
    waiting = list(parts)

    async def server(scope, receive, send) -> None:
        seen.append((await receive())["body"])

    async def receive() -> dict:
        if not waiting:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting) or parts[-1] == b"..."}

    async def send(message) -> None:
        sent.append(message)

    asyncio.run(LimitBody(server)({"type": "http"}, receive, send))
    return (sent[0]["status"] if sent else None), b"".join(seen), len(parts) - len(waiting)


def test_a_body_within_the_limit_is_passed_on_whole():
    assert send_body([b"a" * MOST_BYTES]) == (None, b"a" * MOST_BYTES, 1)
    assert send_body([b"a", b"b", b""]) == (None, b"ab", 3)


def test_a_body_that_is_too_large_is_refused_without_being_kept():
    assert send_body([b"a" * MOST_BYTES, b"a"]) == (413, b"", 2)
    assert send_body([b"a" * (MOST_HEARD + 1), b"a"]) == (413, b"", 1)


def test_a_body_that_does_not_come_is_refused(monkeypatch):
    monkeypatch.setattr("vbsix.playground.limits.MOST_SECONDS", 0.05)
    assert send_body([b"..."])[:2] == (408, b"")
