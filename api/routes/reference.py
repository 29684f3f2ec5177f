"""Documents of the API and of the streams, and the page that shows them."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

from aiohttp import web
from aiohttp.helpers import ETag

from api.http.endpoint import Endpoint, PublicEndpoint
from api.http.errors import ApiError
from api.openapi.asyncapi import stream_documents
from api.openapi.document import openapi_document
from media.streams.schemas import FRAMES

__all__ = ["ReferenceRoutes"]

# The library writes its styles into the page, in elements and in attributes, so styles need 'unsafe-inline'.
# Scripts, and requests of the page, are those of this origin alone.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class ReferenceRoutes:
    """
    Documents and page; the documents are built on first use, of `described`, `public` and its own.

    Attributes:
        endpoints: What the OpenAPI document describes.
        files: Parts of the page, which it does not.
    """

    def __init__(
        self, described: Sequence[Endpoint[Any, Any]], public: Sequence[PublicEndpoint], public_url: str
    ) -> None:
        self._described = described
        self._public = public
        self._public_url = public_url
        self._written: dict[str, bytes] = {}
        self._writing = asyncio.Lock()
        self._page = _shipped("page.html")
        self._files = {
            "page.js": _Script(gzip.compress(_shipped("page.js"), mtime=0)),
            "scalar.js": _Script(_shipped("scalar.js.gz")),
        }
        self.endpoints = (
            PublicEndpoint("/openapi.json", "This document", self.openapi),
            PublicEndpoint("/asyncapi.json", "The streams to voice agents, as AsyncAPI", self.asyncapi),
            PublicEndpoint(
                "/schemas/streams/{dialect}.json",
                "The frames of a stream protocol, as JSON Schema",
                self.stream_schema,
                statuses={200: "The schema.", 404: "There is no such protocol."},
                parameters={"dialect": tuple(FRAMES)},
            ),
            PublicEndpoint("/docs", "This document as a web page", self.docs, "text/html"),
        )
        self.files = PublicEndpoint("/docs/{file}", "A part of the page", self.file, "text/javascript")

    async def openapi(self, _: web.Request) -> web.Response:
        """Answer GET /openapi.json."""
        public = (*self._public, *self.endpoints)
        return await self._json(
            "openapi.json", lambda: openapi_document(self._described, public, self._public_url)
        )

    async def asyncapi(self, _: web.Request) -> web.Response:
        """Answer GET /asyncapi.json."""
        return await self._json("asyncapi.json", lambda: stream_documents()["asyncapi.json"])

    async def stream_schema(self, request: web.Request) -> web.Response:
        """Answer GET /schemas/streams/{dialect}.json."""
        dialect = request.match_info["dialect"]
        if dialect not in FRAMES:
            known = ", ".join(FRAMES)
            raise ApiError(404, "NOT_FOUND", f"There is no such stream protocol; there are {known}.")
        name = f"schemas/streams/{dialect}.json"
        return await self._json(name, lambda: stream_documents()[name])

    async def _json(self, name: str, make: Callable[[], Mapping[str, Any]]) -> web.Response:
        """
        Answer with a document, which is built and serialized once.

        The largest takes half a second, in which the event loop would stall all calls: a thread builds it.
        """
        async with self._writing:
            if name not in self._written:
                self._written[name] = await asyncio.to_thread(lambda: json.dumps(make()).encode())
        return web.Response(body=self._written[name], content_type="application/json", charset="utf-8")

    async def docs(self, _: web.Request) -> web.Response:
        """Answer GET /docs."""
        headers = {"Content-Security-Policy": _PAGE_POLICY}
        return web.Response(body=self._page, content_type="text/html", charset="utf-8", headers=headers)

    async def file(self, request: web.Request) -> web.Response:
        """Answer GET /docs/{file}; a browser that has the file gets 304."""
        found = self._files.get(request.match_info["file"])
        if found is None:
            raise ApiError(404, "NOT_FOUND", "There is no such file; see /docs.")
        headers = {"Cache-Control": "no-cache", "ETag": f'"{found.digest}"', "Vary": "Accept-Encoding"}
        if ETag(value=found.digest) in (request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        body = found.compressed
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
        else:
            body = await asyncio.to_thread(gzip.decompress, body)
        return web.Response(body=body, content_type="text/javascript", charset="utf-8", headers=headers)


@dataclass(frozen=True)
class _Script:
    compressed: bytes

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.compressed).hexdigest()


def _shipped(name: str) -> bytes:
    return resources.files("api").joinpath("static", "reference", name).read_bytes()
