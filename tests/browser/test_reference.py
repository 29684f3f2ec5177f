"""The page of the API at /docs: it finds operations, sends requests, and calls no other host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.stage import Customer
from tests.support.browser import DESKTOP, PHONE, SHOWS_FOCUS, Browsing, violations_in_all_looks
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.long(reason="a browser reads and shows a document of a megabyte")

SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
NUMBERS = "(get /v1/phone-numbers)"
TIMEOUT_MS = 90_000
# The library tries whether it may make functions of texts, and goes on without. Nothing else may try.
PROBE = "policy: script-src eval {url}/docs/scalar.js"


@contextmanager
def reference(
    browsing: Browsing, server: ServerProcess, size: tuple[int, int], source: str = ""
) -> Iterator[Page]:
    """Open the page; at its end it must have asked nobody but the server, as any, and must fit the screen."""
    with browsing.person(size=size, errors=[PROBE.format(url=server.url)]) as page:
        page.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        page.goto(f"{server.url}/docs{source}")
        yield page
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} px wider than the screen"


@SIZES
def test_an_operation_is_found_and_sent_with_a_key(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str, size: tuple[int, int]
) -> None:
    number, _ = customer.lease()
    with reference(browsing, server, size) as page:
        tabs = page.get_by_role("tab", name=re.compile("^(Shell|Python|JavaScript)$", re.IGNORECASE))
        expect(tabs).to_have_count(3)
        for index, text in enumerate(("curl ", "requests.post(", "fetch(")):
            tabs.nth(index).click()
            expect(page.get_by_text(text).first).to_be_attached()
        page.get_by_label("Bearer Token").first.fill(key)
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Enter search query").fill("list phone numbers")
        page.get_by_role("option", name="Operation: List phone numbers").click()
        page.get_by_role("button", name=NUMBERS).locator("visible=true").first.click()
        with page.expect_response(re.compile("/v1/phone-numbers")) as answered:
            page.get_by_role("button", name=re.compile("^Send")).locator("visible=true").first.click()
        assert answered.value.status == 200
        assert [found["number"] for found in answered.value.json()["data"]] == [number]
        expect(page.get_by_role("link", name="200 OK").first).to_be_visible()
        # A key is gone with the page.
        assert key not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
        assert page.context.cookies() == []


@SIZES
def test_the_streams_stand_beside_the_api(
    browsing: Browsing, server: ServerProcess, size: tuple[int, int]
) -> None:
    with reference(browsing, server, size, "#streams") as page:
        expect(page.get_by_role("heading", name="Trunkline streams")).to_be_visible()
        expect(page.get_by_role("heading", name="stream_protocol twilio")).to_be_attached()


# Rules that the library itself violates where it shows channels of AsyncAPI: it begins their headings a level
# too deep, and repeats the name of a region in it.
_OF_THE_LIBRARY = ("heading-order", "landmark-unique")


@pytest.mark.parametrize(
    ("source", "heading", "allowed"),
    [("", "Trunkline", ()), ("#streams", "Trunkline streams", _OF_THE_LIBRARY)],
    ids=["api", "streams"],
)
def test_the_page_can_be_used_by_anybody(
    browsing: Browsing, server: ServerProcess, source: str, heading: str, allowed: Sequence[str]
) -> None:
    """Both documents, with what is ours around the library and what is the library's own."""
    with reference(browsing, server, DESKTOP, source) as page:
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        found = violations_in_all_looks(page)
        assert [line for line in found if line.split(": ")[1] not in allowed] == []
        # Without a mouse: each of the first stops is another one, and shows that it has the focus.
        stops: list[str] = []
        for _ in range(12):
            page.keyboard.press("Tab")
            stops.append(page.evaluate("document.activeElement.outerHTML"))
            assert page.evaluate(SHOWS_FOCUS), stops[-1][:200]
        assert len(set(stops)) == 12
