"""Calls that can be followed and changed: what `client.calls` returns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar, Unpack

from trunkline_client.generated.fields import calls as fields_of
from trunkline_client.generated.results import calls as results

if TYPE_CHECKING:
    from trunkline_client.generated.resources.calls import AsyncCallsResource, CallsResource

__all__ = ["AsyncCall", "Call", "CallEvent"]

POLL_S: Final = 0.5
_WITH_AN_INVITE: Final = frozenset({"initiated", "ringing", "in-progress"})

CallT = TypeVar("CallT", bound=results.Call)


@dataclass(frozen=True, slots=True)
class CallEvent(Generic[CallT]):
    """
    An event of a call, and the call as it was seen then.

    Names are those of webhooks: ``call.initiated``, ``call.ringing``, ``call.answered``,
    ``call.machine_detection``, ``call.completed``.
    """

    name: str
    call: CallT


def happened(call: results.Call) -> list[str]:
    """Names of the events that a call has had, in their order."""
    was_sent = call.status in _WITH_AN_INVITE or call.sip_call_id is not None
    reached = {
        "call.initiated": was_sent,
        "call.ringing": call.ringing_at is not None,
        "call.answered": call.answered_at is not None,
        "call.machine_detection": call.answered_by is not None,
        "call.completed": call.ended_at is not None,
    }
    return [name for name, has_been in reached.items() if has_been]


class Call(results.Call):
    """A call. Its fields are as they were when the server was asked; `refresh` returns them as they are."""

    @property
    def _calls(self) -> CallsResource:
        calls: CallsResource = self._client.calls
        return calls

    def refresh(self) -> Call:
        """Return the call as it is now."""
        return self._calls.get(self.sid)

    def update(self, **fields: Unpack[fields_of.UpdateLiveCallFields]) -> Call:
        """Change the call while it goes on."""
        return self._calls.update(self.sid, **fields)

    def hangup(self) -> Call:
        """End the call."""
        return self._calls.hangup(self.sid)

    def events(self, poll_s: float = POLL_S) -> Iterator[CallEvent[Call]]:
        """
        Yield what has happened and then what happens to the call, until it has ended.

        The server is asked every `poll_s` seconds; in between, nothing is lost.
        """
        known: set[str] = set()
        call = self
        while True:
            call = call.refresh()
            for name in happened(call):
                if name not in known:
                    known.add(name)
                    yield CallEvent(name, call)
            if "call.completed" in known:
                return
            threading.Event().wait(poll_s)

    def wait(self, poll_s: float = POLL_S) -> Call:
        """Return the call once it has ended."""
        *_, last = self.events(poll_s)
        return last.call


class AsyncCall(results.Call):
    """A call. Its fields are as they were when the server was asked; `refresh` returns them as they are."""

    @property
    def _calls(self) -> AsyncCallsResource:
        calls: AsyncCallsResource = self._client.calls
        return calls

    async def refresh(self) -> AsyncCall:
        """Return the call as it is now."""
        return await self._calls.get(self.sid)

    async def update(self, **fields: Unpack[fields_of.UpdateLiveCallFields]) -> AsyncCall:
        """Change the call while it goes on."""
        return await self._calls.update(self.sid, **fields)

    async def hangup(self) -> AsyncCall:
        """End the call."""
        return await self._calls.hangup(self.sid)

    async def events(self, poll_s: float = POLL_S) -> AsyncIterator[CallEvent[AsyncCall]]:
        """
        Yield what has happened and then what happens to the call, until it has ended.

        The server is asked every `poll_s` seconds; in between, nothing is lost.
        """
        known: set[str] = set()
        call = self
        while True:
            call = await call.refresh()
            for name in happened(call):
                if name not in known:
                    known.add(name)
                    yield CallEvent(name, call)
            if "call.completed" in known:
                return
            await asyncio.sleep(poll_s)

    async def wait(self, poll_s: float = POLL_S) -> AsyncCall:
        """Return the call once it has ended."""
        last = self
        async for event in self.events(poll_s):
            last = event.call
        return last
