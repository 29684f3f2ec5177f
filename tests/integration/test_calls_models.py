"""Calls whose agent is a vendor's realtime speech model, played by a strict stand-in of each vendor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.errors import NotFound, ToolFailed
from callcontrol.models import CallStatus
from fixtures.model_deepgram import DeepgramServer
from fixtures.model_elevenlabs import ElevenLabsServer
from fixtures.model_gemini import GeminiServer
from fixtures.model_openai import OpenAIServer
from fixtures.model_server import Fault, ModelServer, ModelSession, Script
from fixtures.model_ultravox import UltravoxServer
from media.aio.agent_settings import AgentStreamSettings
from media.audio import tone
from media.streams import MODEL_DIALECTS, ModelDialect, ModelTool
from sip import Answered, Ended, Failed
from tests.support.domain import ACCOUNT_SID, CALLEE, OWN_NUMBER, make_account
from tests.support.levels import tone_level_dbfs
from tests.support.phone import PATIENCE_S, PhoneCall, eventually
from tests.support.voice import Voice
from tests.support.webhook_stage import SECRET, Receiver
from tests.support.world import World, running

_VENDORS: tuple[type[ModelServer], ...] = (
    OpenAIServer,
    DeepgramServer,
    GeminiServer,
    ElevenLabsServer,
    UltravoxServer,
)
SERVERS: dict[str, type[ModelServer]] = {server.provider: server for server in _VENDORS}
EVERY_VENDOR = pytest.mark.parametrize("vendor", sorted(SERVERS))
PRODUCT = AgentStreamSettings()


class Account:
    """The stored keys and tools of the account."""

    def __init__(self) -> None:
        self.used: list[tuple[str, Mapping[str, Any]]] = []
        self.described: Sequence[str] = ()

    async def api_key(self, account_sid: str, name: str) -> str:
        if name != "stored":
            raise NotFound(f"There is no stored key {name}.")
        return "model-key"

    async def describe(self, account_sid: str, names: Sequence[str]) -> Sequence[ModelTool]:
        self.described = names
        schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
        return [ModelTool("look_up", "Looks up an order.", schema)]

    async def use(self, account_sid: str, name: str, arguments: Mapping[str, Any]) -> str:
        self.used.append((name, arguments))
        if "order" not in arguments:
            raise ToolFailed("arguments.order is required")
        return json.dumps({"status": "shipped"})


class Stage:
    """A world beside a vendor."""

    def __init__(self, world: World, server: ModelServer, account: Account) -> None:
        self.world = world
        self.server = server
        self.account = account

    def bind(self, fallback_url: str | None = None, **model: Any) -> None:
        self.world.bind(target="model", model=self.model(**model), fallback_url=fallback_url)

    def model(self, **fields: Any) -> dict[str, Any]:
        return {
            "provider": self.server.provider,
            "model": "model-1",
            "api_key": "model-key",
            "url": self.server.url,
            **fields,
        }

    async def call(self, **model: Any) -> tuple[PhoneCall, ModelSession]:
        """An inbound call that is answered by the model."""
        self.bind(**model)
        call = self.world.phone.call(OWN_NUMBER, self.world.port)
        await call.wait(Answered)
        return call, await self.server.session()

    async def over(self, call: PhoneCall, session: ModelSession) -> Any:
        """Hang up; returns the record of a call in which nothing was wrong."""
        call.hang_up()
        record = await self.world.ended()
        await asyncio.wait_for(session.closed.wait(), PATIENCE_S)
        assert session.problems == []
        return record


@asynccontextmanager
async def staged(
    directory: Path,
    vendor: str,
    script: Script | None = None,
    *,
    fault: Fault | None = None,
    streams: AgentStreamSettings = PRODUCT,
    **world: Any,
) -> AsyncIterator[Stage]:
    account = Account()
    server = SERVERS[vendor](script, fault=fault)
    async with server.running(), running(directory, models=account, streams=streams, **world) as opened:
        yield Stage(opened, server, account)


def said(server: ModelServer, frequency_hz: int, length_ms: int) -> bytes:
    """A tone at the rate that the vendor speaks at."""
    return tone(frequency_hz, length_ms, sample_rate=server.rate_hz)


def heard(session: ModelSession, frequency_hz: float) -> bool:
    """True if the last 400 ms that the vendor got are a tone."""
    rate_hz = session.server.heard_as[1]
    last = bytes(session.heard[-rate_hz * 8 // 10 :])
    return len(last) == rate_hz * 8 // 10 and tone_level_dbfs(last, frequency_hz, rate_hz) > -20.0


@EVERY_VENDOR
async def test_question_and_answer_are_heard_both_ways(tmp_path: Path, vendor: str) -> None:
    async def script(session: ModelSession) -> None:
        assert await session.until(lambda session: heard(session, 440.0))
        await session.hear("Where is my order?")
        await session.say(said(session.server, 1000, 4000), "It is on its way.")

    async with staged(tmp_path, vendor, script) as stage:
        call, session = await stage.call(instructions="Be brief.", language="en-IN")
        call.speak(440.0)
        await call.hears(1000.0)
        record = await stage.over(call, session)
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "caller")
    assert record.stream is not None
    assert (record.stream.protocol, record.stream.model) == (vendor, "model-1")
    assert "Be brief." in json.dumps(session.setup)
    spoken = [(segment.role, segment.text) for segment in stage.world.segments]
    assert spoken == [("user", "Where is my order?"), ("agent", "It is on its way.")]


async def test_a_vendor_that_takes_the_format_of_the_stream_hears_it(tmp_path: Path) -> None:
    async with staged(tmp_path, "elevenlabs") as stage:
        stage.server.heard_as, stage.server.rate_hz = ("l16", 16_000), 16_000
        call, session = await stage.call()
        call.speak(440.0)
        assert await session.until(lambda session: heard(session, 440.0))
        await stage.over(call, session)


@EVERY_VENDOR
async def test_a_greeting_is_asked_for_when_the_call_is_answered(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        stage.world.phone.on_call = PhoneCall.ring
        await stage.world.place(model=stage.model(greeting="Namaste, this is Trunkline."))
        call = await stage.world.phone.next_call()
        session = await stage.server.session()
        if not MODEL_DIALECTS[vendor].begins_with_call:
            assert await session.until(lambda session: bool(session.setup))
        assert session.server.greetings(session) == []
        call.answer()
        assert await session.until(lambda session: bool(session.server.greetings(session)))
        (greeting,) = session.server.greetings(session)
        assert "Namaste, this is Trunkline." in greeting
        await session.say(said(session.server, 700, 3000), "Namaste, this is Trunkline.")
        await call.hears(700.0)
        await stage.over(call, session)


@EVERY_VENDOR
async def test_an_interruption_drops_what_was_not_heard(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call()
        await session.say(said(session.server, 1000, 20_000), "A long answer.")
        await call.hears(1000.0)
        await session.interrupt()
        await call.hears_silence()
        if session.server.is_truncated:
            assert await session.until(lambda session: bool(session.truncated))
            ((_, heard_ms),) = session.truncated
            assert 100 < heard_ms < 10_000
        await session.say(said(session.server, 600, 3000), "Yes?")
        await call.hears(600.0)
        await stage.over(call, session)


@pytest.mark.parametrize("vendor", ["elevenlabs", "gemini", "openai"])
async def test_audio_in_json_is_played_without_being_parsed(
    tmp_path: Path, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect = MODEL_DIALECTS[vendor]
    parsed: list[bytes] = []
    decode = dialect.decode

    def noting(self: ModelDialect, data: bytes) -> Any:
        parsed.append(data)
        return decode(self, data)

    monkeypatch.setattr(dialect, "decode", noting)
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call()
        for frequency_hz in (1000, 600):
            await session.say(said(session.server, frequency_hz, 20_000), "A long answer.")
            await call.hears(frequency_hz)
            await session.interrupt()
            await call.hears_silence()
        if session.server.is_truncated:
            assert await session.until(lambda session: len(session.truncated) == 2)
            assert all(100 < heard_ms < 10_000 for _, heard_ms in session.truncated)
        await stage.over(call, session)
    # Answers come in a burst here: so much of one is on its way before the first piece of it is understood.
    most = {"elevenlabs": 0, "gemini": 32, "openai": 2 * 32}[vendor]
    assert sum(len(data) > 1000 for data in parsed) <= most


@EVERY_VENDOR
async def test_pressed_keys_are_a_text(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call()
        await session.say(said(session.server, 1000, 10_000), "Press your number.")
        await call.hears(1000.0)
        call.open().send_dtmf("123#")
        assert await session.until(lambda session: any("123#" in text for text in session.texts))
        await stage.over(call, session)


@EVERY_VENDOR
async def test_a_tool_of_the_account_is_used(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call(tools=["look_up", "hangup"], api_key=None, key="stored")
        good = await session.use_tool("look_up", order="7")
        bad = await session.use_tool("look_up")
        unknown = await session.use_tool("drop_tables")
        assert await session.until(lambda session: len(session.results) == 3)
        assert json.loads(session.results[good]) == {"status": "shipped"}
        assert "arguments.order" in session.results[bad]
        assert "no such tool" in session.results[unknown]
        await stage.over(call, session)
    assert stage.account.used == [("look_up", {"order": "7"}), ("look_up", {})]
    if session.server.takes_tools:
        assert "Looks up an order." in json.dumps(session.setup)


@EVERY_VENDOR
async def test_a_function_call_transfers_the_caller(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call(tools=["transfer"])
        failed = await session.use_tool("transfer", to="nobody")
        assert await session.until(lambda session: failed in session.results)
        assert "error" in json.loads(session.results[failed])
        await session.use_tool("transfer", to=CALLEE)
        b = await stage.world.phone.next_call(2)
        b.speak(1500.0)
        await call.hears(1500.0)
        await asyncio.wait_for(session.closed.wait(), PATIENCE_S)
        call.hang_up()
        record = await stage.world.ended()
    assert stage.world.published("call.transferred")["data"]["transfer"]["to"] == CALLEE
    assert record.status is CallStatus.COMPLETED and session.problems == []


@EVERY_VENDOR
async def test_a_model_hangs_up_after_what_it_has_said(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call(tools=["hangup"])
        await session.say(said(session.server, 900, 1500), "Goodbye.")
        await session.use_tool("hangup")
        await call.hears(900.0)
        await call.wait(Ended)
        record = await stage.world.ended()
    assert (record.status, record.hangup_source) == (CallStatus.COMPLETED, "stream")


@EVERY_VENDOR
async def test_a_call_is_held_and_keys_are_sent(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call(tools=["hold", "send_digits"])
        held = await session.use_tool("hold", active=True)
        assert await session.until(lambda session: held in session.results)
        assert json.loads(session.results[held]) == {"on_hold": True}
        sent = await session.use_tool("send_digits", digits="42")
        assert await session.until(lambda session: sent in session.results)
        assert json.loads(session.results[sent]) == {"sent": "42"}
        assert await eventually(lambda: call.digits == "42")
        await stage.over(call, session)


@pytest.mark.parametrize("vendor", ["deepgram", "elevenlabs"])
async def test_a_model_that_is_paused_hears_silence(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call()
        call.speak(440.0)
        assert await session.until(lambda session: heard(session, 440.0))
        pause = LiveUpdate(listen_status="pause")
        await stage.world.control.update_call(ACCOUNT_SID, stage.world.records.only().call_sid, pause)
        # Deepgram ends a session that gets nothing for some seconds; the audio of ElevenLabs is converted.
        assert await session.until(lambda session: not any(session.heard[-8000:]))
        await stage.over(call, session)


@EVERY_VENDOR
async def test_the_end_of_a_session_ends_the_call(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call()
        await session.end()
        await call.wait(Ended)
        record = await stage.world.ended()
    assert (record.status, record.hangup_cause) == (CallStatus.COMPLETED, "NORMAL_CLEARING")


@EVERY_VENDOR
async def test_a_wrong_key_is_told_and_shown_nowhere(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor, fault="unauthorized") as stage:
        stage.bind(api_key="sk-very-secret")
        call = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await call.wait(Failed)
        record = await stage.world.ended()
        data = stage.world.published("stream.failed")["data"]
    assert (data["reason"], data["http_status"]) == ("http_status", 401)
    assert (record.status, record.hangup_cause) == (CallStatus.FAILED, "STREAM_DISCONNECTED")
    assert "sk-very-secret" not in repr(record) + repr(stage.world.records.events)


async def test_a_key_that_is_not_stored_is_told(tmp_path: Path) -> None:
    async with staged(tmp_path, "openai") as stage:
        stage.bind(api_key=None, key="missing")
        call = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await call.wait(Failed)
        await stage.world.ended()
        assert stage.world.published("stream.failed")["data"]["reason"] == "key"
    assert stage.server.sessions == []


@EVERY_VENDOR
async def test_a_quota_error_is_told_before_anybody_is_answered(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor, fault="quota") as stage:
        stage.bind()
        call = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await call.wait(Failed)
        await stage.world.ended()
        data = stage.world.published("stream.failed")["data"]
    assert data["reason"] == "rejected"
    assert "quota" in json.dumps(data["error"]).lower()
    assert "model-key" not in json.dumps(data)


async def test_a_vendor_without_quota_is_followed_by_words_and_another_vendor(tmp_path: Path) -> None:
    server, customer = OpenAIServer(), Receiver()
    await customer.start()
    async with (
        server.running(),
        staged(tmp_path, "ultravox", fault="quota", speech=Voice({"sorry": 1500.0})) as stage,
    ):
        other = {**stage.model(url=server.url), "provider": "openai"}
        verbs = [{"verb": "say", "text": "sorry"}, {"verb": "model", **other}]
        customer.answers["/spare"] = lambda _: web.json_response(verbs)
        stage.world.directory.put(accounts=[make_account(webhook_secret=SECRET)])
        stage.bind(fallback_url=customer.url("/spare"))
        call = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await call.hears(1500.0)
        session = await server.session()
        await session.say(said(server, 800, 3000))
        await call.hears(800.0)
        record = await stage.over(call, session)
    await customer.close()
    (asked,) = customer.requests
    data = json.loads(asked.body)["data"]
    assert (data["error_reason"], stage.server.sessions) == ("rejected", [])
    assert record.status is CallStatus.COMPLETED and record.stream.protocol == "openai"


@EVERY_VENDOR
async def test_a_slow_start_is_waited_for(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor, fault="slow_start") as stage:
        stage.bind()
        call = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        session = await stage.server.session()
        assert await session.until(lambda session: bool(session.setup))
        assert not any(isinstance(event, Answered) for event in call.events)
        session.released.set()
        await call.wait(Answered)
        await session.say(said(session.server, 800, 3000))
        await call.hears(800.0)
        await stage.over(call, session)


@EVERY_VENDOR
async def test_a_start_that_is_too_slow_is_a_failure(tmp_path: Path, vendor: str) -> None:
    streams = replace(PRODUCT, model_timeout_s=0.5)
    async with staged(tmp_path, vendor, fault="slow_start", streams=streams) as stage:
        stage.bind()
        call = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        await call.wait(Failed)
        await stage.world.ended()
        assert stage.world.published("stream.failed")["data"]["reason"] == "timeout"
        session = await stage.server.session()
        await asyncio.wait_for(session.closed.wait(), PATIENCE_S)


@EVERY_VENDOR
async def test_a_session_that_breaks_is_continued_with_its_conversation(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call(greeting="Hello.")
        await session.hear("My name is Asha.")
        await session.say(said(session.server, 1000, 300), "Hello Asha.")
        await call.hears(1000.0)
        assert await eventually(lambda: len(stage.world.segments) == 2)
        await session.end(1011)
        again = await stage.server.session(1)
        assert await again.until(lambda session: "Asha" in session.server.context(session))
        await again.say(said(again.server, 600, 3000), "Where were we?")
        await call.hears(600.0)
        assert again.server.greetings(again) == []
        record = await stage.over(call, again)
    assert record.status is CallStatus.COMPLETED


@EVERY_VENDOR
async def test_an_error_during_the_call_is_told_and_not_tried_again(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor) as stage:
        call, session = await stage.call()
        await session.fail("insufficient_quota", "You exceeded your quota.")
        await call.wait(Ended)
        record = await stage.world.ended()
        data = stage.world.published("stream.failed")["data"]
    assert len(stage.server.sessions) == 1
    assert data["reason"] in ("rejected", "dropped") and "quota" in json.dumps(data["error"]).lower()
    assert record.hangup_cause == "STREAM_DISCONNECTED"


@EVERY_VENDOR
async def test_nonsense_of_a_vendor_harms_nothing(tmp_path: Path, vendor: str) -> None:
    async with staged(tmp_path, vendor, fault="garbage") as stage:
        stage.bind(max_retries=0)
        call = stage.world.phone.call(OWN_NUMBER, stage.world.port)
        assert await eventually(lambda: any(isinstance(event, Ended | Failed) for event in call.events))
        await stage.world.ended()
        data = stage.world.published("stream.failed")["data"]
    # As the nonsense comes before the stream has begun, amid it, or after the vendor has closed.
    assert data["reason"] in ("protocol", "dropped", "rejected")


async def test_usage_is_in_the_record(tmp_path: Path) -> None:
    async with staged(tmp_path, "openai") as stage:
        call, session = await stage.call()
        for _ in range(2):
            await session.say(said(session.server, 1000, 200), "One.")
        await call.hears(1000.0)
        assert await eventually(
            lambda: (stage.world.records.only().stream.usage or {}).get("responses") == 2  # type: ignore[union-attr]  # A stream is there.
        )
        record = await stage.over(call, session)
    assert record.stream.usage == {
        "responses": 2,
        "input_tokens": 200,
        "output_tokens": 100,
        "input_audio_tokens": 160,
        "cached_tokens": 20,
        "output_audio_tokens": 80,
    }


async def test_a_verb_connects_a_model(tmp_path: Path) -> None:
    async with staged(tmp_path, "openai") as stage:
        await stage.world.place({"verb": "model", **stage.model()}, {"verb": "hangup"})
        call = await stage.world.phone.next_call()
        session = await stage.server.session()
        assert await session.until(lambda session: bool(session.setup))
        await session.say(said(session.server, 800, 3000))
        await call.hears(800.0)
        await stage.over(call, session)
