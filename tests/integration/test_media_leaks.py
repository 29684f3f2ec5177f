"""Ten thousand streams through Python leave nothing behind."""

from __future__ import annotations

import gc
import os
import socket
from pathlib import Path

import pytest

from media.aio import MediaEngine
from media.errors import PortsExhausted
from tests.support.media_bench import sine, towards, until
from tests.support.phone import engine_settings

pytestmark = pytest.mark.real_time(reason="the engine's own threads")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def open_and_close(engine: MediaEngine, count: int) -> None:
    pcm = sine(500, 20)
    resting = descriptors()
    for number in range(count // 100):
        # A port is free again once the engine's thread has closed its socket.
        await until(lambda: _opens(engine))
        streams = [engine.open_stream(lambda event: None) for _ in range(100)]
        for stream, other in zip(streams, streams[1:] + streams[:1], strict=True):
            # With a port of its own for RTCP, which must not stay behind either.
            stream.connect(towards(other, rtcp_port=other.local[1] + 1))
            stream.link(stream)
            stream.play(pcm, loop=True)
        taps = [stream.open_tap(on_frames=lambda frame: None) for stream in streams[:10]]
        for tap in taps:
            tap.write(bytes(3200))
            tap.mark("left behind")
        for stream in streams:
            stream.close()
        if number % 5 == 0:
            await until(lambda: descriptors() <= resting)


async def test_ten_thousand_streams_leave_nothing_behind() -> None:
    engine = MediaEngine(engine_settings(2_000, threads=2))
    await engine.start()
    await open_and_close(engine, 1000)
    gc.collect()
    before = (descriptors(), threads(), resident_bytes())
    await open_and_close(engine, 10_000)
    gc.collect()
    await until(lambda: descriptors() <= before[0])
    assert threads() == before[1]
    # The allocator keeps some; ten thousand streams would be hundreds of megabytes.
    assert resident_bytes() - before[2] < 20 << 20
    assert engine.stats().streams == 0
    await engine.close()
    # The worker thread of the loop's executor may stay; engine threads may not.
    assert threads() <= before[1]


async def test_exhausted_ports_come_back() -> None:
    settings = engine_settings(20, quarantine_s=0.05)
    engine = MediaEngine(settings)
    await engine.start()
    streams = [engine.open_stream(lambda event: None) for _ in range(10)]
    with pytest.raises(PortsExhausted, match=f"{settings.port_min}-{settings.port_max}"):
        engine.open_stream(lambda event: None)
    streams[3].close()
    await until(lambda: _opens(engine))
    await engine.close()


async def test_ports_begin_to_rest_though_nothing_else_happens() -> None:
    settings = engine_settings(20, quarantine_s=0.05)
    engine = MediaEngine(settings)
    await engine.start()
    ports = range(settings.port_min, settings.port_max + 1)
    streams = [engine.open_stream(lambda event: None) for _ in range(10)]
    await until(lambda: _bound(ports) > 0)
    for stream in streams:
        stream.close()
    # Nothing is asked of the engine meanwhile.
    await until(lambda: not _bound(ports))
    await engine.close()


def _bound(ports: range) -> int:
    """Number of the ports that another socket cannot bind."""
    count = 0
    for port in ports:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            try:
                other.bind(("127.0.0.1", port))
            except OSError:
                count += 1
    return count


def _opens(engine: MediaEngine) -> bool:
    try:
        engine.open_stream(lambda event: None).close()
    except PortsExhausted:
        return False
    return True
