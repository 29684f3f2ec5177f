"""
Campaigns beside calls: what a thousand messages add to the way from a POST to its INVITE.

The same calls are placed alone and beside a campaign, in turns, on one server. Beside them `GET /health`
is asked a hundred times a second: how long that takes says how long the server's loop was held.
"""

from __future__ import annotations

import argparse
import http.client
import threading
import time
from typing import Any

from benchmarks.api_latency import Load
from benchmarks.sut import SystemUnderTest
from tests.support.server_process import ServerFailed, wait_until

_EVERY_S = 0.01
_ASKED_EVERY_S = 0.5
_TEMPLATE = "bench_offer"
_PATIENCE_S = 120.0
_CALLS_PER_S = 10.0
_MESSAGES = 1000
_TURNS = 3
_PACES = (80, 1000)
CLAIM = (
    "from POST /v1/calls to the INVITE at 10 calls a second, alone and beside a campaign of 1,000 messages"
)
COLUMNS = {
    "": "what",
    "calls": "calls",
    "failed": "failed",
    "INVITE p50 ms": "invite_ms.p50",
    "p99": "invite_ms.p99",
    "max": "invite_ms.max",
    "health p50 ms": "health_ms.p50",
    "p99 ": "health_ms.p99",
    "max ": "health_ms.max",
    "taken in ms": "taken_ms",
    "done in s": "done_s",
    "CPU %": "server.cpu_pct",
    "tool late ms": "late_ms",
}


class Campaigner:
    """Has campaigns sent by an account of its own."""

    def __init__(self, sut: SystemUnderTest) -> None:
        self._server = sut.server
        sid = sut.server.add_account("Campaigns").account_sid
        scopes = "campaigns.create,campaigns.read,templates.read,templates.write"
        given = ("--account", sid, "--service", "messaging", "--scopes", scopes)
        self._key = str(sut.server.command("keys", "create", *given)["key"])
        self._next = 0
        self._pause = threading.Event()
        template = {"name": _TEMPLATE, "body": "Dear {{1}}, your order {{2}} has left."}
        self._ask("POST", "/api/v1/templates", template)
        if not wait_until(lambda: self._ask("GET", "/api/v1/templates"), _PATIENCE_S):
            raise ServerFailed("the template was not approved")

    def pace(self, per_second: int) -> None:
        """Set how many messages the channel takes in a second."""
        self._ask("PATCH", "/api/v1/channel", {"messagesPerSecond": per_second})

    def send(self, count: int) -> dict[str, float]:
        """Send a campaign; how long it took to be taken, and until every message had been read."""
        numbers = [f"+91981{self._next + index:07d}" for index in range(count)]
        self._next += count
        body = {
            "templateName": _TEMPLATE,
            "campaignName": "benchmark",
            "phoneNumbers": numbers,
            "variables": {"1": "Asha", "2": "A-1042"},
        }
        began = time.monotonic()
        taken = self._ask("POST", "/api/v1/send", body)
        taken_s = time.monotonic() - began
        path = f"/api/v1/{taken['campaignId']}/status"
        # Asked seldom: what is measured is the campaign, not the questions about it.
        while self._ask("GET", path)["counts"]["read"] < count:
            if time.monotonic() - began > _PATIENCE_S:
                raise ServerFailed(f"the campaign did not end: {self._ask('GET', path)}")
            self._pause.wait(_ASKED_EVERY_S)
        return {"taken_ms": round(1000 * taken_s, 1), "done_s": round(time.monotonic() - began, 1)}

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._server.request(method, path, self._key, body)
        if reply.status >= 300:
            raise ServerFailed(f"{method} {path} was answered {reply.status}: {reply.body}")
        return reply.data


class Prober(threading.Thread):
    """Asks for the server's health again and again; how long each answer took."""

    def __init__(self, port: int, every_s: float = _EVERY_S) -> None:
        super().__init__(daemon=True)
        self._every_s = every_s
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self._stopped = threading.Event()
        self._took_ms: list[float] = []

    def run(self) -> None:
        """Ask until it is stopped."""
        while not self._stopped.wait(self._every_s):
            began = time.perf_counter()
            self._connection.request("GET", "/health")
            self._connection.getresponse().read()
            self._took_ms.append(1000 * (time.perf_counter() - began))

    def stop(self) -> dict[str, float]:
        """Return the times of the answers."""
        self._stopped.set()
        self.join()
        self._connection.close()
        ordered = sorted(self._took_ms)
        return {
            "p50": round(ordered[len(ordered) // 2], 1),
            "p99": round(ordered[int(len(ordered) * 0.99)], 1),
            "max": round(ordered[-1], 1),
        }


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Calls alone and beside campaigns, in turns."""
    seconds = arguments.seconds or 20.0
    load, campaigner = Load(sut), Campaigner(sut)
    load.calls(_CALLS_PER_S, 3.0, "warm-up")  # The first of everything fills caches; it is not counted.
    campaigner.send(100)
    steps = []
    for _ in range(_TURNS):
        steps.append(_turn(sut, load, seconds, "calls alone", None))
        for pace in _PACES:
            campaigner.pace(pace)
            steps.append(_turn(sut, load, seconds, f"beside a campaign, {pace}/s", campaigner))
    return steps


def _turn(
    sut: SystemUnderTest, load: Load, seconds: float, what: str, campaigner: Campaigner | None
) -> dict[str, Any]:
    prober, sent = Prober(sut.server.http_port), dict[str, float]()
    campaign = threading.Thread(target=lambda: campaigner and sent.update(campaigner.send(_MESSAGES)))
    prober.start()
    campaign.start()
    step = load.calls(_CALLS_PER_S, seconds, what)
    campaign.join()
    done = campaigner is None or bool(sent)
    return {**step, **sent, "ok": step["ok"] and done, "health_ms": prober.stop()}
