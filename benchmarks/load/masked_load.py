"""
Has pairs of numbers connected over the REST API, and receives the webhooks about it.

Calls are placed at a fixed rate, whatever the answers do. What it was told of each call goes to standard
output as JSON once the last event of every call is here, or nothing has come for a while: the events in the
order they came, and how many came twice.

    masked  POST /v1/masking/calls
    dial    POST /v1/calls with a dial verb: the same two legs, bridged and not masked
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

_FINAL = ("completed", "failed", "no-answer")


@dataclass
class Told:
    """Events received by webhook."""

    events: dict[str, list[str]] = field(default_factory=dict)
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    doubles: int = 0
    unsigned: int = 0
    last_s: float = 0.0

    async def receive(self, request: web.Request) -> web.Response:
        """Note one event."""
        body = await request.json()
        self.last_s = time.monotonic()
        delivery_id = request.headers["X-Service-Delivery"]
        if delivery_id in self.seen:
            self.doubles += 1
            return web.Response(status=204)
        self.seen.add(delivery_id)
        self.unsigned += "X-Service-Signature" not in request.headers
        data, event = body["data"], body["event"]
        call_sid = data.get("call_sid") or data["id"]
        self.events.setdefault(call_sid, []).append(event.rsplit(".", 1)[1])
        if event.rsplit(".", 1)[1] in _FINAL:
            self.ended.add(call_sid)
            self.bodies[call_sid] = data
        return web.Response(status=204)


async def main(arguments: argparse.Namespace) -> dict[str, Any]:
    told = Told()
    app = web.Application()
    app.router.add_post("/", told.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", arguments.webhook_port).start()
    async with aiohttp.ClientSession(
        f"http://127.0.0.1:{arguments.http_port}", headers={"Authorization": f"Bearer {arguments.key}"}
    ) as http:
        placed, refused, times_ms, late_ms = await _place(http, arguments)
        told.last_s = time.monotonic()
        # What is waited for is that nothing more comes, and that is no event.
        while len(told.ended) < len(placed) and time.monotonic() - told.last_s < arguments.quiet:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await runner.cleanup()
    return {
        "placed": placed,
        "refused": refused,
        "events": told.events,
        "final": told.bodies,
        "doubles": told.doubles,
        "unsigned": told.unsigned,
        "answer_ms": _spread(times_ms),
        "tool_late_ms_max": round(late_ms, 1),
    }


async def _place(
    http: aiohttp.ClientSession, arguments: argparse.Namespace
) -> tuple[list[str], list[str], list[float], float]:
    placed: list[str] = []
    refused: list[str] = []
    times_ms: list[float] = []
    late_ms = 0.0

    async def one(number: int) -> None:
        path, body = _request(arguments, number)
        sent_s = time.monotonic()
        try:
            async with http.post(path, json=body) as answer:
                said = await answer.json()
        except aiohttp.ClientError as error:
            refused.append(repr(error))
            return
        times_ms.append(1000 * (time.monotonic() - sent_s))
        if answer.status == 201:
            placed.append(said["data"]["call_sid"])
        else:
            refused.append(f"{answer.status} {said}")

    begun_s = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for index in range(arguments.calls):
            due_s = begun_s + index / arguments.rate
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            late_ms = max(late_ms, 1000 * (time.monotonic() - due_s))
            group.create_task(one(arguments.first + index))
    return placed, refused, times_ms, late_ms


def _request(arguments: argparse.Namespace, index: int) -> tuple[str, dict[str, Any]]:
    a, b = f"{arguments.a}{index % 100_000:05}", f"{arguments.b}{index % 100_000:05}"
    if arguments.what == "masked":
        return "/v1/masking/calls", {"party_a": a, "party_b": b, "max_duration_sec": 600}
    dial = {"verb": "dial", "target": [{"type": "phone", "number": f"+91{b}"}], "caller_id": arguments.number}
    return "/v1/calls", {
        "from": arguments.number,
        "to": f"+91{a}",
        "verbs": [dial],
        "status_webhook_url": f"http://127.0.0.1:{arguments.webhook_port}/",
    }


def _spread(times_ms: list[float]) -> dict[str, float]:
    if len(times_ms) < 2:
        return {}
    cuts = statistics.quantiles(times_ms, n=100)
    return {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1), "max": round(max(times_ms), 1)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["masked", "dial"])
    parser.add_argument("--http-port", type=int, required=True)
    parser.add_argument("--webhook-port", type=int, required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--number", required=True, help="caller-ID of a dial")
    parser.add_argument("--a", required=True, help="the first five digits of everybody who is called first")
    parser.add_argument("--b", required=True, help="the first five digits of everybody else")
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument(
        "--quiet", type=float, default=20.0, help="give up when nothing came for that long, in s"
    )
    parser.add_argument("--first", type=int, default=0, help="what the last five digits begin at")
    print(json.dumps(asyncio.run(main(parser.parse_args()))))
