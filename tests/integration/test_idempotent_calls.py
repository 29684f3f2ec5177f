"""Many repeats at once, over HTTP: each Idempotency-Key has one effect and one answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from tests.integration.test_api_server import ECHO, running

KEYS, REPEATS = 8, 50


async def test_of_many_repeats_each_key_places_one_call(tmp_path: Path) -> None:
    limits = {"TRUSTED_SOURCES": "127.0.0.0/8", "LOG_LEVEL": "warning"}
    async with running(tmp_path, **limits) as server, aiohttp.ClientSession() as session:
        assert server.demo is not None
        authorization = {"Authorization": f"Bearer {server.demo.api_key}"}
        body = {"from": server.demo.number, "to": ECHO, "verbs": [{"verb": "hangup"}]}

        async def place(key: str) -> tuple[int, str | None, Any]:
            headers = {**authorization, "Idempotency-Key": key}
            async with session.post(f"{server.url}/v1/calls", json=body, headers=headers) as answer:
                return answer.status, answer.headers.get("Idempotent-Replayed"), await answer.json()

        asked = [f"order-{number % KEYS}" for number in range(KEYS * REPEATS)]
        answers = await asyncio.gather(*(place(key) for key in asked))
        placed: dict[str, set[str]] = {}
        first: dict[str, int] = {}
        for key, (status, replayed, answer) in zip(asked, answers, strict=True):
            if status == 201:
                placed.setdefault(key, set()).add(answer["data"]["call_sid"])
                first[key] = first.get(key, 0) + (replayed is None)
            else:
                assert (status, answer["error"]["code"]) == (409, "IDEMPOTENCY_CONFLICT"), answer
        assert len(placed) == KEYS and set(first.values()) == {1}
        assert all(len(calls) == 1 for calls in placed.values())
        assert len(set.union(*placed.values())) == KEYS

        for key, calls in placed.items():
            status, replayed, answer = await place(key)
            assert (status, replayed, {answer["data"]["call_sid"]}) == (201, "true", calls)
        async with session.get(f"{server.url}/v1/calls", headers=authorization) as answer:
            assert (await answer.json())["meta"]["total"] == KEYS
