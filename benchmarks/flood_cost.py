"""
CPU of a flood that the guard drops: `python -m benchmarks.flood_cost [--rate 10000] [--seconds 5]`.

A user agent in a process of its own has one gateway, which sends an OPTIONS 50 times a second and notes how
long each answer takes, first in peace and then beside each flood. The CPU of the process in peace is taken
off; what remains is divided by the datagrams that the guard has counted, so that other work on the machine
changes the figure little. Of forged sources the guard lets 500 datagrams a second pass, which are read and
refused: that is most of their cost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.machine import describe
from sip.aio import Guard, Listen, ScreenVerdict, UserAgent
from sip.protection.rate_limits import ProtectionSettings

_GATEWAY, _STRANGER = "127.0.0.1", "127.0.0.9"
_OPTIONS_EVERY_S = 0.02
_BATCH_S = 0.0002
_PKTINFO = 8
"""IP_PKTINFO of Linux, missing in the socket module: the address to send from."""
_Ancillary = list[tuple[int, int, bytes]]
_Datagrams = Iterator[tuple[bytes, _Ancillary]]


def _request(method: str, source: str, number: int, agent: str) -> bytes:
    return (
        f"{method} sip:100@127.0.0.1 SIP/2.0\r\n"
        f"Via: SIP/2.0/UDP {source}:5070;branch=z9hG4bK{number};rport\r\n"
        f"From: <sip:100@{source}>;tag={number}\r\nTo: <sip:100@127.0.0.1>\r\nCall-ID: {number}@{source}\r\n"
        f"CSeq: 1 {method}\r\nMax-Forwards: 70\r\nContact: <sip:100@{source}>\r\nUser-Agent: {agent}\r\n"
        "Content-Length: 0\r\n\r\n"
    ).encode()


def _invites(agent: str) -> _Datagrams:
    number = 0
    while True:
        number += 1
        yield _request("INVITE", _STRANGER, number, agent), []


def _garbage() -> _Datagrams:
    draw = random.Random(1)
    while True:
        yield b"\x16\x03" + draw.randbytes(300), []


def _forged() -> _Datagrams:
    """Each from an address of its own, as forged ones are."""
    draw = random.Random(1)
    while True:
        source = bytes((127, draw.randrange(1, 255), draw.randrange(256), draw.randrange(1, 255)))
        told = struct.pack("i4s4s", 0, source, bytes(4))  # struct in_pktinfo
        yield (
            _request("INVITE", socket.inet_ntoa(source), draw.getrandbits(32), "x"),
            [(socket.IPPROTO_IP, _PKTINFO, told)],
        )


_FLOODS: dict[str, Callable[[], _Datagrams]] = {
    "INVITEs of a scanner": lambda: _invites("friendly-scanner"),
    "INVITEs of a stranger": lambda: _invites("x"),
    "garbage": _garbage,
    "INVITEs of forged sources": _forged,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", type=int, default=10_000, help="datagrams per second")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(_serve())
        return
    found = {name: _measure(make(), arguments.rate, arguments.seconds) for name, make in _FLOODS.items()}
    print(json.dumps({"machine": describe(), "rate": arguments.rate, "floods": found}, indent=2))


# The server.


async def _serve() -> None:
    """Serve one gateway; each line on the standard input asks for the figures so far."""
    guard = Guard(ProtectionSettings(), lambda host: host == _GATEWAY)
    agent = UserAgent(
        [Listen("udp", _GATEWAY, 0)],
        on_invite=lambda session: session.reject(486),
        screen=lambda source, request: (
            ScreenVerdict.ACCEPT if source.host == _GATEWAY else ScreenVerdict.FORBID
        ),
        guard=guard,
    )
    await agent.start()
    print(agent.addresses[0].port, flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        figures = {
            "cpu_s": time.process_time(),
            "dropped": sum(guard.rejected.values()),
            "banned": len(guard.banned),
        }
        print(json.dumps(figures), flush=True)
    await agent.close()


# The load.


def _measure(flood: _Datagrams, rate: int, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.flood_cost", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        port = int(server.stdout.readline())

        def figures() -> dict[str, float]:
            assert server.stdin is not None and server.stdout is not None
            server.stdin.write("\n")
            server.stdin.flush()
            answer: dict[str, float] = json.loads(server.stdout.readline())
            return answer

        start = figures()
        _, peace_ms = _load(port, iter(()), 0, seconds)
        middle = figures()
        sent, flood_ms = _load(port, flood, rate, seconds)
        end = figures()
        server.stdin.close()
    dropped = round(end["dropped"] - middle["dropped"])
    cpu_s = (end["cpu_s"] - middle["cpu_s"]) - (middle["cpu_s"] - start["cpu_s"])
    each_us = cpu_s / max(1, dropped) * 1e6
    return {
        "sent": sent,
        "dropped": dropped,
        "cpu_us_each": round(each_us, 2),
        "core_pct_at_rate": round(each_us * rate / 1e4, 1),
        "banned_sources": end["banned"],
        "options_ms_in_peace": _shown(peace_ms),
        "options_ms_under_flood": _shown(flood_ms),
    }


def _load(port: int, flood: _Datagrams, rate: int, seconds: float) -> tuple[int, list[float]]:
    """Send a flood and the gateway's requests; the datagrams sent, and how long each answer took."""
    asked: dict[bytes, float] = {}
    answered_ms: list[float] = []
    sent = number = 0
    target = (_GATEWAY, port)
    with _socket(_GATEWAY) as gateway, _socket(_STRANGER) as stranger, _socket("0.0.0.0") as forger:
        began = time.monotonic()
        while (passed_s := time.monotonic() - began) < seconds:
            for _ in range(int(passed_s * rate) - sent):
                data, ancillary = next(flood)
                sent += 1
                with contextlib.suppress(BlockingIOError):
                    (forger if ancillary else stranger).sendmsg([data], ancillary, 0, target)
            if number * _OPTIONS_EVERY_S < passed_s:
                number += 1
                asked[b"z9hG4bK%d" % number] = time.monotonic()
                gateway.sendto(_request("OPTIONS", _GATEWAY, number, "x"), target)
            answered_ms += _answers(gateway, asked)
            select.select([gateway], [], [], _BATCH_S)
    return sent, answered_ms


def _answers(gateway: socket.socket, asked: dict[bytes, float]) -> list[float]:
    found = []
    with contextlib.suppress(BlockingIOError):
        while data := gateway.recv(65535):
            branch = data.partition(b"branch=")[2].partition(b";")[0]
            sent_at_s = asked.pop(branch, None)
            if sent_at_s is not None:
                found.append((time.monotonic() - sent_at_s) * 1e3)
    return found


def _socket(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock


def _shown(times_ms: list[float]) -> dict[str, float]:
    ordered = sorted(times_ms)
    if not ordered:
        return {"answers": 0}
    return {
        "answers": len(ordered),
        "p50": round(ordered[len(ordered) // 2], 2),
        "p99": round(ordered[len(ordered) * 99 // 100], 2),
    }


if __name__ == "__main__":
    main()
