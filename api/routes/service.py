"""Public endpoints: health and metrics of the server, and of its tool-integration service."""

from __future__ import annotations

from importlib import resources

from aiohttp import web

from api.http.endpoint import PublicEndpoint
from api.openapi.document import product_version
from api.process.lifecycle import Lifecycle, Phase
from api.process.metrics import METRICS_CONTENT_TYPE, Metrics

__all__ = ["ServiceRoutes"]

_ALIVE = {200: "It is alive."}


class ServiceRoutes:
    """Endpoints of the state of the process."""

    def __init__(self, lifecycle: Lifecycle, metrics: Metrics) -> None:
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._phone = resources.files("api").joinpath("static/trunkline-phone.js").read_text(encoding="utf-8")
        self.endpoints = (
            PublicEndpoint("/health", "Liveness of the process", self.health, statuses=_ALIVE),
            PublicEndpoint(
                "/ready",
                "Readiness for calls",
                self.ready,
                statuses={**_ALIVE, 503: "It is starting or stopping, or lacks a resource for calls."},
            ),
            PublicEndpoint("/metrics", "Measurements for Prometheus", self.metrics, "text/plain"),
            PublicEndpoint(
                "/webrtc/trunkline-phone.js",
                "A telephone for web pages, as a JavaScript module",
                self.phone_module,
                "text/javascript",
                statuses={200: "The module."},
                tag="webrtc",
            ),
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

    async def phone_module(self, _: web.Request) -> web.Response:
        """Answer GET /webrtc/trunkline-phone.js."""
        return web.Response(text=self._phone, content_type="text/javascript", charset="utf-8")


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
