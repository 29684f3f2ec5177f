"""Page of a trunk with a carrier behind it: its registration, the round trip of OPTIONS, and a test call."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.stage import Customer
from tests.browser.far_ends import telephone
from tests.browser.test_calls import until
from tests.browser.test_resources import send
from tests.support.browser import Browsing, violations_in_all_looks
from tests.support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.long("a carrier that is asked and registered with, and a call of five seconds")

# Gateways are asked every 30 s.
PATIENCE_S = 90
TO = "+919876543210"


def cells(page: Page, table: str) -> Locator:
    """Cells of the one line of a table."""
    return page.get_by_role("region", name=table).locator("tbody td")


def test_a_trunk_registers_is_asked_by_options_and_is_called(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, _ = customer.lease()
    with telephone(server) as carrier, browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/trunks")
        account = {"User_name": "shop", "Password": "a long password"}
        send(page, "New trunk", Name="Airtel", Type="We register", **account)
        expect(page.get_by_role("status")).to_contain_text("The trunk is there")
        gateway = {"Host": carrier.host, "Port": str(carrier.port), "Ask_by_OPTIONS": "yes"}
        send(page, "Add a gateway", **gateway)
        expect(page.get_by_role("status")).to_contain_text("Done")

        def is_known() -> bool:
            page.reload()
            registered = cells(page, "Registrations").filter(has_text=re.compile("^registered$"))
            asked = cells(page, "Gateways").filter(has_text=re.compile(r"^\d+\.\d ms$"))
            return registered.count() == 1 and asked.count() == 1

        assert wait_until(is_known, PATIENCE_S), page.locator("main").inner_text()
        assert "sip:shop@" in carrier.registrations[0].get("to")
        registrar = cells(page, "Registrations")
        expect(registrar.first).to_contain_text(f"{carrier.host}:{carrier.port}")
        # When it expires, in the browser's zone.
        expect(registrar.locator("time[data-shown]")).to_have_count(1)
        expect(cells(page, "Gateways").locator("time[data-shown]")).to_have_count(1)
        assert violations_in_all_looks(page) == []
        send(page, "Test call", From=number, To=TO)
        page.wait_for_url(re.compile("/console/calls/[0-9a-f-]{36}$"))
        call = until(customer, page.url.rpartition("/")[2], "completed")
        assert [one.number for one in carrier.calls] == [TO]
        assert call["duration_sec"] >= 4, call
        # The page of the call shows the trunk, and how good it was.
        expect(page.locator("#facts")).to_contain_text("Airtel")
        expect(page.locator("main caption")).to_contain_text("Audio quality")


def test_a_trunk_that_is_refused_and_does_not_answer_says_so(
    browsing: Browsing, server: ServerProcess, customer: Customer, key: str
) -> None:
    number, _ = customer.lease()
    with telephone(server) as carrier:
        gone = {"Host": carrier.host, "Port": str(carrier.port), "Ask_by_OPTIONS": "yes"}
    with browsing.person() as page:
        browsing.sign_in(page, server.url, key)
        page.goto(f"{server.url}/console/trunks")
        send(page, "New trunk", Name="Gone", Type="By address")
        send(page, "Add a gateway", **gone)
        expect(page.get_by_role("status")).to_contain_text("Done")
        send(page, "Test call", From=number, To=TO)
        page.wait_for_url(re.compile("/console/calls/[0-9a-f-]{36}$"))
        until(customer, page.url.rpartition("/")[2], "failed")
        expect(page.locator("#status")).to_have_text("failed")
        page.goto(f"{server.url}/console/trunks")
        page.get_by_role("link", name="Gone").click()
        expect(cells(page, "Gateways").filter(has_text=re.compile(r"^\d+\.\d ms$"))).to_have_count(0)
