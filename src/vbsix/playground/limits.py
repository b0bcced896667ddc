"""What a client may ask of the server: how much, how long, and how many at once."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
"""Names of this machine, as only its own browsers know them."""
MOST_BYTES = 64 * 1024
"""Of the body of a request."""
MOST_HEARD = 16 * 1024 * 1024
"""Of a body that is too large: who is cut off while speaking does not hear why."""
MOST_SECONDS = 10.0
"""For a body to arrive."""


class Busy(Exception):
    """The server has enough to do."""


class TooSlow(Exception):
    """What was asked takes too long."""


class Gone(Exception):
    """Who asked does not wait any more."""


class Gate:
    """Limits how many calls run at once, each in a thread, and how many wait; beyond that, `Busy`."""

    def __init__(self, *, running: int, waiting: int, seconds: float):
        self._pool = ThreadPoolExecutor(running)
        self._most, self._seconds = running + waiting, seconds
        self._inside, self._lock = 0, threading.Lock()

    async def run(self, function: Callable[..., Any], *arguments: Any, receive: Receive | None = None) -> Any:
        """Calls a function; where the client that `receive` hears leaves before it began, it never does."""
        with self._lock:
            if self._inside >= self._most:
                raise Busy
            self._inside += 1
        call = self._pool.submit(function, *arguments)
        call.add_done_callback(self._leave)
        answer, gone = asyncio.wrap_future(call), asyncio.ensure_future(_disconnect(receive))
        try:
            await asyncio.wait([answer, gone], timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            raise Gone if gone.done() else TooSlow
        finally:
            call.cancel()
            answer.cancel()
            gone.cancel()

    def _leave(self, _: Future[Any]) -> None:
        """A call that went on after its time was over holds its place until it ends."""
        with self._lock:
            self._inside -= 1


async def _disconnect(receive: Receive | None) -> None:
    """Ends when the client leaves."""
    if receive is None:
        await asyncio.Event().wait()
    else:
        while (await receive())["type"] != "http.disconnect":
            pass


class LimitBody:
    """Refuses bodies that are too large, or too long in coming, before anything reads them."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, size, more, refusal = b"", 0, True, None
        try:
            async with asyncio.timeout(MOST_SECONDS):
                while more and size <= MOST_HEARD:
                    message = await receive()
                    part = message.get("body", b"")
                    size += len(part)
                    body = body + part if size <= MOST_BYTES else b""
                    more = message.get("more_body", False)
        except TimeoutError:
            refusal = _refuse(408, f"the request took more than {MOST_SECONDS:.0f} seconds to arrive.")
        if size > MOST_BYTES:
            refusal = _refuse(413, f"the request has more than {MOST_BYTES} bytes.")
        if refusal:
            await refusal(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return whole.pop() if whole else await receive()

        await self.app(scope, receive_again, send)


class KnownHosts:
    """Refuses requests to names other than these: a site can let its own name mean this machine."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]):
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            name = re.sub(r":\d*$", "", Headers(scope=scope).get("host", "")).lower()
            app = app if name in self.hosts else _refuse(400, "this server does not answer to that name.")
            kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
            if scope["method"] == "POST" and kind != "application/json":
                # Pages of other sites can send all but JSON without asking first.
                app = _refuse(415, "expected JSON: set the header Content-Type to application/json.")
        await app(scope, receive, send)


class AddHeaders:
    """Adds headers to every answer."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]):
        self.app, self.headers = app, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def _refuse(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail}, status, headers={"Connection": "close"})
