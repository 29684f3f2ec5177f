"""Ends the SIP dialogs of calls whose process was killed."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callcontrol.calls.hangup_cause import CRASH
from callcontrol.calls.ports import CallRecords
from callcontrol.directory.routes import Routes
from callcontrol.errors import DomainError
from callcontrol.models import CallRecord
from callcontrol.trunks.outbound_invite import credentials_of
from sip import Credentials, ParseError
from sip.aio import UserAgent

log = logging.getLogger(__name__)

_FORGET_EVERY_S: Final = 1.0
_FORGET_AT_ONCE: Final = 200
"""Number of rows that one statement deletes."""


class FormerCalls:
    """
    The calls that a previous process of this node left behind, with dialogs still open at their peers.

    ``collect`` saves the dialogs, so that they are ended even if this process is killed as well; ``begin``
    ends them, beside new calls.
    """

    def __init__(self, user_agent: UserAgent, calls: CallRecords, routes: Routes) -> None:
        self._user_agent = user_agent
        self._calls = calls
        self._routes = routes
        self._legs: dict[str, int] = {}
        self._over: list[str] = []
        self._kept: Mapping[str, Mapping[str, Any]] = {}
        self._task: asyncio.Task[None] | None = None

    async def collect(self, records: Sequence[CallRecord]) -> None:
        """Collect the dialogs of unfinished calls, and those that an earlier process has not ended."""
        kept = await self._calls.keep_dialogs(records)
        self._kept = {call_sid: dialogs for call_sid, dialogs in kept.items() if call_sid not in self._legs}

    def begin(self) -> None:
        """Start ending the dialogs; the user agent has to be listening."""
        kept, self._kept = self._kept, {}
        if not kept:
            return
        self._legs |= {call_sid: len(dialogs) for call_sid, dialogs in kept.items()}
        legs = [(call_sid, saved) for call_sid, dialogs in kept.items() for saved in dialogs.values()]
        log.warning("%d legs of %d calls of a former process are being ended", len(legs), len(kept))
        self._over += [call_sid for call_sid, dialogs in kept.items() if not dialogs]
        for call_sid, saved in legs:
            self._end(call_sid, saved)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._forget(), name="former-calls")

    async def close(self) -> None:
        """Stop; dialogs that are not ended remain saved for the next process."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _end(self, call_sid: str, saved: Mapping[str, Any]) -> None:
        def over() -> None:
            self._legs[call_sid] -= 1
            if not self._legs[call_sid]:
                self._over.append(call_sid)

        try:
            credentials = self._credentials(saved)
            self._user_agent.end_former(saved, CRASH.reason_header(), credentials, over)
        except ParseError as error:
            # Another version of this server saved it; the peer's own timers have to end the dialog.
            log.warning("a leg cannot be ended: %s", error.reason, extra={"call_sid": call_sid})
            over()

    def _credentials(self, saved: Mapping[str, Any]) -> Credentials | None:
        carrier = self._routes.carrier(str(saved.get("carrier")))
        return None if carrier is None else credentials_of(carrier)

    async def _forget(self) -> None:
        while self._legs:
            await asyncio.sleep(_FORGET_EVERY_S)
            over = self._over[:_FORGET_AT_ONCE]
            if not over:
                continue
            try:
                await self._calls.forget_dialogs(over)
            except DomainError as failure:
                log.info("calls whose peers were told stay noted: %s", failure.message)
                continue
            del self._over[: len(over)]
            for call_sid in over:
                self._legs.pop(call_sid, None)
        log.info("all legs of calls of a former process have ended")
