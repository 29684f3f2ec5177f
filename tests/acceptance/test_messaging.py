"""Messaging: messages, templates, campaigns, contacts and contact lists (messaging specification)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.resources import (
    CAMPAIGN,
    CONTACT,
    CONTACT_LIST,
    PAGINATION,
    SENT_MESSAGE,
    TEMPLATE,
)
from tests.acceptance.shapes import assert_fits, assert_messaging_error
from tests.acceptance.stage import Customer, NewCustomer
from tests.support.server_process import ServerProcess

PERSON = "+919800100000"
NOT_ON_NETWORK = "+919800100004"


@pytest.fixture
async def chat(session: aiohttp.ClientSession, server: ServerProcess, customer: Customer) -> Api:
    """The API for a key of messaging."""
    return Api(session, server.url, customer.key_of("messaging"))


@pytest.fixture
async def clean_chat(chat: Api, new_customer: NewCustomer) -> Api:
    """The API for a key of messaging of an account without any records."""
    return chat.with_key(new_customer().key_of("messaging"))


def message(kind: str, **part: Any) -> dict[str, Any]:
    """A message to somebody who is on the network."""
    return {"to": PERSON, "type": kind, **part}


async def template(chat: Api, name: str, body: str = "Hello {{1}}, order {{2}} is ready.") -> dict[str, Any]:
    """A new template, once it is approved."""
    made = (await chat.post("/api/v1/templates", {"name": name, "body": body})).expect(201).data
    path = f"/api/v1/templates/{made['id']}"
    found: dict[str, Any] = await chat.until(path, lambda now: now["status"] == "APPROVED")
    return found


# Messages


@pytest.mark.parametrize(
    "body",
    [
        message("text", text="Your parcel is here."),
        message("media", media={"type": "image", "url": "https://shop.example.com/a.png", "caption": "A"}),
        message(
            "media",
            media={"type": "document", "url": "https://shop.example.com/a.pdf", "filename": "a.pdf"},
        ),
        message("media", media={"type": "audio", "url": "https://shop.example.com/a.mp3", "caption": "A"}),
        message("buttons", interactive={"body": "Come?", "buttons": [{"id": "y", "title": "Yes"}]}),
        message(
            "list",
            interactive={
                **{"body": "Which?", "header": "Menu", "footer": "Shop"},
                "buttons": [{"id": str(number), "title": f"Row {number}"} for number in range(4)],
            },
        ),
    ],
    ids=["text", "image", "document", "audio", "buttons", "list"],
)
async def test_a_message_of_each_type_is_sent(chat: Api, body: dict[str, Any]) -> None:
    reply = (await chat.post("/api/v1/messages", body)).expect(200)
    assert_fits(reply.body, SENT_MESSAGE)
    assert (reply.body["to"], reply.body["type"]) == (PERSON, body["type"])
    shown = (await chat.get(f"/api/v1/messages/{reply.body['messageId']}")).expect(200).data
    assert shown["status"] in ("queued", "sent", "delivered", "read")


async def test_a_message_by_a_template(clean_chat: Api) -> None:
    await template(clean_chat, "order_ready")
    part = {"name": "order_ready", "bodyParameters": ["Asha", "A-1042"]}
    sent = (await clean_chat.post("/api/v1/messages", message("template", template=part))).expect(200)
    assert_fits(sent.body, {**SENT_MESSAGE, "type": "template"})
    for wrong, field in (
        ({**part, "name": "unknown"}, "template.name"),
        ({**part, "bodyParameters": ["Asha"]}, "template.bodyParameters"),
    ):
        reply = await clean_chat.post("/api/v1/messages", message("template", template=wrong))
        assert_messaging_error(reply, 400, "VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    "body",
    [
        message("media", media={"type": "image", "url": "http://example.com/a.png"}),
        message("media", media={"type": "video", "url": "https://example.com/x", "filename": "x.mp4"}),
    ],
    ids=["http", "filename"],
)
async def test_media_of_any_url_and_with_any_filename(chat: Api, body: dict[str, Any]) -> None:
    assert_fits((await chat.post("/api/v1/messages", body)).expect(200).body, SENT_MESSAGE)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ("to", "type")),
        ({"to": PERSON, "type": "text"}, ("text",)),
        ({"to": "seven", "type": "text", "text": "Hello"}, ("to",)),
        ({"to": PERSON, "type": "song", "text": "Hello"}, ("type",)),
        (
            {"to": PERSON, "type": "media", "media": {"type": "smell", "url": "https://a.example"}},
            ("media.type",),
        ),
        ({"type": "text"}, ("to", "text")),
        ({"to": "123", "type": "text", "text": "a", "foo": 1}, ("to", "foo")),
        ({"to": PERSON, "type": "text", "text": "  "}, ("text",)),
    ],
    ids=["empty", "no-text", "no-number", "no-type", "no-media", "nothing", "unknown", "spaces"],
)
async def test_a_wrong_message_is_refused(chat: Api, body: dict[str, Any], fields: tuple[str, ...]) -> None:
    reply = await chat.post("/api/v1/messages", body)
    assert_messaging_error(reply, 400, "VALIDATION_ERROR", *fields)


async def test_a_message_that_the_network_refuses(chat: Api) -> None:
    body = {"to": NOT_ON_NETWORK, "type": "text", "text": "Hello"}
    assert_messaging_error(await chat.post("/api/v1/messages", body), 502, "SEND_FAILED")


ROWS = [
    *(("POST", "/api/v1/messages", "messages.send"), ("POST", "/api/v1/send", "campaigns.create")),
    *(("GET", "/api/v1/1/status", "campaigns.read"), ("GET", "/api/v1/templates", "templates.read")),
    *(("POST", "/api/v1/templates", "templates.write"), ("GET", "/api/v1/templates/1", "templates.read")),
    *(("DELETE", "/api/v1/templates/1", "templates.write"),),
    *(("POST", "/api/v1/templates/1/sync", "templates.read"), ("GET", "/api/v1/contacts", "contacts.read")),
    *(("POST", "/api/v1/contacts", "contacts.write"), ("GET", "/api/v1/contacts/1", "contacts.read")),
    *(("PATCH", "/api/v1/contacts/1", "contacts.write"), ("DELETE", "/api/v1/contacts/1", "contacts.write")),
    *(("GET", "/api/v1/contact-lists", "contacts.read"), ("POST", "/api/v1/contact-lists", "contacts.write")),
    *(("GET", "/api/v1/contact-lists/1", "contacts.read"),),
    *(("DELETE", "/api/v1/contact-lists/1", "contacts.write"),),
    *(("POST", "/api/v1/contact-lists/1/contacts", "contacts.write"),),
]


async def test_every_row_needs_a_key_with_its_scope(chat: Api, new_customer: NewCustomer) -> None:
    customer = new_customer()
    scopes = sorted({scope for _, _, scope in ROWS})
    for method, path, scope in ROWS:
        body: dict[str, Any] | None = None if method in ("GET", "DELETE") else {}
        for key in (None, "vm_unknown"):
            reply = await chat.with_key(key).request(method, path, body)
            assert_messaging_error(reply, 401, "UNAUTHORIZED")
        # One key is enough for a scope that it lacks.
        other = scopes[0] if scope != scopes[0] else scopes[1]
        without = chat.with_key(customer.key_of("messaging", other))
        assert_messaging_error(await without.request(method, path, body), 403, "FORBIDDEN")
        allowed = await chat.with_key(customer.key_of("messaging", scope)).request(method, path, body)
        assert allowed.status in (200, 400, 404), (method, path, allowed.content)


async def test_a_key_is_taken_in_either_header(chat: Api, customer: Customer) -> None:
    key = customer.key_of("messaging")
    nobody = chat.with_key(None)
    (await nobody.request("GET", "/api/v1/contacts", headers={"X-API-Key": key})).expect(200)
    (await chat.get("/api/v1/contacts")).expect(200)
    both = {"X-API-Key": "vm_other", "Authorization": f"Bearer {key}"}
    (await nobody.request("GET", "/api/v1/contacts", headers=both)).expect(401)


async def test_the_same_key_is_taken_in_both_headers(chat: Api, customer: Customer) -> None:
    headers = {"X-API-Key": customer.key_of("messaging")}
    (await chat.request("GET", "/api/v1/contacts", headers=headers)).expect(200)


# Templates


async def test_a_template_is_submitted_approved_and_deleted(clean_chat: Api) -> None:
    body = {"name": "order_update", "body": "Hello {{1}}, your order {{2}} is on its way."}
    reply = (await clean_chat.post("/api/v1/templates", body)).expect(201)
    assert_fits(reply.body, {"success": True, "data": TEMPLATE})
    made = reply.data
    assert (made["category"], made["language"], made["status"]) == ("UTILITY", "en_US", "PENDING")
    path = f"/api/v1/templates/{made['id']}"
    assert (await clean_chat.get("/api/v1/templates")).expect(200).data == []
    approved = await clean_chat.until(path, lambda now: now["status"] == "APPROVED")
    assert_fits(approved, {**TEMPLATE, **body})
    listed = (await clean_chat.get("/api/v1/templates")).expect(200)
    assert_fits(listed.body, {"success": True, "data": [TEMPLATE]})
    assert [found["id"] for found in listed.data] == [made["id"]]
    synced = (await clean_chat.post(f"{path}/sync")).expect(200)
    assert_fits(synced.body, {"success": True, "data": {**TEMPLATE, "id": made["id"]}})
    deleted = (await clean_chat.delete(path)).expect(200)
    assert_fits(deleted.body, {"success": True})
    assert (await clean_chat.get("/api/v1/templates")).expect(200).data == []
    for method, gone in (("GET", path), ("DELETE", path), ("POST", f"{path}/sync")):
        assert_messaging_error(await clean_chat.request(method, gone), 404, "NOT_FOUND")


async def test_templates_that_cannot_be_made(clean_chat: Api) -> None:
    path = "/api/v1/templates"
    wrong = {"name": "Order Update", "body": "Hello {{2}}"}
    assert_messaging_error(await clean_chat.post(path, wrong), 400, "VALIDATION_ERROR", *wrong)
    wrong = {"name": "order_update", "body": "Hello", "category": "PRANK"}
    assert_messaging_error(await clean_chat.post(path, wrong), 400, "VALIDATION_ERROR", "category")
    assert_messaging_error(await clean_chat.post(path, {}), 400, "VALIDATION_ERROR", "name", "body")
    refused = {"name": "refused_at_once", "body": "Hello"}
    assert_messaging_error(await clean_chat.post(path, refused), 400, "PROVIDER_REJECTED")
    (await clean_chat.patch("/api/v1/channel", {"isConnected": False})).expect(200)
    unsent = await clean_chat.post(path, {"name": "hello", "body": "Hello"})
    assert_messaging_error(unsent, 400, "CHANNEL_NOT_CONFIGURED")


async def test_a_template_of_a_name_that_exists_is_refused_with_400(clean_chat: Api) -> None:
    body = {"name": "twice", "body": "Hello"}
    (await clean_chat.post("/api/v1/templates", body)).expect(201)
    error = assert_messaging_error(await clean_chat.post("/api/v1/templates", body), 400)
    assert error["code"] != "VALIDATION_ERROR"


async def test_a_template_that_a_campaign_waits_with_is_kept(clean_chat: Api) -> None:
    made = await template(clean_chat, "kept", "Hello")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    (await campaign(clean_chat, "kept", scheduledFor=tomorrow, sendImmediately=False)).expect(201)
    assert_messaging_error(await clean_chat.delete(f"/api/v1/templates/{made['id']}"), 409, "CONFLICT")


# Campaigns


async def campaign(chat: Api, name: str, **fields: Any) -> Any:
    """Send a campaign by a template."""
    body = {"templateName": name, "campaignName": "Monday", "phoneNumbers": [PERSON], **fields}
    return await chat.post("/api/v1/send", body)


def left(total: int) -> Callable[[Any], bool]:
    """Say of a campaign that this many messages have left."""
    return lambda now: sum(now["counts"][name] for name in ("sent", "delivered", "read", "failed")) == total


async def test_a_campaign_reaches_its_recipients(clean_chat: Api) -> None:
    await template(clean_chat, "order_update")
    numbers = ["+919800200011", "+919800200012", "+919800100003"]
    variables = {"1": "Asha", "2": "A-1042"}
    reply = await campaign(clean_chat, "order_update", phoneNumbers=numbers, variables=variables)
    reply.expect(201)
    assert_fits(reply.body, {"success": True, "data": CAMPAIGN})
    assert (reply.data["total"], reply.data["status"]) == (3, "running")
    path = f"/api/v1/{reply.data['campaignId']}/status"
    found = await clean_chat.until(path, left(3))
    assert_fits(found, CAMPAIGN)
    assert found["campaignName"] == "Monday" and found["templateName"] == "order_update"


async def test_campaigns_that_cannot_be_sent(clean_chat: Api) -> None:
    made = await template(clean_chat, "hello", "Hello {{1}}")
    unknown = await campaign(clean_chat, "unknown")
    assert_messaging_error(unknown, 404, "NOT_FOUND")
    pending = {"name": "pending_forever", "body": "Hello"}
    (await clean_chat.post("/api/v1/templates", pending)).expect(201)
    assert_messaging_error(await campaign(clean_chat, "pending_forever"), 404, "NOT_FOUND")
    empty = await clean_chat.post("/api/v1/send", {})
    assert_messaging_error(empty, 400, "VALIDATION_ERROR", "templateName", "campaignName", "phoneNumbers")
    many = [f"+9198002{number:05}" for number in range(1001)]
    wrong: list[dict[str, Any]] = [
        {"phoneNumbers": many},
        {"phoneNumbers": []},
        {"phoneNumbers": ["seven"]},
        {"variables": {}},
        {"variables": {"1": 7}},
        {"scheduledFor": "tomorrow"},
    ]
    for fields in wrong:
        reply = await campaign(clean_chat, "hello", **{"variables": {"1": "Asha"}, **fields})
        error = assert_messaging_error(reply, 400, "VALIDATION_ERROR")
        assert [found["field"].partition(".")[0].partition("[")[0] for found in error["details"]["errors"]]
    thousand = await campaign(clean_chat, "hello", phoneNumbers=many[:1000], variables={"1": "Asha"})
    assert thousand.expect(201).data["total"] == 1000
    assert made["id"]


async def test_a_refused_campaign_is_told_all_that_is_wrong(clean_chat: Api) -> None:
    await template(clean_chat, "hello", "Hello {{1}}")
    wrong = {"phoneNumbers": ["12"], "scheduledFor": "2020-01-01T00:00:00Z", "variables": {"2": "x"}}
    reply = await campaign(clean_chat, "hello", **wrong)
    fields = ("phoneNumbers", "scheduledFor", "variables.1", "variables.2")
    assert_messaging_error(reply, 400, "VALIDATION_ERROR", *fields)
    body = {"templateName": "hello", **wrong, "variables": {"1": " "}}
    reply = await clean_chat.post("/api/v1/send", body)
    fields = ("campaignName", "phoneNumbers", "scheduledFor", "variables.1")
    assert_messaging_error(reply, 400, "VALIDATION_ERROR", *fields)


async def test_null_is_the_same_as_leaving_a_field_out(clean_chat: Api) -> None:
    body = {"name": "hello", "body": "Hello", "category": None, "language": None}
    made = (await clean_chat.post("/api/v1/templates", body)).expect(201).data
    assert (made["category"], made["language"]) == ("UTILITY", "en_US")
    await clean_chat.until(f"/api/v1/templates/{made['id']}", lambda now: now["status"] == "APPROVED")
    optional = {"variables": None, "sendImmediately": None, "scheduledFor": None, "language": None}
    sent = (await campaign(clean_chat, "hello", **optional)).expect(201).data
    assert sent["status"] == "running"
    part = {"name": "hello", "language": None, "bodyParameters": None}
    (await clean_chat.post("/api/v1/messages", message("template", template=part, text=None))).expect(200)


async def test_single_messages_go_before_a_campaign(clean_chat: Api) -> None:
    await template(clean_chat, "hello", "Hello")
    (await clean_chat.request("PATCH", "/api/v1/channel", {"messagesPerSecond": 5})).expect(200)
    many = [f"+9198002{number:05}" for number in range(40)]
    sent = (await campaign(clean_chat, "hello", phoneNumbers=many)).expect(201).data
    singles = [
        (await clean_chat.post("/api/v1/messages", message("text", text="Hello"))).expect(200).body
        for _ in range(12)
    ]
    found = [
        await clean_chat.until(f"/api/v1/messages/{single['messageId']}", lambda now: now["sentAt"])
        for single in singles
    ]
    last = max(found, key=lambda single: single["sentAt"])
    query = {"campaignId": sent["campaignId"], "pageSize": 100}
    of_campaign = (await clean_chat.get("/api/v1/messages", **query)).expect(200).data
    between = [
        one for one in of_campaign if one["sentAt"] and last["createdAt"] < one["sentAt"] < last["sentAt"]
    ]
    # Those that were on their way already.
    assert len(between) <= 10


async def test_the_status_of_an_unknown_campaign(chat: Api, new_customer: NewCustomer) -> None:
    assert_messaging_error(await chat.get("/api/v1/999999/status"), 404, "NOT_FOUND")


async def test_a_campaign_that_is_not_to_be_sent_yet_is_a_draft(clean_chat: Api) -> None:
    await template(clean_chat, "hello", "Hello")
    draft = (await campaign(clean_chat, "hello", sendImmediately=False)).expect(201).data
    assert_fits(draft, {**CAMPAIGN, "status": "draft"})
    path = f"/api/v1/{draft['campaignId']}/status"
    waiting = (await clean_chat.get(path)).expect(200).data
    assert (waiting["status"], waiting["counts"]["queued"]) == ("draft", 1)
    (await clean_chat.post(f"/api/v1/campaigns/{draft['campaignId']}/send")).expect(200)
    await clean_chat.until(path, left(1))


async def test_a_time_goes_before_sending_at_once(clean_chat: Api) -> None:
    await template(clean_chat, "hello", "Hello")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    reply = await campaign(clean_chat, "hello", sendImmediately=True, scheduledFor=tomorrow)
    assert reply.expect(201).data["status"] == "scheduled"


# Contacts and lists


async def test_a_contact_is_created_shown_changed_and_deleted(clean_chat: Api) -> None:
    body = {
        "phoneNumber": "+919876543210",
        "firstName": "Asha",
        "lastName": "Rao",
        "email": "asha@example.com",
        "customFields": {"city": "Pune", "orders": 3},
        "notes": "Prefers mornings.",
    }
    reply = (await clean_chat.post("/api/v1/contacts", body)).expect(201)
    assert_fits(reply.body, {"success": True, "data": CONTACT})
    assert {name: reply.data[name] for name in body} == body
    assert reply.data["optedOut"] is False
    path = f"/api/v1/contacts/{reply.data['id']}"
    shown = (await clean_chat.get(path)).expect(200)
    assert_fits(shown.body, {"success": True, "data": CONTACT})
    assert shown.data == reply.data
    changed = (await clean_chat.patch(path, {"optedOut": True, "notes": None})).expect(200)
    assert_fits(changed.body, {"success": True, "data": CONTACT})
    assert (changed.data["optedOut"], changed.data["notes"]) == (True, None)
    blocked = {"to": body["phoneNumber"], "type": "text", "text": "Hello"}
    reply = await clean_chat.post("/api/v1/messages", blocked)
    assert_messaging_error(reply, 400, "VALIDATION_ERROR", "to")
    assert_fits((await clean_chat.delete(path)).expect(200).body, {"success": True})
    for method, change in (("GET", None), ("PATCH", {"notes": "x"}), ("DELETE", None)):
        assert_messaging_error(await clean_chat.request(method, path, change), 404, "NOT_FOUND")


async def test_contacts_are_found_in_pages(clean_chat: Api) -> None:
    for number, name in enumerate(("Asha", "Ravi", "Meera")):
        body = {"phoneNumber": f"+91987654321{number}", "firstName": name}
        (await clean_chat.post("/api/v1/contacts", body)).expect(201)
    listed = (await clean_chat.get("/api/v1/contacts")).expect(200)
    assert_fits(listed.body, {"success": True, "data": [CONTACT], "pagination": PAGINATION})
    assert_fits(listed.body["pagination"], {"page": 1, "pageSize": 50, "total": 3, "totalPages": 1})
    assert {contact["firstName"] for contact in listed.data} == {"Asha", "Ravi", "Meera"}
    found = (await clean_chat.get("/api/v1/contacts", search="rav")).expect(200).data
    assert [contact["firstName"] for contact in found] == ["Ravi"]
    page = (await clean_chat.get("/api/v1/contacts", page=2, pageSize=2)).expect(200)
    assert len(page.data) == 1
    assert_fits(page.body["pagination"], {"page": 2, "pageSize": 2, "total": 3, "totalPages": 2})
    (await clean_chat.get("/api/v1/contacts", pageSize=100)).expect(200)
    for name, value in (("pageSize", "101"), ("pageSize", "0"), ("page", "0")):
        reply = await clean_chat.get("/api/v1/contacts", **{name: value})
        assert_messaging_error(reply, 400, "VALIDATION_ERROR", name)


async def test_wrong_contacts_are_refused(clean_chat: Api) -> None:
    path = "/api/v1/contacts"
    assert_messaging_error(await clean_chat.post(path, {}), 400, "VALIDATION_ERROR", "phoneNumber")
    wrong = {"phoneNumber": "seven", "email": "nobody", "firstName": 7, "optedOut": True}
    assert_messaging_error(await clean_chat.post(path, wrong), 400, "VALIDATION_ERROR", *wrong)
    made = (await clean_chat.post(path, {"phoneNumber": "+919876543210"})).expect(201).data
    reply = await clean_chat.patch(f"{path}/{made['id']}", {"phoneNumber": "+919876543211"})
    assert_messaging_error(reply, 400, "VALIDATION_ERROR", "phoneNumber")


async def test_a_contact_of_a_number_that_exists_is_refused_with_400(clean_chat: Api) -> None:
    body = {"phoneNumber": "+919876543210"}
    (await clean_chat.post("/api/v1/contacts", body)).expect(201)
    error = assert_messaging_error(await clean_chat.post("/api/v1/contacts", body), 400)
    assert error["code"] != "VALIDATION_ERROR"


async def test_custom_fields_are_any_object(clean_chat: Api) -> None:
    fields = {"tags": ["a", 1, None], "nested": {"a": {"b": [True]}}}
    body = {"phoneNumber": "+919876543210", "customFields": fields}
    made = (await clean_chat.post("/api/v1/contacts", body)).expect(201).data
    assert made["customFields"] == fields
    deep: dict[str, Any] = {"end": 1}
    for _ in range(9):
        deep = {"down": deep}
    for wrong in (deep, {"text": "x" * 17_000}, ["no object"]):
        reply = await clean_chat.patch(f"/api/v1/contacts/{made['id']}", {"customFields": wrong})
        error = assert_messaging_error(reply, 400, "VALIDATION_ERROR")
        assert error["details"]["errors"][0]["field"].startswith("customFields")


async def test_a_list_of_contacts(clean_chat: Api) -> None:
    body = {"name": "Diwali", "description": "Who asked for it."}
    reply = (await clean_chat.post("/api/v1/contact-lists", body)).expect(201)
    assert_fits(reply.body, {"success": True, "data": CONTACT_LIST})
    assert {name: reply.data[name] for name in body} == body
    path = f"/api/v1/contact-lists/{reply.data['id']}"
    contacts = await asyncio.gather(
        *(
            clean_chat.post("/api/v1/contacts", {"phoneNumber": f"+91987654321{number}"})
            for number in range(2)
        )
    )
    ids = [contact.expect(201).data["id"] for contact in contacts]
    added = (await clean_chat.post(f"{path}/contacts", {"contactIds": ids})).expect(200)
    assert_fits(added.body, {"success": True})
    shown = (await clean_chat.get(path)).expect(200)
    assert_fits(shown.body, {"success": True, "data": CONTACT_LIST})
    assert shown.data["contactCount"] == 2
    listed = (await clean_chat.get("/api/v1/contact-lists")).expect(200)
    assert_fits(listed.body, {"success": True, "data": [CONTACT_LIST]})
    assert [found["id"] for found in listed.data] == [reply.data["id"]]
    for wrong in ({}, {"contactIds": "all"}, {"contactIds": [999_999]}):
        assert_messaging_error(await clean_chat.post(f"{path}/contacts", wrong), 400, "VALIDATION_ERROR")
    assert_messaging_error(
        await clean_chat.post("/api/v1/contact-lists", {}), 400, "VALIDATION_ERROR", "name"
    )
    assert_fits((await clean_chat.delete(path)).expect(200).body, {"success": True})
    for method, gone, change in (
        *(("GET", path, None), ("DELETE", path, None)),
        ("POST", f"{path}/contacts", {"contactIds": ids}),
    ):
        assert_messaging_error(await clean_chat.request(method, gone, change), 404, "NOT_FOUND")
