"""
Session descriptions of a browser's leg: its offer, our answer, and the offer that the engine gets.

One audio section is used, with one codec: the first of the offer that the engine has. Both descriptions
number the formats as the browser does, so packets pass between the two unchanged (RFC 8829, RFC 8839).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from media.sdp import (
    Attribute,
    Connection,
    MediaDescription,
    Origin,
    SdpError,
    SessionDescription,
    parse_session_description,
)
from media.sdp.crypto import CryptoLine, offer_crypto, parse_crypto
from media.sdp.formats import Codec, common_codec, offered_codecs, read_opus, telephone_event, write_opus
from media.sdp.transport import MIRRORED
from media.types import Direction, OpusSettings, SrtpKey, SrtpSuite
from media.webrtc.ice import HOST_PRIORITY, IceCredentials
from media.webrtc.stun import Address

CODECS: Final = ("OPUS", "PCMU", "PCMA")
"""Codecs that browsers have in common with the engine."""

SRTP_SUITE: Final[SrtpSuite] = "AES_CM_128_HMAC_SHA1_80"
"""Suite of SRTP that every browser has (RFC 8827 6.5)."""

_PROFILE: Final = "UDP/TLS/RTP/SAVPF"
_SECURE_PROFILES: Final = (_PROFILE, "UDP/TLS/RTP/SAVP")
_UFRAG: Final = re.compile(r"[A-Za-z0-9+/]{4,256}")
_PASSWORD: Final = re.compile(r"[A-Za-z0-9+/]{22,256}")
_FINGERPRINT: Final = re.compile(r"(?:[0-9A-F]{2}:){31}[0-9A-F]{2}", re.IGNORECASE)
_MID: Final = re.compile(r"[A-Za-z0-9+_.-]{1,32}")


class OfferRefused(ValueError):
    """An offer that cannot be answered; the text says what it must have, and holds none of it."""


@dataclass(frozen=True, slots=True)
class AudioFormats:
    """The agreed codec and its telephone events, with the browser's payload types."""

    codec: Codec
    payload_type: int
    opus: OpusSettings | None
    events: tuple[int, str] | None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Payload types, that of the codec first."""
        return (str(self.payload_type), *([] if self.events is None else [str(self.events[0])]))

    def attributes(self, opus: OpusSettings | None) -> tuple[Attribute, ...]:
        """Return the attributes of a section with these formats and a side's settings of Opus."""
        lines = [Attribute("rtpmap", str(self.codec.rtpmap(self.payload_type)))]
        if opus is not None:
            lines.append(Attribute("fmtp", f"{self.payload_type} {write_opus(opus)}"))
        if self.events is not None:
            number, events = self.events
            lines.append(Attribute("rtpmap", f"{number} telephone-event/{self.codec.clock_rate}"))
            lines.append(Attribute("fmtp", f"{number} {events}"))
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class BrowserOffer:
    """
    An offer that can be answered.

    Attributes:
        index: Place of the audio section among the sections.
        formats: Formats to use.
        direction: Direction that the browser wants.
        mid: Identification of the section (RFC 5888); None if it has none.
        ufrag: User name fragment of ICE.
        fingerprint: SHA-256 of the certificate that the browser will show.
    """

    description: SessionDescription = field(repr=False)
    index: int
    formats: AudioFormats
    direction: Direction
    mid: str | None
    ufrag: str
    fingerprint: bytes


def parse_offer(text: str, codecs: Sequence[str]) -> BrowserOffer:
    """
    Parse the offer of a browser; ``codecs`` are those of `CODECS` that the engine has.

    Raises:
        OfferRefused: It is no session description, or has no audio that we can agree on.
    """
    try:
        description = parse_session_description(text.encode("utf-8", "replace"))
    except SdpError as error:
        raise OfferRefused(f"must be a session description: {error}") from None
    index, media = _audio(description)
    if media.attribute("rtcp-mux") is None:
        raise OfferRefused("must have a=rtcp-mux: RTP and RTCP share a port")
    if _attribute(description, media, "setup") not in ("actpass", "active"):
        raise OfferRefused("must have a=setup:actpass or a=setup:active")
    ufrag = _attribute(description, media, "ice-ufrag") or ""
    if not _UFRAG.fullmatch(ufrag):
        raise OfferRefused("must have a=ice-ufrag with 4 to 256 characters")
    if not _PASSWORD.fullmatch(_attribute(description, media, "ice-pwd") or ""):
        raise OfferRefused("must have a=ice-pwd with 22 to 256 characters")
    mid = media.attribute("mid")
    if mid is not None and not _MID.fullmatch(mid):
        raise OfferRefused("must have an a=mid of 1 to 32 letters, digits and + _ . -")
    return BrowserOffer(
        description,
        index,
        _formats(media, codecs),
        description.direction_of(media),
        mid,
        ufrag,
        _fingerprint(description, media),
    )


def check_change(former: BrowserOffer, offer: BrowserOffer) -> None:
    """
    Check that a new offer of a call asks for another path or direction, and for nothing else.

    Raises:
        OfferRefused: It changes the certificate or the formats, or asks for nothing.
    """
    kept = ("index", "formats", "mid", "fingerprint")
    if any(getattr(former, name) != getattr(offer, name) for name in kept):
        raise OfferRefused("must keep the sections, formats and certificate of the first offer")
    if (former.ufrag, former.direction) == (offer.ufrag, offer.direction):
        raise OfferRefused("must have another a=ice-ufrag or another direction than before")


def make_answer(
    offer: BrowserOffer, address: Address, ice: IceCredentials, fingerprint: bytes, session: tuple[int, int]
) -> str:
    """
    Return our answer: audio at ``address``, our only candidate; every other section is refused.

    ``session`` are the id of the session and the version of our description.
    """
    host, port = address
    connection = Connection.to(host)
    attributes = [] if offer.mid is None else [Attribute("mid", offer.mid)]
    attributes += [
        *offer.formats.attributes(None if offer.formats.opus is None else OpusSettings()),
        Attribute("maxptime", "60"),
        Attribute(MIRRORED[offer.direction]),
        Attribute("rtcp-mux"),
        Attribute("msid", "trunkline audio"),
        Attribute("ice-ufrag", ice.ufrag),
        Attribute("ice-pwd", ice.password),
        Attribute("candidate", f"1 1 udp {HOST_PRIORITY} {host} {port} typ host"),
        Attribute("end-of-candidates"),
        Attribute("fingerprint", f"sha-256 {fingerprint.hex(':').upper()}"),
        Attribute("setup", "passive"),
    ]
    audio = MediaDescription(
        "audio",
        port,
        offer.description.media[offer.index].protocol,
        offer.formats.numbers,
        connection,
        attributes=tuple(attributes),
    )
    sections = [
        audio if place == offer.index else _refused(section)
        for place, section in enumerate(offer.description.media)
    ]
    attributes_of_all = [Attribute("ice-lite")]
    if offer.mid is not None:
        attributes_of_all.append(Attribute("group", f"BUNDLE {offer.mid}"))
    origin = Origin(*session, host, connection.address_type)
    return (
        SessionDescription(origin, attributes=tuple(attributes_of_all), media=tuple(sections))
        .to_bytes()
        .decode()
    )


def make_engine_offer(
    offer: BrowserOffer,
    address: Address,
    key: SrtpKey,
    session: tuple[int, int],
    line: CryptoLine | None = None,
) -> bytes:
    """
    Return what the engine gets: the same formats, with the browser's key by SDES (RFC 4568).

    It is an offer or, with the ``line`` of the engine's that it takes, an answer. ``session`` are the id of
    the session and the version of the description.
    """
    host, port = address
    lines = offer_crypto([key]) if line is None else (CryptoLine(line.tag, key),)
    attributes = (
        *offer.formats.attributes(offer.formats.opus),
        Attribute(offer.direction),
        Attribute("rtcp-mux"),
        *(Attribute("crypto", str(item)) for item in lines),
    )
    connection = Connection.to(host)
    origin = Origin(*session, host, connection.address_type)
    audio = MediaDescription("audio", port, "RTP/SAVP", offer.formats.numbers, attributes=attributes)
    return SessionDescription(origin, connection=connection, media=(audio,)).to_bytes()


@dataclass(frozen=True, slots=True)
class EngineOffer:
    """
    An offer of the engine that a browser can answer.

    Attributes:
        port: Port at which the engine receives.
        codecs: Its codecs, the preferred one first.
        line: Its line of a suite that browsers have.
    """

    port: int
    codecs: tuple[str, ...]
    line: CryptoLine = field(repr=False)


def parse_engine_offer(body: bytes) -> EngineOffer | None:
    """Parse an offer of the engine; None if a browser cannot answer it."""
    try:
        description = parse_session_description(body)
    except SdpError:
        return None
    media = description.media[0] if description.media else None
    if media is None or not media.port or media.attribute("rtcp-mux") is None:
        return None
    ordered = dict.fromkeys(entry.encoding.upper() for entry in media.codecs())
    codecs = tuple(name for name in ordered if name in CODECS)
    lines = [line for value in media.values("crypto") if (line := parse_crypto(value)) is not None]
    line = next((line for line in lines if line.key.suite == SRTP_SUITE), None)
    return EngineOffer(media.port, codecs, line) if codecs and line is not None else None


def engine_port(answer: bytes) -> int | None:
    """Return the port at which the engine receives; None for a description without one."""
    try:
        description = parse_session_description(answer)
    except SdpError:
        return None
    return description.media[0].port or None if description.media else None


def _audio(description: SessionDescription) -> tuple[int, MediaDescription]:
    for index, media in enumerate(description.media):
        if media.kind == "audio" and media.port and media.protocol in _SECURE_PROFILES:
            return index, media
    raise OfferRefused(f"must have an audio section of the profile {_PROFILE}")


def _attribute(description: SessionDescription, media: MediaDescription, name: str) -> str | None:
    """Return an attribute of the section, else of the session."""
    found = media.attribute(name)
    if found is not None:
        return found
    return next((item.value for item in description.attributes if item.name == name), None)


def _fingerprint(description: SessionDescription, media: MediaDescription) -> bytes:
    of_session = [item.value or "" for item in description.attributes if item.name == "fingerprint"]
    for value in media.values("fingerprint") or of_session:
        kind, _, digest = value.partition(" ")
        if kind.lower() == "sha-256" and _FINGERPRINT.fullmatch(digest):
            return bytes.fromhex(digest.replace(":", ""))
    raise OfferRefused("must have a=fingerprint:sha-256 with the certificate's digest")


def _formats(media: MediaDescription, codecs: Sequence[str]) -> AudioFormats:
    common = common_codec(media, offered_codecs(codecs))
    if common is None:
        raise OfferRefused(f"must offer one of {', '.join(codecs)}")
    codec, entry = common
    opus = None
    if codec.name == "OPUS":
        opus = read_opus(media.fmtp(entry.payload_type), OpusSettings())
    return AudioFormats(codec, entry.payload_type, opus, telephone_event(media, codec.clock_rate))


def _refused(media: MediaDescription) -> MediaDescription:
    mid = media.attribute("mid")
    kept = () if mid is None or not _MID.fullmatch(mid) else (Attribute("mid", mid),)
    return MediaDescription(media.kind, 0, media.protocol, media.formats, attributes=kept)
