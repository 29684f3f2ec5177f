"""The voice assistant: agents, calls, transcripts, webhooks and analytics (telephony specification)."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from tests.acceptance.clients.agent import Agent
from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner
from tests.acceptance.clients.rtp import tone
from tests.acceptance.clients.webhooks import Receiver, assert_signed
from tests.acceptance.resources import AGENT, ANALYTICS, ASSISTANT_CALL, ASSISTANT_EVENT, META, TRANSCRIPT
from tests.acceptance.shapes import assert_fits, assert_platform_error, moment, uuid_text
from tests.acceptance.stage import Customer, Line, NewCustomer, mobile, own_number
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess

CALLS = "/api/v1/calls"
UNKNOWN = "01a1ffc4-0000-7000-8000-000000000000"
ENDED = {"completed", "failed", "no-answer", "busy", "voicemail"}
EVENTS = [
    *("call.started", "call.completed", "call.transferred"),
    *("transcript.ready", "agent.updated", "error.occurred"),
]


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer whose only number is the one that agents call from."""
    return new_customer()


@pytest.fixture
async def assistant(session: aiohttp.ClientSession, server: ServerProcess, customer: Customer) -> Api:
    """The API for a key of the assistant."""
    return Api(session, server.url, customer.key_of("assistant"))


async def hired(assistant: Api, **fields: Any) -> str:
    """A new agent, by its id."""
    made = await assistant.post("/api/v1/agents", {"name": "Asha", **fields})
    return str(made.expect(201).data["id"])


async def told(assistant: Api, receiver: Receiver, *events: str) -> str:
    """Register the receiver for events; the secret that signs them."""
    body = {"url": receiver.url("/assistant"), "events": list(events or EVENTS)}
    return str((await assistant.post("/api/v1/webhooks", body)).expect(201).data["secret"])


async def call(assistant: Api, agent_id: str, **fields: Any) -> dict[str, Any]:
    """A new call of an agent."""
    body = {"phone_number": mobile(), "agent_id": agent_id, **fields}
    made: dict[str, Any] = (await assistant.post(f"{CALLS}/outbound", body)).expect(201).data
    return made


async def ended(assistant: Api, call_id: str) -> dict[str, Any]:
    """A call, once it has ended."""
    found: dict[str, Any] = await assistant.until(f"{CALLS}/{call_id}", lambda call: call["status"] in ENDED)
    return found


async def test_agents_are_created_and_listed(assistant: Api) -> None:
    body = {
        "name": "Asha",
        "language": "hi-IN",
        "voice": "female",
        "greeting": "Namaste.",
        "instructions": "Be brief.",
    }
    reply = (await assistant.post("/api/v1/agents", body)).expect(201)
    assert_fits(reply.body, {"data": AGENT, "meta": META})
    assert {name: reply.data[name] for name in body} == body
    second = await hired(assistant, name="Ravi")
    listed = (await assistant.get("/api/v1/agents")).expect(200)
    assert_fits(listed.body, {"data": [AGENT]})
    assert [agent["id"] for agent in listed.data] == [second, reply.data["id"]]
    error = assert_platform_error(await assistant.post("/api/v1/agents", {}), 400, "VALIDATION_ERROR", "name")
    assert error["message"]


async def test_an_agent_talks_and_its_transcript_is_there_at_the_end(
    assistant: Api, line: Line, agent: Agent, receiver: Receiver
) -> None:
    secret = await told(assistant, receiver)
    agent_id = await hired(assistant, stream_url=agent.url("/asha"))
    body = {"phone_number": mobile(), "agent_id": agent_id, "context": {"customer_name": "Ravi"}}
    reply = (await assistant.post(f"{CALLS}/outbound", body)).expect(201)
    assert_fits(reply.body, {"data": {**ASSISTANT_CALL, "id": uuid_text}, "meta": META})
    call_id = reply.data["id"]
    path = f"{CALLS}/{call_id}"
    rung = await (await line.phone.rings(mobile())).until_answered()
    assert rung.shown == line.number
    stream = await agent.connected()
    started = (await stream.frame("start"))["start"]
    assert started["call_sid"] == call_id
    assert started["custom_parameters"]["customer_name"] == "Ravi"
    assert_platform_error(await assistant.get(f"{path}/transcript"), 404, "NOT_FOUND")
    for role, text in (("agent", "Hello, Ravi."), ("user", "Good morning.")):
        spoken = {"role": role, "text": text, "final": True}
        await stream.send(event="transcript", transcript=spoken)
    await stream.say(tone(440, 0.3))
    await stream.send(event="mark", mark={"name": "said"})
    await stream.frame("mark")
    talking = (await assistant.get(path)).expect(200)
    assert_fits(talking.body, {"data": {**ASSISTANT_CALL, "status": "in-progress", "started_at": moment}})
    await rung.hang_up()

    found = await ended(assistant, call_id)
    assert_fits(found, {**ASSISTANT_CALL, "ended_at": moment, "duration_seconds": int})
    assert (found["status"], found["phone_number"], found["agent_id"]) == ("completed", mobile(), agent_id)
    assert found["context"] == {"customer_name": "Ravi"}
    transcript = (await assistant.get(f"{path}/transcript")).expect(200)
    assert_fits(transcript.body, {"data": TRANSCRIPT})
    assert transcript.data["call_id"] == call_id
    said = [(segment["role"], segment["text"]) for segment in transcript.data["segments"]]
    assert said == [("agent", "Hello, Ravi."), ("user", "Good morning.")]

    completed = await receiver.event("call.completed")
    ready = await receiver.event("transcript.ready")
    begun = await receiver.event("call.started")
    for received in (begun, completed, ready):
        assert received.method == "POST"
        assert_fits(received.json, {"id": uuid_text, **ASSISTANT_EVENT})
        data = received.json["data"]
        assert (data["call_id"], data["agent_id"], data["phone_number"]) == (call_id, agent_id, mobile())
        assert_signed(received, secret)
    assert completed.json["data"]["status"] == "completed"
    assert completed.json["data"]["duration_seconds"] == found["duration_seconds"]
    shown = completed.json["data"]["transcript_url"]
    assert shown.startswith(assistant.url) and shown.endswith(f"{path}/transcript")
    again = (await assistant.get(shown.removeprefix(assistant.url))).expect(200)
    assert again.data == transcript.data


@pytest.mark.parametrize(("status", "wanted"), [(486, "busy"), (480, "no-answer"), (404, "failed")])
async def test_a_call_begins_and_completes_though_nobody_answers(
    assistant: Api, line: Line, receiver: Receiver, status: int, wanted: str
) -> None:
    await told(assistant, receiver)
    line.phone.manner = Manner(status=status)
    call_id = (await call(assistant, await hired(assistant)))["id"]
    found = await ended(assistant, call_id)
    assert_fits(found, {**ASSISTANT_CALL, "status": wanted, "started_at": None})
    completed = await receiver.event("call.completed")
    assert completed.json["data"]["status"] == wanted
    assert_platform_error(await assistant.get(f"{CALLS}/{call_id}/transcript"), 404, "NOT_FOUND")


async def test_a_call_is_told_of_when_it_begins(assistant: Api, line: Line, receiver: Receiver) -> None:
    await told(assistant, receiver)
    line.phone.manner = Manner(status=486)
    call_id = (await call(assistant, await hired(assistant)))["id"]
    await receiver.event("call.completed")
    assert receiver.events() == ["call.started", "call.completed"]
    begun = receiver.requests[0]
    assert_fits(begun.json, {"id": uuid_text, **ASSISTANT_EVENT})
    assert begun.json["data"]["call_id"] == call_id
    assert begun.json["data"]["status"] in ("queued", "ringing")


async def test_the_answer_of_a_call_is_told(assistant: Api, line: Line, receiver: Receiver) -> None:
    await told(assistant, receiver, "call.started", "call.answered", "call.completed")
    call_id = (await call(assistant, await hired(assistant)))["id"]
    await (await (await line.phone.rings(mobile())).until_answered()).hang_up()
    await receiver.event("call.completed")
    assert receiver.events() == ["call.started", "call.answered", "call.completed"]
    assert {request.json["data"]["call_id"] for request in receiver.requests} == {call_id}


async def test_a_transfer_to_a_human_is_told(
    assistant: Api, line: Line, agent: Agent, receiver: Receiver
) -> None:
    secret = await told(assistant, receiver)
    agent_id = await hired(assistant, stream_url=agent.url())
    call_id = (await call(assistant, agent_id))["id"]
    rung = await (await line.phone.rings(mobile())).until_answered()
    stream = await agent.connected()
    await stream.frame("start")
    await stream.send(event="transfer", transfer={"to": mobile(2), "timeout": 30})
    human = await (await line.phone.rings(mobile(2))).until_answered()
    moved = await receiver.event("call.transferred")
    assert_fits(moved.json, {"id": uuid_text, **ASSISTANT_EVENT})
    assert moved.json["data"]["call_id"] == call_id
    assert moved.json["data"]["transferred_to"] == mobile(2)
    assert_signed(moved, secret)
    assert (await stream.frame("stop"))["stop"]["detail"] == "transferred"
    await rung.hang_up()
    await human.until_ended()
    assert (await ended(assistant, call_id))["status"] == "completed"


async def test_an_error_of_a_call_is_told(assistant: Api, line: Line, receiver: Receiver) -> None:
    await told(assistant, receiver)
    agent_id = await hired(assistant, stream_url=f"ws://127.0.0.1:{free_port()}/gone")
    call_id = (await call(assistant, agent_id))["id"]
    error = await receiver.event("error.occurred")
    assert_fits(error.json, {"id": uuid_text, **ASSISTANT_EVENT})
    assert_fits(error.json["data"], {"call_id": call_id, "error": {"code": str, "message": str}})
    await ended(assistant, call_id)


async def test_a_changed_agent_is_told(assistant: Api, receiver: Receiver) -> None:
    secret = await told(assistant, receiver)
    agent_id = await hired(assistant)
    (await assistant.patch(f"/api/v1/agents/{agent_id}", {"greeting": "Good day."})).expect(200)
    changed = await receiver.event("agent.updated")
    assert_fits(changed.json, {"timestamp": moment, "data": {"agent_id": agent_id}})
    assert_signed(changed, secret)


async def test_a_webhook_is_registered(assistant: Api, receiver: Receiver) -> None:
    body = {"url": receiver.url(), "events": EVENTS, "description": "All of them"}
    reply = (await assistant.post("/api/v1/webhooks", body)).expect(201)
    shown = {"id": uuid_text, "url": receiver.url(), "events": [str], "is_active": True}
    assert_fits(reply.body, {"data": {**shown, "secret": str, "created_at": moment}, "meta": META})
    assert reply.data["events"] == EVENTS
    for wrong, fields in (
        ({}, {"url", "events"}),
        ({"url": receiver.url(), "events": ["call.dreamt"]}, {"events[0]"}),
        ({"url": "ftp://shop.example.com", "events": EVENTS}, {"url"}),
    ):
        error = assert_platform_error(
            await assistant.post("/api/v1/webhooks", wrong), 400, "VALIDATION_ERROR"
        )
        named = {found["field"] for found in error["details"]["errors"]}
        assert {name.partition("[")[0] for name in named} == {name.partition("[")[0] for name in fields}


async def test_wrong_calls_of_agents_are_refused(assistant: Api, line: Line) -> None:
    path, agent_id = f"{CALLS}/outbound", await hired(assistant)
    reply = await assistant.post(path, {})
    assert_platform_error(reply, 400, "VALIDATION_ERROR", "phone_number", "agent_id")
    wrong = {"phone_number": "seven", "agent_id": agent_id, "context": {"a": 1}}
    error = assert_platform_error(await assistant.post(path, wrong), 400, "VALIDATION_ERROR")
    named = {found["field"].partition(".")[0] for found in error["details"]["errors"]}
    assert named == {"phone_number", "context"}
    body = {"phone_number": mobile(), "agent_id": agent_id}
    assert_platform_error(await assistant.post(path, {**body, "agent_id": UNKNOWN}), 404, "NOT_FOUND")
    for key in (None, "va_unknown"):
        assert_platform_error(await assistant.with_key(key).post(path, body), 401, "UNAUTHORIZED")
    assert line.phone.calls == []


async def test_an_empty_wallet_lets_no_agent_call(
    assistant: Api, line: Line, new_customer: NewCustomer, server: ServerProcess
) -> None:
    poor = new_customer(0)
    api = line.api.with_key(poor.key)
    made = (await api.post("/v1/trunk-portal/carriers", {"name": "Own"})).expect(201).data
    gateway = {"host": line.phone.host, "port": line.phone.port}
    sid = made["carrier_sid"]
    (await api.post(f"/v1/trunk-portal/carriers/{sid}/gateways", gateway)).expect(201)
    number = {"number": own_number(), "carrier_sid": sid}
    (await api.post("/v1/trunk-portal/numbers", number)).expect(201)
    broke = assistant.with_key(poor.key_of("assistant"))
    body = {"phone_number": mobile(), "agent_id": await hired(broke)}
    assert_platform_error(await broke.post(f"{CALLS}/outbound", body), 402, "INSUFFICIENT_BALANCE")


async def test_unknown_calls_and_keys(assistant: Api, line: Line, new_customer: NewCustomer) -> None:
    line.phone.manner = Manner(status=486)
    call_id = (await call(assistant, await hired(assistant)))["id"]
    other = assistant.with_key(new_customer().key_of("assistant"))
    for part in ("", "/transcript"):
        assert_platform_error(await assistant.get(f"{CALLS}/{UNKNOWN}{part}"), 404, "NOT_FOUND")
        assert (await other.get(f"{CALLS}/{call_id}{part}")).status in (403, 404)
        assert_platform_error(
            await assistant.with_key(None).get(f"{CALLS}/{call_id}{part}"), 401, "UNAUTHORIZED"
        )
    for path in ("/api/v1/agents", "/api/v1/analytics"):
        assert_platform_error(await assistant.with_key(None).get(path), 401, "UNAUTHORIZED")
    await ended(assistant, call_id)


async def test_analytics_count_the_calls(assistant: Api, line: Line) -> None:
    line.phone.manners = {mobile(2): Manner(status=486), mobile(3): Manner(status=404)}
    agent_id = await hired(assistant)
    first = await call(assistant, agent_id)
    await (await (await line.phone.rings(mobile())).until_answered()).hang_up()
    answered = await ended(assistant, first["id"])
    for number in (2, 3):
        made = await call(assistant, agent_id, phone_number=mobile(number))
        await ended(assistant, made["id"])
    reply = (await assistant.get("/api/v1/analytics")).expect(200)
    assert_fits(reply.body, {"data": ANALYTICS, "meta": META})
    figures = reply.data
    names = ("total_calls", "completed_calls", "failed_calls")
    assert [figures[name] for name in names] == [3, 1, 1]
    assert figures["avg_duration_seconds"] == answered["duration_seconds"]
    assert 0 < figures["success_rate"] < 1
    assert sum(day["total_calls"] for day in figures["by_day"]) == 3
    past = await assistant.get("/api/v1/analytics", start_date="2026-01-01", end_date="2026-01-31")
    assert past.expect(200).data["total_calls"] == 0
    wrong = await assistant.get("/api/v1/analytics", start_date="yesterday")
    assert_platform_error(wrong, 400, "VALIDATION_ERROR", "start_date")


async def test_sandbox_calls_are_free(assistant: Api, customer: Customer) -> None:
    customer.lease()
    made = await call(assistant, await hired(assistant), phone_number="+919800000008")
    found = await ended(assistant, made["id"])
    assert_fits(found, {**ASSISTANT_CALL, "status": "completed", "cost": 0})
    assert found["duration_seconds"] >= 1
