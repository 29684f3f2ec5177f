"""
CPU cost of the SIP core, without sockets: `python -m benchmarks.sip_core [--rounds N]`.

Parse and serialise single messages, run transactions with what they parse and write, and whole calls between
two user agents on a network in memory. Each figure is the least of several rounds, which is what the code
takes when nothing disturbs it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Callable
from functools import partial

from benchmarks import machine
from sip._wire import Engine
from sip.message.message import Request, reply, serialise
from sip.message.parser import DEFAULT_LIMITS, READER, parse_message
from sip.timers import Timers
from tests.support.sip_agents import SDP
from tests.support.sip_stage import BOB, make_stage

VIA = "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKa1b2c3d4e5f60718;rport"
COMMON = (
    f"Via: {VIA}\r\nMax-Forwards: 70\r\n"
    'From: "Asha Rao" <sip:+918047000001@192.0.2.1>;tag=4fe1a0b9c2d3\r\n'
    "To: <sip:+919812345678@192.0.2.2>{tag}\r\n"
    "Call-ID: 7c1f0e2a9b8d4c6f@192.0.2.1\r\nCSeq: {cseq}\r\n"
)
CAPABILITIES = (
    "Contact: <sip:192.0.2.1:5060>\r\n"
    "Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, REFER, NOTIFY\r\n"
    "Supported: 100rel, timer, replaces\r\nUser-Agent: Carrier SBC 9.1\r\n"
    "P-Asserted-Identity: <sip:+918047000001@192.0.2.1>\r\nContent-Type: application/sdp\r\n"
)


def message(start: str, cseq: str, *, tag: str = "", more: str = "", body: bytes = b"") -> bytes:
    head = f"{start}\r\n{COMMON.format(tag=tag, cseq=cseq)}{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


MESSAGES = {
    "INVITE": message("INVITE sip:+919812345678@192.0.2.2 SIP/2.0", "1 INVITE", more=CAPABILITIES, body=SDP),
    "180": message(
        "SIP/2.0 180 Ringing", "1 INVITE", tag=";tag=9d8c", more="Contact: <sip:192.0.2.2:5060>\r\n"
    ),
    "200": message("SIP/2.0 200 OK", "1 INVITE", tag=";tag=9d8c", more=CAPABILITIES, body=SDP),
    "ACK": message("ACK sip:192.0.2.2:5060 SIP/2.0", "1 ACK", tag=";tag=9d8c"),
    "BYE": message("BYE sip:192.0.2.2:5060 SIP/2.0", "2 BYE", tag=";tag=9d8c"),
}


def least_us(work: Callable[[int], object], count: int, rounds: int) -> float:
    """Processor time of one of `count` repetitions, in microseconds."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        work(count)
        best = min(best, time.process_time() - start)
    return best / count * 1e6


def repeat(once: Callable[[], object]) -> Callable[[int], None]:
    def run(count: int) -> None:
        for _ in range(count):
            once()

    return run


ENGINE = Engine(READER, DEFAULT_LIMITS, Timers(), 1_000_000)
FLOW = (-1, "192.0.2.2", 5060, False)


def invite_client() -> None:
    """A client transaction: INVITE, 180, 200."""
    request = parse_message(MESSAGES["INVITE"])
    number = ENGINE.start_client(serialise(request), "INVITE", request.via.branch or "", FLOW, 0.0)
    for name in ("180", "200"):
        ENGINE.receive(MESSAGES[name], "192.0.2.2", 5060, -1, False, True, 0.0)
    ENGINE.release(number)


def invite_server() -> None:
    """A server transaction: INVITE, 180, 200."""
    _, number, request, _, _ = ENGINE.receive(MESSAGES["INVITE"], "192.0.2.1", 5060, -1, False, True, 0.0)
    assert isinstance(request, Request)
    for status in (180, 200):
        ENGINE.respond(number, status, serialise(reply(request, status, to_tag="9d8c")), 0.0)
    ENGINE.release(number)


def calls(count: int) -> None:
    """Whole calls between two user agents: INVITE, 200, ACK, BYE, 200, and every timer run out."""

    async def run() -> None:
        stage = await make_stage()
        for _ in range(count):
            call = stage.alice.call(BOB)
            stage.network.clock.advance(0.01)
            call.session.hangup()
            stage.network.clock.advance(0.01)
            stage.network.wire.clear()
            stage.bob.inbound.clear()
        stage.network.clock.advance(400)

    asyncio.run(run())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(machine.describe())
    for name, data in MESSAGES.items():
        parse_us = least_us(repeat(partial(parse_message, data)), 2000, rounds)
        parsed = parse_message(data)
        write_us = least_us(repeat(partial(serialise, parsed)), 2000, rounds)
        print(f"{name:8} {len(data):5} bytes   parse {parse_us:6.1f} us   serialise {write_us:6.1f} us")
    for name, once in (
        ("client INVITE transaction", invite_client),
        ("server INVITE transaction", invite_server),
    ):
        print(f"{name:28} {least_us(repeat(once), 1000, rounds):6.1f} us, parsing and writing included")
    print(f"{'call between user agents':28} {least_us(calls, 300, rounds):6.1f} us, both sides together")


if __name__ == "__main__":
    main()
