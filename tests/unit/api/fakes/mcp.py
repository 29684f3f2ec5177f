"""The Model Context Protocol's endpoint, which says what it was asked."""

from __future__ import annotations

from aiohttp import web

from callcontrol.models import Principal


class FakeMcp:
    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []

    async def answer(self, principal: Principal, body: bytes, request: web.Request) -> web.StreamResponse:
        self.asked.append((principal.key_id, body))
        return web.json_response({"jsonrpc": "2.0", "id": 1, "result": {}})
