"""Our side of a session: its parameters, and the formats that its descriptions state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
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
from media.sdp.model import Attribute, RtpMap
from media.sdp.transport import AgreedSrtp
from media.types import Direction, OpusSettings, SrtpKey, SrtpUse
from media.values import frozen

# Longer packets are not decoded.
_MAX_PTIME_MS: Final = 60


@frozen
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


@lru_cache(maxsize=256)
def offered_formats(
    names: tuple[str, ...], dtmf: bool, comfort_noise: bool, opus: OpusSettings, known: tuple[RtpMap, ...]
) -> tuple[Format, ...]:
    """Return all offered formats: codecs, comfort noise, telephone events at each clock (RFC 4733 2.1)."""
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


@lru_cache(maxsize=256)
def described(
    formats: tuple[Format, ...], ptime_ms: int, direction: Direction
) -> tuple[tuple[str, ...], tuple[Attribute, ...]]:
    """Return the payload types of formats, and the attributes of our section with them."""
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
