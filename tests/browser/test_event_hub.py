"""The hub that shares one stream among the pages of a session, before a server that the test stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.support.browser import Browsing
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long("a real browser")

# A stream that stays open, or a refusal; what a member is told is in `told`, by its name.
_STAGE = """async () => {
    const { EventHub } = await import("/console/static/any/events-hub.js");
    window.asked = [];
    window.fetch = async (path, { headers, signal }) => {
        asked.push({ path, place: headers["Last-Event-ID"] ?? null });
        if (window.refused) return new Response("", { status: 401 });
        const encoder = new TextEncoder();
        const body = new ReadableStream({
            start(controller) {
                window.send = (text) => controller.enqueue(encoder.encode(text));
                send("id: p.7\\nevent: hello\\ndata: {}\\n\\n");
                signal.addEventListener("abort", () => controller.error(signal.reason));
            },
        });
        return new Response(body);
    };
    window.hub = new EventHub("mine");
    window.members = {};
    window.told = {};
    window.join = (name, wants) => {
        told[name] ??= [];
        members[name] ??= { wants, tell: (event) => told[name].push(event) };
        hub.join(members[name]);
    };
}"""


@pytest.fixture
def hub(browsing: Browsing, server: ServerProcess) -> Iterator[Page]:
    """A page with a hub."""
    with browsing.person() as page:
        page.goto(f"{server.url}/console/sign-in")
        page.evaluate(_STAGE)
        yield page


def told(page: Page, name: str, expected: list[str]) -> None:
    """Wait until a member was told just that."""
    page.wait_for_function("([name, count]) => told[name].length >= count", arg=[name, len(expected)])
    assert page.evaluate("name => told[name]", name) == expected


def asked(page: Page) -> list[dict[str, Any]]:
    """Requests for a stream."""
    found: list[dict[str, Any]] = page.evaluate("asked")
    return found


def test_a_page_that_comes_after_the_end_is_told_of_it_too(hub: Page) -> None:
    hub.evaluate("join('early', { every: true })")
    told(hub, "early", ["hello"])
    hub.evaluate("window.refused = true; send('event: end\\ndata: {}\\n\\n')")
    told(hub, "early", ["hello", "end"])
    # It wants the same, and was not closed with its session: the browser had kept it in its memory.
    hub.evaluate("join('late', { every: true })")
    told(hub, "late", ["end"])
    assert len(asked(hub)) == 2


def test_a_page_that_was_hidden_goes_on_where_it_was(hub: Page) -> None:
    hub.evaluate("join('one', {})")
    told(hub, "one", ["hello"])
    hub.evaluate("hub.leave(members.one)")
    hub.wait_for_function("() => hub._connection === null")
    hub.evaluate("join('one', {})")
    told(hub, "one", ["hello", "hello"])
    path = "/console/events?session=mine"
    assert asked(hub) == [{"path": path, "place": None}, {"path": path, "place": "p.7"}]


def test_only_pages_that_follow_calls_load_anew_for_calls_that_were_missed(hub: Page) -> None:
    hub.evaluate("join('all', { every: true }); join('one', { call: 'x' }); join('form', {})")
    for name in ("all", "one", "form"):
        told(hub, name, ["hello"])
    for data, count in (('{"only":"calls"}', 1), ('{"call":"y"}', 1), ("{}", 2)):
        hub.evaluate("data => send(`event: refresh\\ndata: ${data}\\n\\n`)", data)
        hub.wait_for_function("count => told.one.length === 1 + count", arg=count)
    told(hub, "all", ["hello", "refresh", "refresh"])
    told(hub, "one", ["hello", "refresh", "refresh"])
    told(hub, "form", ["hello", "refresh"])


def test_of_too_many_calls_those_of_the_latest_pages_are_followed(hub: Page) -> None:
    hub.evaluate("for (let n = 160; n > 100; n--) join(`page ${n}`, { call: `call-${n}` })")
    told(hub, "page 101", ["hello"])
    named = [f"call=call-{number}" for number in range(101, 151)]
    path = "&".join(["/console/events?session=mine", *named, "levels=1"])
    assert asked(hub)[-1]["path"] == path
