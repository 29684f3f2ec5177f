"""The endpoints of messages, before services in memory."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Services
from callcontrol.clock import timestamp
from callcontrol.messaging.messages import SendMessage
from callcontrol.messaging.store.messages import MessageFilter
from tests.support.api_facts import ACCOUNT, NOWHERE
from tests.support.api_stage import ApiStage, asked
from tests.support.campaigns import approve
from tests.unit.api.client import Client

PATH = "/api/v1/messages"
KEY = "vm_" + "c" * 43
HEADERS = {"Authorization": f"Bearer {KEY}"}
TO = "+919800100000"
BODY = {"to": TO, "type": "text", "text": "Your parcel is here."}


@pytest.fixture(autouse=True)
async def key(stage: ApiStage) -> None:
    await stage.add_key(KEY, "messaging", ["messages.send"])


async def test_a_message_is_answered_without_an_envelope(client: Client, services: Services) -> None:
    requests = asked(services.messages, "send")
    answer = await client.post(PATH, {**BODY, "to": "+91 98001 00000"}, headers=HEADERS)
    assert answer.status == 200
    kept = await services.messages.get(ACCOUNT, answer.json()["messageId"])
    assert answer.json() == {
        "success": True,
        "messageId": kept.message_id,
        "to": TO,
        "type": "text",
        "timestamp": timestamp(kept.created_at),
    }
    assert requests[0][1].text == kept.content["text"] == BODY["text"]


async def test_parts_reach_the_service_in_the_spelling_of_the_interface(
    client: Client, services: Services
) -> None:
    await approve(services.storage, ACCOUNT, "order_sent")
    requests = asked(services.messages, "send")
    parts: dict[str, Any] = {
        "template": {"name": "order_sent", "bodyParameters": ["Asha", "10 %"]},
        "media": {"type": "image", "url": "https://example.com/a.png", "caption": "Here"},
    }
    for kind, part in parts.items():
        answer = await client.post(PATH, {"to": TO, "type": kind, kind: part}, headers=HEADERS)
        assert answer.status == 200, answer.body
    (_, template), (_, media) = requests
    assert template.template == {
        "name": "order_sent",
        "language": "en_US",
        "bodyParameters": ["Asha", "10 %"],
    }
    assert media.media == parts["media"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://example.com/a.png", None),
        ("HTTP://example.com/a.png", None),
        ("http://10.0.0.1/a.png", "10.0.0.1 is a private or reserved address"),
        ("http://localhost/a.png", "localhost is this server itself"),
        ("ftp://example.com/a.png", "must be a URL that starts with https:// or http://"),
        ("http:example.com", "must be a URL that starts with https:// or http://"),
    ],
)
async def test_media_is_at_a_public_host(client: Client, url: str, problem: str | None) -> None:
    body = {"to": TO, "type": "media", "media": {"type": "image", "url": url}}
    answer = await client.post(PATH, body, headers=HEADERS)
    if problem is None:
        assert answer.status == 200, answer.body
        return
    (error,) = answer.json()["details"]["errors"]
    assert error["field"] == "media.url" and error["message"].startswith(problem)


async def test_every_wrong_field_is_named_in_its_own_spelling(client: Client) -> None:
    body = {
        "to": TO,
        "type": "template",
        "template": {"name": 7, "bodyParameters": [1], "body_parameters": []},
    }
    answer = await client.post(PATH, body, headers=HEADERS)
    assert (answer.status, answer.json()["success"], answer.json()["error"]) == (400, False, "Bad Request")
    named = {error["field"] for error in answer.json()["details"]["errors"]}
    assert named == {"template.name", "template.bodyParameters[0]", "template.body_parameters"}


async def test_what_the_network_refuses_is_a_bad_gateway(client: Client, services: Services) -> None:
    answer = await client.post(PATH, {**BODY, "to": "+919800100004"}, headers=HEADERS)
    body = answer.json()
    assert (answer.status, body["code"], body["error"]) == (502, "SEND_FAILED", "Bad Gateway")
    assert (await services.messages.get(ACCOUNT, body["details"]["messageId"])).status == "failed"


async def test_lists_are_narrowed_and_paged(client: Client, services: Services) -> None:
    sent = await services.messages.send(ACCOUNT, SendMessage(TO, "text", text="Hello"))
    lists = asked(services.messages, "list")
    query = "status=read&direction=outbound&to=%2B91+98001-00000&from=+918001100000"
    query += "&campaignId=7&page=2&pageSize=5"
    answer = await client.get(f"{PATH}?{query}", headers=HEADERS)
    assert answer.status == 200, answer.body
    assert lists == [(ACCOUNT, MessageFilter("read", "outbound", TO, "+918001100000", 7), 2, 5)]
    assert answer.data == []
    answer = await client.get(f"{PATH}?to=%2B91+98001-00000&page=1&pageSize=5", headers=HEADERS)
    assert answer.json()["pagination"] == {"page": 1, "pageSize": 5, "total": 1, "totalPages": 1}
    assert (answer.data[0]["messageId"], answer.data[0]["text"]) == (sent.message_id, "Hello")


async def test_one_message_is_shown_with_every_part(client: Client, services: Services) -> None:
    sent = await services.messages.send(ACCOUNT, SendMessage(TO, "text", text="Hello"))
    answer = await client.get(f"{PATH}/{sent.message_id}", headers=HEADERS)
    assert (answer.status, answer.data["template"], answer.data["error"]) == (200, None, None)
    assert (await client.get(f"{PATH}/{NOWHERE}", headers=HEADERS)).status == 404
    assert (await client.get(f"{PATH}/7", headers=HEADERS)).status == 404


async def test_a_message_comes_in(client: Client) -> None:
    body = {"from": TO, "text": "Which floor?"}
    answer = await client.post("/api/v1/sandbox/inbound", body, headers=HEADERS)
    assert (answer.status, answer.data["text"]) == (201, "Which floor?")
