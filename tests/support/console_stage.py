"""The console before the real services of a test, and people who are signed in to it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from api.console.app import Console, ConsoleSettings
from api.console.visit import form_token
from api.http.app import create_app, trusts
from api.http.session import COOKIE
from api.process.metrics import Metrics
from tests.support.api_facts import KEY
from tests.support.api_stage import URL, ApiStage
from tests.unit.api.client import Answer, Client, client_for

__all__ = ["OURS", "Person", "console_app", "console_client", "follow_link", "send_form", "sign_in"]

OURS: Mapping[str, str] = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
"""Headers that a browser sends with a form of a page of the console."""

_FORM = "application/x-www-form-urlencoded"
_TOKEN = re.compile(r'name="csrf" value="([0-9a-f]+)"')


@asynccontextmanager
async def console_app(stage: ApiStage, **settings: Any) -> AsyncIterator[web.Application]:
    """Make the application with its console; sources in 10.0.0.0/8 are not limited in rate."""
    app = create_app(
        stage.services, mcp=stage.mcp, lifecycle=stage.lifecycle, metrics=Metrics(), public_url=URL
    )
    values: dict[str, Any] = {
        "public_url": URL,
        "is_trusted": trusts([ip_network("10.0.0.0/8")]),
        "shown": {"TRUNKLINE_NODE": "local"},
        **settings,
    }
    console = Console(stage.services, stage.lifecycle, ConsoleSettings(**values))
    console.attach(app)
    yield app
    await console.close()


@asynccontextmanager
async def console_client(stage: ApiStage, **settings: Any) -> AsyncIterator[Client]:
    """Serve the application with its console."""
    async with console_app(stage, **settings) as app, client_for(app) as client:
        yield client


@dataclass
class Person:
    """
    Somebody who is signed in: a browser with the cookie of a session, on a page with its forms' token.

    `chosen` is the account that an operator has chosen.
    """

    client: Client
    cookie: str
    peer: str = "10.0.0.7"
    chosen: str = ""

    async def get(self, path: str, **headers: str) -> Answer:
        """Open a page."""
        lines = {"Cookie": f"{COOKIE}={self.cookie}", **headers}
        return await self.client.get(path, key=None, headers=lines, peer=self.peer)

    async def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> Answer:
        """Send a form of a page of the console; its token is added unless it is among the fields."""
        given = dict(fields or {})
        if "csrf" not in given:
            given["csrf"] = form_token(self.cookie, self.chosen) if self.chosen else await self.token()
        return await send_form(
            self.client, path, given, {"Cookie": f"{COOKIE}={self.cookie}", **OURS, **headers}, self.peer
        )

    async def token(self) -> str:
        """Token of the forms that are about the session, from any page."""
        page = await self.get("/console/no-such-page")
        found = _TOKEN.search(page.body.decode())
        assert found is not None, page.body.decode()
        return found[1]


async def send_form(
    client: Client, path: str, fields: Mapping[str, str], headers: Mapping[str, str], peer: str = "10.0.0.7"
) -> Answer:
    """Send a form as it is."""
    lines = {"Content-Type": _FORM, **headers}
    return await client.request(
        "POST", path, body=urlencode(fields).encode(), headers=lines, key=None, peer=peer
    )


async def sign_in(client: Client, key: str = KEY) -> Person:
    """Sign in with an API key."""
    answer = await send_form(client, "/console/sign-in", {"key": key}, OURS)
    assert answer.status == 200, answer.body.decode()
    return Person(client, cookie_of(answer))


async def follow_link(client: Client, token: str) -> Answer:
    """Open a link that signs in, and press its button."""
    page = await client.get(f"/console/sign-in?token={token}", key=None, peer="10.0.0.7")
    assert page.status == 200 and "Set-Cookie" not in page.headers, page.body.decode()
    found = re.search(
        r'action="([^"]+)">\s*<p>[^<]*</p>\s*<input type="hidden" name="token" value="([^"]+)"',
        page.body.decode(),
    )
    assert found is not None, page.body.decode()
    return await send_form(client, found[1], {"token": found[2]}, OURS)


def cookie_of(answer: Answer) -> str:
    """Session that a response sets."""
    name, _, value = answer.headers["Set-Cookie"].partition(";")[0].partition("=")
    assert name == COOKIE
    return value
