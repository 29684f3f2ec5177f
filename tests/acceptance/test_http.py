"""HTTP of all services: request ids, methods, paths and pages of other origins."""

from __future__ import annotations

from collections.abc import Iterator

import aiohttp
import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.resources import META
from tests.acceptance.shapes import assert_fits, assert_messaging_error, assert_platform_error
from tests.acceptance.stage import Customer
from tests.support.server_process import ServerProcess

READS = ["/v1/calls", "/v1/phone-numbers", "/v1/trunk-portal/carriers"]
PAGE = "https://app.example.com"


async def test_every_response_names_its_request(api: Api) -> None:
    reply = (await api.request("GET", "/v1/calls", headers={"X-Request-Id": "mine-7"})).expect(200)
    assert reply.headers["X-Request-Id"] == "mine-7"
    assert_fits(reply.meta, {**META, "request_id": "mine-7"})
    refused = await api.with_key(None).get("/v1/calls")
    assert refused.expect(401).headers["X-Request-Id"]


async def test_unknown_paths_methods_and_bodies(api: Api) -> None:
    assert_platform_error(await api.get("/v1/unknown"), 404, "NOT_FOUND")
    assert_platform_error(await api.put("/v1/calls", {}), 405, "METHOD_NOT_ALLOWED")
    text = await api.request("POST", "/v1/calls", {}, headers={"Content-Type": "text/plain"})
    assert_platform_error(text, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert_platform_error(await api.post("/v1/calls", ["a list"]), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize("path", READS)
async def test_head_is_answered_as_get_without_a_body(api: Api, path: str) -> None:
    got = (await api.get(path)).expect(200)
    head = (await api.request("HEAD", path)).expect(200)
    assert head.content == b""
    assert head.headers["Content-Type"] == got.headers["Content-Type"]
    (await api.with_key(None).request("HEAD", path)).expect(401)


@pytest.mark.parametrize("path", READS)
async def test_a_slash_at_the_end_is_the_same_path(api: Api, path: str) -> None:
    assert (await api.get(f"{path}/")).expect(200).data == (await api.get(path)).expect(200).data


async def test_unknown_query_parameters_are_ignored(api: Api, customer: Customer) -> None:
    for path in READS:
        (await api.get(path, _=123, colour="red")).expect(200)
    chat = api.with_key(customer.key_of("messaging"))
    (await chat.get("/api/v1/contacts", _=123)).expect(200)


async def test_unknown_fields_of_a_body_are_named(api: Api, customer: Customer) -> None:
    reply = await api.post("/v1/trunk-portal/carriers", {"name": "x", "colour": "red"})
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "colour")
    chat = api.with_key(customer.key_of("messaging"))
    reply = await chat.post("/api/v1/contacts", {"phoneNumber": "+919876543210", "colour": "red"})
    assert_messaging_error(reply, 400, "VALIDATION_ERROR", "colour")


# Pages of other origins


@pytest.fixture(scope="module")
def open_to_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that pages of one origin may ask."""
    yield from start_server(tmp_path_factory, CORS_ORIGINS=PAGE, SANDBOX_CARRIER="0")


async def test_a_page_of_a_named_origin_may_ask(
    session: aiohttp.ClientSession, open_to_pages: ServerProcess
) -> None:
    api = Api(session, open_to_pages.url, customers_of(open_to_pages)().key)
    wants = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    asked = await api.with_key(None).request("OPTIONS", "/v1/calls", headers=wants)
    assert asked.status in (200, 204), asked.content
    assert asked.headers["Access-Control-Allow-Origin"] == PAGE
    assert "POST" in asked.headers["Access-Control-Allow-Methods"]
    assert "authorization" in asked.headers["Access-Control-Allow-Headers"].lower()
    got = (await api.request("GET", "/v1/calls", headers={"Origin": PAGE})).expect(200)
    assert got.headers["Access-Control-Allow-Origin"] == PAGE
    other = await api.request("GET", "/v1/calls", headers={"Origin": "https://evil.example.com"})
    assert "Access-Control-Allow-Origin" not in other.headers


async def test_pages_may_not_ask_unless_they_are_named(api: Api) -> None:
    got = (await api.request("GET", "/v1/calls", headers={"Origin": PAGE})).expect(200)
    assert "Access-Control-Allow-Origin" not in got.headers
