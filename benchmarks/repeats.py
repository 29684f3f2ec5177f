"""
Many repeats at once: `python -m benchmarks.repeats [--keys 100] [--repeats 100]`.

Opens a connection for each request, sends all of them, keys in turn, and waits for the answers: one key
places one call, whoever comes meanwhile is told that the first request is still running, and who comes later
gets its answer. Then every key is asked once more. Ends with 1 when a key had another effect than one call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.load.api_load import Api, FarEnd
from benchmarks.machine import sample
from benchmarks.sut import NUMBER, SystemUnderTest

_CONNECTING = 200


async def run(sut: SystemUnderTest, keys: int, repeats: int) -> dict[str, Any]:
    """Send the requests; what came back, and what of it is wrong."""
    far, api = FarEnd(sut.uas_port), Api(sut.server.http_port, sut.account.api_key)
    count = keys * repeats
    for begun in range(0, count, _CONNECTING):
        await api.connect(min(_CONNECTING, count - begun))
    requests = [_request(api, number % keys) for number in range(count)]
    before, began = sample(sut.server.pid), time.monotonic()
    answers = await asyncio.gather(*(api.send(request) for request in requests))
    wall_s, used = time.monotonic() - began, sample(sut.server.pid).since(before)
    later = [await api.send(_request(api, key)) for key in range(keys)]
    placed: dict[int, set[str]] = {key: set() for key in range(keys)}
    outcomes: Counter[str] = Counter()
    for number, (_, status, body) in enumerate([*answers, *later]):
        answer = json.loads(body)
        if status == 201:
            placed[number % keys].add(answer["data"]["call_sid"])
        outcomes[f"{status} {'' if status == 201 else answer['error']['code']}".strip()] += 1
    _, _, listed = await api.send(api.request("GET", "/v1/calls"))
    calls = json.loads(listed)["meta"]["total"]
    wrong = [key for key, sids in placed.items() if len(sids) != 1]
    return {
        "requests": count,
        "keys": keys,
        "outcomes": dict(outcomes),
        "calls": calls,
        "invites": len(far.arrived_ns),
        "keys_with_another_effect": len(wrong),
        "ok": not wrong and calls == keys and {status for _, status, _ in later} == {201},
        "wall_s": round(wall_s, 2),
        "cpu_ms_each": round(1000 * used["cpu_s"] / count, 2),
        "rss_grown_kib": used["rss_grown_kib"],
    }


def _request(api: Api, key: int) -> bytes:
    body = {"from": NUMBER, "to": f"+9198{key:08d}", "verbs": [{"verb": "hangup"}]}
    return api.request("POST", "/v1/calls", body, f"order-{key}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=100, help="requests with each key")
    arguments = parser.parse_args()
    # The server inherits it: both have a socket for each request.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory(prefix="trunkline-repeats-") as directory:
        with SystemUnderTest(Path(directory)) as sut:
            result = asyncio.run(run(sut, arguments.keys, arguments.repeats))
    print(json.dumps(result, indent=1))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
