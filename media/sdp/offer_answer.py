"""
The offer/answer model for one audio stream (RFC 3264).

One audio section is used, the first that fits; every other section of an offer is refused with port 0, as
RFC 3264 6 has it. An answer names one codec, so that what will be sent is never in doubt.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from media.sdp.errors import NegotiationError
from media.sdp.model import (
    Attribute,
    Connection,
    MediaDescription,
    Origin,
    RtpMap,
    SessionDescription,
)
from media.types import Direction, RemoteMedia

__all__ = [
    "LocalMedia",
    "Negotiated",
    "accept_answer",
    "answer_offer",
    "is_unchanged",
    "make_offer",
    "revise",
]

# Profiles whose packets are plain RTP. Feedback (AVPF) may be left unused by the answerer (RFC 4585 3.5.1).
_PROFILES = ("RTP/AVP", "RTP/AVPF")
_STATIC_NUMBERS = {"PCMU": 0, "PCMA": 8}
_DTMF_PAYLOAD_TYPE = 101
_DTMF_EVENTS = frozenset(range(16))
_PTIMES_MS = (10, 20, 30, 40, 50, 60)

_MIRRORED: dict[Direction, Direction] = {
    "sendrecv": "sendrecv",
    "sendonly": "recvonly",
    "recvonly": "sendonly",
    "inactive": "inactive",
}


@dataclass(frozen=True, slots=True)
class LocalMedia:
    """
    What this side brings to a session.

    Attributes:
        address: IP address literal where our RTP arrives, IPv4 or IPv6.
        port: Its RTP port; RTCP is one above.
        codecs: Encodings in order of preference.
        direction: What this side wants to do.
        session_id: Constant for the life of the session, unique to it (RFC 8866 5.2).
        version: Version of the next description; see `revise`.
    """

    address: str
    port: int
    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    ptime_ms: int = 20
    dtmf: bool = True
    direction: Direction = "sendrecv"
    session_id: int = field(kw_only=True)
    version: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True)
class Negotiated:
    """
    Outcome of an offer and its answer.

    Attributes:
        remote: Where and how to send, as the media engine takes it; its direction is ours.
        answer: What to answer with; None when the answer was theirs.
        held: Whether the peer has put us on hold: it wants no audio from us (RFC 3264 8.4).
    """

    remote: RemoteMedia
    answer: SessionDescription | None
    held: bool

    @property
    def codec(self) -> str:
        """Encoding name of the agreed codec."""
        return self.remote.codec


def make_offer(local: LocalMedia) -> SessionDescription:
    """Offer one audio stream with all codecs of `local`, preferred first."""
    codecs = [RtpMap(_STATIC_NUMBERS[name], name, 8000) for name in local.codecs]
    events = "0-15" if local.dtmf else None
    media = _audio_section(local, codecs, (_DTMF_PAYLOAD_TYPE, events), local.ptime_ms, local.direction)
    return _session(local, (media,))


def answer_offer(offer: SessionDescription, local: LocalMedia) -> Negotiated:
    """
    Answer an offer with the first codec of it that `local` has (RFC 3264 6).

    Raises:
        NegotiationError: No audio section that can be used; refuse the offer with its status.
    """
    index, chosen, codec = _choose(offer, local.codecs)
    ptime_ms = _ptime(chosen, local.ptime_ms)
    dtmf = _telephone_event(chosen, codec) if local.dtmf else None
    theirs = _effective_direction(offer, chosen)
    direction = _intersect(local.direction, _MIRRORED[theirs])
    media = _audio_section(local, [codec], dtmf or (0, None), ptime_ms, direction, chosen.protocol)
    sections = tuple(
        media if position == index else _refused(section) for position, section in enumerate(offer.media)
    )
    answer = _session(local, sections, offer.times)
    remote = _remote(offer, chosen, codec, dtmf, ptime_ms=ptime_ms, direction=direction)
    _check_family(remote.address, local.address)
    return Negotiated(remote, answer, held=theirs in ("sendonly", "inactive"))


def accept_answer(offer: SessionDescription, answer: SessionDescription) -> Negotiated:
    """
    Take the answer to an offer that `make_offer` made (RFC 3264 7).

    Raises:
        NegotiationError: The stream was refused, or the answer does not fit the offer.
    """
    if not offer.media or not answer.media or answer.media[0].kind != offer.media[0].kind:
        raise NegotiationError("The answer lacks the offered stream", 304)
    ours, theirs = offer.media[0], answer.media[0]
    if theirs.port == 0:
        raise NegotiationError("The offered stream was refused", 304)
    if theirs.protocol not in _PROFILES:
        raise NegotiationError("The answer has another transport protocol", 302)
    codec = _first_common(theirs, [entry.encoding for entry in ours.codecs()])
    if codec is None:
        raise NegotiationError("The answer has no offered codec")
    offered_dtmf = _telephone_event(ours, codec)
    dtmf = _telephone_event(theirs, codec) if offered_dtmf else None
    their_direction = _effective_direction(answer, theirs)
    direction = _intersect(offer.direction_of(ours), _MIRRORED[their_direction])
    ptime_ms = _ptime(theirs, ours.ptime_ms or 20)
    remote = _remote(answer, theirs, codec, dtmf, ptime_ms=ptime_ms, direction=direction)
    if offered_dtmf and dtmf and offered_dtmf[0] != dtmf[0]:
        # Each side sends with the number that the other named (RFC 3264 5.1, 6.1).
        remote = replace(remote, dtmf_receive_payload_type=offered_dtmf[0])
    offered = offer.connection_of(ours)
    if offered is not None:
        _check_family(remote.address, offered.address)
    return Negotiated(remote, None, held=their_direction in ("sendonly", "inactive"))


def is_unchanged(previous: SessionDescription, current: SessionDescription) -> bool:
    """
    Whether a description asks for nothing new, so that the session goes on as it is (RFC 3264 8).

    The version itself does not count: there are peers that raise it without a change, and peers that
    change without raising it. Session timer refreshes are the usual case of no change.
    """
    if previous is current:
        return True
    return replace(current, origin=previous.origin) == previous and _same_owner(previous, current)


def revise(previous: SessionDescription, current: SessionDescription) -> SessionDescription:
    """
    Give our next description the version that it must have after `previous` (RFC 3264 8).

    The same version when nothing changed, otherwise one higher; session id and user name stay.
    """
    version = previous.origin.version
    origin = replace(
        previous.origin, address=current.origin.address, address_type=current.origin.address_type
    )
    if is_unchanged(previous, replace(current, origin=origin)):
        return replace(current, origin=previous.origin)
    return replace(current, origin=replace(origin, version=version + 1))


def _same_owner(previous: SessionDescription, current: SessionDescription) -> bool:
    return replace(current.origin, version=previous.origin.version) == previous.origin


def _choose(offer: SessionDescription, codecs: Sequence[str]) -> tuple[int, MediaDescription, RtpMap]:
    """Find the first audio section that can be answered, and its codec; say why there is none."""
    failure = NegotiationError("No audio stream is offered", 304)
    for index, media in enumerate(offer.media):
        if media.kind != "audio" or media.port == 0:
            continue
        if media.protocol not in _PROFILES:
            failure = NegotiationError("Only plain RTP (RTP/AVP) is supported", 302)
            continue
        codec = _first_common(media, codecs)
        if codec is not None:
            return index, media, codec
        failure = NegotiationError(f"No common codec; supported are {', '.join(codecs)}")
    raise failure


def _first_common(media: MediaDescription, codecs: Sequence[str]) -> RtpMap | None:
    wanted = {name.upper() for name in codecs}
    for entry in media.codecs():
        name = entry.encoding.upper()
        if name in wanted and name in _STATIC_NUMBERS and entry.clock_rate == 8000 and entry.channels == 1:
            return entry if entry.encoding == name else replace(entry, encoding=name)
    return None


def _telephone_event(media: MediaDescription, codec: RtpMap) -> tuple[int, str] | None:
    """Payload type and events of the telephone-event format with the codec's clock (RFC 4733 2.4)."""
    for entry in media.codecs():
        if entry.encoding.lower() == "telephone-event" and entry.clock_rate == codec.clock_rate:
            # Without the parameter, events 0 to 15 are meant (RFC 4733 2.4.1).
            events = _common_events(media.fmtp(entry.payload_type) or "0-15")
            if events:
                return entry.payload_type, events
    return None


@lru_cache(maxsize=64)
def _common_events(text: str) -> str:
    """Narrow a list of events such as `0-11,66` to the digits that we know; empty when none is left."""
    return _ranges(sorted(_DTMF_EVENTS & _events(text)))


def _events(text: str) -> set[int]:
    """Read a list of event numbers; what cannot be read is left out (RFC 4733 2.4.1)."""
    events: set[int] = set()
    for item in text.removeprefix("events=").split(","):
        first, dash, last = item.strip().partition("-")
        last = last if dash else first
        if all(part.isascii() and part.isdecimal() and len(part) <= 3 for part in (first, last)):
            events.update(range(int(first), min(int(last), 255) + 1))
    return events


def _ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers as ranges, `0-9,11`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _ptime(media: MediaDescription, default_ms: int) -> int:
    """Packet length to send: what the peer wants where we can, never beyond its maximum."""
    wanted_ms = media.ptime_ms or default_ms
    ptime_ms = wanted_ms if wanted_ms in _PTIMES_MS else default_ms
    maximum_ms = media.maxptime_ms
    if maximum_ms is not None and ptime_ms > maximum_ms:
        ptime_ms = max(_PTIMES_MS[0], maximum_ms // 10 * 10)
    return ptime_ms


def _effective_direction(description: SessionDescription, media: MediaDescription) -> Direction:
    """Direction from the peer's view; address 0.0.0.0 or :: means that it takes no audio (RFC 3264 8.4)."""
    direction = description.direction_of(media)
    connection = description.connection_of(media)
    if connection is not None and connection.address in ("0.0.0.0", "::"):  # noqa: S104
        return _intersect(direction, "sendonly")
    return direction


def _intersect(left: Direction, right: Direction) -> Direction:
    """Direction that both permit."""
    sends = left in ("sendrecv", "sendonly") and right in ("sendrecv", "sendonly")
    receives = left in ("sendrecv", "recvonly") and right in ("sendrecv", "recvonly")
    if sends:
        return "sendrecv" if receives else "sendonly"
    return "recvonly" if receives else "inactive"


def _remote(
    description: SessionDescription,
    media: MediaDescription,
    codec: RtpMap,
    dtmf: tuple[int, str] | None,
    *,
    ptime_ms: int,
    direction: Direction,
) -> RemoteMedia:
    return RemoteMedia(
        address=_checked_address(description.connection_of(media)),
        port=media.port,
        codec=codec.encoding,
        payload_type=codec.payload_type,
        ptime_ms=ptime_ms,
        dtmf_payload_type=dtmf[0] if dtmf else None,
        direction=direction,
    )


def _checked_address(connection: Connection | None) -> str:
    """Address literal to send to; the address of a held stream passes, nothing is sent to it."""
    if connection is None:
        raise NegotiationError("The stream has no connection address", 301)
    return _checked_literal(connection.address, connection.address_type)


@lru_cache(maxsize=4096)
def _checked_literal(literal: str, address_type: str) -> str:
    try:
        address = ipaddress.ip_address(literal)
    except ValueError:
        raise NegotiationError("The connection address is not an IP address", 301) from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise NegotiationError("The connection address has a zone", 301)
    if (address.version == 6) != (address_type == "IP6"):
        raise NegotiationError("The connection address is not of its type", 301)
    if address.is_multicast or str(address) == "255.255.255.255":
        raise NegotiationError("Multicast is not supported", 301)
    return str(address)


def _check_family(theirs: str, ours: str) -> None:
    """Refuse an address that our socket cannot send to."""
    if (":" in theirs) != (":" in ours):
        raise NegotiationError("The connection address is of the other IP version", 301)


def _session(
    local: LocalMedia, media: tuple[MediaDescription, ...], times: tuple[tuple[int, int], ...] = ((0, 0),)
) -> SessionDescription:
    connection = Connection.to(local.address)
    origin = Origin(local.session_id, local.version, local.address, connection.address_type)
    return SessionDescription(origin=origin, connection=connection, times=times, media=media)


def _audio_section(
    local: LocalMedia,
    codecs: Sequence[RtpMap],
    dtmf: tuple[int, str | None],
    ptime_ms: int,
    direction: Direction,
    protocol: str = "RTP/AVP",
) -> MediaDescription:
    return MediaDescription(
        kind="audio",
        port=local.port,
        protocol=protocol,
        formats=tuple(_formats(codecs, dtmf)),
        attributes=_attributes(tuple(codecs), dtmf, ptime_ms, direction),
    )


def _formats(codecs: Sequence[RtpMap], dtmf: tuple[int, str | None]) -> Iterator[str]:
    for codec in codecs:
        yield str(codec.payload_type)
    if dtmf[1] is not None:
        yield str(dtmf[0])


@lru_cache(maxsize=256)
def _attributes(
    codecs: tuple[RtpMap, ...], dtmf: tuple[int, str | None], ptime_ms: int, direction: Direction
) -> tuple[Attribute, ...]:
    found = [Attribute("rtpmap", str(codec)) for codec in codecs]
    payload_type, events = dtmf
    if events is not None:
        found.append(Attribute("rtpmap", f"{payload_type} telephone-event/8000"))
        found.append(Attribute("fmtp", f"{payload_type} {events}"))
    return (*found, Attribute("ptime", str(ptime_ms)), Attribute(direction))


def _refused(media: MediaDescription) -> MediaDescription:
    """Answer a section with port 0; it keeps type, protocol and formats (RFC 3264 6)."""
    return MediaDescription(media.kind, 0, media.protocol, media.formats)
