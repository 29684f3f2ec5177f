"""The endpoints of the voice assistant, before the domain."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from callcontrol.accounts.keys import SCOPES
from callcontrol.assistant.aio.service import OutboundCall
from callcontrol.assistant.analytics import AssistantCallFilter
from callcontrol.assistant.calls import PRODUCT, assistant_details
from callcontrol.bootstrap.aio.services import Services, Storage
from callcontrol.models import CallRecord, CallStatus, TranscriptSegment
from tests.support.api_facts import ACCOUNT, MOMENT, NOWHERE, NUMBER, call
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

LIVE, SANDBOX, USER = ("va_" + letter * 43 for letter in "lsu")
CALLS = "/api/v1/calls"
AGENT_ID = "cccccccc-9999-4999-8999-999999999999"
CALL_SID = "cccccccc-4444-4444-8444-444444444444"
SAID = (TranscriptSegment("agent", "Good morning", 0, 900), TranscriptSegment("user", "Hello", 1000))


@pytest.fixture(autouse=True)
async def _keys(stage: ApiStage) -> None:
    await stage.add_key(LIVE, "assistant", SCOPES["assistant"])
    await stage.add_key(SANDBOX, "assistant", SCOPES["assistant"], environment="sandbox")
    await stage.add_key(USER, "assistant", ["assistant"])


@pytest.fixture
async def agent_id(storage: Storage) -> str:
    return (await storage.agents.create(ACCOUNT, {"name": "Asha"})).agent_id


def answered(call_sid: str, **changes: Any) -> CallRecord:
    """A call with an agent that is over."""
    details = assistant_details(AGENT_ID, language="en-IN", context={"name": "Asha"})
    over = {"status": CallStatus.COMPLETED, "answered_at": MOMENT, "ended_at": MOMENT}
    return call(call_sid, product=PRODUCT, details=details, **{**over, **changes})


async def test_what_is_asked_of_a_call(client: Client, services: Services, agent_id: str) -> None:
    requests = asked(services.assistant, "start_call")
    body = {
        "phone_number": "9876543210",
        "agent_id": agent_id.upper(),
        "context": {"name": "Asha"},
        "from": NUMBER,
        "machine_detection": "hangup",
        "record": True,
        "timeout": 20,
        "time_limit": 600,
    }
    answer = await client.post(f"{CALLS}/outbound", body, key=LIVE)
    assert answer.status == 201
    assert (await services.calls.get_call(ACCOUNT, answer.data["id"])).to == "+919876543210"
    assert answer.data["context"] == {"name": "Asha"} and answer.data["agent_id"] == agent_id
    wanted = OutboundCall(
        phone_number="+919876543210",
        agent_id=agent_id,
        context={"name": "Asha"},
        from_=NUMBER,
        machine_detection="hangup",
        record=True,
        timeout_s=20.0,
        time_limit_s=600.0,
    )
    assert requests == [(ACCOUNT, wanted, False)]


async def test_a_sandbox_key_asks_for_sandbox_calls(
    client: Client, services: Services, agent_id: str
) -> None:
    requests, lists, periods = (
        asked(services.assistant, name) for name in ("start_call", "list_calls", "analytics")
    )
    body = {"phone_number": "+919800000001", "agent_id": agent_id}
    assert (await client.post(f"{CALLS}/outbound", body, key=SANDBOX)).status == 201
    assert requests[-1][2] is True
    assert (await client.get(f"{CALLS}?environment=sandbox", key=SANDBOX)).status == 200
    assert lists == [(ACCOUNT, AssistantCallFilter(sandbox=True), 1, 20)]
    assert (await client.get("/api/v1/analytics", key=SANDBOX)).status == 200
    assert periods == [(ACCOUNT, None, None, None, True)]
    for path in (CALLS, "/api/v1/analytics"):
        refused = await client.get(f"{path}?environment=live", key=SANDBOX)
        assert (refused.status, refused.code) == (403, "FORBIDDEN")
    assert len(lists) == len(periods) == 1


async def test_calls_are_listed_by_what_is_asked(client: Client, stage: ApiStage) -> None:
    found = {"from_": "+919876543210", "to": NUMBER, "direction": "inbound", "answered_by": "machine"}
    for number in range(41):
        await stage.add_call(answered(f"{CALL_SID[:-2]}{number:02}", **found))
    await stage.add_call(answered(NOWHERE, **{**found, "answered_by": "human"}))
    lists = asked(stage.services.assistant, "list_calls")
    query = f"agent_id={AGENT_ID}&status=voicemail&direction=inbound&phone_number=9876543210"
    answer = await client.get(f"{CALLS}?{query}&start_date=2026-01-31&page=2&per_page=40", key=LIVE)
    assert answer.status == 200 and answer.json()["meta"]["total"] == 41
    assert [shown["status"] for shown in answer.data] == ["voicemail"]
    assert lists[-1] == (
        ACCOUNT,
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


async def test_a_number_that_is_none_is_not_looked_for(client: Client) -> None:
    answer = await client.get(f"{CALLS}?phone_number=nobody", key=LIVE)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert list(answer.fields) == ["phone_number"]


async def test_a_call_is_shown_with_what_was_said(client: Client, stage: ApiStage) -> None:
    record = await stage.add_call(answered(CALL_SID))
    for segment in SAID:
        stage.storage.transcripts.add(record, segment)
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
    unknown = await client.get(f"/api/v1/webhooks/{NOWHERE}", key=USER)
    assert (unknown.status, unknown.json()["error"]["message"]) == (404, "There is no such webhook.")
    shown = await client.get(f"/api/v1/webhooks/{made.data['id']}", key=USER)
    assert shown.status == 200 and "secret" not in shown.data


async def test_keys_are_managed_by_keys_that_may(client: Client, storage: Storage) -> None:
    created, rotations = (asked(storage.assistant_keys, name) for name in ("create", "rotate"))
    assert (await client.get("/api/v1/keys", key=USER)).status == 403
    made = await client.post("/api/v1/keys", {"name": "CI", "environment": "sandbox"}, key=LIVE)
    assert made.status == 201 and made.data["key"].startswith("va_")
    assert [rest for _, *rest in created] == [["CI", "sandbox", None]]
    rotated = await client.post(f"/api/v1/keys/{made.data['id']}/rotate", {}, key=LIVE)
    assert rotated.status == 201 and rotated.data["replaces"]["state"] == "retiring"
    assert [rest for _, *rest in rotations] == [[made.data["id"], 86_400]]
    listed = (await client.get("/api/v1/keys", key=LIVE)).data
    assert [item["name"] for item in listed[-2:]] == ["CI", "CI"]
    assert not any("key" in item for item in listed)


async def test_a_key_may_have_every_scope_of_the_assistant(client: Client, stage: ApiStage) -> None:
    body = {"name": "CI", "scopes": ["*"]}
    refused = await client.post("/api/v1/keys", body, key=LIVE)
    assert refused.status == 403 and "lacks the scope *" in refused.json()["error"]["message"]
    key = "va_" + "w" * 43
    await stage.add_key(key, "assistant", ["*"])
    made = await client.post("/api/v1/keys", body, key=key)
    assert (made.status, made.data["scopes"]) == (201, ["*"])
    assert (await client.get("/api/v1/keys", key=made.data["key"])).status == 200
    mixed = await client.post("/api/v1/keys", {"name": "", "scopes": ["*", "assistant"]}, key=key)
    assert (mixed.status, set(mixed.fields)) == (400, {"name", "scopes"})
    unknown = await client.post("/api/v1/keys", {"name": "CI", "scopes": ["x"]}, key=key)
    assert unknown.fields == {"scopes[0]": "must be one of assistant, assistant.keys or *"}


async def test_a_word_in_a_path_is_not_taken_for_an_identifier(client: Client) -> None:
    answer = await client.get(f"{CALLS}/outbound", key=LIVE)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_an_agent_is_named_by_a_uuid(client: Client) -> None:
    for path in (f"{CALLS}?agent_id=AAA", "/api/v1/analytics?agent_id=AAA"):
        answer = await client.get(path, key=LIVE)
        assert answer.status == 400 and answer.json()["error"]["details"]["errors"][0]["field"] == "agent_id"
