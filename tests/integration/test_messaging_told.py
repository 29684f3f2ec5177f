"""
Messaging as a customer's server is told of it, over HTTP from end to end.

A template is approved, a campaign goes to recipients of every fate, somebody writes back and opts out: every
event arrives signed, once, and those of a message in its order, though the receiver refuses some at first.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from standardwebhooks import Webhook

from api.process.server import Server
from callcontrol.accounts.keys import SCOPES
from callcontrol.messaging.events import EVENTS
from tests.support.loopback_server import loopback_settings
from tests.support.waiting import until
from tests.support.webhook_stage import Received, Receiver

pytestmark = pytest.mark.asyncio(loop_scope="module")

_HOOK = "/events"
_SECRET_WORD = "Zanzibar"
_WRITER = "+919800177700"
# By the last two digits: read, delivered only, failed, receipts out of order, receipts twice.
_RECIPIENTS = [
    f"+91980017{hundred:02d}{end}" for hundred in range(4) for end in ("00", "01", "03", "09", "10")
]
_ENDS = {"00": "read", "01": "delivered", "03": "failed", "09": "read", "10": "read"}


class Office:
    """A customer with a messaging key and a server that events are sent to."""

    def __init__(self, server: Server, http: aiohttp.ClientSession, receiver: Receiver, key: str) -> None:
        self._server = server
        self._http = http
        self._key = key
        self.receiver = receiver
        self.secret = ""
        self.endpoint_id = 0

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self._http.request(
            method, self._server.url + path, json=body, headers={"X-API-Key": self._key}
        ) as answer:
            return answer.status, await answer.json()

    async def data(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self.ask(method, path, body)
        assert status < 300 and answer["success"] is True, answer
        return answer.get("data", answer)

    async def register(self) -> None:
        body = {"url": self.receiver.url(_HOOK), "events": list(EVENTS.names)}
        made = await self.data("POST", "/api/webhook-endpoints", body)
        self.endpoint_id, self.secret = made["id"], made["secret"]

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the accepted events of a kind, each verified as a library does it, in order of arrival."""
        found = []
        for got in self.receiver.requests:
            body = Webhook(self.secret).verify(got.body, got.headers)
            assert body["id"] == got.headers["webhook-id"] == got.headers["X-Service-Delivery"]
            if body["event"] in names and got.path == _HOOK:
                found.append(body)
        return found

    async def told(self, event: str, **data: Any) -> dict[str, Any]:
        """The data of an event that says so and so, once it has come."""

        def come() -> list[dict[str, Any]]:
            every = [body["data"] for body in self.events(event)]
            return [found for found in every if data.items() <= found.items()]

        await until(lambda: bool(come()))
        return come()[0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    server = Server(loopback_settings(tmp_path_factory.mktemp("messaging"), SANDBOX_CARRIER="0"))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def office(server: Server) -> AsyncIterator[Office]:
    """An account of its own for each try of a test, so that nothing of a former try is told."""
    receiver = Receiver()
    await receiver.start()
    try:
        account, _ = await server.storage.accounts.create("Shop")
        key = await server.storage.keys.create(account.account_sid, "messaging", SCOPES["messaging"])
        async with aiohttp.ClientSession() as http:
            made = Office(server, http, receiver, key)
            await made.register()
            yield made
    finally:
        await receiver.close()


async def test_a_campaign_is_told_from_its_template_to_its_end(office: Office) -> None:
    refused = _refuse_first_of(office.receiver, "message.received", "template.approved")
    # What is refused at first comes again after seconds, while all else goes on.
    wrote = await office.data("POST", "/api/v1/sandbox/inbound", {"from": _WRITER, "text": "Hello there"})
    template = await _approved(office)
    campaign_id = await _sent(office)
    over = await office.told("campaign.completed", campaignId=campaign_id)
    assert (over["campaignName"], over["templateName"]) == ("Spring", template["name"])
    assert over["status"] == "completed" and over["total"] == len(_RECIPIENTS) == sum(over["counts"].values())
    assert over["counts"]["failed"] == 4
    await until(lambda: _ends(office, campaign_id) == Counter(_ENDS[number[-2:]] for number in _RECIPIENTS))
    _check_order(office, campaign_id)
    shown = await office.data("GET", f"/api/v1/{campaign_id}/status")
    assert shown["status"] == "completed"
    assert {name: count for name, count in shown["counts"].items() if count} == _ends(office, campaign_id)
    received = await office.told("message.received", messageId=wrote["messageId"])
    assert (received["from"], received["text"]) == (_WRITER, "Hello there")
    await _check_log(office, refused)
    assert not any(_SECRET_WORD.encode() in got.body for got in office.receiver.requests)


async def test_a_template_that_is_rejected_says_why(office: Office) -> None:
    made = await office.data("POST", "/api/v1/templates", {"name": "reject_this", "body": "Buy now"})
    told = await office.told("template.rejected", templateId=made["id"])
    assert told["name"] == "reject_this" and told["rejectionReason"]
    shown = await office.data("GET", f"/api/v1/templates/{made['id']}")
    assert (shown["status"], shown["rejectionReason"]) == ("REJECTED", told["rejectionReason"])


async def test_who_opts_out_is_told_of_and_written_to_no_more(office: Office) -> None:
    leaver = "+919800177705"
    await office.data("POST", "/api/v1/sandbox/inbound", {"from": leaver, "text": "STOP"})
    assert (await office.told("message.received", **{"from": leaver}))["text"] == "STOP"
    status, answer = await office.ask(
        "POST", "/api/v1/messages", {"to": leaver, "type": "text", "text": "But wait"}
    )
    assert (status, answer["code"]) == (400, "VALIDATION_ERROR")
    assert [error["field"] for error in answer["details"]["errors"]] == ["to"]


async def test_a_message_that_the_network_refuses_is_told_as_failed(office: Office) -> None:
    number = "+919800177704"
    status, answer = await office.ask(
        "POST", "/api/v1/messages", {"to": number, "type": "text", "text": "Hello"}
    )
    assert (status, answer["success"], answer["code"]) == (502, False, "SEND_FAILED")
    told = await office.told("message.failed", to=number)
    assert told["status"] == "failed" and told["error"]["code"] and told["failedAt"]


async def test_what_a_paused_endpoint_has_missed_can_be_sent_again(office: Office) -> None:
    path = f"/api/webhook-endpoints/{office.endpoint_id}"
    office.receiver.answers[_HOOK] = lambda _: web.Response(status=410)
    message = await office.data(
        "POST", "/api/v1/messages", {"to": "+919800177702", "type": "text", "text": "Hello"}
    )
    await until(lambda: _is(office, path, isActive=False))
    del office.receiver.answers[_HOOK]
    await office.data("PATCH", path, {"isActive": True})
    assert (await office.data("POST", f"{path}/deliveries/replay", {"status": "failed"}))["replayed"] >= 1
    log = await office.data("GET", f"{path}/deliveries?limit=200")
    (shown,) = [item for item in log if item["messageId"] == message["messageId"]]
    assert shown["event"] == "message.sent"
    ids = office.receiver.ids(_HOOK)
    await until(lambda: office.receiver.ids(_HOOK).count(shown["id"]) == 2)
    assert shown["id"] in ids


async def _is(office: Office, path: str, **values: Any) -> bool:
    shown = await office.data("GET", path)
    return bool(values.items() <= shown.items())


def _refuse_first_of(receiver: Receiver, *names: str) -> list[str]:
    """Make the receiver refuse the first attempt of some events; returns the ids of those it refused."""
    refused: list[str] = []

    def answer(got: Received) -> web.Response:
        if json.loads(got.body)["event"] in names and got.delivery_id not in refused:
            refused.append(got.delivery_id)
            return web.Response(status=500)
        return web.Response(status=204)

    receiver.answers[_HOOK] = answer
    return refused


async def _approved(office: Office) -> dict[str, Any]:
    body = {"name": "spring_sale", "body": "Hello {{1}}, spring is here."}
    made: dict[str, Any] = await office.data("POST", "/api/v1/templates", body)
    assert made["status"] == "PENDING"
    told = await office.told("template.approved", templateId=made["id"])
    assert (told["name"], told["language"], told["status"]) == ("spring_sale", "en_US", "APPROVED")
    return made


async def _sent(office: Office) -> int:
    body = {
        "templateName": "spring_sale",
        "campaignName": "Spring",
        "phoneNumbers": _RECIPIENTS,
        "variables": {"1": _SECRET_WORD},
    }
    return int((await office.data("POST", "/api/v1/send", body))["campaignId"])


def _of_campaign(office: Office, campaign_id: int) -> dict[str, list[dict[str, Any]]]:
    """Return the events of each message of a campaign, in order of arrival."""
    events = office.events("message.sent", "message.delivered", "message.read", "message.failed")
    found: dict[str, list[dict[str, Any]]] = {}
    for body in events:
        if body["data"]["campaignId"] == campaign_id:
            found.setdefault(body["data"]["messageId"], []).append(body["data"])
    return found


def _ends(office: Office, campaign_id: int) -> Counter[str]:
    return Counter(told[-1]["status"] for told in _of_campaign(office, campaign_id).values())


def _check_order(office: Office, campaign_id: int) -> None:
    """Each recipient has one message, and its states came once and in order."""
    told = _of_campaign(office, campaign_id)
    assert sorted(states[0]["to"] for states in told.values()) == sorted(_RECIPIENTS)
    courses = {
        "read": ["sent", "delivered", "read"],
        "delivered": ["sent", "delivered"],
        "failed": ["sent", "failed"],
    }
    for states in told.values():
        wanted = courses[_ENDS[states[0]["to"][-2:]]]
        assert [state["status"] for state in states] == wanted
        assert all(earlier["to"] == later["to"] for earlier, later in itertools.pairwise(states))


async def _check_log(office: Office, refused: list[str]) -> None:
    """All was delivered; what was refused at first came a second time under its id, and nothing else did."""
    path = f"/api/webhook-endpoints/{office.endpoint_id}/deliveries?limit=200"

    async def settled() -> bool:
        log = await office.data("GET", path)
        return all(item["status"] == "delivered" for item in log)

    await until(settled)
    log = await office.data("GET", path)
    assert {item["attempts"] for item in log if item["id"] in refused} == {2} and len(refused) >= 2
    assert {item["attempts"] for item in log if item["id"] not in refused} == {1}
    assert Counter(office.receiver.ids(_HOOK)) == Counter({item["id"]: item["attempts"] for item in log})
