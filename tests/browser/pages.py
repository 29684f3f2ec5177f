"""Pages of the console, as its router has them, and an account that has one of everything to show on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from playwright.sync_api import Page, expect

from api.console.page import all_pages
from tests.acceptance.stage import Customer
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess, wait_until

__all__ = ["NO_PAGES", "addresses_of", "declared", "show"]

ECHO: Final = "+919800000001"
NO_PAGES: Final = {
    *("/console/calls/{sid}/timeline", "/console/calls/{sid}/call.json", "/console/calls/{sid}/sip.pcap"),
    *("/console/calls/{sid}/recording.wav", "/console/calls/{sid}/waveform"),
    *("/console/events", "/console/live/calls", "/console/server/metrics"),
}
"""Paths of answers to scripts, and of files."""
# What a page is to show before it is judged.
_SHOWN: Final = {
    "/console/calls/{sid}": "#ladder [role=button]",
    "/console/live": "#live-rows tr",
    "/console/server": "figure canvas",
}


def declared() -> set[str]:
    """Paths of all pages of the router."""
    return {page.path for module in all_pages() for page in module.declared if page.method == "GET"}


def show(page: Page, server: ServerProcess, path: str, address: str) -> None:
    """Open a page, and wait until it shows what its script adds; a page of an error is none."""
    response = page.goto(f"{server.url}{address}")
    assert response is not None and response.status == 200, path
    expect(page.locator(_SHOWN.get(path, "main")).first).to_be_visible()


def made(customer: Customer, key: str, path: str, body: Any, method: str = "POST") -> Any:
    """Data of a request that makes something."""
    reply = customer.server.request(method, path, key, body)
    assert reply.status < 300, (path, reply.body)
    return reply.body["data"] if "data" in reply.body else reply.body


def addresses_of(owner: Customer) -> Mapping[str, str]:
    """Make one of everything for an account; return the address of each page."""
    key = owner.key
    number, number_id = owner.lease({"target": "missed_call"})
    trunk = made(owner, key, "/v1/trunk-portal/carriers", {"name": "Airtel"})["carrier_sid"]
    gateways = f"/v1/trunk-portal/carriers/{trunk}/gateways"
    made(owner, key, gateways, {"host": "127.0.0.1", "port": free_port(), "send_options_ping": True})
    agent = made(owner, key, "/api/v1/agents", {"name": "Asha", "greeting": "Hello"})["id"]
    made(owner, key, "/v1/masking/numbers", {"number": owner.lease()[0]})
    parties = {"party_a": ECHO, "party_b": "+919800000002", "expires_in_sec": 600}
    made(owner, key, "/v1/masking/sessions", parties)
    made(owner, key, "/v1/voice-otp/send", {"to": ECHO})
    template = {"name": "order_done", "category": "UTILITY", "body": "Order {{1}} is done."}
    made(owner, key, "/api/v1/templates", template)
    message = made(
        owner, key, "/api/v1/messages", {"to": "+919800100000", "type": "text", "text": "It is here."}
    )
    hook = {"url": f"http://127.0.0.1:{free_port()}/", "event_types": ["call.missed"]}
    hook_id = made(owner, key, "/v1/webhooks/subscriptions", hook)["id"]
    made(owner, key, "/v1/sandbox/inbound", {"to": number, "hangup_after_ringing_seconds": 0.5})
    log = f"/v1/webhooks/subscriptions/{hook_id}/deliveries"
    assert wait_until(lambda: any(it["attempts"] for it in owner.server.request("GET", log, key).data), 30)
    delivery = owner.server.request("GET", log, key).data[0]
    talking = {"from": owner.lease()[0], "to": ECHO, "verbs": [{"verb": "pause", "length": 600}]}
    call_sid = made(owner, key, "/v1/calls", {**talking, "record": True})["call_sid"]
    call = f"/v1/calls/{call_sid}"
    assert wait_until(lambda: owner.server.request("GET", call, key).data["answered_at"], 30)
    values = {
        "/console/agents/{id}": f"/console/agents/{agent}",
        "/console/calls/{sid}": f"/console/calls/{call_sid}",
        "/console/messages/{id}": f"/console/messages/{message['messageId']}",
        "/console/numbers/{id}": f"/console/numbers/{number_id}",
        "/console/server/log": f"/console/server/log?call={call_sid}",
        "/console/trunks/{id}": f"/console/trunks/{trunk}",
        "/console/webhooks/{product}/{id}": f"/console/webhooks/calls/{hook_id}",
        "/console/webhooks/{product}/{id}/deliveries/{delivery}": (
            f"/console/webhooks/calls/{hook_id}/deliveries/{delivery['id']}"
        ),
    }
    found = {path: path for path in declared() - NO_PAGES - values.keys()}
    assert not [path for path in found if "{" in path], "a page without an address here"
    return {**found, **values}
