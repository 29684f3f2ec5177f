"""Places calls at a rate, of several kinds, by SIP and by the API, whatever becomes of the server."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from tests.faults.oracle.dialogs import Manner

__all__ = ["Flows", "Load"]

_GIVEN_UP_S: Final = 60.0
_AGAIN_S: Final = 0.3
_EFFECT: Final = re.compile(r"\(call:([0-9a-f-]{36})\)")

PlaceCall = Callable[[str, str, Manner], None]


@dataclass(frozen=True, slots=True)
class Load:
    """
    Load to place.

    Attributes:
        rate: Calls per second.
        mix: How often each kind comes, beside the others: `forwarded`, `cancelled` and `streamed` call a
            number by SIP; `outbound`, `otp` and `masked` are asked for by the API.
        calls: How many; without end when None.
        hold_s: How long callers stay, between these; until they are told to hang up, when None.
        numbers: What `forwarded` (and `cancelled`), and `streamed` call.
        api_key, from_number, webhook_url: For the API.
        record: Whether outbound calls are recorded.
    """

    rate: float
    mix: Mapping[str, float]
    calls: int | None = None
    hold_s: Sequence[float] | None = None
    numbers: Mapping[str, str] | None = None
    api_key: str = ""
    from_number: str = ""
    webhook_url: str = ""
    record: bool = False


class Flows:
    """
    One load at a time.

    Attributes:
        placed: Calls that the API has accepted: their sid, and of which kind they are.
        unsure: Requests that were never answered, however often they were repeated under their key.
    """

    def __init__(self, url: str, chance: random.Random, place: PlaceCall) -> None:
        self.placed: dict[str, str] = {}
        self.unsure: list[str] = []
        self._url = url
        self._chance = chance
        self._place = place
        self._statuses: Counter[str] = Counter()
        self._refusal = ""
        self._asked_ms: list[float] = []
        self._http: aiohttp.ClientSession | None = None
        self._placing: asyncio.Task[None] | None = None
        self._asking: set[asyncio.Task[None]] = set()

    def start(self, **values: Any) -> None:
        """Place calls from now on; what was placed before goes on."""
        self.stop()
        self._placing = asyncio.create_task(self._run(Load(**values)))

    def stop(self) -> None:
        """Place no more."""
        if self._placing is not None:
            self._placing.cancel()
            self._placing = None

    def counts(self) -> dict[str, Any]:
        """Return the progress; `asked_ms` has the times of the API's answers since the last call."""
        placing = self._placing is not None and not self._placing.done()
        asked_ms, self._asked_ms = self._asked_ms, []
        return {
            "placing": placing,
            "asking": len(self._asking),
            "placed": len(self.placed),
            "refused": dict(self._statuses),
            "refusal": self._refusal,
            "asked_ms": asked_ms,
        }

    async def let_go(self) -> None:
        """Close the connections to the API; they are opened again when they are needed."""
        http, self._http = self._http, None
        if http is not None:
            await http.close()

    async def close(self) -> None:
        """Forget what is under way."""
        self.stop()
        for task in self._asking:
            task.cancel()
        await self.let_go()

    async def _run(self, load: Load) -> None:
        began = time.monotonic()
        kinds, weights = list(load.mix), list(load.mix.values())
        number = 0
        while load.calls is None or number < load.calls:
            await asyncio.sleep(max(0.0, began + number / load.rate - time.monotonic()))
            number += 1
            self._one(self._chance.choices(kinds, weights)[0], load)

    def _one(self, kind: str, load: Load) -> None:
        hold_s = self._chance.uniform(*load.hold_s) if load.hold_s is not None else None
        if kind in ("forwarded", "cancelled", "streamed"):
            numbers = load.numbers or {}
            cancel_s = self._chance.uniform(0.0, 0.15) if kind == "cancelled" else None
            called = numbers["streamed" if kind == "streamed" else "forwarded"]
            self._place(kind, called, Manner(hold_s=hold_s, cancel_s=cancel_s))
            return
        task = asyncio.create_task(self._ask(kind, load))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, kind: str, load: Load) -> None:
        """Ask the API for a call, again under the same key until it says what has become of the request."""
        path, body = self._request(kind, load)
        headers = {"Authorization": f"Bearer {load.api_key}", "Idempotency-Key": str(uuid.uuid4())}
        if self._http is None:
            self._http = aiohttp.ClientSession(self._url)
        until = time.monotonic() + _GIVEN_UP_S
        unheard = False
        while time.monotonic() < until:
            began = time.monotonic()
            with contextlib.suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                async with self._http.post(path, json=body, headers=headers) as reply:
                    if reply.status == 201:
                        self._asked_ms.append(1000 * (time.monotonic() - began))
                        data = (await reply.json())["data"]
                        self.placed[str(data.get("call_sid") or data["id"])] = kind
                        return
                    # Cut off by a restart after it had taken effect: the answer names the call.
                    effect = _EFFECT.search(await reply.text()) if unheard else None
                    if effect is not None:
                        self.placed[effect[1]] = kind
                        return
                    # One that was heard of before, or may have been, is not over with a refusal for now.
                    if reply.status != 409 and not (unheard and reply.status >= 500):
                        name = f"{reply.status} when repeated" if unheard else str(reply.status)
                        self._statuses[name] += 1
                        self._refusal = (await reply.text())[:500]
                        return
                    await asyncio.sleep(_AGAIN_S)
                    continue
            unheard = True
            await asyncio.sleep(_AGAIN_S)
        self.unsure.append(headers["Idempotency-Key"])

    def _request(self, kind: str, load: Load) -> tuple[str, dict[str, Any]]:
        to, other = (f"98{self._chance.randrange(10**8):08d}" for _ in range(2))
        if kind == "masked":
            return "/v1/masking/calls", {"party_a": to, "party_b": other}
        common = {"from": load.from_number, "to": f"+91{to}", "status_webhook_url": load.webhook_url}
        if kind == "otp":
            return "/v1/voice-otp/send", common
        verbs = [{"verb": "pause", "length": 600}]
        return "/v1/calls", {**common, "verbs": verbs, "record": load.record}
