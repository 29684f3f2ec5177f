"""Cost of a conference member: CPU of the engine's one thread, for conferences of several sizes.

The far ends live in a process of their own, where each plays a tone. Without a conference the same members
only play a tone themselves and receive one that nobody listens to: the difference is decoding and mixing.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks import machine
from media.aio import MediaEngine, RtpStream
from media.audio.tones import tone
from media.types import EngineSettings, RemoteMedia

_CODECS = {"PCMU": (0, 8000), "G722": (9, 8000), "OPUS": (111, 48000)}
_TICKS = os.sysconf("SC_CLK_TCK")


def _remote(codec: str, port: int) -> RemoteMedia:
    payload_type, clock_rate = _CODECS[codec]
    return RemoteMedia(
        address="127.0.0.1", port=port, codec=codec, payload_type=payload_type, clock_rate=clock_rate
    )


async def _open(engine: MediaEngine, count: int) -> list[RtpStream]:
    await engine.start()
    return [engine.open_stream(lambda event: None) for _ in range(count)]


def far_ends(pipe: Connection, codec: str, count: int) -> None:
    """The process of the far ends: tells its ports, is told the others, and plays until it is told to end."""

    async def run() -> None:
        engine = MediaEngine(EngineSettings(port_min=24000, port_max=26999))
        streams = await _open(engine, count)
        pipe.send([stream.local[1] for stream in streams])
        for n, (stream, port) in enumerate(zip(streams, pipe.recv(), strict=True)):
            stream.connect(_remote(codec, port))
            stream.play(tone(200 + 10 * n, 1000, -30.0), loop=True)
        await asyncio.to_thread(pipe.recv)
        await engine.close()

    asyncio.run(run())


def _thread_cpu_s() -> float:
    """CPU that the engine's thread has used."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() == "tl-media-0":
            fields = (task / "stat").read_text().rsplit(") ", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / _TICKS
    raise RuntimeError("the engine has no thread")


async def measure(codec: str, count: int, rate_hz: int, seconds: float, *, joined: bool) -> float:
    """CPU of the engine's thread, as a share of one core."""
    here, there = multiprocessing.Pipe()
    far = multiprocessing.get_context("spawn").Process(target=far_ends, args=(there, codec, count))
    far.start()
    engine = MediaEngine(EngineSettings(port_min=21000, port_max=23999))
    streams = await _open(engine, count)
    ports = await asyncio.to_thread(here.recv)
    here.send([stream.local[1] for stream in streams])
    conference = engine.open_conference(lambda event: None, sample_rate=8000 if rate_hz == 8000 else 16000)
    for n, (stream, port) in enumerate(zip(streams, ports, strict=True)):
        stream.connect(_remote(codec, port))
        if joined:
            conference.add(stream)
        else:
            stream.play(tone(200 + 10 * n, 1000, -30.0), loop=True)
    await asyncio.sleep(2)
    before_s = _thread_cpu_s()
    await asyncio.sleep(seconds)
    used_s = _thread_cpu_s() - before_s
    here.send("over")
    await engine.close()
    await asyncio.to_thread(far.join)
    return used_s / seconds


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", default="3,10,30,100")
    parser.add_argument("--codecs", default="PCMU,G722,OPUS")
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()
    print(machine.describe())
    for codec in options.codecs.split(","):
        rate_hz = 8000 if codec == "PCMU" else 16000
        for members in map(int, options.members.split(",")):
            apart = asyncio.run(measure(codec, members, rate_hz, options.seconds, joined=False))
            joined = asyncio.run(measure(codec, members, rate_hz, options.seconds, joined=True))
            print(
                f"{codec:5} {rate_hz:5} Hz {members:4} members: {100 * joined:5.1f} % of a core, "
                f"{1000 * joined / members:5.2f} ms a second each "
                f"({1000 * apart / members:5.2f} when they only play)"
            )


if __name__ == "__main__":
    main()
