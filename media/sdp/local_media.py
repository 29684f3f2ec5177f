"""Our session descriptions: sessions, and the audio section of offers and answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from media.sdp.formats import (
    COMFORT_NOISE,
    DIGITS,
    TELEPHONE_EVENTS,
    Codec,
    Format,
    numbered,
    offered_codecs,
    write_opus,
)
from media.sdp.model import Attribute, Connection, MediaDescription, Origin, RtpMap, SessionDescription
from media.sdp.transport import AgreedSrtp, Encryption
from media.types import Direction, OpusSettings, SrtpKey, SrtpUse

# Longer packets are not decoded.
_MAX_PTIME_MS: Final = 60


@dataclass(frozen=True, slots=True)
class LocalMedia:
    """
    Local media parameters of a session.

    Attributes:
        address: IP address literal of our RTP, IPv4 or IPv6.
        port: Our RTP port; RTCP uses the next one, unless it shares this one.
        codecs: Names in order of preference: "PCMU", "PCMA", "G722", "L16" (at 16000 and 8000), "OPUS".
        direction: Direction that this side wants.
        rtcp_mux: True if RTCP may share the port of RTP (RFC 5761), where the far end agrees.
        comfort_noise: True to offer comfort noise, which invites the far end to suppress silence; an offer
            with it is always answered with it (RFC 3389 5).
        ours_first: True if an answer uses the first common codec of `codecs`, not of the offer.
        opus: Our preferences as a receiver, and limits for sending.
        numbers: Payload types with a meaning in the session already; see `remember`.
        srtp: Use of encryption: never, if the far end supports it, or always.
        srtp_keys: Our key for each suite, the preferred first; for this session only, from the system's
            random source.
        srtp_agreed: Profile and suite in use already; see `remember`.
        session_id: Constant during the session, and unique (RFC 8866 5.2).
        version: Version of the next description; see `revise`.
    """

    address: str
    port: int
    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    ptime_ms: int = 20
    dtmf: bool = True
    direction: Direction = "sendrecv"
    rtcp_mux: bool = True
    comfort_noise: bool = False
    ours_first: bool = False
    opus: OpusSettings = OpusSettings()
    numbers: tuple[RtpMap, ...] = ()
    srtp: SrtpUse = "off"
    srtp_keys: tuple[SrtpKey, ...] = ()
    srtp_agreed: AgreedSrtp | None = None
    session_id: int = field(kw_only=True)
    version: int = field(default=0, kw_only=True)


def offered_formats(local: LocalMedia) -> tuple[Format, ...]:
    """Return all offered formats: codecs, comfort noise, telephone events at each clock (RFC 4733 2.1)."""
    return _offered_formats(local.codecs, local.dtmf, local.comfort_noise, local.opus, local.numbers)


@lru_cache(maxsize=256)
def _offered_formats(
    names: tuple[str, ...], dtmf: bool, comfort_noise: bool, opus: OpusSettings, known: tuple[RtpMap, ...]
) -> tuple[Format, ...]:
    codecs = offered_codecs(names)
    clocks = dict.fromkeys(codec.clock_rate for codec in codecs)
    extras: list[Codec] = []
    if comfort_noise:
        extras += [COMFORT_NOISE[clock] for clock in clocks if clock in COMFORT_NOISE]
    if dtmf:
        extras += [TELEPHONE_EVENTS[clock] for clock in clocks]
    return tuple(Format(entry, fmtp_of(entry, opus)) for entry in numbered([*codecs, *extras], known))


def fmtp_of(entry: RtpMap, opus: OpusSettings, events: str = DIGITS) -> str | None:
    """Return our parameters of a format."""
    if entry.encoding == "opus":
        return write_opus(opus)
    return events if entry.encoding == "telephone-event" else None


def session(
    local: LocalMedia, media: tuple[MediaDescription, ...], times: tuple[tuple[int, int], ...] = ((0, 0),)
) -> SessionDescription:
    """Build our description of a session."""
    connection = Connection.to(local.address)
    origin = Origin(local.session_id, local.version, local.address, connection.address_type)
    return SessionDescription(origin=origin, connection=connection, times=times, media=media)


def audio_section(
    local: LocalMedia,
    formats: tuple[Format, ...],
    ptime_ms: int,
    direction: Direction,
    encryption: Encryption,
    rtcp: tuple[Attribute, ...] = (),
) -> MediaDescription:
    """Build our audio section; `rtcp` are the attributes of our RTCP port."""
    numbers, attributes = _described(formats, ptime_ms, direction)
    return MediaDescription(
        kind="audio",
        port=local.port,
        protocol=encryption.protocol,
        formats=numbers,
        attributes=(*attributes, *rtcp, *encryption.lines),
    )


@lru_cache(maxsize=256)
def _described(
    formats: tuple[Format, ...], ptime_ms: int, direction: Direction
) -> tuple[tuple[str, ...], tuple[Attribute, ...]]:
    """Return the payload types of formats, and the attributes of our section."""
    attributes = (
        *(attribute for item in formats for attribute in _format_attributes(item)),
        Attribute("ptime", str(ptime_ms)),
        Attribute("maxptime", str(_MAX_PTIME_MS)),
        Attribute(direction),
    )
    return tuple(str(item.rtpmap.payload_type) for item in formats), attributes


def _format_attributes(item: Format) -> Iterator[Attribute]:
    yield Attribute("rtpmap", str(item.rtpmap))
    if item.fmtp is not None:
        yield Attribute("fmtp", f"{item.rtpmap.payload_type} {item.fmtp}")


def refused_section(media: MediaDescription) -> MediaDescription:
    """Refuse a section with port 0; it keeps type, protocol and formats (RFC 3264 6)."""
    return MediaDescription(media.kind, 0, media.protocol, media.formats)
