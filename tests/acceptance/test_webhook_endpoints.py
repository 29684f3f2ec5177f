"""Webhook endpoints of messaging, at /api/webhook-endpoints (messaging specification)."""

from __future__ import annotations

import aiohttp
import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.resources import ENDPOINT
from tests.acceptance.shapes import assert_fits, assert_messaging_error, moment
from tests.acceptance.stage import Customer, NewCustomer
from tests.support.server_process import ServerProcess

PATH = "/api/webhook-endpoints"
SCOPES = ("webhooks.read", "webhooks.write", "messages.send", "templates.write")


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer who gets events of one test alone."""
    return new_customer()


@pytest.fixture
async def chat(session: aiohttp.ClientSession, server: ServerProcess, customer: Customer) -> Api:
    """The API for a key of messaging with the scopes that must be named."""
    return Api(session, server.url, customer.key_of("messaging", *SCOPES))


async def test_an_endpoint_is_registered_listed_changed_and_deleted(chat: Api, receiver: Receiver) -> None:
    body = {"url": receiver.url("/chat"), "events": ["message.sent", "message.failed"], "description": "All"}
    reply = (await chat.post(PATH, body)).expect(201)
    assert_fits(reply.body, {"success": True, "data": {**ENDPOINT, "secret": str}})
    assert {name: reply.data[name] for name in body} == body
    path = f"{PATH}/{reply.data['id']}"
    for shown in ((await chat.get(path)).expect(200).data, (await chat.get(PATH)).expect(200).data[0]):
        assert_fits(shown, {**ENDPOINT, "id": reply.data["id"], "isActive": True})
        assert "secret" not in shown
    changed = (await chat.patch(path, {"events": ["message.read"], "isActive": False})).expect(200)
    assert_fits(changed.body, {"success": True, "data": {**ENDPOINT, "isActive": False}})
    assert changed.data["events"] == ["message.read"]
    assert_fits((await chat.delete(path)).expect(200).body, {"success": True})
    for method, change in (("GET", None), ("PATCH", {"isActive": True}), ("DELETE", None)):
        assert_messaging_error(await chat.request(method, path, change), 404, "NOT_FOUND")


async def test_messages_and_templates_are_told_of(chat: Api, receiver: Receiver) -> None:
    events = ["message.sent", "message.delivered", "message.read", "message.received", "template.approved"]
    made = (await chat.post(PATH, {"url": receiver.url("/chat"), "events": events})).expect(201).data
    to, text = "+919800100000", "Your parcel is here."
    sent = (await chat.post("/api/v1/messages", {"to": to, "type": "text", "text": text})).expect(200).body
    (await chat.post("/api/v1/sandbox/inbound", {"from": to, "text": "Which floor?"})).expect(201)
    (await chat.post("/api/v1/templates", {"name": "hello", "body": "Hello"})).expect(201)
    for name in events:
        received = await receiver.event(name, "/chat")
        assert_fits(received.json, {"id": str, "event": name, "createdAt": moment, "data": dict})
        assert_signed(received, made["secret"])
    of_message = [
        request.event
        for request in receiver.requests
        if request.json["data"].get("messageId") == sent["messageId"]
    ]
    assert of_message == ["message.sent", "message.delivered", "message.read"]
    inbound = await receiver.event("message.received")
    assert (inbound.json["data"]["from"], inbound.json["data"]["text"]) == (to, "Which floor?")


async def test_an_endpoint_is_tested(chat: Api, receiver: Receiver) -> None:
    made = (
        (await chat.post(PATH, {"url": receiver.url("/chat"), "events": ["message.sent"]})).expect(201).data
    )
    reply = (await chat.post(f"{PATH}/{made['id']}/test")).expect(200)
    assert_fits(reply.body, {"success": True, "data": {"success": True, "statusCode": 204}})
    assert_signed(await receiver.event("webhook.test", "/chat"), made["secret"])


async def test_wrong_endpoints_and_keys_are_refused(
    chat: Api, customer: Customer, receiver: Receiver
) -> None:
    assert_messaging_error(await chat.post(PATH, {}), 400, "VALIDATION_ERROR", "url", "events")
    wrong = {"url": receiver.url(), "events": ["message.eaten"]}
    assert_messaging_error(await chat.post(PATH, wrong), 400, "VALIDATION_ERROR")
    for key in (None, "vm_unknown"):
        assert_messaging_error(await chat.with_key(key).get(PATH), 401, "UNAUTHORIZED")
    # These scopes are never granted unless they are named.
    implicit = chat.with_key(customer.key_of("messaging"))
    assert_messaging_error(await implicit.get(PATH), 403, "FORBIDDEN")
    assert_messaging_error(await implicit.post(PATH, wrong), 403, "FORBIDDEN")


async def test_a_session_of_the_console_manages_endpoints(
    server: ServerProcess, customer: Customer, receiver: Receiver
) -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    ours = {"Sec-Fetch-Site": "same-origin"}
    async with aiohttp.ClientSession(cookie_jar=jar) as browser:
        chat = Api(browser, server.url)
        assert_messaging_error(await chat.get(PATH), 401, "UNAUTHORIZED")
        form = {"key": customer.key_of("messaging", *SCOPES)}
        async with browser.post(f"{server.url}/console/sign-in", data=form, headers=ours) as signed_in:
            assert signed_in.status == 200
        body = {"url": receiver.url("/chat"), "events": ["message.sent"]}
        assert_messaging_error(await chat.post(PATH, body), 403, "FORBIDDEN")
        made = (await chat.request("POST", PATH, body, headers=ours)).expect(201).data
        assert [shown["id"] for shown in (await chat.get(PATH)).expect(200).data] == [made["id"]]
        gone = await chat.request("DELETE", f"{PATH}/{made['id']}", headers=ours)
        assert_fits(gone.expect(200).body, {"success": True})
        # The key in a header goes before the session.
        assert_messaging_error(await chat.with_key("vm_unknown").get(PATH), 401, "UNAUTHORIZED")
