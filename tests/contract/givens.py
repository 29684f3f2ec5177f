"""State that must exist before a request can be made."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from api.http import pipeline
from api.http.ratelimit import allowances_of
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.recording import RECORDINGS_FOLDER, recording_file
from callcontrol.calls.records.store import calls
from callcontrol.masking.calls import ENDED as MASKED_ENDED
from callcontrol.messaging.store import channels
from callcontrol.models import Binding, CallStatus, Message
from callcontrol.otp.otp import PER_DESTINATION
from media.audio import Clip, tone, write_wav
from tests.contract.cases import During, Given
from tests.contract.stage import ENDED, Answer, Stage
from tests.support.domain import new_record
from tests.support.waiting import PATIENCE_S, look_again, time_passes
from tests.support.webhook_stage import statuses

NOWHERE = "00000000-0000-4000-8000-000000000000"
"""A well-formed id of nothing."""

ECHO, BUSY, RINGS, DIGITS, TONE = (f"+91980000000{digit}" for digit in (1, 3, 4, 6, 7))
ELSEWHERE = "+919900000001"
"""A number that no carrier of the platform serves."""


# Numbers


async def add_number(stage: Stage, by: str, *, registered: bool = False) -> tuple[str, str]:
    """A fresh number of an account: its id, and itself."""
    numbers, sid = stage.server.storage.numbers, stage.accounts[by].account_sid
    added = await numbers.add(sid, stage.fresh_number())
    if registered:
        await numbers.register(sid, added.phone_number_id)
    return added.phone_number_id, added.number


async def unwired_number(stage: Stage) -> str:
    """The id of a number that is not registered."""
    return (await add_number(stage, "own"))[0]


async def registered_number(stage: Stage) -> str:
    """The id of a number that is registered, and not bound."""
    return (await add_number(stage, "own", registered=True))[0]


async def bound_number(stage: Stage) -> str:
    """The id of a number whose inbound calls go to a stream."""
    number_id = await registered_number(stage)
    binding = Binding(target="media_stream", stream_url=stage.agent.url)
    await stage.server.storage.numbers.bind(stage.own.account_sid, number_id, binding, force=False)
    return number_id


def caller_id(by: str = "own") -> Given:
    """A registered number of an account, the same for all cases."""

    async def given(stage: Stage) -> str:
        name = f"caller-ID of {by}"
        if name not in stage.kept:
            stage.kept[name] = (await add_number(stage, by, registered=True))[1]
        return str(stage.kept[name])

    return given


async def unregistered_caller_id(stage: Stage) -> str:
    """A number of the account that is not registered, as a caller-ID."""
    return (await add_number(stage, "own"))[1]


async def fresh_number(stage: Stage) -> str:
    """A number that nobody has, in E.164."""
    return stage.fresh_number()


async def taken_number(stage: Stage) -> str:
    """A number that somebody has, in E.164."""
    return (await add_number(stage, "other"))[1]


async def agent_url(stage: Stage) -> str:
    """Return the URL of a voice agent."""
    return stage.agent.url


# Numbers for sale


async def for_sale(stage: Stage) -> str:
    """The reference of a number that is for sale; another one each time."""
    offered = await stage.data("GET", "/v1/dids/available", query={"per_page": "100", "number_type": "local"})
    seen = stage.kept.setdefault("offered", set())
    item = next(item for item in offered if item["live_ref"] not in seen)
    seen.add(item["live_ref"])
    stage.kept["price"] = item["setup_cost"] + 2 * item["monthly_cost"]
    return str(item["live_ref"])


async def price_of_two_months(stage: Stage) -> float:
    """Return the price of the number just looked up, with two months."""
    return float(stage.kept["price"])


async def a_purchase(stage: Stage) -> Any:
    """The body of a purchase that succeeds."""
    return {"live_ref": await for_sale(stage)}


async def bought_number(stage: Stage) -> str:
    """The reference of a number that the own account has bought."""
    live_ref = await for_sale(stage)
    bought = await stage.data("POST", "/v1/dids/purchase-live", body={"live_ref": live_ref})
    stage.kept["bought"] = bought["number"]
    return live_ref


async def bought_by_the_buyer(stage: Stage) -> None:
    """The account that buys numbers has bought one."""
    await stage.data("POST", "/v1/dids/purchase-live", by="buyer", body={"live_ref": await for_sale(stage)})


# Accounts


def account_sid(by: str) -> Given:
    """The SID of an account."""

    async def given(stage: Stage) -> str:
        return stage.accounts[by].account_sid

    return given


@asynccontextmanager
async def disconnected_channel(stage: Stage) -> AsyncIterator[None]:
    """The channel of the own account is not connected."""
    writer, sid = stage.server.storage.writer, stage.own.account_sid
    change = partial(channels.change, account_sid=sid, now=utc_now())
    await writer.commit(partial(change, values={"is_connected": False}))
    try:
        yield
    finally:
        await writer.commit(partial(change, values={"is_connected": True}))


# Calls


async def place(stage: Stage, to: str, by: str = "own", **body: Any) -> str:
    """Place a call that waits once it is answered; returns its SID."""
    what = {"verbs": [{"verb": "pause", "length": 60}], **body}
    call = await stage.data(
        "POST", "/v1/calls", by=by, body={"from": await caller_id(by)(stage), "to": to, **what}
    )
    return str(call["call_sid"])


async def ringing_call(stage: Stage) -> str:
    """The SID of a call that rings."""
    call_sid = await place(stage, RINGS)
    await stage.call_when(call_sid, "ringing")
    return call_sid


async def answered_call(stage: Stage) -> str:
    """The SID of a call that is up."""
    call_sid = await place(stage, ECHO)
    await stage.call_when(call_sid, "in-progress")
    return call_sid


async def ended_call(stage: Stage) -> str:
    """The SID of a call that was busy; one for all cases."""
    if "ended call" not in stage.kept:
        stage.kept["ended call"] = call_sid = await place(stage, BUSY)
        await stage.call_when(call_sid, "busy")
    return str(stage.kept["ended call"])


async def call_elsewhere(stage: Stage) -> str:
    """The SID of a call that is active on another node; one for all cases."""
    if "call elsewhere" not in stage.kept:
        record = new_record(stage.own.account_sid, status=CallStatus.IN_PROGRESS, node="another")
        row = calls.row_of(record)
        await stage.server.storage.writer.commit(lambda connection: calls.insert(connection, [row]))
        stage.kept["call elsewhere"] = record.call_sid
    return str(stage.kept["call elsewhere"])


async def recorded_call(stage: Stage) -> str:
    """The SID of a call whose recording can be had."""
    call_sid = await place(stage, TONE, record=True, time_limit=1)
    await stage.call_when(call_sid, "completed")
    return await stage.recorded(call_sid)


async def messaged_call(stage: Stage) -> str:
    """The SID of a call on which messages are left; one for all cases."""
    if "messaged call" not in stage.kept:
        stage.kept["messaged call"] = call_sid = await place(stage, BUSY)
        await stage.call_when(call_sid, "busy")
    return str(stage.kept["messaged call"])


async def message(stage: Stage) -> str:
    """The SID of a message of half a second that was just left on that call."""
    message_sid = stage.kept["message"] = new_id()
    path = stage.server.settings.data_dir / RECORDINGS_FOLDER / recording_file(message_sid)
    await asyncio.to_thread(path.write_bytes, write_wav(Clip(tone(440.0, 500))))
    stage.server.storage.messages.add(
        Message(
            message_sid=message_sid,
            account_sid=stage.accounts["own"].account_sid,
            call_sid=await messaged_call(stage),
            path=str(path),
            duration_ms=500,
        )
    )
    return message_sid


async def recording_call(stage: Stage) -> str:
    """The SID of a call that is up and being recorded."""
    call_sid = await place(stage, TONE, record=True, time_limit=60)
    await stage.call_when(call_sid, "in-progress")
    return call_sid


async def number_with_call(stage: Stage) -> str:
    """The id of a number that is the caller-ID of a call that rings."""
    number_id, number = await add_number(stage, "own", registered=True)
    call = await stage.data(
        "POST", "/v1/calls", body={"from": number, "to": RINGS, "verbs": [{"verb": "hangup"}]}
    )
    await stage.call_when(call["call_sid"], "ringing")
    return number_id


async def hang_up(stage: Stage, call_sid: str, by: str = "own") -> None:
    """End a call and wait until it has."""
    await stage.ask("DELETE", f"/v1/Accounts/{stage.accounts[by].account_sid}/Calls/{call_sid}", by=by)
    await stage.call_when(call_sid, *ENDED, by=by)


async def used_up_second(stage: Stage) -> str:
    """The caller-ID of an account that has just begun the one call a second that it may."""
    # The case before this one may have used the present second.
    await time_passes(1.0)
    await hang_up(stage, await place(stage, BUSY, by="slow"), by="slow")
    await stage.ask(
        "POST",
        "/v1/calls",
        by="slow",
        body={"from": await caller_id("slow")(stage), "to": BUSY, "verbs": [{"verb": "hangup"}]},
    )
    return str(await caller_id("slow")(stage))


# Voice agents


async def voice_agent(stage: Stage) -> str:
    """The id of a voice agent."""
    body = {"name": "Front desk", "language": "hi-IN", "stream_url": stage.agent.url, "sample_rate": 16000}
    return str((await stage.data("POST", "/api/v1/agents", body=body))["id"])


async def bound_agent(stage: Stage) -> str:
    """The id of a voice agent that a number's calls go to."""
    agent_id = await voice_agent(stage)
    body = {"target": "voice_agent", "agent_id": agent_id, "workspace_id": NOWHERE}
    await stage.data("PUT", f"/v1/phone-numbers/{await registered_number(stage)}/inbound", body=body)
    return agent_id


# Passwords


async def a_password(stage: Stage) -> Any:
    """The body of a request that sends a password to somebody who is reached."""
    return {"to": ECHO, "otp": "314159", "repeat": 1, "from": await caller_id()(stage)}


async def sent_password(stage: Stage) -> str:
    """The id of a password that was sent to somebody who gave up; one for all cases."""
    if "password" not in stage.kept:
        body = {**await a_password(stage), "to": RINGS}
        sent = await stage.data("POST", "/v1/voice-otp/send", body=body)
        await hang_up(stage, sent["call_sid"])
        stage.kept["password"] = sent["id"]
    return str(stage.kept["password"])


async def used_up_destination(stage: Stage) -> None:
    """Somebody was sent as many passwords as a number may get."""
    body = {**await a_password(stage), "to": BUSY}
    for _ in range(PER_DESTINATION):
        await stage.data("POST", "/v1/voice-otp/send", body=body)


# Idempotency keys


def used_key(path: str, body: Any) -> Given:
    """An idempotency key that another request to the same path has used; `body` gives that request's."""

    async def given(stage: Stage) -> str:
        key = str(uuid.uuid4())
        path_of = path.format(sid=stage.own.account_sid)
        answer = await stage.ask("POST", path_of, body=await body(stage), headers={"Idempotency-Key": key})
        assert answer.status in (200, 201), answer
        return key

    return given


# The platform's carriers


@asynccontextmanager
async def no_platform_carrier(stage: Stage) -> AsyncIterator[None]:
    """The platform has no carrier that is active."""
    trunks = stage.server.storage.trunks
    active = [carrier for carrier in await trunks.platform_carriers() if carrier.is_active]
    for carrier in active:
        await trunks.update_carrier(None, carrier.carrier_sid, {"is_active": False})
    try:
        yield
    finally:
        for carrier in active:
            await trunks.update_carrier(None, carrier.carrier_sid, {"is_active": True})


@asynccontextmanager
async def resting_platform_gateways(stage: Stage) -> AsyncIterator[None]:
    """Every gateway of the platform has asked for a rest: no call leaves by it now, and later ones do."""
    await stage.share()
    control, now = stage.asked.control, asyncio.get_running_loop().time()
    directory = stage.asked.storage.directory
    resting = [gateway for carrier, gateway in directory.outbound_gateways() if carrier.account_sid is None]
    for gateway in resting:
        control.gateways.failed(gateway.gateway_sid, now, retry_after_s=60.0)
    try:
        yield
    finally:
        for gateway in resting:
            control.gateways.forget(gateway.gateway_sid)


@asynccontextmanager
async def database_refuses(stage: Stage) -> AsyncIterator[None]:
    """The database takes no writes, and has not for a while."""
    database = stage.asked.storage.database
    database.unwritable = True
    try:
        yield
    finally:
        database.unwritable = False


# Trunks


def carrier(by: str = "own") -> Given:
    """The SID of a carrier of an account, without gateways."""

    async def given(stage: Stage) -> str:
        made = await stage.data("POST", "/v1/trunk-portal/carriers", by=by, body={"name": "Own trunk"})
        return str(made["carrier_sid"])

    return given


async def carrier_with_gateway(stage: Stage) -> tuple[str, str]:
    """The SIDs of a carrier and its gateway, which is the sandbox."""
    assert stage.server.sandbox is not None
    host, port = stage.server.sandbox.address
    carrier_sid = await carrier()(stage)
    body = {"host": host, "port": port, "outbound": True, "inbound": False}
    gateway = await stage.data("POST", f"/v1/trunk-portal/carriers/{carrier_sid}/gateways", body=body)
    return carrier_sid, str(gateway["gateway_sid"])


async def trunk_number(stage: Stage) -> str:
    """The SID of a number on a carrier of the own account."""
    return (await number_on_carrier(stage, await carrier()(stage)))[0]


async def number_on_carrier(stage: Stage, carrier_sid: str, **body: Any) -> tuple[str, str]:
    """A fresh number on a carrier: its SID, and itself."""
    body = {"number": stage.fresh_number(), "carrier_sid": carrier_sid, **body}
    made = await stage.data("POST", "/v1/trunk-portal/numbers", body=body)
    return str(made["number_sid"]), str(made["number"])


async def trunk_with_call(stage: Stage) -> dict[str, str]:
    """The SIDs of a carrier, its gateway and a number on it that has a call up."""
    carrier_sid, gateway_sid = await carrier_with_gateway(stage)
    number_sid, number = await number_on_carrier(stage, carrier_sid)
    call = await stage.data(
        "POST", "/v1/calls", body={"from": number, "to": RINGS, "verbs": [{"verb": "hangup"}]}
    )
    ringing = await stage.call_when(call["call_sid"], "ringing")
    assert ringing["carrier_sid"] == carrier_sid, "it leaves through the account's own carrier"
    return {"carrier_sid": carrier_sid, "gateway_sid": gateway_sid, "number_sid": number_sid}


def application(by: str = "own") -> Given:
    """The SID of an application of an account."""

    async def given(stage: Stage) -> str:
        body = {"name": "Front desk", "target": "media_stream", "stream_url": stage.agent.url}
        made = await stage.data("POST", "/v1/trunk-portal/applications", by=by, body=body)
        return str(made["app_sid"])

    return given


async def attached_application(stage: Stage) -> str:
    """The SID of an application that a number goes by."""
    app_sid = str(await application()(stage))
    await number_on_carrier(stage, await carrier()(stage), app_sid=app_sid)
    return app_sid


def part(make: Callable[[Stage], Awaitable[Mapping[str, str]]], name: str, *, first: bool = False) -> Given:
    """One of several things that are brought about together, with the `first` of them that is asked for."""

    async def given(stage: Stage) -> str:
        kept = f"parts of {make.__name__}"
        if first or kept not in stage.kept:
            stage.kept[kept] = await make(stage)
        return str(stage.kept[kept][name])

    return given


def parts(make: Callable[[Stage], Awaitable[Mapping[str, str]]], *names: str) -> dict[str, Given]:
    """Several things that are brought about together, by their names."""
    return {name: part(make, name, first=index == 0) for index, name in enumerate(names)}


async def gateway(stage: Stage) -> dict[str, str]:
    """The SIDs of a carrier and its gateway."""
    carrier_sid, gateway_sid = await carrier_with_gateway(stage)
    return {"carrier_sid": carrier_sid, "gateway_sid": gateway_sid}


def limited(module: ModuleType, name: str) -> During:
    """As though what a limit of a module allows were used up."""

    @asynccontextmanager
    async def during(_: Stage) -> AsyncIterator[None]:
        before = getattr(module, name)
        setattr(module, name, 0)
        try:
            yield
        finally:
            setattr(module, name, before)

    return during


@asynccontextmanager
async def held_to_its_limit(stage: Stage) -> AsyncIterator[None]:
    """Masking's limit per key and minute holds, and the hasty account has used it up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "allowances_of", allowances_of)
        answers = [await stage.ask("GET", "/v1/masking/billing", by="hasty") for _ in range(100)]
        assert [answer.status for answer in answers] == [200] * 100
        yield


# Masked calls


async def masked_call(stage: Stage) -> str:
    """The SID of a masked call whose parties were connected and hung up; one for all cases."""
    if "masked call" not in stage.kept:
        await caller_id()(stage)
        call_sid = await start_masked(stage, ECHO, TONE)
        await masked_when(stage, call_sid, "in-progress")
        await hang_up(stage, call_sid)
        stage.kept["masked call"] = call_sid
        await masked_when(stage, call_sid, "completed")
    return str(stage.kept["masked call"])


async def recorded_masked_call(stage: Stage) -> str:
    """The SID of that masked call, once its recording can be had."""
    call_sid = await masked_call(stage)
    return await stage.recorded(call_sid)


async def masked_call_without_answer(stage: Stage) -> str:
    """The SID of a masked call whose first party was busy, so that nothing of it is recorded."""
    await caller_id()(stage)
    call_sid = await start_masked(stage, BUSY, ECHO)
    await masked_when(stage, call_sid, "no-answer")
    return call_sid


async def start_masked(stage: Stage, a: str, b: str) -> str:
    """Connect two numbers of the sandbox; returns the SID of the call."""
    body = {"party_a": a.removeprefix("+91"), "party_b": b.removeprefix("+91")}
    return str((await stage.data("POST", "/v1/masking/calls", body=body))["call_sid"])


async def masked_when(stage: Stage, call_sid: str, status: str) -> dict[str, Any]:
    """A masked call once it has a status."""
    async with asyncio.timeout(PATIENCE_S):
        while (call := await stage.data("GET", f"/v1/masking/calls/{call_sid}"))["status"] != status:
            assert call["status"] not in MASKED_ENDED, call
            await look_again()
    assert isinstance(call, dict)
    return call


# Webhook subscriptions

SUBSCRIPTIONS = "/v1/webhooks/subscriptions"


def subscription(path: str = "/taken", by: str = "own") -> Given:
    """The id of a subscription to missed calls, whose URL is a path of the stage's receiver."""

    async def given(stage: Stage) -> str:
        return await subscribe(stage, path, by)

    return given


async def subscribe(stage: Stage, path: str, by: str = "own") -> str:
    """Subscribe a path of the stage's receiver to missed calls; the id."""
    body = {"url": stage.receiver.url(path), "event_types": ["call.missed"], "secret": "a long secret"}
    return str((await stage.data("POST", SUBSCRIPTIONS, by=by, body=body))["id"])


async def delivered(stage: Stage) -> dict[str, str]:
    """A subscription, and a delivery to it that was taken."""
    return await _missed_once(stage, "/taken", "delivered")


async def not_delivered(stage: Stage) -> dict[str, str]:
    """A subscription, and a delivery to it that failed for good; the receiver would take it by now."""
    stage.receiver.answers["/gone"] = statuses(410)
    made = await _missed_once(stage, "/gone", "failed")
    del stage.receiver.answers["/gone"]
    stage.kept["not delivered"] = made["delivery_id"]
    # The receiver said that it is gone, which paused the subscription.
    await stage.data("PATCH", f"{SUBSCRIPTIONS}/{made['id']}", body={"is_active": True})
    return made


async def _missed_once(stage: Stage, path: str, status: str) -> dict[str, str]:
    """Make a caller miss a busy callee; returns the delivery of that event, in its final state."""
    subscription_id = await subscribe(stage, path)
    number_id, number = await add_number(stage, "own", registered=True)
    binding = {"target": "forward", "forward_to": BUSY}
    await stage.data("PUT", f"/v1/phone-numbers/{number_id}/inbound", body=binding)
    assert stage.server.sandbox is not None
    await stage.server.sandbox.place_call(number)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            log = await stage.data("GET", f"{SUBSCRIPTIONS}/{subscription_id}/deliveries")
            if [item["status"] for item in log] == [status]:
                return {"id": subscription_id, "delivery_id": str(log[0]["id"])}
            await look_again()


# What cases look at


async def nothing(stage: Stage, answer: Answer) -> None:
    """The answer shows nothing at all."""
    assert answer.data == [] and answer.meta["total"] == 0, answer


async def has_no_route(_: Stage, answer: Answer) -> None:
    """The refusal says that the party has no route, and asks nobody to repeat the request."""
    assert {error["reason"] for error in answer.error["details"]["errors"]} == {"no_route"}, answer
    assert "Retry-After" not in answer.headers
