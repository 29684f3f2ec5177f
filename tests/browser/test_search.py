"""The search of calls in a real browser: by date and time, in the zone of the browser."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.acceptance.stage import Customer
from tests.browser.test_calls import BUSY, place, until
from tests.support.browser import Browsing, violations
from tests.support.server_process import ServerProcess


def move(server: ServerProcess, call_sid: str, at: datetime) -> None:
    """Move the beginning of a call to another time."""
    with sqlite3.connect(server.data_dir / "trunkline.db") as database:
        micros = int(at.timestamp() * 1_000_000)
        database.execute("UPDATE calls SET created_at = ? WHERE call_sid = ?", (micros, call_sid))
    database.close()


def search(page: Page, start: str, end: str) -> dict[str, list[str]]:
    """Search from a time to another, and return what was asked of the server."""
    page.get_by_label("From", exact=True).fill(start)
    page.get_by_label("To", exact=True).fill(end)
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/console/calls?*")
    return parse_qs(urlsplit(page.url).query)


def test_calls_are_searched_by_date_and_time(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    sids = [place(customer, BUSY, verbs=[{"verb": "hangup"}]) for _ in range(2)]
    for call_sid, hour in zip(sids, (4, 5), strict=True):
        until(customer, call_sid, "busy")
        move(server, call_sid, datetime(2026, 3, 1, hour, 30, 40, tzinfo=UTC))
    rows = "tbody tr"
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls")
        expect(page.locator(rows)).to_have_count(2)
        # The browser is in India: 10:00 is 4:30 in UTC.
        asked = search(page, "2026-03-01T10:00", "2026-03-01T10:00")
        assert (asked["start"], asked["end"]) == (["2026-03-01T04:30Z"], ["2026-03-01T04:30Z"])
        expect(page.locator(rows)).to_have_count(1)
        expect(page.locator(f'a[href="/console/calls/{sids[0]}"]')).to_be_visible()
        # The fields have the time that was searched, whose end is that of the minute.
        assert page.get_by_label("From", exact=True).input_value() == "2026-03-01T10:00"
        assert page.get_by_label("To", exact=True).input_value() == "2026-03-01T10:00:59"
        assert violations(page) == []
        search(page, "2026-03-01T10:00:41", "2026-03-01T11:00:40")
        expect(page.locator(f'a[href="/console/calls/{sids[1]}"]')).to_be_visible()
        expect(page.locator(rows)).to_have_count(1)
        # The time of a row leads to the calls of its day, and of its hour.
        page.locator(rows).get_by_role("link", name="hour").click()
        expect(page.locator(rows)).to_have_count(1)
        page.locator(rows).get_by_role("link", name="day").click()
        expect(page.locator(rows)).to_have_count(2)


def test_a_time_that_is_none_is_said(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    customer.lease()
    with browsing.person(errors=["400"]) as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/calls?start=2026-03-02T10:00Z&end=2026-03-01T10:00Z")
        expect(page.locator("#h-end")).to_contain_text("must not be before start")
        assert violations(page) == []
