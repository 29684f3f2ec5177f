"""Calls whose steps a customer's server says, over real HTTP, SIP and RTP."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.agents.agent import new_agent
from callcontrol.calls.events.commands import RedirectRequested
from callcontrol.directory.directory import Changes
from callcontrol.errors import Forbidden, ValidationFailed
from callcontrol.models import CallStatus
from media.audio import Clip, tone, write_wav
from sip import Answered, Ended, Failed, Progress
from tests.support.agent_bot import Bot
from tests.support.domain import ACCOUNT_SID, CALLEE, NOW, OTHER_SID, OWN_NUMBER, make_number
from tests.support.phone import PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.webhook_stage import SECRET, Received, Receiver
from tests.support.world import World, instructed

AGENT = "0a6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
OTHER_AGENT = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
SECOND = "+919812345678"


class Shop:
    """A customer: its server, which says what calls do, and its telephone world."""

    def __init__(self, world: World, server: Receiver) -> None:
        self.world = world
        self.server = server

    def says(self, path: str, *verbs: dict[str, Any], body: str | None = None, **headers: str) -> None:
        text = json.dumps(list(verbs)) if body is None else body
        kind = headers.pop("content_type", "application/json")
        self.server.answers[path] = lambda _: web.Response(text=text, content_type=kind, headers=headers)

    def answers(self, path: str, answer: Callable[[Received], web.StreamResponse]) -> None:
        self.server.answers[path] = answer

    def asked(self, path: str) -> list[Received]:
        return [got for got in self.server.requests if got.path == path]

    def bind(self, **binding: Any) -> None:
        self.world.bind(**{"target": "webhook", "webhook_url": self.server.url("/calls"), **binding})

    def call(self, **options: Any) -> PhoneCall:
        return self.world.phone.call(OWN_NUMBER, self.world.port, **options)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "beep.wav").write_bytes(write_wav(Clip(tone(700.0, 1500))))
    async with instructed(tmp_path, prompts_dir=prompts) as (world, server):
        yield Shop(world, server)


PLAY, PAUSE, HANGUP = (
    {"verb": "play", "url": "prompt:beep"},
    {"verb": "pause", "length": 60},
    {"verb": "hangup"},
)
DIAL = {"verb": "dial", "target": [{"type": "phone", "number": SECOND}], "timeout": 20}


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


async def listen(bot: Bot) -> None:
    await bot.until_closed()


def parameters(bot: Bot) -> dict[str, str]:
    """Return the parameters in the agent's start frame."""
    assert len(bot.received) >= 2
    found: dict[str, str] = bot.received[1]["start"]["custom_parameters"]
    return found


async def test_each_request_is_in_the_journal_with_its_answer_and_without_secrets(shop: Shop) -> None:
    seen = list[str]()

    def answer(got: Received) -> web.Response:
        seen.append(got.headers["webhook-signature"].removeprefix("v1,"))
        if len(seen) == 1:
            return web.Response(status=503, text=f"<b>down</b> {SECRET} {seen[0]}")
        # What is refused is shown as well.
        said = {"verb": "say", "text": "Your code is 4815."}
        return web.json_response([said, {"verb": "hangup"}, {"verb": "pause", "password": "HUSH"}])

    shop.answers("/calls", answer)
    shop.bind()
    a = shop.call()
    await a.wait(Failed)
    record = await shop.world.ended()
    entries = shop.world.records.journal.of(record.call_sid)
    asked = [entry for entry in entries if entry.kind == "webhook"]
    assert [(entry.name, entry.details["attempt"], entry.details["status"]) for entry in asked] == [
        ("call.incoming", 1, 503),
        ("call.incoming", 2, 200),
    ]
    first, second = (entry.bodies for entry in asked)
    assert first is not None and second is not None
    assert json.loads(first.request) == json.loads(second.request)
    assert json.loads(first.request)["event"] == "call.incoming"
    assert first.answer is not None and first.answer.startswith("<b>down</b> ***")
    assert SECRET not in first.answer and seen[0] not in first.answer
    assert second.answer is not None and "hangup" in second.answer
    assert "HUSH" not in second.answer and "4815" not in second.answer


async def test_a_caller_hears_what_the_customers_server_says(shop: Shop) -> None:
    shop.bind()
    shop.says("/calls", {"verb": "answer"}, PLAY, HANGUP)
    call = shop.call(headers=[("X-Campaign", "autumn")])
    await call.wait(Answered)
    await call.hears(700.0)
    await call.wait(Ended)
    record = await shop.world.ended()
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "api")
    assert any(isinstance(event, Progress) and event.status == 180 for event in call.events)
    (asked,) = shop.asked("/calls")
    body = json.loads(asked.body)
    assert asked.method == "POST"
    assert set(body) == {"event", "event_id", "timestamp", "data"}
    assert body["event"] == asked.headers["X-Service-Event"] == "call.incoming"
    data = body["data"]
    assert (data["status"], data["direction"], data["call_sid"]) == ("ringing", "inbound", record.call_sid)
    assert (data["from"], data["to"]) == ("+919811111111", OWN_NUMBER)
    assert data["headers"] == {"X-Campaign": "autumn"}
    assert data["sip_call_id"] == record.sip_call_id
    digest = hmac.new(SECRET.encode(), asked.body, hashlib.sha256).hexdigest()
    assert asked.headers["X-Service-Signature"] == f"sha256={digest}"
    signed = f"{asked.headers['webhook-id']}.{asked.headers['webhook-timestamp']}.".encode() + asked.body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    assert asked.headers["webhook-signature"] == f"v1,{expected}"


async def test_a_server_that_is_asked_by_get_has_the_fields_in_the_query(shop: Shop) -> None:
    shop.bind(webhook_method="GET", webhook_url=shop.server.url("/calls?shop=7"))
    shop.says("/calls", {"verb": "reject", "status": 603})
    call = shop.call()
    await call.wait(Failed)
    record = await shop.world.ended()
    assert (record.status, record.sip_status, record.hangup_cause) == (CallStatus.BUSY, 603, "CALL_REJECTED")
    (asked,) = shop.asked("/calls")
    assert (asked.method, asked.query["shop"], asked.query["call_sid"]) == ("GET", "7", record.call_sid)


async def test_the_caller_is_passed_through_to_whom_the_server_has_dialled(shop: Shop) -> None:
    shop.bind()
    shop.says("/calls", {**DIAL, "caller_id": "passthrough"}, {"verb": "redirect", "url": "/after"})
    shop.says("/after", PLAY, HANGUP)
    shop.world.phone.on_call = ring_and_answer
    a = shop.call()
    await a.wait(Answered)
    b = await shop.world.phone.next_call(2)
    assert (b.request.uri.user, b.request.from_.uri.user) == (SECOND, "+919811111111")
    a.speak(440.0)
    await b.hears(440.0)
    b.hang_up()
    await a.hears(700.0)
    record = await shop.world.ended()
    assert record.price_paise == 40 + 60
    (again,) = shop.asked("/after")
    assert json.loads(again.body)["event"] == "call.redirected"
    assert json.loads(again.body)["data"]["status"] == "in-progress"


async def test_one_action_may_be_a_stream(shop: Shop) -> None:
    async with Bot(listen).running() as bot:
        shop.bind()
        action = {"action": "stream", "stream_url": bot.url, "custom_parameters": {"shop": "7"}}
        shop.says("/calls", body=json.dumps(action))
        call = shop.call()
        await call.wait(Answered)
        assert parameters(bot) == {"shop": "7"}
        call.hang_up()
        await shop.world.ended()


@pytest.mark.parametrize("body", ["", "[]", "{}"])
async def test_a_server_without_a_word_lets_it_ring(shop: Shop, body: str) -> None:
    shop.bind(timeout_s=5)
    shop.says("/calls", body=body)
    call = shop.call()
    assert await eventually(lambda: len(shop.asked("/calls")) == 1)
    await time_passes(0.2)
    record = shop.world.records.only()
    assert record.status is CallStatus.RINGING
    call.session.hangup()
    await shop.world.ended()


async def test_a_server_that_fails_is_asked_twice_and_the_caller_gets_480(shop: Shop) -> None:
    shop.bind()
    shop.answers("/calls", lambda _: web.Response(status=500))
    call = shop.call()
    failed = await call.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    record = await shop.world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "NORMAL_TEMPORARY_FAILURE")
    first, second = shop.asked("/calls")
    assert first.delivery_id == second.delivery_id, "one question, asked twice"
    alert = shop.world.published("webhook.failed")["data"]
    assert (alert["reason"], alert["http_status"], alert["attempts"]) == ("http_status", 500, 2)


async def test_the_second_try_may_succeed(shop: Shop) -> None:
    shop.bind()
    answers = iter([web.Response(status=503), web.json_response([{"verb": "reject"}])])
    shop.answers("/calls", lambda _: next(answers))
    await shop.call().wait(Failed)
    assert (await shop.world.ended()).status is CallStatus.BUSY


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        ({"body": '[{"verb":"dance"}]'}, "instruction", "[0].verb: must be one of"),
        ({"body": "not json"}, "instruction", "body: must be JSON"),
        ({"body": "[" * 9000}, "instruction", "body: must be JSON"),
        ({"body": "hello", "content_type": "text/plain"}, "instruction", "Content-Type"),
        (
            {"body": '[{"verb":"dial","target":[{"number":"+442071234567"}]}]'},
            "instruction",
            "are not allowed",
        ),
        ({"body": '[{"verb":"redirect","url":"http://forbidden.example/"}]'}, "instruction", "[0].url"),
        ({"body": " " * 70_000}, "protocol", "longer than"),
    ],
)
async def test_what_cannot_be_followed_ends_the_call_and_is_told(
    shop: Shop, answer: dict[str, str], reason: str, message: str
) -> None:
    shop.bind()
    shop.says("/calls", **answer)
    await shop.call().wait(Failed)
    assert (await shop.world.ended()).status is CallStatus.FAILED
    alert = shop.world.published("webhook.failed")["data"]
    assert alert["reason"] == reason
    assert message in alert["message"]


async def test_a_redirect_of_http_is_not_followed_and_a_dead_server_is_named(shop: Shop) -> None:
    shop.bind()
    shop.answers("/calls", lambda _: web.Response(status=302, headers={"Location": "/elsewhere"}))
    await shop.call().wait(Failed)
    await shop.world.ended()
    assert not shop.asked("/elsewhere")
    assert shop.world.published("webhook.failed")["data"]["http_status"] == 302


async def test_nobody_listens_where_the_question_goes(shop: Shop) -> None:
    shop.bind(webhook_url="http://127.0.0.1:1/calls")
    await shop.call().wait(Failed)
    await shop.world.ended()
    assert shop.world.published("webhook.failed")["data"]["reason"] == "connect"


async def test_a_caller_who_gives_up_is_not_asked_about_any_more(shop: Shop) -> None:
    shop.bind()
    held = asyncio.Event()

    async def hold(_: Received) -> web.StreamResponse:
        await held.wait()
        return web.json_response([PLAY])

    shop.server.answers["/calls"] = hold
    call = shop.call()
    assert await eventually(lambda: len(shop.asked("/calls")) == 1)
    call.session.hangup()
    record = await shop.world.ended()
    held.set()
    assert record.status is CallStatus.NO_ANSWER


# --- placed calls -------------------------------------------------------------------------------------------


async def test_a_placed_call_asks_once_it_is_answered(shop: Shop) -> None:
    shop.says("/next", PLAY, HANGUP)
    shop.world.phone.on_call = ring_and_answer
    record = await shop.world.place(webhook_url=shop.server.url("/next"), tag="t-1")
    call = await shop.world.phone.next_call()
    await call.hears(700.0)
    assert (await shop.world.ended()).status is CallStatus.COMPLETED
    (asked,) = shop.asked("/next")
    body = json.loads(asked.body)
    assert (body["event"], body["data"]["status"]) == ("call.answered", "in-progress")
    assert (body["data"]["call_sid"], body["data"]["tag"]) == (record.call_sid, "t-1")


async def test_a_call_that_is_up_is_sent_elsewhere(shop: Shop) -> None:
    shop.says("/next", PLAY, HANGUP)
    shop.world.phone.on_call = ring_and_answer
    record = await shop.world.place(PAUSE)
    call = await shop.world.phone.next_call()
    assert await eventually(lambda: record.status is CallStatus.IN_PROGRESS)
    shop.world.control._runners[record.call_sid].post(RedirectRequested(shop.server.url("/next")))
    await call.hears(700.0)
    await shop.world.ended()


async def test_a_call_that_waits_for_its_server_may_be_sent_elsewhere_in_vain(shop: Shop) -> None:
    held = asyncio.Event()

    async def hold(_: Received) -> web.StreamResponse:
        await held.wait()
        return web.json_response([PLAY, HANGUP])

    shop.server.answers["/calls"] = hold
    shop.says("/next", {"verb": "dance"})
    shop.world.phone.on_call = ring_and_answer
    record = await shop.world.place(webhook_url=shop.server.url("/calls"))
    call = await shop.world.phone.next_call()
    assert await eventually(lambda: len(shop.asked("/calls")) == 1)
    shop.world.control._runners[record.call_sid].post(RedirectRequested(shop.server.url("/next")))
    assert await eventually(lambda: "webhook.failed" in shop.world.records.event_names())
    held.set()
    await call.hears(700.0)
    await shop.world.ended()


@pytest.mark.parametrize("url", ["https://forbidden.example/", ""])
async def test_a_server_that_must_not_be_asked_is_refused_at_once(shop: Shop, url: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        await shop.world.place(webhook_url=url)
    assert [error.field for error in refusal.value.errors] == ["webhook_url"]


# --- voice agents -------------------------------------------------------------------------------------------


def known(shop: Shop, url: str | None) -> None:
    stream = {"stream_url": url, "custom_parameters": {"desk": "1"}} if url is not None else {}
    agents = [
        new_agent(AGENT, ACCOUNT_SID, {"name": "Asha", **stream}, NOW),
        new_agent(OTHER_AGENT, OTHER_SID, {"name": "Other"}, NOW),
    ]
    revision = shop.world.directory.revision + 1
    shop.world.directory.apply(Changes(revision, agents=[(agent, True) for agent in agents]))


async def test_an_agent_talks_to_callers_and_to_whom_is_called(shop: Shop) -> None:
    async with Bot(listen).running() as bot:
        known(shop, bot.url)
        shop.world.bind(target="voice_agent", agent_id=AGENT, workspace_id=AGENT)
        call = shop.call()
        await call.wait(Answered)
        assert parameters(bot) == {"agent_id": AGENT, "desk": "1"}
        call.hang_up()
        await shop.world.ended()
    async with Bot(listen).running() as bot:
        known(shop, bot.url)
        shop.world.phone.on_call = ring_and_answer
        fields = {"custom_parameters": {"desk": "2"}}
        await shop.world.place(agent_id=AGENT.upper(), stream_fields=fields)
        placed = await shop.world.phone.next_call(2)
        assert await eventually(lambda: len(bot.received) >= 2)
        assert parameters(bot) == {"agent_id": AGENT, "desk": "2"}
        placed.hang_up()
        assert await eventually(lambda: shop.world.control.active_calls == 0)


async def test_an_agent_that_cannot_be_had_is_named(shop: Shop) -> None:
    known(shop, None)
    with pytest.raises(ValidationFailed) as refusal:
        await shop.world.place(agent_id=CALLEE)
    assert [error.field for error in refusal.value.errors] == ["agent_id"]
    with pytest.raises(Forbidden):
        await shop.world.place(agent_id=OTHER_AGENT)
    assert not shop.world.records.records


async def test_a_number_whose_agent_is_gone_refuses_its_callers(shop: Shop) -> None:
    known(shop, None)
    shop.world.directory.put(numbers=[make_number()])
    shop.world.bind(target="voice_agent", agent_id=OTHER_AGENT, workspace_id=AGENT)
    failed = await shop.call().wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    assert (await shop.world.ended()).status is CallStatus.FAILED
