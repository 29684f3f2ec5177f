"""Responses with a recording: one in the object store is sent as one on the disk, header by header."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from api.http.cors import Cors
from api.http.errors import ErrorStyle
from api.http.files import PART_BYTES, PrivateFile, send_object
from api.http.middleware import edge
from api.process.metrics import Metrics
from callcontrol.errors import ServiceUnavailable
from callcontrol.recordings.objects import StoredObject
from tests.support.object_store import FOLDER, MODIFIED

CONTENT = bytes(range(256)) * 4
TYPE = "audio/wav"
SID = "01a2b3c4-0000-4000-8000-000000000000"


@dataclass
class Pair:
    """The same recording, from the disk and from a store; `parts` are the sizes read from it."""

    url: str
    file: Path
    found: StoredObject
    content: bytes
    parts: list[int]
    fails_after: int | None = None

    async def read(self, found: StoredObject, start: int, end: int) -> bytes:
        if self.fails_after is not None and len(self.parts) >= self.fails_after:
            raise ServiceUnavailable("The store does not answer.")
        self.parts.append(end - start)
        return self.content[start:end]

    def tags(self) -> dict[str, str]:
        now = self.file.stat()
        return {"disk": f'"{now.st_mtime_ns:x}-{now.st_size:x}"', "store": f'"{self.found.tag}"'}

    async def ask(
        self, place: str, method: str, headers: Mapping[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Response, without what names the version."""
        tag = self.tags()[place]
        sent = {name: value.replace("TAG", tag) for name, value in headers.items()}
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, f"{self.url}/{place}", headers=sent) as response,
        ):
            shown = {name.lower(): value for name, value in response.headers.items()}
            shown["etag"] = shown.get("etag", "").replace(tag, "TAG")
            for name in ("date", "x-request-id"):
                del shown[name]
            # Of a response without a body it says nothing.
            if response.status in (304, 416):
                for name in ("content-type", "content-length", "transfer-encoding"):
                    shown.pop(name, None)
            return response.status, sorted(shown.items()), await response.read()


async def nothing(_: web.Request) -> None:
    return None


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    file = tmp_path / f"{SID}.wav"
    file.write_bytes(CONTENT)
    os.utime(file, (MODIFIED.timestamp(), MODIFIED.timestamp()))
    sock = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    found = StoredObject(FOLDER.url(SID), len(CONTENT), "0f343b0931126a20f133d67c2b018a3b-2", MODIFIED)
    made = Pair(url, file, found, CONTENT, [])

    async def disk(_: web.Request) -> web.StreamResponse:
        return PrivateFile(file, TYPE)

    async def store(request: web.Request) -> web.StreamResponse:
        return await partial(send_object, made.found, TYPE, made.read)(request)

    app = web.Application(middlewares=[edge(Metrics(), lambda _: ErrorStyle.GENERAL, nothing, Cors(()))])
    app.router.add_get("/disk", disk)
    app.router.add_get("/store", store)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, sock).start()
    yield made
    await runner.cleanup()


LATER, EARLIER = "Sat, 01 Aug 2026 12:30:01 GMT", "Sat, 01 Aug 2026 12:29:59 GMT"
SAME = "Sat, 01 Aug 2026 12:30:00 GMT"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Range": "bytes=0-99"},
        {"Range": "bytes=44-"},
        {"Range": "bytes=-10"},
        {"Range": "bytes=-99999"},
        {"Range": "bytes=0-0"},
        {"Range": "bytes=1023-1023"},
        {"Range": "bytes=100-99999"},
        {"Range": "Bytes=0-99"},
        {"Range": "bytes=1024-"},
        {"Range": "bytes=9999-10000"},
        {"Range": "bytes=9-3"},
        {"Range": "bytes=0-1,4-5"},
        {"Range": "items=0-1"},
        {"Range": "bytes=x"},
        {"Range": "bytes=0-9", "If-Range": "TAG"},
        {"Range": "bytes=0-9", "If-Range": "W/TAG"},
        {"Range": "bytes=0-9", "If-Range": '"another"'},
        {"Range": "bytes=0-9", "If-Range": SAME},
        {"Range": "bytes=0-9", "If-Range": EARLIER},
        {"Range": "bytes=0-9", "If-Range": "nonsense"},
        {"If-None-Match": "TAG"},
        {"If-None-Match": "W/TAG"},
        {"If-None-Match": "*"},
        {"If-None-Match": '"another"'},
        {"If-None-Match": '"another"', "If-Modified-Since": LATER},
        {"If-Modified-Since": LATER},
        {"If-Modified-Since": SAME},
        {"If-Modified-Since": EARLIER},
        {"If-Match": "TAG"},
        {"If-Match": "*"},
        {"If-Match": '"another"'},
        {"If-Match": "TAG", "If-Unmodified-Since": EARLIER},
        {"If-Unmodified-Since": EARLIER},
        {"If-Unmodified-Since": SAME},
        {"If-None-Match": "TAG", "Range": "bytes=0-9"},
    ],
    ids=str,
)
async def test_an_object_is_sent_as_a_file(pair: Pair, method: str, headers: Mapping[str, str]) -> None:
    from_disk = await pair.ask("disk", method, headers)
    assert await pair.ask("store", method, headers) == from_disk
    if method == "HEAD":
        assert pair.parts == [], "nothing is read for it"


async def test_a_large_object_is_read_in_parts(pair: Pair) -> None:
    pair.content = os.urandom(3 * PART_BYTES + 17)
    pair.found = StoredObject(pair.found.url, len(pair.content), "t", MODIFIED)
    status, _, body = await pair.ask("store", "GET", {})
    assert (status, body) == (200, pair.content)
    assert pair.parts == [PART_BYTES] * 3 + [17]
    pair.parts.clear()
    _, _, body = await pair.ask("store", "GET", {"Range": f"bytes={PART_BYTES}-"})
    assert body == pair.content[PART_BYTES:] and pair.parts == [PART_BYTES] * 2 + [17]


async def test_a_store_that_fails_in_the_middle_ends_the_response(pair: Pair) -> None:
    pair.content = bytes(3 * PART_BYTES)
    pair.found = StoredObject(pair.found.url, len(pair.content), "t", MODIFIED)
    pair.fails_after = 2
    with pytest.raises(aiohttp.ClientPayloadError):
        await pair.ask("store", "GET", {})
    pair.parts.clear()
    pair.fails_after = 0
    status, headers, body = await pair.ask("store", "GET", {})
    assert status == 500 and b"audio" not in body, "the pipeline makes a 503 of it"
    assert "content-disposition" not in dict(headers)
