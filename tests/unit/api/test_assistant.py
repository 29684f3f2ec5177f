"""The endpoints of the voice assistant, before the domain."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from callcontrol.assistant.aio.service import OutboundCall
from callcontrol.assistant.analytics import AssistantCallFilter
from callcontrol.models import Principal
from tests.unit.api.client import Client
from tests.unit.api.fakes import ACCOUNT, AGENT_ID, CALL_SID, NOWHERE, SUBSCRIPTION_ID, Fakes
from tests.unit.api.fakes.assistant import KEY_ID

LIVE, SANDBOX, USER = ("va_" + letter * 43 for letter in "lsu")
SCOPES = frozenset({"assistant", "assistant.keys"})
CALLS = "/api/v1/calls"


@pytest.fixture(autouse=True)
def _keys(fakes: Fakes) -> None:
    known = fakes.keys.principals
    known[LIVE] = Principal(ACCOUNT, "key-l", "assistant", SCOPES)
    known[SANDBOX] = Principal(ACCOUNT, "key-s", "assistant", SCOPES, sandbox=True)
    known[USER] = Principal(ACCOUNT, "key-u", "assistant", frozenset({"assistant"}))


async def test_what_is_asked_of_a_call(client: Client, fakes: Fakes) -> None:
    body = {
        "phone_number": "9876543210",
        "agent_id": AGENT_ID.upper(),
        "context": {"name": "Asha"},
        "from": "+918047000001",
        "machine_detection": "hangup",
        "record": True,
        "timeout": 20,
        "time_limit": 600,
    }
    answer = await client.post(f"{CALLS}/outbound", body, key=LIVE)
    assert answer.status == 201 and answer.data["id"] == CALL_SID
    assert answer.data["context"] == {"name": "Asha"} and answer.data["agent_id"] == AGENT_ID
    asked = OutboundCall(
        phone_number="9876543210",
        agent_id=AGENT_ID,
        context={"name": "Asha"},
        from_="+918047000001",
        machine_detection="hangup",
        record=True,
        timeout_s=20.0,
        time_limit_s=600.0,
    )
    assert fakes.assistant.asked == [(ACCOUNT, asked, False)]


async def test_a_sandbox_key_asks_for_sandbox_calls(client: Client, fakes: Fakes) -> None:
    body = {"phone_number": "+919800000001", "agent_id": AGENT_ID}
    assert (await client.post(f"{CALLS}/outbound", body, key=SANDBOX)).status == 201
    assert fakes.assistant.asked[-1][2] is True
    assert (await client.get(f"{CALLS}?environment=live", key=SANDBOX)).status == 200
    assert fakes.assistant.asked[-1] == (AssistantCallFilter(sandbox=True), 1, 20)
    assert (await client.get("/api/v1/analytics?environment=live", key=SANDBOX)).status == 200
    assert fakes.assistant.asked[-1].sandbox is True


async def test_calls_are_listed_by_what_is_asked(client: Client, fakes: Fakes) -> None:
    query = f"agent_id={AGENT_ID}&status=voicemail&direction=inbound&phone_number=9876543210"
    answer = await client.get(f"{CALLS}?{query}&start_date=2026-01-31&page=2&per_page=40", key=LIVE)
    assert answer.status == 200 and answer.json()["meta"]["total"] == 41
    assert fakes.assistant.asked[-1] == (
        AssistantCallFilter(
            status="voicemail",
            direction="inbound",
            agent_id=AGENT_ID,
            phone_number="+919876543210",
            start=datetime(2026, 1, 31, tzinfo=UTC),
        ),
        2,
        40,
    )


async def test_a_call_is_shown_with_what_was_said(client: Client) -> None:
    shown = (await client.get(f"{CALLS}/{CALL_SID}", key=USER)).data
    assert [item["text"] for item in shown["transcript"]] == ["Good morning", "Hello"]
    transcript = (await client.get(f"{CALLS}/{CALL_SID}/transcript", key=USER)).data
    assert (transcript["call_id"], transcript["language"]) == (CALL_SID, "en-IN")
    assert transcript["segments"] == shown["transcript"]
    assert (await client.get(f"{CALLS}/{NOWHERE}/transcript", key=USER)).status == 404


async def test_the_secret_of_a_webhook_is_shown_once(client: Client) -> None:
    body = {"url": "https://app.example.com/x", "events": ["call.completed"], "secret": "a long secret"}
    made = await client.post("/api/v1/webhooks", body, key=USER)
    assert made.status == 201 and made.data["secret"] == "a long secret"
    assert made.data["events"] == ["call.completed"]
    shown = await client.get(f"/api/v1/webhooks/{SUBSCRIPTION_ID}", key=USER)
    assert shown.status == 200 and "secret" not in shown.data


async def test_keys_are_managed_by_keys_that_may(client: Client, fakes: Fakes) -> None:
    assert (await client.get("/api/v1/keys", key=USER)).status == 403
    made = await client.post("/api/v1/keys", {"name": "CI", "environment": "sandbox"}, key=LIVE)
    assert made.status == 201 and made.data["key"] == "va_secret"
    assert fakes.assistant_keys.asked == [("CI", "sandbox", None)]
    rotated = await client.post(f"/api/v1/keys/{KEY_ID}/rotate", {}, key=LIVE)
    assert rotated.status == 201 and rotated.data["replaces"]["state"] == "retiring"
    assert fakes.assistant_keys.asked[-1] == (KEY_ID, 86_400)
    (listed,) = (await client.get("/api/v1/keys", key=LIVE)).data
    assert "key" not in listed


async def test_a_word_in_a_path_is_not_taken_for_an_identifier(client: Client) -> None:
    answer = await client.get(f"{CALLS}/outbound", key=LIVE)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_an_agent_is_named_by_a_uuid(client: Client) -> None:
    for path in (f"{CALLS}?agent_id=AAA", "/api/v1/analytics?agent_id=AAA"):
        answer = await client.get(path, key=LIVE)
        assert answer.status == 400 and answer.json()["error"]["details"]["errors"][0]["field"] == "agent_id"
