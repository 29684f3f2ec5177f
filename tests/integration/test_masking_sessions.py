"""Calls to masked numbers over real SIP and RTP: by session, by the customer's word, and by nobody's."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from api.process.server import Server
from callcontrol.masking.sessions import MaskingSession, SessionRequest
from callcontrol.models import CallFilter, CallRecord
from media.aio import MediaEngine
from sip import Answered, Ended, Failed, Progress
from sip.message.message import serialise
from tests.support.loopback_server import loopback_settings
from tests.support.phone import Phone, PhoneCall, engine_settings
from tests.support.waiting import look_again, until
from tests.support.webhook_stage import Gate, Received, Receiver

_ANY = CallFilter()
MASKED, SECOND_MASKED = "+918047551001", "+918047551002"
PREFIX = "+919810"
"""Numbers that begin so are reached by the telephone."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Exchange:
    """A server whose carrier is one telephone, and a customer with masked numbers."""

    server: Server
    phone: Phone
    customer: Receiver
    account_sid: str
    secret: str
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(100_000))

    def mobile(self) -> str:
        """A number of somebody's who was not heard of before."""
        return f"{PREFIX}{next(self._numbers)}"

    async def begin(self, a: str, b: str, **request: Any) -> MaskingSession:
        return await self.server.storage.masking_sessions.create(
            self.account_sid, SessionRequest(party_a=a, party_b=b, masked_number=MASKED, **request)
        )

    async def close(self, session: MaskingSession) -> None:
        await self.server.storage.masking_sessions.close(self.account_sid, session.session_id)

    @contextlib.asynccontextmanager
    async def routed_by(self, answer: Callable[[Received], Any]) -> AsyncIterator[None]:
        """Route unknown callers by a server of the customer's, for as long as this lasts."""
        settings = self.server.storage.masking_settings
        self.customer.answers["/route"] = answer
        await settings.update(self.account_sid, {"routing_url": self.customer.url("/route")})
        try:
            yield
        finally:
            await settings.update(self.account_sid, {"routing_url": None})

    def call(self, caller: str, number: str = MASKED, **options: Any) -> PhoneCall:
        port = next(item.port for item in self.server.control.user_agent.addresses if item.transport == "udp")
        return self.phone.call(number, port, from_user=caller, **options)

    async def reaches(self, party: str) -> PhoneCall:
        """The call that comes to a party."""

        def found() -> list[PhoneCall]:
            return [call for call in self.phone.calls if _called(call) == party]

        await until(lambda: bool(found()))
        return found()[-1]

    def reached(self, party: str) -> bool:
        return any(_called(call) == party for call in self.phone.calls)

    async def over(self, caller: str) -> CallRecord:
        """The record of a caller's only call, once everything is over."""
        await until(lambda: self.server.control.active_calls == 0)
        await self.server.storage.calls.flush()
        page = await self.server.storage.calls.list(self.account_sid, _ANY, 1, 50)
        (record,) = [item for item in page.items if item.from_ == caller]
        return record

    def asked(self, caller: str | None) -> list[Received]:
        """Return the routing webhook's requests about a caller."""
        questions = [got for got in self.customer.requests if got.path == "/route"]
        return [got for got in questions if json.loads(got.body)["caller_number"] == caller]


async def is_unknown(calling: PhoneCall) -> None:
    """The caller is told something, as only unknown ones are before anybody answers, and has heard enough."""
    progress = await calling.wait(Progress)
    assert isinstance(progress, Progress) and progress.status == 183 and progress.body
    calling.hang_up()


def _called(call: PhoneCall) -> str | None:
    return call.request.uri.user if hasattr(call.session, "request") else None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def exchange(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Exchange]:
    engine = MediaEngine(engine_settings())
    await engine.start()
    phone, customer = Phone(engine), Receiver()
    await phone.start()
    await customer.start()
    server = Server(loopback_settings(tmp_path_factory.mktemp("masked")))
    await server.start()
    storage = server.storage
    try:
        account, _ = await storage.accounts.create("masked", balance_paise=10_000_000, kyc=True, max_cps=100)
        await storage.trunks.add_platform_carrier(
            "Phones", [("udp", "127.0.0.1", phone.port)], prefixes=(PREFIX,)
        )
        for number in (MASKED, SECOND_MASKED):
            await storage.numbers.add(account.account_sid, number)
            await storage.masking_numbers.enrol(account.account_sid, number)
        yield Exchange(server, phone, customer, account.account_sid, account.webhook_secret)
    finally:
        await server.stop()
        await phone.close()
        await customer.close()
        await engine.close()


def ring(call: PhoneCall) -> None:
    call.ring()


def ring_and_answer(call: PhoneCall) -> None:
    call.ring()
    call.answer()


def _telling(number: str) -> list[tuple[str, str]]:
    """Header fields that tell who calls."""
    address = f"<sip:{number}@carrier.example>"
    return [
        ("X-Caller", number),
        ("P-Asserted-Identity", address),
        ("Remote-Party-ID", f"{address};party=calling"),
        ("Diversion", f"{address};reason=unconditional"),
        ("History-Info", f"{address};index=1"),
        ("User-to-User", f"{number.encode().hex()};encoding=hex"),
    ]


async def hang_up(exchange: Exchange, call: PhoneCall) -> None:
    call.hang_up()
    await until(lambda: exchange.server.control.active_calls == 0)


async def test_each_party_reaches_the_other_who_sees_the_masked_number(exchange: Exchange) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    session = await exchange.begin(a, b)
    exchange.phone.on_call = ring_and_answer
    for caller, target, tones in ((a, b, (440.0, 620.0)), (b, a, (500.0, 700.0))):
        calling = exchange.call(caller, headers=_telling(caller))
        called = await exchange.reaches(target)
        await calling.wait(Answered)
        assert called.request.from_.uri.user == MASKED
        assert caller.removeprefix("+91").encode() not in serialise(called.request)
        assert target.removeprefix("+91") not in str(calling.events)
        calling.speak(tones[0])
        called.speak(tones[1])
        await asyncio.gather(called.hears(tones[0]), calling.hears(tones[1]))
        await hang_up(exchange, calling)
        record = await exchange.over(caller)
        assert record.product == "masking" and record.details is not None
        assert (record.status, record.direction) == ("completed", "inbound")
        assert record.details["session_id"] == session.session_id
        assert (record.details["caller_number"], record.details["target_number"]) == (caller, target)
        assert (record.details["masked_number"], record.details["direction"]) == (MASKED, "inbound")


async def test_the_next_call_follows_what_was_made_and_closed_a_moment_ago(exchange: Exchange) -> None:
    a, b, c = exchange.mobile(), exchange.mobile(), exchange.mobile()
    exchange.phone.on_call = lambda call: call.reject(486)
    first = await exchange.begin(a, b)
    await exchange.call(a).wait(Failed)
    assert exchange.reached(b)
    await exchange.close(first)
    await exchange.begin(a, c)
    await exchange.call(a).wait(Failed)
    assert exchange.reached(c)
    assert len([call for call in exchange.phone.calls if _called(call) == b]) == 1


@pytest.mark.parametrize("written", ["{}", "0{}", "91{}", "0091{}"])
async def test_a_party_is_known_however_its_carrier_writes_it(exchange: Exchange, written: str) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    await exchange.begin(a, b)
    exchange.phone.on_call = lambda call: call.reject(486)
    await exchange.call(written.format(a.removeprefix("+91"))).wait(Failed)
    assert exchange.reached(b)
    assert (await exchange.over(a)).details is not None


async def test_an_unknown_caller_hears_that_the_number_is_not_active(exchange: Exchange) -> None:
    caller = exchange.mobile()
    calling = exchange.call(caller)
    await calling.wait(Progress)
    await calling.until(lambda: any(calling.heard))
    failed = await calling.wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    record = await exchange.over(caller)
    assert (record.status, record.hangup_cause) == ("failed", "NO_ROUTE_DESTINATION")
    assert record.price_paise == 0 and record.answered_at is None
    assert record.details is not None and record.details["target_number"] is None


async def test_a_party_is_unknown_on_another_masked_number(exchange: Exchange) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    await exchange.begin(a, b)
    await is_unknown(exchange.call(a, SECOND_MASKED))
    await exchange.over(a)
    assert not exchange.reached(b)


async def test_a_party_that_withholds_its_number_is_unknown(exchange: Exchange) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    await exchange.begin(a, b)
    await is_unknown(exchange.call(a, headers=[("Privacy", "id")]))
    await exchange.over("anonymous")
    assert not exchange.reached(b)


async def test_a_caller_who_gives_up_while_the_prompt_plays(exchange: Exchange) -> None:
    caller = exchange.mobile()
    calling = exchange.call(caller)
    await calling.wait(Progress)
    calling.hang_up()
    record = await exchange.over(caller)
    assert (record.status, record.hangup_cause) == ("no-answer", "ORIGINATOR_CANCEL")


async def test_closing_a_session_ends_nothing_that_rings_or_is_up(exchange: Exchange) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    session = await exchange.begin(a, b)
    exchange.phone.on_call = ring
    calling = exchange.call(a)
    called = await exchange.reaches(b)
    await exchange.close(session)
    called.answer()
    await calling.wait(Answered)
    calling.speak(440.0)
    await called.hears(440.0)
    await hang_up(exchange, called)
    assert (await exchange.over(a)).status == "completed"


async def test_a_session_that_expires_in_mid_call_ends_nothing(exchange: Exchange) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    await exchange.begin(a, b, expires_in_s=1)
    exchange.phone.on_call = ring_and_answer
    calling = exchange.call(a)
    called = await exchange.reaches(b)
    await calling.wait(Answered)

    async def expired() -> bool:
        return await exchange.server.storage.masking_sessions.find(exchange.account_sid, a, MASKED) is None

    async with asyncio.timeout(40):
        while not await expired():  # noqa: ASYNC110 - it is asked of the database
            await look_again()
    calling.speak(440.0)
    await called.hears(440.0)
    await hang_up(exchange, calling)
    assert (await exchange.over(a)).status == "completed"
    await is_unknown(exchange.call(b))
    await exchange.over(b)
    assert not exchange.reached(a)


async def test_the_time_limit_of_a_session_ends_its_calls(exchange: Exchange) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    await exchange.begin(a, b, call_time_limit_s=1)
    exchange.phone.on_call = ring_and_answer
    calling = exchange.call(a)
    called = await exchange.reaches(b)
    await asyncio.gather(calling.wait(Ended), called.wait(Ended))
    record = await exchange.over(a)
    assert (record.status, record.hangup_cause) == ("completed", "ALLOTTED_TIMEOUT")


async def test_the_customer_says_whom_an_unknown_caller_reaches(exchange: Exchange) -> None:
    caller, target = exchange.mobile(), exchange.mobile()
    answer = {"target_number": target.removeprefix("+91"), "max_duration_sec": 60, "record": False}
    exchange.phone.on_call = ring_and_answer
    async with exchange.routed_by(lambda _: web.json_response(answer)):
        calling = exchange.call(caller)
        called = await exchange.reaches(target)
        await calling.wait(Answered)
        assert called.request.from_.uri.user == MASKED
        await hang_up(exchange, called)
    record = await exchange.over(caller)
    (asked,) = exchange.asked(caller)
    body = json.loads(asked.body)
    assert body.pop("timestamp").endswith("Z")
    assert body == {"call_sid": record.call_sid, "caller_number": caller, "masked_number": MASKED}
    digest = hmac.new(exchange.secret.encode(), asked.body, hashlib.sha256).hexdigest()
    assert asked.headers["X-Service-Signature"] == f"sha256={digest}"
    assert asked.headers["X-Service-Event"] == "masking.route"
    assert record.details is not None
    assert (record.details["target_number"], record.details["session_id"]) == (target, None)
    assert record.details["max_duration_sec"] == 60


async def test_a_masked_number_that_calls_another_reaches_nobody(exchange: Exchange) -> None:
    target = exchange.mobile()
    async with exchange.routed_by(lambda _: web.json_response({"target_number": target})):
        # As a masked call comes back that was sent to a masked number: nobody is asked where it goes on to.
        failed = await exchange.call(SECOND_MASKED).wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 480
    assert not exchange.reached(target) and not exchange.asked(SECOND_MASKED)
    assert (await exchange.over(SECOND_MASKED)).hangup_cause == "NO_ROUTE_DESTINATION"


async def test_a_session_goes_before_the_customers_server(exchange: Exchange) -> None:
    a, b = exchange.mobile(), exchange.mobile()
    await exchange.begin(a, b)
    exchange.phone.on_call = lambda call: call.reject(486)
    async with exchange.routed_by(lambda _: web.json_response({"action": "reject"})):
        await exchange.call(a).wait(Failed)
    assert exchange.reached(b) and not exchange.asked(a)


async def test_the_customer_rejects_a_caller(exchange: Exchange) -> None:
    caller = exchange.mobile()
    async with exchange.routed_by(lambda _: web.json_response({"action": "reject"})):
        failed = await exchange.call(caller).wait(Failed)
    assert isinstance(failed, Failed) and failed.status == 603
    assert (await exchange.over(caller)).hangup_cause == "CALL_REJECTED"


def _redirects(_: Received) -> web.Response:
    return web.Response(status=302, headers={"Location": "/elsewhere"})


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: web.Response(text="not JSON"),
        lambda _: web.json_response({"target_number": "+14155550100"}),
        lambda _: web.json_response({"target_number": "9810123456", "padding": "x" * 20_000}),
        lambda _: web.Response(status=500),
        _redirects,
    ],
    ids=["no JSON", "a country that may not be called", "too long", "an error", "a redirect"],
)
async def test_what_the_customer_does_not_say_makes_an_unknown_caller(
    exchange: Exchange, answer: Any
) -> None:
    caller = exchange.mobile()
    async with exchange.routed_by(answer):
        await is_unknown(exchange.call(caller))
        await exchange.over(caller)
    assert len(exchange.asked(caller)) == 1, "a caller waits: it is asked once"
    assert not any(got.path == "/elsewhere" for got in exchange.customer.requests)


async def test_a_customer_who_never_answers_is_not_waited_for(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes: Any = exchange.server.services.masked_routes
    monkeypatch.setattr(routes._client, "_timeout_s", 0.2)
    caller, gate = exchange.mobile(), Gate()
    async with exchange.routed_by(gate):
        calling = exchange.call(caller)
        await until(lambda: gate.waiting == 1)
        await is_unknown(calling)
        gate.open()
        await exchange.over(caller)


async def test_a_caller_who_gives_up_while_the_customer_is_asked(exchange: Exchange) -> None:
    caller, gate = exchange.mobile(), Gate()
    async with exchange.routed_by(gate):
        calling = exchange.call(caller)
        await until(lambda: gate.waiting == 1)
        calling.hang_up()
        record = await exchange.over(caller)
        gate.open()
    assert (record.status, record.hangup_cause) == ("no-answer", "ORIGINATOR_CANCEL")


async def test_the_masking_webhook_hears_of_inbound_calls_in_their_order(exchange: Exchange) -> None:
    a, b, stranger = exchange.mobile(), exchange.mobile(), exchange.mobile()
    session = await exchange.begin(a, b)
    secret, settings = "whsec_" + "x" * 32, exchange.server.storage.masking_settings
    change = {"webhook_url": exchange.customer.url("/events"), "webhook_secret": secret}
    await settings.update(exchange.account_sid, change)

    def told(call_sid: str) -> list[dict[str, Any]]:
        bodies = [json.loads(got.body) for got in exchange.customer.requests if got.path == "/events"]
        return [body for body in bodies if body["data"]["id"] == call_sid]

    async def statuses(caller: str, last: str) -> list[str]:
        record = await exchange.over(caller)
        await until(lambda: any(body["event"] == f"masking.call.{last}" for body in told(record.call_sid)))
        assert all(
            body["event"] == f"masking.call.{body['data']['status']}" for body in told(record.call_sid)
        )
        assert all(body["data"]["direction"] == "inbound" for body in told(record.call_sid))
        return [body["data"]["status"] for body in told(record.call_sid)]

    try:
        exchange.phone.on_call = ring_and_answer
        calling = exchange.call(a)
        await calling.wait(Answered)
        await hang_up(exchange, calling)
        assert await statuses(a, "completed") == ["initiated", "b_ringing", "in-progress", "completed"]
        exchange.phone.on_call = lambda call: call.reject(486)
        await exchange.call(b).wait(Failed)
        assert await statuses(b, "no-answer") == ["initiated", "no-answer"]
        await exchange.call(stranger).wait(Failed)
        assert await statuses(stranger, "failed") == ["initiated", "failed"]
    finally:
        await settings.update(exchange.account_sid, {"webhook_url": None})
    (record,) = {
        body["data"]["session_id"]
        for got in exchange.customer.requests
        if got.path == "/events"
        for body in [json.loads(got.body)]
        if body["data"]["caller_number"] == a
    } - {None}
    assert record == session.session_id
    got = next(got for got in exchange.customer.requests if got.path == "/events")
    digest = hmac.new(secret.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={digest}"
