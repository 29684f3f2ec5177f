"""Responses to pages of other origins."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from api.http.app import Neighbours, create_app
from api.http.cors import Cors
from api.process.metrics import Metrics
from tests.support.api_stage import URL, ApiStage
from tests.unit.api.client import Answer, Client, client_for

PAGE, OTHER = "https://console.example.com", "https://elsewhere.example.com"
_ALLOWED = "Access-Control-Allow-Origin"


def served_to(stage: ApiStage, *origins: str) -> AbstractAsyncContextManager[Client]:
    return client_for(
        create_app(
            stage.services,
            mcp=stage.mcp,
            lifecycle=stage.lifecycle,
            metrics=Metrics(),
            public_url=URL,
            neighbours=Neighbours(origins=origins),
        )
    )


async def preflight(client: Client, path: str, origin: str = PAGE) -> Answer:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    return await client.request("OPTIONS", path, headers=asked, key=None)


async def test_without_the_setting_no_page_is_let_in(client: Client) -> None:
    answer = await client.get("/v1/calls", headers={"Origin": PAGE})
    assert answer.status == 200 and _ALLOWED not in answer.headers and "Vary" not in answer.headers
    refused = await preflight(client, "/v1/calls")
    assert refused.status == 405 and _ALLOWED not in refused.headers


async def test_a_page_of_a_named_origin_asks_and_reads(stage: ApiStage) -> None:
    async with served_to(stage, PAGE) as client:
        asked = await preflight(client, "/v1/calls")
        assert (asked.status, asked.body) == (204, b"")
        assert asked.headers[_ALLOWED] == PAGE
        assert asked.headers["Access-Control-Allow-Methods"] == "GET, HEAD, POST"
        for name in ("Authorization", "Content-Type", "Idempotency-Key", "X-API-Key"):
            assert name in asked.headers["Access-Control-Allow-Headers"]
        answers = [
            await client.get("/v1/calls", headers={"Origin": PAGE}),
            await client.get("/v1/calls", headers={"Origin": PAGE}, key=None),
            await client.get("/nowhere", headers={"Origin": PAGE}),
        ]
    assert [answer.status for answer in answers] == [200, 401, 404]
    for answer in answers:
        assert (answer.headers[_ALLOWED], answer.headers["Vary"]) == (PAGE, "Origin")
        assert "X-Request-Id" in answer.headers["Access-Control-Expose-Headers"]
        assert "Access-Control-Allow-Credentials" not in answer.headers


async def test_a_page_of_another_origin_reads_nothing(stage: ApiStage) -> None:
    async with served_to(stage, PAGE) as client:
        assert (await preflight(client, "/v1/calls", OTHER)).status == 405
        answer = await client.get("/v1/calls", headers={"Origin": OTHER})
        assert _ALLOWED not in answer.headers and answer.headers["Vary"] == "Origin"
        plain = await client.get("/v1/calls")
        assert _ALLOWED not in plain.headers and plain.headers["Vary"] == "Origin"


async def test_every_origin_is_let_in_without_credentials(stage: ApiStage) -> None:
    async with served_to(stage, "*") as client:
        asked = await preflight(client, "/api/v1/calls/outbound", OTHER)
        answer = await client.get("/v1/calls", headers={"Origin": OTHER})
    assert (asked.status, asked.headers["Access-Control-Allow-Methods"]) == (204, "POST")
    for one in (asked, answer):
        assert one.headers[_ALLOWED] == "*" and "Access-Control-Allow-Credentials" not in one.headers


async def test_only_a_preflight_of_a_known_path_is_answered(stage: ApiStage) -> None:
    async with served_to(stage, PAGE) as client:
        assert (await preflight(client, "/nowhere")).status == 404
        plain = await client.request("OPTIONS", "/v1/calls", headers={"Origin": PAGE})
        assert plain.status == 405


@pytest.mark.parametrize("origin", ["HTTPS://Console.Example.COM", "https://console.example.com"])
def test_an_origin_is_returned_as_it_was_sent(origin: str) -> None:
    assert Cors([PAGE]).headers(origin)[_ALLOWED] == origin
