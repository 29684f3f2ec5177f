"""Encodings of requests: of bodies, of paths and queries, and of whole numbers in queries."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from tests.support.api_facts import KEY, NUMBER
from tests.unit.api.client import Client

CALL = {"from": NUMBER, "to": "+919800000001", "stream_url": "wss://bot.example.com/ws"}


async def test_a_body_may_be_encoded(client: Client) -> None:
    body = json.dumps(CALL | {"colour": "red"}).encode()
    raw = zlib.compressobj(wbits=-15)
    encoded = {
        "gzip": gzip.compress(body),
        "X-GZIP": gzip.compress(body),
        "deflate": zlib.compress(body),
        "Deflate": raw.compress(body) + raw.flush(),
        "identity": body,
    }
    for coding, sent in encoded.items():
        answer = await client.post("/v1/calls", body=sent, headers={"Content-Encoding": coding})
        assert (answer.status, list(answer.fields)) == (400, ["colour"]), coding


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [
        ("gzip", gzip.compress(b"{}", mtime=0)[:-4], 400),
        ("gzip", gzip.compress(b"{}", mtime=0) + b"{}", 400),
        ("deflate", zlib.compress(b"{}")[:-1], 400),
        ("deflate", b"\xff\xff\xff", 400),
        ("gzip", gzip.compress(bytes(64 * 1024 * 1024), 1, mtime=0), 413),
        ("br", b"{}", 415),
        ("gzip, gzip", b"{}", 415),
    ],
    ids=["cut", "more", "cut deflate", "no deflate", "bomb", "unknown", "twice"],
)
async def test_a_body_that_is_not_whole_or_swells_or_is_encoded_oddly(
    client: Client, coding: str, body: bytes, status: int
) -> None:
    answer = await client.post("/v1/calls", body=body, headers={"Content-Encoding": coding})
    assert answer.status == status
    unknown = await client.post("/v1/calls", body=body, headers={"Content-Encoding": coding}, key=None)
    assert unknown.status == 401, "nothing is read for a stranger"


@pytest.mark.parametrize(
    "number", ["1_0", "%2B1", "+1", "%201", "1%20", "1.0", "%D9%A1", "%EF%BC%91", "0x1", ""]
)
async def test_whole_numbers_of_a_query_are_plain_digits(client: Client, number: str) -> None:
    for path, name in (("/v1/calls", "page"), ("/v1/masking/call-logs", "per_page")):
        answer = await client.get(f"{path}?{name}={number}")
        errors = answer.json()["error"]["details"]["errors"]
        assert (answer.status, errors) == (400, [{"field": name, "message": "must be a whole number"}])
    assert (await client.get("/v1/calls?page=01&per_page=20")).status == 200


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/calls?from=%FF", "from"),
        ("/v1/calls?colour=%C3%28", "colour"),
        ("/v1/calls?%FF=1", "query"),
        ("/v1/agents/%E2%82", "path"),
        ("/nowhere/%FF", "path"),
        ("/v1/masking/call-logs?party=%F0%28", "party"),
    ],
)
async def test_paths_and_queries_that_are_not_utf_8(client: Client, path: str, field: str) -> None:
    for key in (KEY, None):
        answer = await client.get(path, key=key)
        assert (answer.status, answer.fields) == (400, {field: "must be UTF-8"})
    raw = await client.raw(b"GET /v1/calls?from=\xff HTTP/1.1\r\nHost: x\r\n\r\n")
    assert raw.status == 400
    for style in ("/api/v1/contacts?search=%FF", "/v1/webhooks/subscriptions?x=%FF"):
        assert (await client.get(style)).status == 400
    sound = await client.get("/v1/calls?colour=%E2%82%B9&shade=%zz")
    assert sound.status == 200
