"""The signalling of recent calls, kept for those who ask what happened on the wire."""

import re
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from callcontrol.clock import WallClock
from callcontrol.ids import CallSid
from sip.aio import TraceRecord

_MAX_CALLS: Final = 500
_MAX_UNCLAIMED: Final = 200
_MAX_MESSAGES: Final = 200
_MAX_DIALOGS: Final = 20
# What a trunk's password can be guessed from; a folded value goes on in the lines after it.
_SECRETS: Final = re.compile(
    r"^((?:Proxy-)?Authorization[ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*", re.IGNORECASE | re.MULTILINE
)


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


class TraceBook:
    """
    SIP messages by Call-ID, and the calls whose legs they are.

    Bounded in calls, in dialogs a call and in messages a dialog. Messages of an INVITE that no call has
    claimed yet are kept apart and few, so that a flood of them pushes out nothing of real calls.
    """

    def __init__(self, clock: WallClock, *, max_calls: int = _MAX_CALLS) -> None:
        self._clock = clock
        self._max_calls = max_calls
        self._unclaimed: OrderedDict[str, deque[TraceRecord]] = OrderedDict()
        self._dialogs: dict[str, deque[TraceRecord]] = {}
        self._calls: OrderedDict[CallSid, list[tuple[str, str]]] = OrderedDict()

    def note(self, record: TraceRecord) -> None:
        """Keep a message, if its dialog is kept or begins with it."""
        kept = self._dialogs.get(record.call_id)
        if kept is None:
            kept = self._unclaimed.get(record.call_id)
        if kept is not None:
            kept.append(record)
        elif record.message.startswith(b"INVITE "):
            self._unclaimed[record.call_id] = deque((record,), _MAX_MESSAGES)
            if len(self._unclaimed) > _MAX_UNCLAIMED:
                self._unclaimed.popitem(last=False)

    def claim(self, call_sid: CallSid, leg: str, call_id: str) -> None:
        """Say which call a dialog belongs to; its messages are kept with the call's from now on."""
        if call_id in self._dialogs:
            return
        early = self._unclaimed.pop(call_id) if call_id in self._unclaimed else deque(maxlen=_MAX_MESSAGES)
        self._dialogs[call_id] = early
        legs = self._calls.setdefault(call_sid, [])
        legs.append((leg, call_id))
        if len(legs) > _MAX_DIALOGS:
            # An agent may try transfers for hours. The first party's dialog stays.
            self._dialogs.pop(legs.pop(1)[1], None)
        if len(self._calls) > self._max_calls:
            _, legs = self._calls.popitem(last=False)
            for _, forgotten in legs:
                self._dialogs.pop(forgotten, None)

    def of(self, call_sid: CallSid) -> list[TraceEntry]:
        """The messages of a call in the order they were on the wire; empty when it is forgotten."""
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
                call_id=record.call_id,
                message=_SECRETS.sub(r"\1 (withheld)", record.message.decode("utf-8", "replace")),
            )
            for record, leg in found
        ]
