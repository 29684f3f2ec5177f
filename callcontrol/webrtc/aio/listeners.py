"""
Listening in: browsers that hear an active call, and are not heard.

A listener has a leg of the browsers' socket and a stream of the media engine that no call knows. The engine
adds up what passes in both directions of one leg of the call, and changes nothing of it. Each listener is
recorded before its browser can hear anything.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final

from callcontrol.aio.tasks import Worker
from callcontrol.aio.tokens import new_id, unix_s, utc_now
from callcontrol.calls.aio.runner import CallRunner
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.records.aio import CallStore
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import (
    CallEnded,
    Conflict,
    DomainError,
    NotFound,
    ServiceUnavailable,
    ValidationFailed,
    WrongCallState,
)
from callcontrol.webrtc import listeners as rows
from callcontrol.webrtc.aio.gateways import read_offer
from callcontrol.webrtc.listeners import MAX_OF_ACCOUNT, MAX_OF_CALL, CallListener
from media.aio import Monitor, RtpStream
from media.capabilities import has_srtp
from media.errors import MediaError
from media.webrtc.aio import BrowserLeg, BrowserSocket, LegEnd
from media.webrtc.descriptions import BrowserOffer
from media.webrtc.dtls import SrtpKeys

log = logging.getLogger(__name__)

_FOLLOW_S: Final = 0.25
_ADMIT_S: Final = 5.0
_CALL_ENDED: Final = "the call ended"

IsAdmitted = Callable[[], Awaitable[bool]]
"""Tells if who listens still has the right to."""


class ActiveListener:
    """One browser that listens to a call; ``on_end`` is called once, at the end."""

    def __init__(
        self,
        listener: CallListener,
        runner: CallRunner,
        calls: CallControl,
        is_admitted: IsAdmitted,
        on_end: Callable[["ActiveListener"], None],
    ) -> None:
        self.listener = listener
        self.is_admitted = is_admitted
        self.began = False
        """True once it is recorded."""
        self._runner = runner
        self._engine = calls.engine
        self._on_end = on_end
        self._leg: BrowserLeg | None = None
        self._stream: RtpStream | None = None
        self._heard: RtpStream | None = None
        self._monitor: Monitor | None = None

    @property
    def ended(self) -> bool:
        """True after the end."""
        return self.listener.ended_at is not None

    def open(self, socket: BrowserSocket, offer: BrowserOffer) -> str:
        """
        Open the browser's leg; returns the answer to its offer.

        Raises:
            OSError: There are too many legs, or no socket can be bound.
        """
        self._leg = socket.open_leg(offer, self._on_keys, self._on_leg_end)
        return self._leg.answer()

    def follow(self) -> None:
        """Hear the leg of the call on which all of it passes: parties come and go."""
        if self._runner.over:
            self.end(_CALL_ENDED)
            return
        heard = self._runner.media.whole
        if self._stream is None or heard is self._heard:
            return
        if self._monitor is not None:
            self._monitor.close()
        self._heard = heard
        try:
            self._monitor = None if heard is None else heard.monitor(self._stream)
        except MediaError as error:
            self.end(f"the call cannot be heard: {error}")

    def end(self, reason: str) -> None:
        """End it. Idempotent."""
        if self.ended:
            return
        self.listener = replace(self.listener, ended_at=utc_now(), reason=reason)
        if self._monitor is not None:
            self._monitor.close()
        if self._stream is not None:
            self._stream.close()
        if self._leg is not None:
            self._leg.close()
        self._on_end(self)

    def _on_keys(self, keys: SrtpKeys) -> None:
        leg = self._leg
        if leg is None or self.ended:
            return
        try:
            self._stream = self._engine.open_stream(_ignore, self._runner.media.whole)
            self._stream.connect(leg.engine_settings(keys))
        except MediaError as error:
            self.end(f"the server has no room: {error}")
            return
        leg.connect_engine(self._stream.local[1])
        self.follow()

    def _on_leg_end(self, end: LegEnd) -> None:
        self._leg = None
        self.end(end.value)


class CallListeners:
    """
    Listeners of the active calls of this node.

    They are recorded with the call for good, and in its journal.
    """

    def __init__(
        self, database: Database, writer: Writer, store: CallStore, calls: CallControl, socket: BrowserSocket
    ) -> None:
        self._database = database
        self._writer = writer
        self._journal = store.journal
        self._calls = calls
        self._socket = socket
        self._active: dict[str, ActiveListener] = {}
        self._following: asyncio.TimerHandle | None = None
        self._admitting = Worker("listeners", self._admit, retry_s=_ADMIT_S, log=log)
        self._is_watching = False
        self._writing: set[asyncio.Task[None]] = set()

    @property
    def active(self) -> int:
        """Number of browsers that listen now."""
        return len(self._active)

    async def open(
        self, account_sid: str, call_sid: str, sdp: str, listened_by: str, is_admitted: IsAdmitted
    ) -> tuple[CallListener, str]:
        """
        Begin to listen with a browser; returns the listener, and the answer to the browser's offer.

        Args:
            account_sid: Account of the call.
            call_sid: The call, which must be active on this node.
            sdp: Offer of the browser, which only receives.
            listened_by: Id of the key, or ``operator:`` with a name.
            is_admitted: Asked every 5 s; the listening ends once it is false.

        Raises:
            NotFound: There is no such call.
            Forbidden: It belongs to another account.
            CallEnded: It has ended.
            NodeUnreachable: It is active on another node.
            WrongCallState: Nobody has been heard on it yet.
            Conflict: Nobody may listen to it, or too many do.
            ValidationFailed: The offer cannot be answered, or wants to send.
            ServiceUnavailable: The server stops, or has no room; or the listener could not be recorded.
        """
        record, runner = await self._calls.up(account_sid, call_sid)
        if runner.private_because is not None:
            raise Conflict(f"Nobody may listen in: {runner.private_because}.")
        if runner.media.whole is None:
            raise WrongCallState("Nothing is heard on the call yet; it is not answered.")
        if self._calls.user_agent.draining or not has_srtp():
            raise ServiceUnavailable("This server stops, or its engine has no SRTP; nobody can listen in.")
        offer = read_offer(sdp)
        if offer.direction != "recvonly":
            raise ValidationFailed.of("sdp", "must have a=recvonly: who listens is not heard")
        self._check_room(account_sid, record.call_sid)
        listener = CallListener(new_id(), account_sid, record.call_sid, listened_by, utc_now())
        active = ActiveListener(listener, runner, self._calls, is_admitted, self._ended)
        # It has its place before anything is waited for.
        self._active[listener.listener_sid] = active
        try:
            answer = active.open(self._socket, offer)
            await self._writer.commit(partial(rows.insert, listener=listener))
        except OSError as error:
            active.end("it could not begin")
            raise ServiceUnavailable(f"No more browsers can listen now: {error}.") from None
        except BaseException:
            active.end("it could not begin")
            raise
        active.follow()
        if active.ended:
            raise CallEnded("The call has ended meanwhile.")
        active.began = True
        self._note(listener, "listener.joined")
        self._watch()
        return listener, answer

    async def of_call(self, account_sid: str, call_sid: str) -> list[CallListener]:
        """
        Listeners of a call, with those of before.

        Raises:
            NotFound: There is no such call.
            Forbidden: It belongs to another account.
        """
        record = await self._calls.get_call(account_sid, call_sid)
        found = await self._database.read(partial(rows.of_call, call_sid=record.call_sid))
        # Those without an end were cut short with their process, and nobody listens longer than the call.
        return [
            replace(listener, ended_at=record.ended_at, reason=_CALL_ENDED)
            if listener.ended_at is None and listener.listener_sid not in self._active and record.ended_at
            else listener
            for listener in found
        ]

    async def close_one(self, account_sid: str, call_sid: str, listener_sid: str) -> None:
        """
        End a listening; one that has ended stays as it is.

        Raises:
            NotFound: There is none of this call, or no such call.
            Forbidden: The call belongs to another account.
            NodeUnreachable: It is on another node.
        """
        active = self._active.get(listener_sid)
        if active is not None and (active.listener.account_sid, active.listener.call_sid) == (
            account_sid,
            call_sid,
        ):
            active.end("the listener has left")
            return
        record = await self._calls.get_call(account_sid, call_sid)
        listener = await self._database.read(partial(rows.get, listener_sid=listener_sid))
        if listener is None or listener.call_sid != record.call_sid:
            raise NotFound("The call has no such listener.")
        if listener.ended_at is None:
            # Of a call of another node, that one ends it.
            with contextlib.suppress(CallEnded):
                await self._calls.up(account_sid, call_sid)

    async def close(self) -> None:
        """End all, and write their ends."""
        for active in list(self._active.values()):
            active.end("the server stops")
        if self._following is not None:
            self._following.cancel()
        await self._admitting.close()
        if self._writing:
            await asyncio.wait(self._writing)

    def _check_room(self, account_sid: str, call_sid: str) -> None:
        others = [active.listener for active in self._active.values()]
        if sum(other.call_sid == call_sid for other in others) >= MAX_OF_CALL:
            raise Conflict(f"{MAX_OF_CALL} listen to the call already.")
        if sum(other.account_sid == account_sid for other in others) >= MAX_OF_ACCOUNT:
            raise Conflict(f"{MAX_OF_ACCOUNT} listen to calls of the account already.")

    def _watch(self) -> None:
        if self._following is None:
            self._follow()
        if not self._is_watching:
            self._is_watching = True
            self._admitting.start()

    def _follow(self) -> None:
        for active in list(self._active.values()):
            active.follow()
        loop = asyncio.get_running_loop()
        self._following = loop.call_later(_FOLLOW_S, self._follow) if self._active else None

    async def _admit(self) -> float:
        for active in list(self._active.values()):
            if not active.ended and not await active.is_admitted():
                active.end("the right to listen has ended")
        return _ADMIT_S

    def _ended(self, active: ActiveListener) -> None:
        listener = active.listener
        self._active.pop(listener.listener_sid, None)
        if active.began:
            self._note(listener, "listener.left")
        writing = asyncio.create_task(self._write_end(listener))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def _write_end(self, listener: CallListener) -> None:
        try:
            await self._writer.commit(partial(rows.write_end, listener=listener))
        except DomainError as failure:
            # It then counts as having lasted as long as the call.
            log.warning("the end of a listener is not recorded: %s", failure.message)

    def _note(self, listener: CallListener, name: str) -> None:
        details = {
            "listener_sid": listener.listener_sid,
            "listened_by": listener.listened_by,
            "reason": listener.reason,
        }
        log.info("%s: %s", name, listener.listened_by, extra={"call_sid": listener.call_sid})
        self._journal.note(listener.call_sid, unix_s(), "event", name, details)


def _ignore(_: object) -> None:
    """Nothing that the stream of a listener reports concerns anybody."""
