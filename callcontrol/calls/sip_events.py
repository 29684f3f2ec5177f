"""Translation of SIP session events to call events, and of digits to bodies of INFO requests."""

import re
from collections.abc import Callable
from typing import Any, Final

from callcontrol.calls.events import Event
from callcontrol.calls.events.legs import (
    LegAnswered,
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegOffered,
    LegProgress,
)
from callcontrol.calls.events.media import DigitReceived
from callcontrol.calls.events.transfers import LegReferred
from callcontrol.calls.hangup_cause import cause_of, telling_cause_of
from callcontrol.ids import LegId
from sip import (
    Answered,
    Cancelled,
    Confirmed,
    Ended,
    Failed,
    Headers,
    InfoReceived,
    OfferReceived,
    Progress,
    ReferAccepted,
    ReferFailed,
    ReferProgress,
    reason_value,
)

DTMF_RELAY: Final = "application/dtmf-relay"
"""Content type of an INFO with one digit and its duration."""

DTMF: Final = "application/dtmf"
"""Content type of an INFO whose body is the digit alone."""

_DIGITS: Final = "0123456789*#ABCD"
_SIGNAL: Final = re.compile(r"^\s*signal\s*=\s*([0-9*#A-D])", re.IGNORECASE | re.MULTILINE)
_DURATION: Final = re.compile(r"^\s*duration\s*=\s*(\d{1,5})", re.IGNORECASE | re.MULTILINE)
_DIGIT_MS: Final = 160
_MAX_DIGIT_MS: Final = 5000


def digit_body(digit: str, duration_ms: int, content_type: str = DTMF_RELAY) -> bytes:
    """Return the body of an INFO for one digit."""
    if content_type == DTMF:
        return digit.encode("ascii")
    return f"Signal={digit}\r\nDuration={duration_ms}\r\n".encode("ascii")


def digit_type_of(headers: Headers) -> str | None:
    """Return the digit format that a party's Accept names; None when it names none."""
    accepted = {_media_type(kind) for value in headers.get_all("Accept") for kind in value.split(",")}
    return next((kind for kind in (DTMF_RELAY, DTMF) if kind in accepted), None)


def digit_type_in(event: InfoReceived) -> str | None:
    """Return the digit format of a party's INFO; None for an INFO without a digit."""
    kind = _media_type(event.content_type)
    return kind if kind in (DTMF_RELAY, DTMF) else None


def _media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()


def _progress(leg: LegId, event: Progress) -> Event:
    return LegProgress(leg, event.status, event.body)


def _answered(leg: LegId, event: Answered) -> Event:
    return LegAnswered(leg, event.body)


def _failed(leg: LegId, event: Failed) -> Event:
    cause = telling_cause_of(reason_value(event.headers)) if event.headers is not None else None
    return LegFailed(leg, event.status, event.reason, event.cause, event.retry_after_s, cause)


def _confirmed(leg: LegId, event: Confirmed) -> Event:
    return LegConfirmed(leg, event.body)


def _cancelled(leg: LegId, event: Cancelled) -> Event:
    return LegCancelled(leg, telling_cause_of(event.reason_header))


def _ended(leg: LegId, event: Ended) -> Event:
    return LegEnded(leg, clean=event.cause == "bye", cause=cause_of(event.reason_header))


def _offered(leg: LegId, event: OfferReceived) -> Event:
    return LegOffered(leg, event.body)


def _info(leg: LegId, event: InfoReceived) -> Event | None:
    """Read a digit from ``application/dtmf-relay`` or ``application/dtmf``; ignore other types."""
    kind = _media_type(event.content_type)
    text = event.body[:256].decode("ascii", "replace")
    if kind == DTMF_RELAY:
        signal, duration = _SIGNAL.search(text), _DURATION.search(text)
        if signal is None:
            return None
        duration_ms = int(duration[1]) if duration else _DIGIT_MS
        return DigitReceived(leg, signal[1].upper(), min(duration_ms, _MAX_DIGIT_MS), in_band=False)
    digit = text.strip().upper()
    if kind == DTMF and len(digit) == 1 and digit in _DIGITS:
        return DigitReceived(leg, digit, _DIGIT_MS, in_band=False)
    return None


def _refer_accepted(leg: LegId, event: ReferAccepted) -> Event | None:
    """A peer that will send no NOTIFY (RFC 4488) counts as successful with its 202."""
    return None if event.followed else LegReferred(leg, 202)


def _referred(leg: LegId, event: ReferProgress | ReferFailed) -> Event:
    return LegReferred(leg, event.status)


TRANSLATIONS: Final[dict[type, Callable[[LegId, Any], Event | None]]] = {
    Progress: _progress,
    Answered: _answered,
    Failed: _failed,
    Confirmed: _confirmed,
    Cancelled: _cancelled,
    Ended: _ended,
    OfferReceived: _offered,
    InfoReceived: _info,
    ReferAccepted: _refer_accepted,
    ReferProgress: _referred,
    ReferFailed: _referred,
}
"""Translations to call events, by session event; None when the call does not need the event."""
