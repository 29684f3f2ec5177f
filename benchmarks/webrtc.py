"""
CPU of browsers' legs: `python -m benchmarks.webrtc [--legs N] [--seconds S] [--rounds N] [--before FOLDER]`.

Browsers call browsers through a whole server on one core, so that each call has two such legs: with HTTP,
ICE, DTLS and on-net INVITEs, and SRTP of G.711 both ways, 50 packets a second and direction. All of them are
one process on another core. Prints what calls add to an idle server, by thread; with `--before` in turns with
another checkout, whose `make setup` has run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import uvloop

from benchmarks.machine import SUT_PREFIX, describe
from media.audio import tone
from tests.support.browser_peer import BrowserPeer
from tests.support.ports import free_port
from tests.support.server_process import Account, ServerProcess
from tests.support.waiting import until

_TICKS = os.sysconf("SC_CLK_TCK")
_PACKETS_A_SECOND = 50
_SETTLE_S = 2.0
_PARTS = ("all", "loop", "media", "others")

Cpu = dict[str, float]


class _Customer:
    """The account's requests."""

    def __init__(self, http: aiohttp.ClientSession, server: ServerProcess, account: Account) -> None:
        self._http, self._server, self._key = http, server, account.api_key

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._key}"}
        async with self._http.post(self._server.url + path, json=body, headers=headers) as response:
            answer = await response.json()
            assert response.status < 300, answer
            return dict(answer["data"])

    @asynccontextmanager
    async def page(self, identity: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Keep a page with the telephone open; gives the calls that ring."""
        made = await self.post("/v1/webrtc/tokens", {"identity": identity, "receives_calls": True})
        headers = {"Authorization": f"Bearer {made['token']}"}
        url = f"{self._server.url}/v1/webrtc/events"
        async with self._http.get(url, headers=headers) as response:
            yield _ringing(response)


async def _ringing(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    event = ""
    async for line in response.content:
        name, _, value = line.decode().rstrip().partition(": ")
        if name == "event":
            event = value
        elif name == "data" and event == "ringing":
            yield json.loads(value)


@asynccontextmanager
async def _call(customer: _Customer, place: int) -> AsyncIterator[list[BrowserPeer]]:
    """A call of one browser to another, which is up until the block ends."""
    pair = [BrowserPeer(tone(hz, 2000)) for hz in (440.0, 700.0)]
    identity = f"called-{place}"
    async with customer.page(identity) as rings:
        body = {"sdp": pair[0].offer(), "to": f"browser:{identity}", "from": f"calling-{place}"}
        made = await customer.post("/v1/webrtc/calls", body)
        await pair[0].connect(made["sdp"])
        ring = await anext(rings)
        path = f"/v1/webrtc/calls/{ring['call_sid']}/answer"
        answered = await customer.post(path, {"sdp": pair[1].offer()})
        await pair[1].connect(answered["sdp"])
        await until(lambda: all(peer.packets > 0 for peer in pair))
        try:
            yield pair
        finally:
            for peer in pair:
                peer.hang_up()
                await peer.leave()


def _cpu(pid: int) -> Cpu:
    """Seconds that the threads of a process have taken: the event loop's, the media engine's, others."""
    spent = dict.fromkeys(_PARTS, 0.0)
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, _, fields = (task / "stat").read_text().partition("(")[2].rpartition(") ")
        used_s = sum(map(int, fields.split()[11:13])) / _TICKS
        part = "loop" if int(task.name) == pid else "media" if name.startswith("tl-media") else "others"
        spent[part] += used_s
        spent["all"] += used_s
    return spent


async def _window(pid: int, seconds: float) -> Cpu:
    """Percents of a core that a process takes for a while."""
    began_s, before = time.monotonic(), _cpu(pid)
    await asyncio.sleep(seconds)
    after, took_s = _cpu(pid), time.monotonic() - began_s
    return {part: 100 * (after[part] - before[part]) / took_s for part in _PARTS}


async def _with_calls(server: ServerProcess, account: Account, legs: int, seconds: float) -> Cpu:
    async with AsyncExitStack() as closing:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        http = await closing.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))
        customer = _Customer(http, server, account)
        idle = await _window(server.pid, seconds / 2)
        peers: list[BrowserPeer] = []
        for place in range(legs // 2):
            peers += await closing.enter_async_context(_call(customer, place))
        await asyncio.sleep(_SETTLE_S)
        sent, arrived = -sum(peer.sent for peer in peers), -sum(peer.packets for peer in peers)
        busy = await _window(server.pid, seconds)
        sent, arrived = sent + sum(peer.sent for peer in peers), arrived + sum(peer.packets for peer in peers)
        assert all(peer.unreadable == 0 for peer in peers)
    found = {part: round(busy[part] - idle[part], 2) for part in _PARTS}
    # A busy machine sends fewer packets than legs do: a leg's second is 50 that came in and as many out.
    per_leg_us = 1e4 * found["all"] * _PACKETS_A_SECOND * seconds / arrived
    return {
        **found,
        "idle": round(idle["all"], 2),
        "sent": round(100 * sent / (_PACKETS_A_SECOND * len(peers) * seconds), 1),
        "lost": round(100 * (sent - arrived) / sent, 1),
        "us_per_leg_s": round(per_leg_us, 1),
    }


def _turn(legs: int, seconds: float, checkout: Path | None) -> Cpu:
    """Measure one server, a fresh one."""
    with tempfile.TemporaryDirectory(prefix="trunkline-webrtc-") as directory:
        server = ServerProcess(
            Path(directory),
            prefix=SUT_PREFIX,
            rtp_ports=8 * legs,
            environment={"TRUNKLINE_WEBRTC_PORT": str(free_port()), "TRUNKLINE_MAX_CPS": "1000"},
        )
        server.checkout = checkout
        with server.starting():
            account = server.add_account()
            found = uvloop.run(_with_calls(server, account, legs, seconds))
        server.stop()
    return found


def _rounds(options: argparse.Namespace) -> Iterator[tuple[str, list[Cpu]]]:
    turns: dict[str, list[Cpu]] = {"now": []} if options.before is None else {"before": [], "now": []}
    for _ in range(options.rounds):
        for name, found in turns.items():
            found.append(_turn(options.legs, options.seconds, options.before if name == "before" else None))
            print(f"{name:>8}  {found[-1]}", flush=True)
    yield from turns.items()


def main() -> None:
    """Measure, and print what was found and the medians of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--legs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout")
    options = parser.parse_args()
    # The tools' core, in place of a prefix: this process is the browsers.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(describe()))
    for name, found in _rounds(options):
        medians = {key: round(median(turn[key] for turn in found), 2) for key in found[0]}
        print(f"median of {name}, % of a core with {options.legs} legs: {medians}")


if __name__ == "__main__":
    main()
