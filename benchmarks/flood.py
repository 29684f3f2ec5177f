"""
Effect of a flood on calls: `python -m benchmarks.flood [--flood 5000] [--rate 20] [--seconds 10]`.

Calls are made between two gateways, first in peace, then while INVITEs from an address that is no gateway's
come in. The difference of the set-up times is what the flood costs the callers, the CPU what it costs the
server. The load tools share a core, so the flood also takes time from the callers themselves.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import TOOL_PREFIX, describe
from benchmarks.sut import SystemUnderTest
from benchmarks.w1_signalling import step

ENVIRONMENT = {"TRUNKLINE_TRUSTED_SOURCES": "127.0.0.1/32"}
"""The flood's address is a stranger's."""
_SOURCE = "127.0.0.9"
_BATCH_S = 0.002


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--flood", type=int, default=5000, help="bad requests per second")
    parser.add_argument("--rate", type=float, default=20.0, help="good calls per second")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each of the two takes")
    parser.add_argument("--send-to", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.send_to:
        _send(arguments.send_to, arguments.flood, arguments.seconds)
        return
    with tempfile.TemporaryDirectory() as directory:
        with SystemUnderTest(Path(directory), ENVIRONMENT) as sut:
            found = measure(sut, arguments.flood, arguments.rate, arguments.seconds)
            print(json.dumps({"machine": describe(), **found}, indent=2))


def measure(sut: SystemUnderTest, per_second: int, rate: float, seconds: float) -> dict[str, Any]:
    """Make calls in peace, and again while bad requests come in."""
    calls = round(rate * seconds)
    step(sut, 20, 40)  # The first calls fill caches and pools; they are not counted.
    peace = step(sut, rate, calls)
    command = [*TOOL_PREFIX, sys.executable, "-m", "benchmarks.flood", "--flood", str(per_second)]
    command += ["--seconds", str(seconds), "--send-to", str(sut.server.sip_port)]
    flood = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=sut.source_root)
    under = step(sut, rate, calls)
    printed, _ = flood.communicate(timeout=seconds + 30)
    return {
        "in_peace": peace,
        "under_flood": under,
        "flood": json.loads(printed),
        "rejected": sut.server.metric("trunkline_sip_rejected_total"),
        "banned": sut.server.metric("trunkline_sip_banned_sources"),
    }


def _send(port: int, per_second: int, seconds: float) -> None:
    """Send INVITEs and count what comes back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((_SOURCE, 0))
        sock.setblocking(False)
        local = f"{_SOURCE}:{sock.getsockname()[1]}"
        sent = answers = 0
        began = time.monotonic()
        while (passed_s := time.monotonic() - began) < seconds:
            for _ in range(int(passed_s * per_second) - sent):
                sent += 1
                with contextlib.suppress(BlockingIOError):
                    sock.sendto(_invite(local, sent), ("127.0.0.1", port))
            with contextlib.suppress(BlockingIOError):
                while sock.recv(65535):
                    answers += 1
            select.select([], [], [], _BATCH_S)
    print(json.dumps({"sent": sent, "answers": answers, "per_second": round(sent / seconds)}))


def _invite(local: str, number: int) -> bytes:
    return (
        f"INVITE sip:{number}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP {local};branch=z9hG4bK{number};rport\r\n"
        f"From: <sip:100@{local}>;tag={number}\r\nTo: <sip:{number}@127.0.0.1>\r\n"
        f"Call-ID: {number}@{local}\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\n"
        f"Contact: <sip:100@{local}>\r\nUser-Agent: x\r\n\r\n"
    ).encode()


if __name__ == "__main__":
    main()
