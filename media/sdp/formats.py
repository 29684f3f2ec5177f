"""
Formats of session descriptions: codecs, payload types, parameters of Opus and telephone events.

Source: RFC 3551 6 (static types), RFC 3551 4.5.2 (the clock of G.722), RFC 7587 6, 7 (Opus), RFC 3389 (CN),
RFC 4733 (events).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from media.sdp.model import MediaDescription, RtpMap
from media.types import OpusSettings

DIGITS: Final = "0-15"
"""Supported events: 0 to 9, *, #, A to D."""

_KNOWN_EVENTS: Final = frozenset(range(16))
_DYNAMIC: Final = range(96, 128)
# RFC 7587 6.1: 6000 to 510000 are reasonable; more than the default for mono speech has no use.
_BITRATES_BPS: Final = range(6_000, 510_001)
_PLAYBACK_HZ: Final = range(8_000, 48_001)
# Rate of the engine, in both directions.
_OUR_RATE_HZ: Final = 16_000


class Codec(NamedTuple):
    """
    An encoding at one clock.

    Attributes:
        name: Our name, as in `RemoteMedia.codec`.
        encoding: Name in an rtpmap, case-insensitive (RFC 8866 6.6).
        number: Payload type to offer: the static one, or a common dynamic one.
    """

    name: str
    encoding: str
    clock_rate: int
    number: int
    channels: int = 1

    def rtpmap(self, payload_type: int) -> RtpMap:
        """Return the rtpmap of the codec with a payload type."""
        return RtpMap(payload_type, self.encoding, self.clock_rate, self.channels)

    def is_meant_by(self, entry: RtpMap) -> bool:
        """True if an rtpmap denotes this codec."""
        return _BY_MEANING.get((entry.encoding.upper(), entry.clock_rate, entry.channels)) is self


class Format(NamedTuple):
    """One format of our section, with its parameters."""

    rtpmap: RtpMap
    fmtp: str | None = None


CODECS: Final[dict[str, tuple[Codec, ...]]] = {
    "PCMU": (Codec("PCMU", "PCMU", 8000, 0),),
    "PCMA": (Codec("PCMA", "PCMA", 8000, 8),),
    "G722": (Codec("G722", "G722", 8000, 9),),
    # Wideband first; the static types of L16 have a clock of 44100.
    "L16": (Codec("L16", "L16", 16000, 118), Codec("L16", "L16", 8000, 117)),
    # Always with two channels, even when mono is sent (RFC 7587 7).
    "OPUS": (Codec("OPUS", "opus", 48000, 111, channels=2),),
}
"""Codecs by our names, each with the clocks of our offers, preferred first."""

COMFORT_NOISE: Final = {8000: Codec("CN", "CN", 8000, 13), 16000: Codec("CN", "CN", 16000, 119)}
"""Comfort noise by clock; Opus has its own."""

TELEPHONE_EVENTS: Final = {
    clock_rate: Codec("telephone-event", "telephone-event", clock_rate, number)
    for clock_rate, number in ((8000, 101), (16000, 102), (48000, 110))
}
"""Telephone events by clock, which must be that of the audio (RFC 4733 2.1)."""

_ALL = [
    *(codec for codecs in CODECS.values() for codec in codecs),
    *COMFORT_NOISE.values(),
    *TELEPHONE_EVENTS.values(),
]
_BY_MEANING = {(codec.encoding.upper(), codec.clock_rate, codec.channels): codec for codec in _ALL}
# Some peers omit the channels of Opus.
_BY_MEANING["OPUS", 48000, 1] = CODECS["OPUS"][0]


def offered_codecs(names: Iterable[str]) -> list[Codec]:
    """
    Return the codecs of these names at all their clocks, in order.

    Raises:
        ValueError: A name is unknown.
    """
    found: list[Codec] = []
    for name in names:
        if name not in CODECS:
            raise ValueError(f"unknown codec: {name}")
        found += CODECS[name]
    return found


def find(media: MediaDescription, codec: Codec) -> RtpMap | None:
    """Return the first format of a section that denotes a codec, or None."""
    for entry in media.codecs():
        if codec.is_meant_by(entry):
            return entry
    return None


def common_codec(
    media: MediaDescription, codecs: Sequence[Codec], *, ours_first: bool = False
) -> tuple[Codec, RtpMap] | None:
    """Return the codec that a section shares with `codecs`: the section's first, or our first."""
    shared = [(codec, entry) for entry in media.codecs() for codec in codecs if codec.is_meant_by(entry)]
    if ours_first:
        shared.sort(key=lambda pair: codecs.index(pair[0]))
    if not shared:
        return None
    codec, entry = shared[0]
    return codec, codec.rtpmap(entry.payload_type)


def numbered(codecs: Sequence[Codec], known: Sequence[RtpMap]) -> list[RtpMap]:
    """
    Assign payload types to the codecs of an offer.

    A payload type keeps its meaning throughout the session (RFC 3264 8.3.2): a codec keeps its number, and no
    number is reused for another codec.
    """
    taken = {entry.payload_type for entry in known}
    numbers: list[RtpMap] = []
    for codec in codecs:
        number = next((entry.payload_type for entry in known if codec.is_meant_by(entry)), None)
        if number is None:
            free = [codec.number, *_DYNAMIC]
            number = next((candidate for candidate in free if candidate not in taken), None)
        if number is not None:
            taken.add(number)
            numbers.append(codec.rtpmap(number))
    return numbers


@lru_cache(maxsize=256)
def merge_numbers(known: tuple[RtpMap, ...], *lists: tuple[RtpMap, ...]) -> tuple[RtpMap, ...]:
    """Add the dynamic payload types of descriptions to the known ones; a number keeps its first meaning."""
    merged = {entry.payload_type: entry for entry in known}
    for entries in lists:
        for entry in entries:
            if entry.payload_type in _DYNAMIC:
                merged.setdefault(entry.payload_type, entry)
    return tuple(merged.values())


@lru_cache(maxsize=256)
def read_opus(fmtp: str | None, wanted: OpusSettings) -> OpusSettings:
    """
    Return the settings for sending to a side with these parameters, limited by `wanted`.

    Malformed parameters count as absent. A preference for stereo is ignored: every decoder accepts mono
    (RFC 7587 3.4).
    """
    parameters = _parameters(fmtp or "")
    bitrate_bps = _number(parameters.get("maxaveragebitrate"), _BITRATES_BPS)
    playback_hz = _number(parameters.get("maxplaybackrate"), _PLAYBACK_HZ)
    return OpusSettings(
        bitrate_bps=min(wanted.bitrate_bps, bitrate_bps or wanted.bitrate_bps),
        fec=wanted.fec and parameters.get("useinbandfec") == "1",
        dtx=parameters.get("usedtx") == "1",
        max_playback_hz=min(_OUR_RATE_HZ, playback_hz or _OUR_RATE_HZ),
    )


def write_opus(wanted: OpusSettings) -> str:
    """Write our preferences as a receiver: rates up to the engine's, bit rate, FEC and DTX."""
    parameters = [
        f"maxplaybackrate={wanted.max_playback_hz}",
        f"sprop-maxcapturerate={_OUR_RATE_HZ}",
        f"maxaveragebitrate={wanted.bitrate_bps}",
        f"useinbandfec={int(wanted.fec)}",
    ]
    if wanted.dtx:
        parameters.append("usedtx=1")
    return ";".join(parameters)


def _parameters(text: str) -> dict[str, str]:
    """Parse `a=1; b=2`; the first of equal names counts."""
    found: dict[str, str] = {}
    for item in text.split(";"):
        name, _, value = item.partition("=")
        found.setdefault(name.strip().lower(), value.strip())
    return found


def _number(text: str | None, allowed: range) -> int | None:
    if text is None or not (text.isascii() and text.isdecimal()) or len(text) > 9:
        return None
    value = int(text)
    return value if value in allowed else None


def telephone_event(media: MediaDescription, clock_rate: int) -> tuple[int, str] | None:
    """Return payload type and shared events of a section's telephone-event format with the codec's clock."""
    for entry in media.codecs():
        if TELEPHONE_EVENTS[clock_rate].is_meant_by(entry):
            # Without the parameter, events 0 to 15 apply (RFC 4733 2.4.1).
            events = _common_events(media.fmtp(entry.payload_type) or DIGITS)
            if events:
                return entry.payload_type, events
    return None


@lru_cache(maxsize=64)
def _common_events(text: str) -> str:
    """Narrow a list of events such as `0-11,66` to the supported digits; empty when none is left."""
    return _ranges(sorted(_KNOWN_EVENTS & _events(text)))


def _events(text: str) -> set[int]:
    """Parse a list of event numbers; malformed items are ignored (RFC 4733 2.4.1)."""
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
