"""
Policies of the pages for people: every route of the console and of /docs, as the router has them.

A page may load from this origin alone, and has no inline script or style. That a browser finds nothing to
forbid is watched by every test in tests/browser.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from aiohttp import web

from api.console.page import all_pages
from api.console.rendering import POLICY
from tests.support.api_facts import (
    ACCOUNT,
    CARRIER_SID,
    ENDED_SID,
    GATEWAY_SID,
    NOWHERE,
    NUMBER_ID,
    insert_key,
)
from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, console_app, sign_in
from tests.unit.api.client import Answer, client_for

ADMIN_KEY = "vk_" + "p" * 43
VALUES = {
    **{"gateway": GATEWAY_SID, "id": NOWHERE, "key_id": "nobody", "listener": NOWHERE, "product": "calls"},
    **{"delivery": NOWHERE, "name": "console.css", "sid": ENDED_SID, "tail": "nothing", "version": "0"},
}
IDENTIFIERS = {"/console/numbers": NUMBER_ID, "/console/trunks": CARRIER_SID}
# Pages of what the stage has not: they say that it is not there, or not for a key. The recording is none.
REFUSED = {
    "/console/accounts": 403,
    **dict.fromkeys(
        [
            *("/console/agents/{id}", "/console/messages/{id}", "/console/webhooks/{product}/{id}"),
            "/console/webhooks/{product}/{id}/deliveries/{delivery}",
            *("/console/calls/{sid}/recording.wav", "/console/calls/{sid}/waveform"),
            *("/console/calls/{sid}/sip.pcap", "/console/{tail}"),
        ],
        404,
    ),
}
# Whoever is signed in is led on from here, and nowhere else.
LEADS_ON = {"/": 302, "/console": 303}
# It goes on until the page is closed.
STREAM = "/console/events"


class Reader(HTMLParser):
    """Collects what a page has inline, and what it loads from or leads to elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        # Data for scripts is not executed.
        self._script = tag == "script" and "src" not in given and given.get("type") != "application/json"
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.wrong.append(tag)
        self.wrong += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        for name in ("src", "srcset", "href", "action", "formaction", "poster", "data"):
            if re.match(r"(?i)\s*([a-z]+:|//)", given.get(name, "")) and given[name] != "data:,":
                self.wrong.append(f"{tag} {name}={given[name]}")

    def handle_data(self, data: str) -> None:
        if self._script and data.strip():
            self.wrong.append(f"script: {data[:40]}")

    def handle_endtag(self, tag: str) -> None:
        self._script = False


def found_in(page: str) -> list[str]:
    """Parts of a page that the policy forbids."""
    reader = Reader()
    reader.feed(page)
    return reader.wrong


def routes(app: web.Application) -> Iterator[tuple[str, str]]:
    """Method and path of each route for people."""
    for route in app.router.routes():
        path = "" if route.resource is None else route.resource.canonical
        if path == "/" or path.startswith(("/console", "/docs")):
            yield route.method, path


def address(path: str) -> str:
    """Address of a route on the stage."""
    identifier = next((value for start, value in IDENTIFIERS.items() if path.startswith(start)), NOWHERE)
    return re.sub(r"\{(\w+)\}", lambda part: {**VALUES, "id": identifier}[part[1]], path)


async def scrape() -> bytes:
    return b""


@pytest.fixture
async def app(stage: ApiStage) -> AsyncIterator[web.Application]:
    """The application with its console."""
    async with console_app(stage, operators=frozenset({ACCOUNT}), scrape=scrape) as made:
        yield made


@pytest.fixture
async def everybody(stage: ApiStage, app: web.Application) -> AsyncIterator[Person]:
    """Somebody with a key of every scope."""
    await stage.write(lambda connection: insert_key(connection, ADMIN_KEY, "all", ["*"]))
    async with client_for(app) as client:
        yield await sign_in(client, ADMIN_KEY)


def assert_allowed(answer: Answer, path: str) -> None:
    """Require the policy of the console of an answer, and a page that keeps it."""
    page = answer.body.decode("utf-8", "replace")
    assert answer.headers["Content-Security-Policy"] == POLICY, path
    assert answer.headers["X-Content-Type-Options"] == "nosniff", path
    assert answer.headers["Cache-Control"] == "no-store", path
    if answer.headers.get("Content-Type", "").startswith("text/html"):
        assert found_in(page) == [], path


async def test_every_route_of_the_console_has_the_policy_and_keeps_it(
    app: web.Application, everybody: Person
) -> None:
    found = {(method, path) for method, path in routes(app) if not path.startswith("/docs")}
    declared = {(page.method, page.path) for module in all_pages() for page in module.declared}
    assert declared < found
    for method, path in sorted(found):
        if method == "POST":
            # Without the token of its page no form does anything.
            answer = await everybody.post(address(path), {"csrf": "none"})
            assert answer.status in (401, 403, 404), (path, answer.status)
        elif method == "GET":
            # A stream would not end; pages of another session get none.
            query = "?session=other" if path == STREAM else ""
            answer = await everybody.get(address(path) + query)
            wanted = 303 if path == STREAM else {**REFUSED, **LEADS_ON}.get(path, 200)
            assert answer.status == wanted, (path, answer.status)
        else:
            assert method == "HEAD", (method, path)
            continue
        assert_allowed(answer, path)


async def test_answers_that_are_no_pages_have_the_policy(everybody: Person) -> None:
    """Those of a file that is not there, and to somebody who is not signed in."""
    nobody = replace(everybody, cookie="")
    for who, path, status in (
        (everybody, "/console/static/0/nothing.js", 404),
        (nobody, "/console/live", 303),
        (nobody, "/console/live/calls", 303),
    ):
        answer = await who.get(path)
        assert answer.status == status, path
        assert_allowed(answer, path)
    events = await nobody.get(STREAM, Accept="text/event-stream")
    assert events.status == 401
    assert_allowed(events, STREAM)


async def test_every_route_of_the_reference_has_its_policy(app: web.Application, everybody: Person) -> None:
    found = {path for method, path in routes(app) if path.startswith("/docs") and method == "GET"}
    assert found == {"/docs", "/docs/{file}"}
    page = await everybody.get("/docs")
    policy = page.headers["Content-Security-Policy"]
    # The library writes styles into the page; see test_http_edge.
    assert policy.replace("style-src 'unsafe-inline'", "").count("unsafe") == 0 and "http" not in policy
    assert found_in(page.body.decode()) == []
    for file in re.findall(r'src="(/docs/[^"]+)"', page.body.decode()):
        answer = await everybody.get(file)
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/javascript")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "page",
    [
        *("<script>1</script>", "<style>a{}</style>", "<a onclick=x>", "<p style='color:red'>"),
        *("<img src=https://example.com/a>", "<script src=//example.com></script>"),
        *("<a href='javascript:x'>", "<form action='https://example.com'>", "<base href=/>"),
    ],
)
def test_what_the_policy_forbids_would_be_found(page: str) -> None:
    assert found_in(page) != []
