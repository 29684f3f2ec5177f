"""SIP traces of recent calls, for troubleshooting."""

import re
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
from sip.values import frozen

MAX_CALLS: Final = 500
"""Calls whose messages are kept."""

_MAX_UNCLAIMED: Final = 200
_MAX_DIALOGS: Final = 20
_FIRST_MESSAGES: Final = 40
_LAST_MESSAGES: Final = 160
_MAX_MESSAGE_BYTES: Final = 8192
_MAX_BYTES: Final = 64 * 1024 * 1024
_CUT: Final = b"\r\n(cut off)"

# A folded value continues on the next line. The line feed makes the search half as long as "^" does.
_VALUE: Final = rb"[ \t]*:([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)"
_FIELDS: Final = re.compile(
    rb"\n(?:(f|from)|(t|to)|(v|via)|(?:proxy-)?(authorization))" + _VALUE, re.IGNORECASE
)
_FROM: Final = re.compile(rb"\n(?:f|from)" + _VALUE, re.IGNORECASE)
_TAG: Final = re.compile(rb";\s*tag\s*=\s*([^\s;,>]+)", re.IGNORECASE)
_BRANCH: Final = re.compile(rb";\s*branch\s*=\s*([^\s;,]+)", re.IGNORECASE)


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


@frozen
class _Names:
    """Tags and branch of a message, by which dialogs with one Call-ID are told apart; empty where absent."""

    from_tag: bytes
    to_tag: bytes
    branch: bytes
    has_credentials: bool

    @classmethod
    def of(cls, message: bytes) -> "_Names":
        head = message.partition(b"\r\n\r\n")[0]
        from_tag: list[bytes] = []
        to_tag: list[bytes] = []
        branch: list[bytes] = []
        has_credentials = False
        # Backwards, as the first of several fields counts; of a value its last tag, as its URI may have one.
        for found in reversed(list(_FIELDS.finditer(head))):
            value = found[5]
            if found[1]:
                from_tag = _TAG.findall(value)[-1:]
            elif found[2]:
                to_tag = _TAG.findall(value)[-1:]
            elif found[3]:
                branch = _BRANCH.findall(value)[:1]
            else:
                has_credentials = True
        return cls(b"".join(from_tag), b"".join(to_tag), b"".join(branch), has_credentials)

    def has(self, tag: bytes | None) -> bool:
        """Return True if the tag is one of the message's."""
        return tag is not None and (tag == self.from_tag or (tag == self.to_tag != b""))


class _Dialog:
    """The first and the last messages of one dialog, by the tag of the party that began it."""

    __slots__ = ("_names", "_tag", "call_sid", "first", "last", "size_bytes")

    def __init__(self, tag: bytes | None = None) -> None:
        self.call_sid: CallSid | None = None
        self.first: list[TraceFields] = []
        self.last: deque[TraceFields] = deque()
        self.size_bytes = 0
        self._tag = tag
        self._names: _Names | None = None

    def __iter__(self) -> Iterator[TraceRecord]:
        """Iterate over its messages, without those of others that were taken for them by their Call-ID."""
        tags = set[bytes]()
        for fields in (*self.first, *self.last):
            names = _Names.of(fields[4])
            if names.has(self.tag) or not tags.isdisjoint((names.from_tag, names.to_tag)):
                tags |= {names.from_tag, names.to_tag} - {b""}
                yield TraceRecord(*fields)

    @property
    def tag(self) -> bytes | None:
        """Tag of the party that began it; None before its first message."""
        if self._tag is None and self.first:
            self._tag = _from_tag(self.first[0][4])
        return self._tag

    @property
    def awaits_ours(self) -> bool:
        """True before our INVITE that begins it: nobody else knows its Call-ID yet."""
        return self._tag is None and not self.first

    @property
    def branch(self) -> bytes | None:
        """Branch of the newest INVITE that began it."""
        if self._names is None and self.first:
            self._names = _Names.of(self.first[0][4])
        return None if self._names is None else self._names.branch

    def begins_with(self, fields: TraceFields, names: _Names) -> bool:
        """Return True if an INVITE without a dialog begins this one, once more, or with credentials."""
        _, direction, _, remote, _, _ = fields
        if not self.first:
            # Claimed before it is sent, or after it was displaced.
            return self._tag in (None, names.from_tag)
        _, began, _, source, _, _ = self.first[0]
        if direction != began or self.tag != names.from_tag:
            return False
        if direction == "in" and names.branch != self.branch:
            # Behind one proxy there are several accounts; what was claimed has had its credentials.
            if self.call_sid is not None or not names.has_credentials or source[0] != remote[0]:
                return False
        elif direction == "in" and source != remote:
            return False
        self._names = names
        return True

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

    Calls of a Call-ID that was used before have dialogs of their own. Messages are told apart by branch and
    tags, and those that could be of either are dropped: no account sees a message of another one.
    """

    def __init__(self, clock: WallClock, *, max_calls: int = MAX_CALLS, max_bytes: int = _MAX_BYTES) -> None:
        self.size_bytes = 0
        """Bytes of messages that are kept for calls."""
        self._clock = clock
        self._max_calls = max_calls
        self._max_bytes = max_bytes
        self._dialogs: dict[str, list[_Dialog]] = {}
        self._unclaimed: OrderedDict[str, _Dialog] = OrderedDict()
        """Those of the dialogs that no call has claimed, at most one of a key."""
        self._calls: OrderedDict[CallSid, list[tuple[str, str, _Dialog]]] = OrderedDict()

    def __len__(self) -> int:
        """Number of calls whose messages are kept."""
        return len(self._calls)

    def call_of(self, call_id: str) -> CallSid | None:
        """Return the call of a Call-ID, while its trace is kept; None if several calls have it."""
        calls = {dialog.call_sid for dialog in self._dialogs.get(call_id, ())} - {None}
        return calls.pop() if len(calls) == 1 else None

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
        dialogs, is_invite = self._dialogs.get(key), message.startswith(b"INVITE ")
        dialog: _Dialog | None
        if dialogs is None:
            dialog = self._begin(key) if is_invite else None
        elif is_invite or len(dialogs) > 1:
            dialog = self._told_apart(key, fields)
        else:
            dialog = dialogs[0]
        if dialog is None:
            return
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

    def _told_apart(self, key: str, fields: TraceFields) -> _Dialog | None:
        """The dialog of a message whose Call-ID is known; a new one for a new call, None if in doubt."""
        dialogs = self._dialogs[key]
        if len(dialogs) == 1 and dialogs[0].awaits_ours and fields[1] == "out":
            return dialogs[0]
        names = _Names.of(fields[4])
        if fields[4].startswith(b"INVITE ") and not names.to_tag:
            return next((it for it in dialogs if it.begins_with(fields, names)), None) or self._begin(key)
        of_tag = [it for it in dialogs if names.has(it.tag)]
        # Without a call there is nothing but the INVITE, its responses, ACK and CANCEL, of one branch.
        found = [it for it in of_tag if it.branch == names.branch] or [
            it for it in of_tag if it.call_sid is not None
        ]
        return found[0] if len(found) == 1 else None

    def _begin(self, key: str) -> _Dialog:
        """Begin a dialog that no call has claimed, in place of the one that waits under this key."""
        displaced = self._unclaimed.pop(key, None)
        if displaced is not None:
            self._drop(key, displaced)
        dialog = self._unclaimed[key] = _Dialog()
        self._dialogs.setdefault(key, []).insert(0, dialog)
        if len(self._unclaimed) > _MAX_UNCLAIMED:
            self._drop(*self._unclaimed.popitem(last=False))
        return dialog

    def claim(self, call_sid: CallSid, leg: str, call_id: str, caller_tag: str | None = None) -> None:
        """
        Assign a dialog to a call; its messages are kept with the call's from now on.

        `caller_tag` is the tag of the caller; None for a dialog that this side begins.
        """
        tag = None if caller_tag is None else caller_tag.encode("utf-8", "surrogateescape")
        dialog = self._unclaimed.get(call_id)
        if dialog is not None and tag in (None, dialog.tag):
            del self._unclaimed[call_id]
        else:
            dialog = _Dialog(tag)
            self._dialogs.setdefault(call_id, []).append(dialog)
        dialog.call_sid = call_sid
        self.size_bytes += dialog.size_bytes
        legs = self._calls.setdefault(call_sid, [])
        legs.append((leg, call_id, dialog))
        if len(legs) > _MAX_DIALOGS:
            # An agent may try transfers for hours. The first party's dialog stays.
            self._forget(*legs.pop(1)[1:])
        if len(self._calls) > self._max_calls:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, legs = self._calls.popitem(last=False)
        for _, call_id, dialog in legs:
            self._forget(call_id, dialog)

    def _forget(self, call_id: str, dialog: _Dialog) -> None:
        self._drop(call_id, dialog)
        self.size_bytes -= dialog.size_bytes

    def _drop(self, key: str, dialog: _Dialog) -> None:
        others = [it for it in self._dialogs[key] if it is not dialog]
        if others:
            self._dialogs[key] = others
        else:
            del self._dialogs[key]

    def of(self, call_sid: CallSid) -> list[TraceEntry]:
        """SIP messages of a call in wire order; empty when the trace is no longer kept."""
        found = [(record, leg) for leg, _, dialog in self._calls.get(call_sid, ()) for record in dialog]
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


def _from_tag(message: bytes) -> bytes:
    """Return the tag that ``_Names`` has of the From field."""
    found = _FROM.search(message.partition(b"\r\n\r\n")[0])
    return b"" if found is None else b"".join(_TAG.findall(found[1])[-1:])


def on_net_key(call_id: str) -> str:
    """Key of the calling side of an on-net call; no Call-ID has a space."""
    return f"{call_id} on net"
