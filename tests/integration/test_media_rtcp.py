"""RTCP and the lock on one source, with a far end whose every byte is known."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from media.aio import MediaEngine, RtpStream
from media.types import MediaTimeout, RemoteMedia
from tests.support.media_bench import MediaBench, until
from tests.support.phone import engine_settings
from tests.support.rtcp_peer import (
    BYE,
    DESCRIPTION,
    RECEIVER_REPORT,
    SENDER_REPORT,
    Report,
    ReportBlock,
    RtcpPeer,
)
from tests.support.waiting import time_passes


@pytest.fixture
async def bench() -> AsyncIterator[MediaBench]:
    engine = MediaEngine(engine_settings(200))
    await engine.start()
    try:
        yield MediaBench(engine)
    finally:
        await engine.close()


def at(peer: RtcpPeer, **agreed: Any) -> RemoteMedia:
    address, port = peer.address
    values: dict[str, Any] = {"codec": "PCMU", "payload_type": 0}
    return RemoteMedia(address=address, port=port, **{**values, **agreed})


def odd(stream: RtpStream) -> tuple[str, int]:
    return stream.local[0], stream.local[1] + 1


async def first_report(peer: RtcpPeer, *, shared: bool) -> Report:
    reports: list[Report] = []

    def came() -> bool:
        reports.extend(peer.heard(shared=shared))
        return bool(reports)

    await until(came, 10)
    return reports[0]


@pytest.mark.parametrize("shared", [True, False], ids=["one port", "two ports"])
async def test_reports_tell_both_directions(bench: MediaBench, shared: bool) -> None:
    stream = bench.open().stream
    with RtcpPeer() as peer:
        stream.connect(at(peer, rtcp_port=None if shared else peer.address[1] + 1))
        stream.link(stream)
        peer.speak(stream.local, 8)
        peer.speak(stream.local, 8, skip=4)
        report = await first_report(peer, shared=shared)
        assert report.types == (SENDER_REPORT, DESCRIPTION)
        assert report.packets == 16
        (block,) = report.blocks
        assert (block.ssrc, block.cumulative_lost, block.fraction_lost) == (peer.ssrc, 4, 4 * 256 // 20)
        assert block.highest_sequence == 119

        ours = ReportBlock(
            report.ssrc, 64, 4, highest_sequence=500, jitter=160, last_report=report.middle, delay=0
        )
        peer.report(stream.local if shared else odd(stream), ours, shared=shared)
        await until(lambda: stream.stats().rtcp_in == 1)
        stats = stream.stats()
        assert stats.sent_lost == 4
        assert stats.sent_jitter_ms == 20.0
        assert stats.rtt_ms is not None
        assert 0 <= stats.rtt_ms < 10_000
        assert stats.mos_sent is not None
        assert 1 <= stats.mos_sent < 3
        await until(lambda: stream.stats().mos_received is not None)
        (interval,) = stream.intervals()
        assert (interval.expected, interval.lost, interval.burst_packets) == (20, 4, 4.0)
        assert interval.mos_sent is None

        stream.close()
        goodbye = await first_report(peer, shared=shared)
        assert goodbye.types[-1] == BYE
        assert stream.stats().sent_lost == 4
        assert len(stream.intervals()) == 1


async def test_only_the_far_end_reports(bench: MediaBench) -> None:
    stream = bench.open().stream
    with RtcpPeer() as peer, RtcpPeer("127.0.1.7") as stranger:
        stream.connect(at(peer))
        lies = ReportBlock(stream.stats().ssrc_out, 255, 1000, jitter=80_000)
        stranger.report(stream.local, lies, shared=True)
        # Nor from another port of the right host: what shares a port comes from one.
        peer.report(stream.local, lies)
        await until(lambda: stream.stats().dropped_foreign == 2)
        assert stream.stats().sent_lost is None
        assert stream.stats().rtcp_in == 0
        assert bench.engine.dropped() == {
            "foreign": 2,
            "invalid": 0,
            "unwanted": 0,
            "unauthentic": 0,
            "duplicate": 0,
            "late": 0,
        }


async def test_reports_keep_a_held_call_alive(bench: MediaBench) -> None:
    told = bench.open()
    with RtcpPeer() as peer:
        told.stream.connect(at(peer, direction="inactive"))
        told.stream.set_media_timeout(0.01, 0.8)
        for _ in range(6):
            peer.report(told.stream.local, shared=True)
            await time_passes(0.2)
        assert told.stream.stats().rtcp_in == 6
        assert told.events == []
        event = await told.expect(MediaTimeout)
        assert event.held
        assert event.silent_s >= 0.8


async def test_forged_packets_reach_nobody(bench: MediaBench) -> None:
    near = bench.open()
    far = bench.open(near)
    with RtcpPeer() as peer, RtcpPeer(ssrc=1) as listener, RtcpPeer("127.0.3.3", ssrc=2) as forger:
        near.stream.connect(at(peer))
        far.stream.connect(at(listener))
        near.stream.link(far.stream)
        for _ in range(20):
            peer.speak(near.stream.local)
            await until(lambda: near.stream.stats().packets_in > 0)
            forger.speak(near.stream.local, 50)
            await time_passes(0.005)
        await until(lambda: near.stream.stats().dropped_foreign > 0)
        await until(lambda: far.stream.stats().packets_out == near.stream.stats().packets_in)
        stats = near.stream.stats()
        assert stats.packets_in <= 20
        assert stats.dropped_foreign <= 1000
        assert stats.ssrc_in == peer.ssrc
        assert not _anything(forger)


async def test_both_ports_are_given_back(bench: MediaBench) -> None:
    stream = bench.open().stream
    with RtcpPeer() as peer:
        stream.connect(at(peer, rtcp_port=peer.address[1] + 1))
        report = await first_report(peer, shared=False)
        assert report.types == (RECEIVER_REPORT, DESCRIPTION)
        port = odd(stream)[1]
        assert _bound(port)
        stream.close()
        await until(lambda: not _bound(port))


def _bound(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _anything(peer: RtcpPeer) -> bool:
    try:
        return bool(peer.rtp.recv(2048))
    except BlockingIOError:
        return False
