"""
RTP of calls: a party is sent audio or silence from its answer to its end, whatever the call does.

The short forms take seconds, with a media timeout of three; the long ones wait for as long as customers do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from tests.acceptance.clients.agent import Agent
from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner, Phone, PhoneCall
from tests.acceptance.clients.rtp import assert_unbroken, level, tone
from tests.acceptance.clients.waiting import appears
from tests.acceptance.conftest import customers_of, start_server
from tests.acceptance.stage import ENDED, Customer, Line, mobile, open_line
from tests.support.server_process import ServerProcess

# All of them answer: echo, speech, digits, tone, listener, machine, early media, person.
SANDBOX = [f"+9198000000{number:02}" for number in (1, 2, 6, 7, 9, 10, 11, 12)]
SHORT_S, LONG_S = 7, 100


def waiting(agent: Agent, duration_s: float) -> dict[str, dict[str, Any]]:
    """Calls that wait in their own ways for about as long."""
    pause = {"verb": "pause", "length": duration_s}
    prompt = {"verb": "say", "text": "Press a key."}
    # A timeout of one verb is a minute at most.
    gathers = [
        {"verb": "gather", "timeout": min(60, round(duration_s) - 2), "prompts": [prompt]}
        for _ in range(1 + round(duration_s) // 60)
    ]
    bodies: dict[str, list[dict[str, Any]]] = {
        "pause": [pause],
        "say and pause": [prompt, pause],
        "gather": gathers,
        "record": [{"verb": "record", "max_length": round(duration_s), "silence_timeout": 60}],
        "conference of one": [{"verb": "conference", "name": "alone"}],
    }
    found: dict[str, dict[str, Any]] = {
        name: {"verbs": [*verbs, {"verb": "hangup"}]} for name, verbs in bodies.items()
    }
    found["conference of one"]["time_limit"] = round(duration_s)
    found["silent agent"] = {"stream_url": agent.url(), "time_limit": round(duration_s)}
    return found


async def waited(line: Line, agent: Agent, duration_s: float) -> None:
    """Wait in each way until its end, heard by a telephone."""
    ways = waiting(agent, duration_s)
    rung: dict[str, PhoneCall] = {}
    for number, (name, body) in enumerate(ways.items(), 1):
        await line.place(mobile(number), **body)
        rung[name] = await line.phone.rings(mobile(number))
    for call in rung.values():
        await call.until_answered()
        await call.until_ended(2 * duration_s + 20)
    for name, call in rung.items():
        assert call.ended_at_s - call.answered_at_s > min(duration_s - 3, 60), name
        assert_unbroken(call.rtp, call.answered_at_s, call.ended_at_s, name)


async def test_a_party_hears_rtp_without_a_gap_while_a_call_waits(line: Line, agent: Agent) -> None:
    await waited(line, agent, SHORT_S)


@pytest.mark.long("calls of 100 s")
@pytest.mark.timeout(300)
async def test_a_party_hears_rtp_without_a_gap_for_100_s(line: Line, agent: Agent) -> None:
    await waited(line, agent, LONG_S)


async def test_both_parties_of_a_bridge_hear_rtp_without_a_gap(line: Line) -> None:
    """One speaks and the other is silent, first one way and then the other."""
    line.phone.manners = {mobile(1): Manner(speaks=False), mobile(2): Manner(speaks=False)}
    dial = {"verb": "dial", "target": [{"type": "phone", "number": mobile(2)}], "time_limit": 6}
    placed = await line.place(mobile(1), verbs=[dial, {"verb": "hangup"}])
    first = await (await line.phone.rings(mobile(1))).until_answered()
    second = await (await line.phone.rings(mobile(2))).until_answered()
    second.rtp.speak()
    second.rtp.say(tone(440, 1.0))
    await appears(lambda: level(first.rtp.heard()[-800:]) > 2000, "the second party at the first")
    first.rtp.speak()
    first.rtp.say(tone(440, 1.0))
    await appears(lambda: level(second.rtp.heard()[-800:]) > 2000, "the first party at the second")
    await asyncio.gather(first.until_ended(), second.until_ended())
    await line.ended(placed)
    for name, call in (("first", first), ("second", second)):
        assert_unbroken(call.rtp, call.answered_at_s, call.ended_at_s, name)


# A server that ends calls of silent parties sooner


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on which three seconds without RTP end a call."""
    yield from start_server(tmp_path_factory, MEDIA_TIMEOUT_S="3")


@pytest.fixture(scope="module")
def its_customer(impatient: ServerProcess) -> Customer:
    """A customer of that server."""
    return customers_of(impatient)()


@pytest.fixture
async def its_api(session: aiohttp.ClientSession, impatient: ServerProcess, its_customer: Customer) -> Api:
    """Its API."""
    return Api(session, impatient.url, its_customer.key)


@pytest.fixture
async def its_line(its_api: Api, impatient: ServerProcess) -> AsyncIterator[Line]:
    """A number on a carrier of one's own there."""
    async with Phone(("127.0.0.1", impatient.sip_port)) as phone:
        yield await open_line(its_api, phone)


async def kept_waiting(api: Api, customer: Customer, duration_s: int) -> None:
    """Call every number of the sandbox, and say nothing for as long as that."""
    number, _ = customer.lease()
    verbs = [{"verb": "pause", "length": duration_s}, {"verb": "hangup"}]
    placed = {
        to: (await api.post("/v1/calls", {"from": number, "to": to, "verbs": verbs})).expect(201).data
        for to in SANDBOX
    }
    for to, call in placed.items():
        path = f"/v1/Accounts/{call['account_sid']}/Calls/{call['call_sid']}"
        found = await api.until(path, lambda now: now["status"] in ENDED, timeout_s=duration_s + 20)
        assert (found["status"], found["hangup_cause"]) == ("completed", "NORMAL_CLEARING"), (to, found)
        assert found["duration_sec"] >= duration_s, to


async def test_quiet_calls_to_the_sandbox_are_not_cut(its_api: Api, its_customer: Customer) -> None:
    await kept_waiting(its_api, its_customer, SHORT_S)


@pytest.mark.long("calls of 100 s")
@pytest.mark.timeout(300)
async def test_quiet_calls_to_the_sandbox_last_100_s(api: Api, customer: Customer) -> None:
    await kept_waiting(api, customer, LONG_S)


@pytest.mark.long("the shortest limit of a masked call is ten seconds")
async def test_a_masked_call_between_quiet_parties_is_not_cut(its_api: Api, its_customer: Customer) -> None:
    shop = customers_of(its_customer.server)()
    shop.lease()
    api = its_api.with_key(shop.key)
    body = {"party_a": "9800000009", "party_b": "9800000012", "max_duration_sec": 10}
    call_sid = (await api.post("/v1/masking/calls", body)).expect(201).data["call_sid"]
    found = await api.until(f"/v1/masking/calls/{call_sid}", lambda call: call["ended_at"], timeout_s=30)
    assert (found["status"], found["hangup_cause"]) == ("completed", "ALLOTTED_TIMEOUT")


async def test_the_media_timeout_judges_what_the_far_end_sends_alone(
    its_line: Line, impatient: ServerProcess
) -> None:
    its_line.phone.manner = Manner(speaks=False)
    placed, rung = await its_line.connect(mobile())
    await rung.until_ended()
    found = await its_line.ended(placed)
    assert (found["status"], found["hangup_cause"]) == ("completed", "MEDIA_TIMEOUT")
    assert 2.5 < rung.ended_at_s - rung.answered_at_s < 8
    assert_unbroken(rung.rtp, rung.answered_at_s, rung.ended_at_s)


async def test_a_call_that_was_ended_for_silence_says_which_leg_was_silent(
    its_line: Line, impatient: ServerProcess
) -> None:
    line = its_line
    line.phone.manners = {mobile(2): Manner(speaks=False)}
    dial = {"verb": "dial", "target": [{"type": "phone", "number": mobile(2)}]}
    placed = await line.place(mobile(1), verbs=[dial])
    await line.phone.rings(mobile(2))
    found = await line.ended(placed)
    assert found["hangup_cause"] == "MEDIA_TIMEOUT"
    assert "leg b" in (found["sip_reason"] or ""), found
    told = [text for text in impatient.log().splitlines() if placed["call_sid"] in text]
    assert any("leg b" in text for text in told), told
