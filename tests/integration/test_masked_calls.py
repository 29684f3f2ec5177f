"""Masked calls between real far ends: every way they end, what is heard, and what each side is told."""

import json
import wave
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callcontrol.calls.charges import Rates
from callcontrol.calls.requests import CallMetadata
from callcontrol.masking.calls import PRODUCT, masked_details, masked_object
from callcontrol.masking.steps.connect import masked_plan
from sip import Cancelled, Confirmed, Ended, OfferAnswered, ReferFailed
from sip.aio import InboundSession
from tests.support.domain import ACCOUNT_SID, OWN_NUMBER, make_carrier, make_gateway
from tests.support.levels import tone_level_dbfs
from tests.support.phone import Phone, PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.world import WEBHOOK, World, running

PARTY_A, PARTY_B = "+919812345678", "+919876543210"
BRIDGED = ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        yield world


Behaviour = Callable[[PhoneCall], None]


def rings(call: PhoneCall) -> None:
    call.ring()


def rings_and_answers(call: PhoneCall) -> None:
    call.ring()
    call.answer()


def refuses(status: int) -> Behaviour:
    def refuse(call: PhoneCall) -> None:
        call.reject(status)

    return refuse


def behave(world: World, a: Behaviour = rings_and_answers, b: Behaviour = rings_and_answers) -> None:
    """Say what each party does when it is called."""

    def called(call: PhoneCall) -> None:
        (a if call.request.uri.user == PARTY_A else b)(call)

    for phone in world.phones:
        phone.on_call = called


async def start(world: World, *, limit_s: int | None = None, record: bool = False) -> str:
    """Place a masked call, as the service does."""
    plan = masked_plan(PARTY_A, PARTY_B, OWN_NUMBER, max_duration_s=limit_s, record=record)
    details = masked_details(
        direction="click_to_call",
        caller_number=PARTY_A,
        target_number=PARTY_B,
        masked_number=OWN_NUMBER,
        max_duration_s=limit_s,
    )
    metadata = CallMetadata(product=PRODUCT, details=details, status_webhook_url=WEBHOOK)
    return (await world.control.place(ACCOUNT_SID, plan, metadata)).call_sid


async def bridged(world: World, **options: Any) -> tuple[PhoneCall, PhoneCall]:
    """Both parties of a masked call that is up."""
    behave(world)
    await start(world, **options)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    await b.wait(Confirmed)
    return a, b


async def over(world: World) -> dict[str, Any]:
    """The call as it is shown at its end, which its last webhook showed too."""
    record = await world.ended()
    shown = masked_object(record)
    last = json.loads(world.records.events[-1].body)
    assert last["event"] == f"masking.call.{shown['status']}"
    assert last["data"]["hangup_cause"] == shown["hangup_cause"]
    return shown


def assert_private(world: World) -> None:
    """No byte of either leg's signalling, in either direction, has the number of the other party."""
    (call_sid,) = world.records.records
    legs: dict[str, str] = {"a": "", "b": ""}
    for entry in world.control.trace(call_sid):
        legs[entry.leg] += entry.message
    assert PARTY_A[3:] in legs["a"] and PARTY_B[3:] in legs["b"], "both legs were traced"
    assert PARTY_B[3:] not in legs["a"]
    assert PARTY_A[3:] not in legs["b"]


def told(world: World) -> list[str]:
    """The statuses that webhooks told of."""
    return [event.event.removeprefix("masking.call.") for event in world.records.events]


def summary(shown: dict[str, Any]) -> tuple[str, str, list[str]]:
    return shown["status"], shown["hangup_cause"], [leg["status"] for leg in shown["legs"]]


async def test_two_parties_hear_each_other_and_see_neither(world: World) -> None:
    behave(world, b=rings)
    await start(world)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    await a.hears(400.0)  # the ringing tone
    b.answer()
    a.speak(440.0)
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    for call in (a, b):
        assert call.request.from_.uri.user == OWN_NUMBER
        assert OWN_NUMBER in (call.request.headers.get("P-Asserted-Identity") or "")
    a.hang_up()
    await b.wait(Ended)
    shown = await over(world)
    assert summary(shown) == ("completed", "NORMAL_CLEARING", ["completed", "completed"])
    assert told(world) == [*BRIDGED, "completed"]
    assert shown["answered_at"] is not None and shown["bill_duration_sec"] == 60
    assert shown["price"] == 1.2
    assert_private(world)


async def test_the_second_partys_early_media_is_heard(world: World) -> None:
    behave(world, b=PhoneCall.ring_early)
    await start(world)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    b.speak(1000.0)
    await a.hears(1000.0)
    b.reject(480)
    assert summary(await over(world)) == ("no-answer", "NO_ANSWER", ["completed", "no-answer"])


@pytest.mark.parametrize(
    ("status", "shown_as", "cause"),
    [
        (486, "no-answer", "USER_BUSY"),
        (603, "no-answer", "CALL_REJECTED"),
        (480, "no-answer", "NO_ANSWER"),
        (503, "failed", "NORMAL_CIRCUIT_CONGESTION"),
        (404, "failed", "UNALLOCATED_NUMBER"),
    ],
)
@pytest.mark.parametrize("party", ["a", "b"])
async def test_a_party_is_refused(world: World, party: str, status: int, shown_as: str, cause: str) -> None:
    if party == "a":
        behave(world, a=refuses(status))
    else:
        behave(world, b=refuses(status))
    await start(world)
    shown = await over(world)
    assert (shown["status"], shown["hangup_cause"]) == (shown_as, cause)
    assert shown["answered_at"] is None and shown["bill_duration_sec"] == 0
    if party == "a":
        assert len(world.phone.calls) == 1, "nobody calls the second party"
        assert (told(world), shown["price"]) == (["initiated", shown_as], 0.0)
    else:
        a, _ = world.phone.calls
        await a.wait(Ended)
        assert told(world) == ["initiated", "a_ringing", "a_answered", shown_as]
        assert shown["price"] == 0.6, "its first party was answered"


@pytest.mark.parametrize("party", ["a", "b"])
async def test_a_party_does_not_answer(world: World, monkeypatch: pytest.MonkeyPatch, party: str) -> None:
    monkeypatch.setattr("callcontrol.masking.steps.connect.RING_TIMEOUT_S", 0.3)
    behave(world, **{party: rings})
    await start(world)
    silent = await world.phone.next_call(1 if party == "a" else 2)
    await silent.wait(Cancelled)
    shown = await over(world)
    assert (shown["status"], shown["hangup_cause"]) == ("no-answer", "NO_ANSWER")
    assert [leg["status"] for leg in shown["legs"]][0 if party == "a" else 1] == "no-answer"


@pytest.mark.parametrize("party", ["a", "b"])
async def test_the_gateway_is_down(world: World, party: str) -> None:
    down = make_gateway(port=1, protocol="tcp")

    def takes_the_gateway_down(call: PhoneCall) -> None:
        world.directory.put(gateways=[down])
        rings_and_answers(call)

    if party == "a":
        world.directory.put(gateways=[down])
    behave(world, a=takes_the_gateway_down)
    await start(world)
    shown = await over(world)
    assert (shown["status"], shown["hangup_cause"]) == ("failed", "DESTINATION_OUT_OF_ORDER")
    legs = ["failed", "queued"] if party == "a" else ["completed", "failed"]
    assert [leg["status"] for leg in shown["legs"]] == legs


async def test_the_first_party_leaves_while_the_second_rings(world: World) -> None:
    behave(world, b=rings)
    await start(world)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    assert await eventually(lambda: "b_ringing" in told(world))
    a.hang_up()
    await b.wait(Cancelled)
    assert summary(await over(world)) == ("no-answer", "NORMAL_CLEARING", ["completed", "canceled"])


async def test_the_second_party_hangs_up(world: World) -> None:
    a, b = await bridged(world)
    b.hang_up()
    await a.wait(Ended)
    assert summary(await over(world)) == ("completed", "NORMAL_CLEARING", ["completed", "completed"])


async def test_both_hang_up_at_once(world: World) -> None:
    a, b = await bridged(world)
    a.hang_up()
    b.hang_up()
    assert summary(await over(world)) == ("completed", "NORMAL_CLEARING", ["completed", "completed"])
    assert told(world) == [*BRIDGED, "completed"]


async def test_the_second_party_answers_as_the_first_leaves(world: World) -> None:
    behave(world, b=rings)
    await start(world)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    assert await eventually(lambda: "b_ringing" in told(world))
    a.hang_up()
    b.answer()
    await b.until(lambda: any(isinstance(event, Ended | Cancelled) for event in b.events))
    shown = await over(world)
    assert (shown["status"], shown["answered_at"] is None) in (("no-answer", True), ("completed", False))


async def test_the_api_ends_it_in_every_state(world: World) -> None:
    behave(world, a=rings)
    call_sid = await start(world)
    a = await world.phone.next_call(1)
    await world.control.hangup_call(ACCOUNT_SID, call_sid)
    await a.wait(Cancelled)
    assert summary(await over(world)) == ("no-answer", "ORIGINATOR_CANCEL", ["canceled", "queued"])


async def test_the_api_ends_it_while_the_second_rings(world: World) -> None:
    behave(world, b=rings)
    call_sid = await start(world)
    b = await world.phone.next_call(2)
    await world.control.hangup_call(ACCOUNT_SID, call_sid)
    await b.wait(Cancelled)
    assert summary(await over(world)) == ("no-answer", "NORMAL_CLEARING", ["completed", "canceled"])


async def test_the_api_ends_it_in_mid_call(world: World) -> None:
    a, b = await bridged(world)
    (call_sid,) = world.records.records
    await world.control.hangup_call(ACCOUNT_SID, call_sid)
    await a.wait(Ended)
    await b.wait(Ended)
    shown = await over(world)
    assert summary(shown)[:2] == ("completed", "NORMAL_CLEARING")
    assert world.records.only().hangup_source == "api"


async def test_the_limit_ends_it_and_is_heard_before(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callcontrol.masking.steps.connect.WARNING_LEAD_S", 1.5)
    behave(world, b=rings)
    await start(world, limit_s=3)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    for call, freq_hz in ((a, 440.0), (b, 1000.0)):
        call.kept_ms = 60_000
        call.speak(freq_hz)
    b.answer()
    await a.wait(Ended)
    await b.wait(Ended)
    for call, other_hz in ((a, 1000.0), (b, 440.0)):
        heard = pitches(bytes(call.heard), other_hz, WARNING_HZ)
        assert heard.count(WARNING_HZ) >= 2, heard
        first = heard.index(WARNING_HZ)
        assert other_hz in heard[:first] and other_hz in heard[first:], "the two went on hearing each other"
    shown = await over(world)
    assert summary(shown)[:2] == ("completed", "ALLOTTED_TIMEOUT")
    assert shown["max_duration_sec"] == 3 <= shown["duration_sec"]


WARNING_HZ = 1400.0


def pitches(pcm: bytes, *wanted: float) -> list[float]:
    """Return the wanted tone of each tenth of a second that has one."""
    step = 100 * 16
    parts = (pcm[at : at + step] for at in range(0, len(pcm) - step, step))
    loudest = ((max(wanted, key=partial(tone_level_dbfs, part)), part) for part in parts)
    return [freq_hz for freq_hz, part in loudest if tone_level_dbfs(part, freq_hz) > -20.0]


async def test_it_is_recorded_from_the_bridge_on_with_a_side_for_each(world: World) -> None:
    behave(world, b=rings)
    await start(world, record=True)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    a.speak(440.0)
    await time_passes(0.9)  # long enough to be found in the recording, were it there
    b.answer()
    b.speak(1000.0)
    await b.hears(440.0)
    await a.hears(1000.0)
    a.hang_up()
    shown = await over(world)
    record = world.records.only()
    assert shown["recording_url"] is not None and record.recording_path is not None
    with wave.open(record.recording_path) as file:
        assert file.getnchannels() == 2
        rate, frames = file.getframerate(), file.readframes(file.getnframes())
        assert file.getnframes() / rate < shown_s(record) + 0.7, "it began with the bridge"
    left, right = (b"".join(frames[i : i + 2] for i in range(side, len(frames), 4)) for side in (0, 2))
    assert tone_level_dbfs(left, 440.0, rate) > -20.0 > tone_level_dbfs(left, 1000.0, rate)
    assert tone_level_dbfs(right, 1000.0, rate) > -20.0 > tone_level_dbfs(right, 440.0, rate)


def shown_s(record: Any) -> float:
    bridged_at = datetime.fromisoformat(record.details["bridged_at"])
    return float((record.ended_at - bridged_at).total_seconds())


async def test_an_empty_wallet_cuts_it(tmp_path: Path) -> None:
    rates = Rates(outbound_paise=60, pulse_s=1.0, reserve_pulses=1)
    async with running(tmp_path, rates=rates) as world:
        world.wallets.balance_paise = 250
        a, b = await bridged(world)
        await a.wait(Ended)
        await b.wait(Ended)
        assert summary(await over(world))[:2] == ("completed", "BALANCE_EXHAUSTED")
        assert world.wallets.balance_paise >= 0


async def test_a_party_cannot_have_the_other_transferred(world: World) -> None:
    world.directory.put(carriers=[make_carrier(allows_refer=True)])
    a, b = await bridged(world)
    carol = Phone(world.far_engine)
    await carol.start()
    world.phones.append(carol)
    for call in (a, b):
        call.session.refer(f"sip:{PARTY_A}@127.0.0.1:{carol.port}")
        event = await call.wait(ReferFailed)
        assert isinstance(event, ReferFailed) and event.status == 603
    assert not carol.calls
    a.hang_up()
    await over(world)


async def test_what_a_party_says_of_itself_does_not_reach_the_other(world: World) -> None:
    """Header fields that any other call passes on between these trunks."""
    world.directory.put(carriers=[make_carrier(forwarded_headers=("X-Secret",))])
    secret = [("X-Secret", PARTY_B), ("User-to-User", f"{PARTY_B[1:]};encoding=hex")]

    def answers_with_them(call: PhoneCall) -> None:
        assert isinstance(call.session, InboundSession)
        call.session.progress(180, headers=secret)
        call.answer()

    behave(world, b=answers_with_them)
    await start(world)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    await b.wait(Confirmed)
    b.hang_up()
    await a.wait(Ended)
    await over(world)
    assert_private(world)


@pytest.mark.parametrize(
    "policy",
    [
        {"tech_prefix": "77", "identity_header": "rpid", "diversion": OWN_NUMBER},
        {"register_from_user": "acme", "register_from_domain": "acme.example", "identity_header": "ppi"},
        {"trusts_identity": True, "forwards_history": True, "identity_header": "none"},
    ],
)
async def test_no_policy_of_a_trunk_shows_the_other_party(world: World, policy: dict[str, Any]) -> None:
    world.directory.put(carriers=[make_carrier(**policy)])

    def called(call: PhoneCall) -> None:
        """Answer, and tell everything about oneself in every message."""
        own = (call.request.uri.user or "")[-10:]
        noise = [
            ("P-Asserted-Identity", f'"{own}" <sip:+91{own}@party.example>'),
            ("Diversion", f"<sip:+91{own}@party.example>;reason=unconditional"),
            ("History-Info", f"<sip:+91{own}@party.example>;index=1"),
            ("X-Who", own),
            ("User-to-User", own),
        ]
        assert isinstance(call.session, InboundSession)
        call.session.progress(181, headers=noise)
        call.session.progress(180, headers=noise)
        call.answer()
        call.session.info("text/plain", own.encode())

    for phone in world.phones:
        phone.on_call = called
    await start(world)
    a, b = await world.phone.next_call(1), await world.phone.next_call(2)
    await b.wait(Confirmed)
    b.hold()
    await b.wait(OfferAnswered)
    b.hang_up()
    await a.wait(Ended)
    assert (await over(world))["status"] == "completed"
    assert_private(world)


async def test_a_redirection_of_the_second_party_is_not_told_to_the_first(world: World) -> None:
    def redirects(call: PhoneCall) -> None:
        assert isinstance(call.session, InboundSession)
        forwarded = ("Diversion", f"<sip:{PARTY_B}@party.example>;reason=unconditional")
        call.session.progress(181, headers=[forwarded])
        call.session.reject(302, f"Moved by {PARTY_B}", headers=[forwarded])

    behave(world, b=redirects)
    await start(world)
    assert (await over(world))["status"] == "failed"
    assert_private(world)


async def test_calls_are_cut_off_with_the_process(world: World) -> None:
    a, b = await bridged(world)
    await world.control.drain(0.0)
    await a.wait(Ended)
    await b.wait(Ended)
    assert summary(await over(world))[:2] == ("completed", "SYSTEM_SHUTDOWN")


async def test_the_second_party_holds_and_comes_back(world: World) -> None:
    a, b = await bridged(world)
    b.hold()
    await b.wait(OfferAnswered)
    b.resume()
    a.speak(440.0)
    await b.hears(440.0)
    a.hang_up()
    await over(world)
