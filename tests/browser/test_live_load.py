"""The list of calls that are up, in a real browser, while SIPp runs calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.sipp.exchange import Exchange
from tests.support.browser import Browsing, violations
from tests.support.needs import needs_sipp
from tests.support.sipp_run import Load

pytestmark = [
    pytest.mark.long("calls of ten seconds"),
    needs_sipp,
]

CALLS = 12


def test_live_follows_calls_that_come_and_go_by_themselves(browsing: Browsing, tmp_path: Path) -> None:
    with Exchange(tmp_path) as exchange, browsing.person() as page:
        browsing.sign_in(page, exchange.server.url, exchange.account.api_key)
        page.goto(f"{exchange.server.url}/console/live")
        expect(page.locator("[data-live]")).to_have_text("Live")
        expect(page.locator("#live-none")).to_be_visible()
        callee = exchange.callee(load=Load(CALLS))
        caller = exchange.caller("uac.xml", load=Load(CALLS, rate=6.0, pause_ms=10_000))
        up = page.locator("#live-rows tr", has_text="in progress")
        expect(up).to_have_count(CALLS)
        expect(up.first.locator(".legs li")).to_have_count(2)
        assert violations(page) == []
        exchange.finish(caller, callee)
        expect(page.locator("#live-none")).to_be_visible()
        _, total = exchange.calls(status="completed")
        assert total == CALLS
