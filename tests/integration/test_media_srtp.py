"""Encrypted RTP streams over loopback, with keys as an offer and its answer agree on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from media.aio import MediaEngine, make_srtp_keys, retire_srtp_key
from media.capabilities import has_srtp
from media.errors import InvalidMedia
from media.sdp import LocalMedia, Negotiated, accept_answer, answer_offer, make_offer, remember
from media.sdp.transport import AgreedSrtp
from media.types import DtmfReceived, PlaybackFinished, SrtpKey, SrtpSuite, SrtpUse
from tests.support.media_bench import MediaBench, Told, amplitude_at, sine, towards, until
from tests.support.phone import engine_settings

pytestmark = pytest.mark.skipif(not has_srtp(), reason="the engine was built without SRTP")

SUITES = [key.suite for key in make_srtp_keys()]


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(100))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


def key_of(suite: SrtpSuite) -> SrtpKey:
    return next(key for key in make_srtp_keys() if key.suite == suite)


def side(stream: Told, srtp: SrtpUse) -> LocalMedia:
    address, port = stream.stream.local
    return LocalMedia(address, port, srtp=srtp, srtp_keys=make_srtp_keys(), session_id=1)


def agree(caller: Told, ours: LocalMedia, callee: Told, theirs: LocalMedia) -> tuple[Negotiated, Negotiated]:
    """Answer the caller's offer as the callee, and connect both."""
    offer = make_offer(ours)
    answered = answer_offer(offer, theirs)
    assert answered.answer is not None
    accepted = accept_answer(offer, answered.answer)
    callee.stream.connect(answered.remote)
    caller.stream.connect(accepted.remote)
    return accepted, answered


def listen(stream: Told) -> Callable[[int], bool]:
    """Open a tap; what is returned tells whether a tone of 700 ms was heard through it."""
    heard = bytearray()
    stream.stream.open_tap(on_frames=heard.extend)
    return lambda hertz: amplitude_at(bytes(heard), hertz) * len(heard) > 10000 * 11200 * 0.9


async def speak_both_ways(one: Told, other: Told, low_hz: int = 500) -> None:
    """Send a tone each way, and find it at the other end."""
    hears_one, hears_other = listen(other), listen(one)
    one.stream.play(sine(low_hz, 700))
    other.stream.play(sine(1200, 700))
    await one.expect(PlaybackFinished)
    await other.expect(PlaybackFinished)
    await until(lambda: hears_one(low_hz) and hears_other(1200))


@pytest.mark.parametrize("suite", SUITES)
async def test_tones_and_digits_pass_under_each_suite(bench: MediaBench, suite: SrtpSuite) -> None:
    one, other = bench.open(), bench.open()
    first, second = (key_of(suite) for _ in range(2))
    one.stream.connect(towards(other.stream, srtp_send=first, srtp_receive=second))
    other.stream.connect(towards(one.stream, srtp_send=second, srtp_receive=first))
    await speak_both_ways(one, other)
    one.stream.send_dtmf("7", 80, 60)
    assert (await other.expect(DtmfReceived)).digit == "7"
    for stream in (one, other):
        stats = stream.stream.stats()
        assert (stats.dropped_unauthentic, stats.dropped_invalid, stats.lost) == (0, 0, 0)
        assert stats.packets_in >= 35


async def test_an_encrypted_leg_is_bridged_to_a_plain_one(bench: MediaBench) -> None:
    a = bench.open()
    b = bench.open(near=a)
    caller, callee = bench.open(), bench.open()
    agree(caller, side(caller, "required"), a, side(a, "optional"))
    callee.stream.connect(towards(b.stream))
    b.stream.connect(towards(callee.stream))
    a.stream.link(b.stream)
    await speak_both_ways(caller, callee)
    assert a.stream.stats().dropped_unauthentic == b.stream.stats().dropped_invalid == 0


async def test_audio_goes_on_through_hold_resume_and_a_new_key(bench: MediaBench) -> None:
    one, other = bench.open(), bench.open()
    ours, theirs = side(one, "required"), side(other, "required")
    accepted, answered = agree(one, ours, other, theirs)
    ours, theirs = remember(ours, accepted), remember(theirs, answered)
    await speak_both_ways(one, other)
    held, _ = agree(one, replace(ours, direction="sendonly"), other, theirs)
    assert held.remote.srtp_send == accepted.remote.srtp_send
    agree(one, ours, other, theirs)
    await speak_both_ways(one, other, 600)
    fresh = side(one, "required")
    agree(one, replace(ours, srtp_keys=fresh.srtp_keys), other, theirs)
    await speak_both_ways(one, other, 800)
    assert one.stream.stats().dropped_unauthentic == other.stream.stats().dropped_unauthentic == 0


async def test_without_the_key_nothing_is_heard(bench: MediaBench) -> None:
    one, other = bench.open(), bench.open()
    key, wrong = (make_srtp_keys()[0] for _ in range(2))
    one.stream.connect(towards(other.stream, srtp_send=key, srtp_receive=wrong))
    other.stream.connect(towards(one.stream, srtp_send=key, srtp_receive=wrong))
    hears = listen(other)
    one.stream.play(sine(500, 700))
    await one.expect(PlaybackFinished)
    await until(lambda: other.stream.stats().dropped_unauthentic >= 35)
    assert other.stream.stats().packets_in == 0
    assert not hears(500)


async def test_half_a_pair_of_keys_is_refused(bench: MediaBench) -> None:
    stream = bench.open()
    with pytest.raises(InvalidMedia, match="each direction") as caught:
        stream.stream.connect(towards(stream.stream, srtp_send=make_srtp_keys()[0]))
    assert repr(make_srtp_keys()[0].key) not in str(caught.value)
    with pytest.raises(InvalidMedia, match="wrong length"):
        short = SrtpKey("AES_256_CM_HMAC_SHA1_80", bytes(30))
        stream.stream.connect(towards(stream.stream, srtp_send=short, srtp_receive=short))


def test_a_key_that_goes_out_of_use_is_not_used_again() -> None:
    keys = make_srtp_keys()
    plain = LocalMedia("192.0.2.1", 4000, srtp="optional", srtp_keys=keys, session_id=1)
    first = replace(plain, srtp_agreed=AgreedSrtp("RTP/SAVP", keys[0].suite))
    other = replace(plain, srtp_agreed=AgreedSrtp("RTP/AVP", keys[1].suite))
    for before, after in ((plain, plain), (plain, first), (first, first)):
        assert retire_srtp_key(before, after) == after
    for after in (plain, other):
        renewed = retire_srtp_key(first, after)
        assert [key.suite for key in renewed.srtp_keys] == SUITES
        assert renewed.srtp_keys[0] != keys[0]
        assert renewed.srtp_keys[1:] == keys[1:]
        assert replace(renewed, srtp_keys=keys) == after


def test_keys_are_fresh_and_of_the_right_length() -> None:
    first, second = make_srtp_keys(), make_srtp_keys()
    assert [key.suite for key in first] == [key.suite for key in second] == SUITES
    assert all(one.key != other.key for one, other in zip(first, second, strict=True))
    assert [len(key.key) for key in first] == [30, 46, 30, 46]
