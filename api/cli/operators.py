"""Commands for operators of the console: whoever can run them on the database may see all accounts."""

from __future__ import annotations

import argparse
from typing import Any

from api.cli.admin import on_storage
from api.process.config import Settings
from api.process.values import HostPort
from callcontrol.accounts.aio.sessions import LINK_LIFE
from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.administration import Administration
from callcontrol.clock import timestamp

__all__ = ["end_sessions", "make_link"]


def make_link(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run `trunkline console link`."""
    url = arguments.url or settings.public_url or _here(settings)

    async def work(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
        ends = utc_now() + LINK_LIFE
        token = await storage.operators.make_link(arguments.operator)
        return {
            "url": f"{url.rstrip('/')}/console/sign-in?token={token}",
            "operator": arguments.operator,
            "expires_at": timestamp(ends),
        }

    return on_storage(work)(settings, arguments)


def _here(settings: Settings) -> str:
    """Address at which a server of these settings is reached from its own machine."""
    listen = settings.http_listen
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen.host, listen.host)
    return f"http://{HostPort(host, listen.port)}"


@on_storage
async def end_sessions(storage: Administration, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run `trunkline console end`; an operator without sessions is no failure."""
    return {"operator": arguments.operator, "ended": await storage.operators.end(arguments.operator)}
