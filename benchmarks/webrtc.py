"""
CPU cost of browsers' legs: `python -m benchmarks.webrtc [--legs N] [--seconds N]`.

The server's socket passes packets between so many browsers and ports of an engine, 50 packets a second and
direction. Both ends are sockets of another process, which checks the paths first, as browsers do, and counts
what arrives. Prints the share of a core that the passing takes, the loop's own work included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import time

import uvloop

from media.types import EngineSettings
from media.webrtc.aio import BrowserLeg, BrowserSocket
from media.webrtc.descriptions import parse_offer
from tests.support.browser_peer import binding_request, offer_lines

_PACKET_BYTES = 182
"""An RTP packet of G.711, 20 ms, with SRTP's tag."""

_EVERY_S = 0.02


def ends(legs: list[tuple[str, str]], port: int, seconds: float) -> None:
    """Be the browsers and the engine: print the engine's ports, send at each line of input, count."""
    browsers, engines = [_udp() for _ in legs], [_udp() for _ in legs]
    for browser, (ufrag, password) in zip(browsers, legs, strict=True):
        browser.sendto(binding_request(f"{ufrag}:peer", password), ("127.0.0.1", port))
        assert browser.recv(2048)[:2] == b"\x01\x01"
    print(json.dumps([engine.getsockname()[1] for engine in engines]), flush=True)
    sys.stdin.readline()
    packet, received, sent = bytes([0x80]) + bytes(_PACKET_BYTES - 1), 0, 0
    began_s = time.monotonic()
    for turn in range(int(seconds / _EVERY_S)):
        for place, end in enumerate([*browsers, *engines]):
            # Spread over the packet's time, as independent senders are.
            due_s = began_s + turn * _EVERY_S + place * _EVERY_S / (2 * len(legs))
            while (left_s := due_s - time.monotonic()) > 0:
                time.sleep(left_s)  # noqa: TID251  (a process of its own, without a loop)
            end.sendto(packet, ("127.0.0.1", port))
            sent += 1
    for end in [*browsers, *engines]:
        end.settimeout(0.2)
        try:
            while end.recv(2048):
                received += 1
        except TimeoutError:
            continue
    print(json.dumps([sent, received]), flush=True)


def _udp() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    made.bind(("127.0.0.1", 0))
    made.settimeout(5.0)
    return made


async def measure(count: int, seconds: float) -> None:
    """Pass packets of so many legs, and print what it costs."""
    passing = BrowserSocket(EngineSettings())
    offer = parse_offer("\r\n".join([*offer_lines(bytes(32)), ""]), ["PCMU"])
    legs: list[BrowserLeg] = [
        passing.open_leg(offer, lambda keys: None, lambda end: None) for _ in range(count)
    ]
    told = [(leg.ice.local.ufrag, leg.ice.local.password) for leg in legs]
    far = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.webrtc", "--ends", json.dumps(told)),
        *("--port", str(passing.address[1]), "--seconds", str(seconds)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert far.stdin is not None and far.stdout is not None
    for leg, port in zip(legs, json.loads(await far.stdout.readline()), strict=True):
        leg.connect_engine(port)
    began_s, worked_s = time.monotonic(), time.process_time()
    far.stdin.write(b"\n")
    sent, received = json.loads(await far.stdout.readline())
    took_s, worked_s = time.monotonic() - began_s, time.process_time() - worked_s
    await far.wait()
    for leg in legs:
        leg.close()
    passing.close()
    print(
        f"{count} legs, {sent / took_s:.0f} packets/s, {sent - received} lost: "
        f"{100 * worked_s / took_s:.1f} % of a core, {1e6 * worked_s / sent:.1f} us a packet"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--legs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--ends", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ends is not None:
        ends(json.loads(arguments.ends), arguments.port, arguments.seconds)
    else:
        uvloop.run(measure(arguments.legs, arguments.seconds))


if __name__ == "__main__":
    main()
