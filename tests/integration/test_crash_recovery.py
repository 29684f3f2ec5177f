"""Dialogs of a process that was killed: ended, the newest first, and forgotten as fast as they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from callcontrol.bootstrap.products import PRODUCTS
from callcontrol.calls.aio.crash_recovery import CrashRecovery
from callcontrol.errors import ServiceUnavailable
from sip.aio.recovery import BURST, BURST_SPACING_S

CALLS, LEGS = 1000, 2


class Peers:
    """A user agent whose peers answer at once."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def terminate_recovered(
        self, saved: Mapping[str, Any], reason: str, credentials: object, over: Callable[[], None]
    ) -> None:
        self.told.append(saved["leg"])
        over()


class Kept:
    """The saved dialogs; the first that are to be forgotten fail with the database."""

    def __init__(self, dialogs: Mapping[str, Mapping[str, Any]]) -> None:
        self.dialogs = dict(dialogs)
        self.failures = 1

    async def keep_dialogs(self, records: Sequence[object]) -> Mapping[str, Mapping[str, Any]]:
        return dict(self.dialogs)

    async def forget_dialogs(self, call_sids: Sequence[str]) -> None:
        if self.failures:
            self.failures -= 1
            raise ServiceUnavailable("The database is away.")
        for call_sid in call_sids:
            del self.dialogs[call_sid]


class NoCarriers:
    """A directory without carriers."""

    def carrier(self, carrier_sid: str) -> None:
        return None


async def test_the_newest_calls_are_told_first_and_all_are_forgotten_as_fast_as_they_are_ended() -> None:
    names = [f"{number:06}" for number in range(CALLS)]
    kept = Kept({name: {"0": {"leg": f"{name} a"}, "1": {"leg": f"{name} b"}} for name in names})
    peers: Any = Peers()
    store: Any = kept
    routes: Any = NoCarriers()
    recovery = CrashRecovery(peers, store, routes, PRODUCTS, Path("nowhere"), None)
    await recovery.collect([])
    recovery.begin()
    assert peers.told == [f"{name} {leg}" for name in reversed(names) for leg in "ab"]
    began_s = asyncio.get_running_loop().time()
    assert recovery._task is not None
    await recovery._task
    assert not kept.dialogs
    # A process that is killed again and again would otherwise leave ever more of them to the next.
    assert asyncio.get_running_loop().time() - began_s < CALLS * LEGS * BURST_SPACING_S / BURST
