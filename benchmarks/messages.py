"""
Messages: `python -m benchmarks.messages [--seconds 10] [--connections 16]`.

The server runs on one core with SQLite and the stand-in for a network, which takes every message at once and
tells twice of it. Each connection is an account of its own, so that no channel's pace is reached, and sends
its next message when the last was answered. Afterwards all messages come to be read. Ends with 1 when one was
refused or does not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.load.api_load import Api
from benchmarks.machine import SUT_PREFIX, sample
from tests.support.server_process import ServerProcess

_PATIENCE_S = 120.0
_PATH = "/api/v1/messages"
_BODY = {"to": "+919876543210", "type": "text", "text": "Your parcel is on its way; it comes before nine."}


async def run(server: ServerProcess, keys: list[str], seconds: float, earlier: int = 0) -> dict[str, Any]:
    """Send for so long, then wait until everything was read, what was sent earlier included."""
    apis = [Api(server.http_port, key) for key in keys]
    request = [api.request("POST", _PATH, _BODY) for api in apis]
    outcomes: Counter[int] = Counter()
    waits_ms: list[float] = []
    before, began = sample(server.pid), time.monotonic()

    async def keep_sending(place: int) -> None:
        while time.monotonic() < began + seconds:
            sent = time.monotonic()
            _, status, _ = await apis[place].send(request[place])
            waits_ms.append(1000 * (time.monotonic() - sent))
            outcomes[status] += 1

    await asyncio.gather(*(keep_sending(place) for place in range(len(apis))))
    wall_s, sending = time.monotonic() - began, sample(server.pid).since(before)
    count = sum(outcomes.values())
    read = 0
    while read < count + earlier and time.monotonic() < began + seconds + _PATIENCE_S:
        await asyncio.sleep(0.5)
        read = sum([await _total(api, "read") for api in apis])
    whole = sample(server.pid).since(before)
    percentiles = statistics.quantiles(waits_ms, n=100)
    return {
        "messages": count,
        "per_s": round(count / wall_s),
        "answer_ms": {"p50": round(percentiles[49], 1), "p99": round(percentiles[98], 1)},
        "cpu_ms_each": round(1000 * sending["cpu_s"] / count, 3),
        "cpu_ms_each_until_read": round(1000 * whole["cpu_s"] / count, 3),
        "cpu_pct": sending["cpu_pct"],
        "core_busy_s": sending["core_busy_s"],
        "rss_mib": whole["rss_mib"],
        "read": read - earlier,
        "outcomes": dict(outcomes),
        "ok": set(outcomes) == {200} and read == count + earlier,
    }


async def _total(api: Api, status: str) -> int:
    _, _, body = await api.send(api.request("GET", f"{_PATH}?status={status}&pageSize=1"))
    return int(json.loads(body)["pagination"]["total"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=16)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trunkline-messages-") as directory:
        server = ServerProcess(
            Path(directory), prefix=SUT_PREFIX, environment={"TRUNKLINE_TRUSTED_SOURCES": "127.0.0.0/8"}
        )
        server.start()
        try:
            keys = [_key(server) for _ in range(arguments.connections)]
            # What is cached and pooled is filled first.
            warm = asyncio.run(run(server, keys, 2.0))
            result = asyncio.run(run(server, keys, arguments.seconds, warm["messages"]))
        finally:
            server.stop()
    print(json.dumps(result, indent=1))
    return 0 if result["ok"] else 1


def _key(server: ServerProcess) -> str:
    account = server.add_account()
    words = ("--account", account.account_sid, "--service", "messaging")
    return str(server.command("keys", "create", *words)["key"])


if __name__ == "__main__":
    sys.exit(main())
