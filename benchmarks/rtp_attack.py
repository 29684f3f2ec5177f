"""
Effect of forged RTP on a call: `python -m benchmarks.rtp_attack [--seconds N] [--rate PACKETS_PER_S]`.

One bridged call is relayed while another process sends forged packets to its port: in order, from several
addresses and ports, under the call's own SSRC and under others. Counts what of them is heard or answered, and
measures how long the call's own packets are under way, first without the attack and then with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import statistics
import struct
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks import machine
from media.aio import MediaEngine
from media.types import EngineSettings, RemoteMedia
from tests.support.ports import port_range

SSRC = 0xFA12
FORGED = b"\x42" * 160
SOURCES = ("127.0.0.1", "127.0.0.1", "127.0.9.9", "127.0.9.10")
# Bursts of a hundredth of a second: a sender in Python cannot sleep for less with certainty.
BURST_S = 0.01


def rtp(ssrc: int, number: int, payload: bytes) -> bytes:
    return struct.pack("!BBHII", 0x80, 0, number & 0xFFFF, number * 160 & 0xFFFFFFFF, ssrc) + payload


def udp(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock


def attack(target: tuple[str, int], rate: int, seconds: float, result: Connection) -> None:
    """Send forged packets, in a process of its own; tells how many, and how many packets came back."""
    sockets = [udp(host) for host in SOURCES]
    sent = [0] * len(sockets)
    pause = threading.Event()
    begin_s = time.monotonic()
    done = 0
    while (elapsed_s := time.monotonic() - begin_s) < seconds:
        while done < elapsed_s * rate:
            at = done % len(sockets)
            ssrc = SSRC if sent[at] % 2 else 0xBAD + at
            sockets[at].sendto(rtp(ssrc, sent[at], FORGED), target)
            sent[at] += 1
            done += 1
        pause.wait(BURST_S)
    leaked = 0
    for sock in sockets:
        while True:
            try:
                sock.recv(2048)
            except BlockingIOError:
                break
            leaked += 1
    result.send((done, leaked))


class Call:
    """The far ends of a bridged call: one speaks, the other measures what it hears."""

    def __init__(self) -> None:
        self.speaker, self.listener = udp("127.0.0.1"), udp("127.0.0.1")
        self.delays_ms: list[float] = []
        self.heard_forged = 0
        self.sent = 0
        self._stop = threading.Event()

    def run(self, target: tuple[str, int]) -> None:
        """Send a packet every 20 ms, each with its time, and take in what arrives."""
        self.listener.setblocking(True)
        self.listener.settimeout(0.2)
        hearing = threading.Thread(target=self._hear)
        hearing.start()
        due_s = time.monotonic()
        while not self._stop.is_set():
            stamp = struct.pack("!d", time.monotonic())
            self.speaker.sendto(rtp(SSRC, self.sent, stamp + bytes(152)), target)
            self.sent += 1
            due_s += 0.02
            self._stop.wait(max(0.0, due_s - time.monotonic()))
        hearing.join()

    def stop(self) -> None:
        self._stop.set()

    def _hear(self) -> None:
        while not self._stop.is_set():
            try:
                data = self.listener.recv(2048)
            except TimeoutError:
                continue
            if 192 <= data[1] <= 223:
                continue
            if data[12:] == FORGED:
                self.heard_forged += 1
            else:
                self.delays_ms.append((time.monotonic() - struct.unpack_from("!d", data, 12)[0]) * 1000)


def at(sock: socket.socket) -> RemoteMedia:
    address, port = sock.getsockname()
    return RemoteMedia(address=address, port=port, codec="PCMU", payload_type=0)


def line(label: str, delays_ms: list[float]) -> str:
    spread = statistics.quantiles(delays_ms, n=1000)
    return (
        f"{label:<16} packets {len(delays_ms):>6}  delay p50 {spread[499]:.2f} ms"
        f"  p99 {spread[989]:.2f} ms  max {max(delays_ms):.2f} ms"
    )


async def measure(seconds: float, rate: int) -> dict[str, Any]:
    first, last = port_range(100)
    engine = MediaEngine(EngineSettings(port_min=first, port_max=last))
    await engine.start()
    near = engine.open_stream(lambda event: None)
    far = engine.open_stream(lambda event: None, near)
    call = Call()
    near.connect(at(call.speaker))
    far.connect(at(call.listener))
    near.link(far)
    running = asyncio.create_task(asyncio.to_thread(call.run, near.local))
    await asyncio.sleep(seconds)
    quiet, call.delays_ms = call.delays_ms, []
    theirs, ours = multiprocessing.Pipe()
    attacker = multiprocessing.Process(target=attack, args=(near.local, rate, seconds, theirs))
    attacker.start()
    forged, leaked = await asyncio.to_thread(ours.recv)
    attacker.join()
    call.stop()
    await running
    stats = near.stats()
    print(line("without", quiet))
    print(line("with the attack", call.delays_ms))
    print(f"forged {forged}, {forged / seconds:.0f} a second; heard {call.heard_forged}, answered {leaked}")
    counted = stats.dropped_foreign + stats.suspects
    print(f"dropped and counted {counted}; not taken by the kernel {forged - counted}")
    print(f"of the call: sent {call.sent}, lost {stats.lost}")
    await engine.close()
    return {
        "forged": forged,
        "heard": call.heard_forged,
        "answered": leaked,
        "dropped": counted,
        "sent": call.sent,
        "lost": stats.lost,
        "without_p99_ms": round(statistics.quantiles(quiet, n=100)[98], 2),
        "with_p99_ms": round(statistics.quantiles(call.delays_ms, n=100)[98], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(machine.describe())
    result = asyncio.run(measure(arguments.seconds, arguments.rate))
    if arguments.json:
        arguments.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
