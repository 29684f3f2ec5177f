"""SIP traces of recent calls, for troubleshooting."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from callcontrol.clock import WallClock
from callcontrol.ids import CallSid
from sip import readable
from sip.aio import TraceFields, TraceRecord
from sip.redaction import withhold_secrets

MAX_CALLS: Final = 500
"""Calls whose messages are kept."""

_MAX_UNCLAIMED: Final = 200
_MAX_DIALOGS: Final = 20
_FIRST_MESSAGES: Final = 40
_LAST_MESSAGES: Final = 160
_MAX_MESSAGE_BYTES: Final = 8192
_MAX_BYTES: Final = 64 * 1024 * 1024
_CUT: Final = b"\r\n(cut off)"


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One SIP message of a call; ``leg`` is ``a`` for the first party and ``b`` for any second one."""

    at: datetime
    leg: str
    direction: str
    transport: str
    peer: str
    call_id: str
    message: str


class _Dialog:
    """The first and the last messages of one Call-ID."""

    __slots__ = ("call_sid", "first", "last", "size_bytes")

    def __init__(self) -> None:
        self.call_sid: CallSid | None = None
        self.first: list[TraceFields] = []
        self.last: deque[TraceFields] = deque()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[TraceRecord]:
        for fields in (*self.first, *self.last):
            yield TraceRecord(*fields)

    def add_last(self, fields: TraceFields) -> int:
        """Add a message behind the first ones; return the bytes of the one that gives way to it."""
        self.last.append(fields)
        return len(self.last.popleft()[4]) if len(self.last) > _LAST_MESSAGES else 0


class TraceBook:
    """
    SIP messages by Call-ID, and the calls of these dialogs.

    Bounded in calls, in dialogs per call, in messages per dialog, in bytes per message and in total bytes.
    Messages of an INVITE that no call has claimed yet are kept apart and few, so that a flood of them
    displaces no messages of real calls.

    The two sides of an on-net call have one Call-ID: the dialog of the calling side has a key of its own.
    """

    def __init__(self, clock: WallClock, *, max_calls: int = MAX_CALLS, max_bytes: int = _MAX_BYTES) -> None:
        self.size_bytes = 0
        """Bytes of messages that are kept for calls."""
        self._clock = clock
        self._max_calls = max_calls
        self._max_bytes = max_bytes
        self._unclaimed: OrderedDict[str, _Dialog] = OrderedDict()
        self._dialogs: dict[str, _Dialog] = {}
        self._calls: OrderedDict[CallSid, list[tuple[str, str]]] = OrderedDict()

    def __len__(self) -> int:
        """Number of calls whose messages are kept."""
        return len(self._calls)

    def call_of(self, call_id: str) -> CallSid | None:
        """Return the call of a dialog, while its trace is kept."""
        dialog = self._dialogs.get(call_id)
        return None if dialog is None else dialog.call_sid

    def note_on_net(self, *fields: *TraceFields) -> None:
        """Add a message of the calling side of on-net calls."""
        self.note(*fields, key=on_net_key(fields[5]))

    def note(self, *fields: *TraceFields, key: str | None = None) -> None:
        """Add a message, if its dialog is kept or begins with it; ``key`` stands in for its Call-ID."""
        at, direction, listen, remote, message, call_id = fields
        if len(message) > _MAX_MESSAGE_BYTES:
            message = message[:_MAX_MESSAGE_BYTES] + _CUT
            fields = (at, direction, listen, remote, message, call_id)
        key = key or call_id
        dialog = self._dialogs.get(key) or self._unclaimed.get(key)
        if dialog is None:
            if not message.startswith(b"INVITE "):
                return
            dialog = self._begin(key)
        grown = len(message)
        if len(dialog.first) < _FIRST_MESSAGES:
            dialog.first.append(fields)
        else:
            grown -= dialog.add_last(fields)
        dialog.size_bytes += grown
        if dialog.call_sid is not None:
            self.size_bytes += grown
            while self.size_bytes > self._max_bytes and len(self._calls) > 1:
                self._forget_oldest()

    def _begin(self, key: str) -> _Dialog:
        dialog = self._unclaimed[key] = _Dialog()
        if len(self._unclaimed) > _MAX_UNCLAIMED:
            self._unclaimed.popitem(last=False)
        return dialog

    def claim(self, call_sid: CallSid, leg: str, call_id: str) -> None:
        """Assign a dialog to a call; its messages are kept with the call's from now on."""
        if call_id in self._dialogs:
            return
        dialog = self._unclaimed.pop(call_id) if call_id in self._unclaimed else _Dialog()
        dialog.call_sid = call_sid
        self._dialogs[call_id] = dialog
        self.size_bytes += dialog.size_bytes
        legs = self._calls.setdefault(call_sid, [])
        legs.append((leg, call_id))
        if len(legs) > _MAX_DIALOGS:
            # An agent may try transfers for hours. The first party's dialog stays.
            self._forget(legs.pop(1)[1])
        if len(self._calls) > self._max_calls:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, legs = self._calls.popitem(last=False)
        for _, call_id in legs:
            self._forget(call_id)

    def _forget(self, call_id: str) -> None:
        dialog = self._dialogs.pop(call_id, None)
        if dialog is not None:
            self.size_bytes -= dialog.size_bytes

    def of(self, call_sid: CallSid) -> list[TraceEntry]:
        """SIP messages of a call in wire order; empty when the trace is no longer kept."""
        found = [
            (record, leg)
            for leg, call_id in self._calls.get(call_sid, ())
            for record in self._dialogs.get(call_id, ())
        ]
        found.sort(key=lambda item: item[0].at)
        return [
            TraceEntry(
                at=self._clock.at(record.at),
                leg=leg,
                direction=record.direction,
                transport=record.transport,
                peer=record.peer,
                call_id=readable(record.call_id),
                message=withhold_secrets(record.message).decode("utf-8", "replace"),
            )
            for record, leg in found
        ]


def on_net_key(call_id: str) -> str:
    """Key of the calling side of an on-net call; no Call-ID has a space."""
    return f"{call_id} on net"
