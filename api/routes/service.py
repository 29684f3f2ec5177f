"""Public endpoints: health, metrics and documents of the server, and of its tool-integration service."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from aiohttp import web

from api.http.endpoint import Endpoint, PublicEndpoint
from api.http.errors import ApiError
from api.openapi.asyncapi import stream_documents
from api.openapi.document import openapi_document, product_version
from api.process.lifecycle import Lifecycle, Phase
from api.process.metrics import METRICS_CONTENT_TYPE, Metrics
from media.streams.schemas import FRAMES

__all__ = ["ServiceRoutes"]

_ALIVE = {200: "It is alive."}


class ServiceRoutes:
    """Public endpoints; the documents of these, of `endpoints` and of the streams are built on first use."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        metrics: Metrics,
        endpoints: Sequence[Endpoint[Any, Any]],
        public_url: str,
    ) -> None:
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._described = endpoints
        self._public_url = public_url
        self._page = resources.files("api").joinpath("static/docs.html").read_text(encoding="utf-8")
        self._phone = resources.files("api").joinpath("static/trunkline-phone.js").read_text(encoding="utf-8")
        self._page_policy = _content_policy(self._page)
        self._written: dict[str, bytes] = {}
        self._writing = asyncio.Lock()
        self.endpoints = (
            PublicEndpoint("/health", "Liveness of the process", self.health, statuses=_ALIVE),
            PublicEndpoint(
                "/ready",
                "Readiness for calls",
                self.ready,
                statuses={**_ALIVE, 503: "It is starting or stopping, or lacks a resource for calls."},
            ),
            PublicEndpoint("/metrics", "Measurements for Prometheus", self.metrics, "text/plain"),
            PublicEndpoint("/openapi.json", "This document", self.openapi),
            PublicEndpoint("/asyncapi.json", "The streams to voice agents, as AsyncAPI", self.asyncapi),
            PublicEndpoint(
                "/schemas/streams/{dialect}.json",
                "The frames of a stream protocol, as JSON Schema",
                self.stream_schema,
                statuses={200: "The schema.", 404: "There is no such protocol."},
                parameters={"dialect": tuple(FRAMES)},
            ),
            PublicEndpoint(
                "/webrtc/trunkline-phone.js",
                "A telephone for web pages, as a JavaScript module",
                self.phone_module,
                "text/javascript",
                statuses={200: "The module."},
                tag="webrtc",
            ),
            PublicEndpoint("/docs", "This document as a web page", self.docs, "text/html"),
            *_INTEGRATIONS,
        )

    async def health(self, _: web.Request) -> web.Response:
        """Answer GET /health."""
        return web.json_response({"status": "ok"})

    async def ready(self, _: web.Request) -> web.Response:
        """Answer GET /ready."""
        phase = self._lifecycle.phase
        if phase is not Phase.READY:
            return web.json_response({"status": phase.value}, status=503)
        lacks = self._lifecycle.lacks()
        if lacks is not None:
            return web.json_response({"status": "refusing", "lacks": lacks}, status=503)
        return web.json_response({"status": phase.value})

    async def metrics(self, _: web.Request) -> web.Response:
        """Answer GET /metrics."""
        return web.Response(body=await self._metrics.scrape(), headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def openapi(self, _: web.Request) -> web.Response:
        """Answer GET /openapi.json."""
        return await self._json(
            "openapi.json", lambda: openapi_document(self._described, self.endpoints, self._public_url)
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

    async def phone_module(self, _: web.Request) -> web.Response:
        """Answer GET /webrtc/trunkline-phone.js."""
        return web.Response(text=self._phone, content_type="text/javascript", charset="utf-8")

    async def docs(self, _: web.Request) -> web.Response:
        """Answer GET /docs."""
        headers = {"Content-Security-Policy": self._page_policy}
        return web.Response(text=self._page, content_type="text/html", headers=headers)


def _content_policy(page: str) -> str:
    """Allow the page's own script and style by hash, data: images and requests to this origin only."""
    script = _hashes(page, "script")
    style = _hashes(page, "style")
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, element: str) -> str:
    bodies = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in bodies]
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


async def integrations_information(_: web.Request) -> web.Response:
    """Answer GET /integrations."""
    return web.json_response(
        {
            "service": "trunkline-tool-integration",
            "version": product_version(),
            "docs": "/docs",
            "endpoints": {
                "health": "GET /integrations/health",
                "tools": "GET /integrations/v1/tools",
                "execute": "POST /integrations/v1/tools/{name}/execute",
                "mcp": "POST /integrations/mcp",
                "admin": "GET, POST /integrations/admin/*",
            },
        }
    )


async def integrations_health(_: web.Request) -> web.Response:
    """Answer GET /integrations/health."""
    return web.json_response({"status": "ok"})


_INTEGRATIONS = (
    PublicEndpoint(
        "/integrations",
        "The tool-integration service and where its parts are",
        integrations_information,
        tag="tools",
    ),
    PublicEndpoint(
        "/integrations/health",
        "Liveness of the tool-integration service",
        integrations_health,
        statuses=_ALIVE,
        tag="tools",
    ),
)
