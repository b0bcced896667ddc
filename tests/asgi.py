"""Requests to an app without a server."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


def call(app: Any, method: str, path: str, **options: Any) -> httpx.Response:
    """The answer of an app."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    return asyncio.run(send())
