"""Public information endpoints of the tool-integration service."""

from __future__ import annotations

from aiohttp import web

from api.http.endpoint import PublicEndpoint
from api.openapi.document import product_version

__all__ = ["ENDPOINTS"]


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


ENDPOINTS = (
    PublicEndpoint(
        path="/integrations",
        also=("/integrations/",),
        summary="What the tool-integration service is and where its parts are",
        media_type="application/json",
        handler=integrations_information,
        tag="tools",
    ),
    PublicEndpoint(
        path="/integrations/health",
        summary="Whether the tool-integration service lives",
        media_type="application/json",
        handler=integrations_health,
        statuses={200: "It is alive."},
        tag="tools",
    ),
)
