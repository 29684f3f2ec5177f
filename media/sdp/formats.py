"""
Codecs in session descriptions: encodings, payload types, and the common ones of two sides.

Source: RFC 3551 6 (static types), RFC 3551 4.5.2 (the clock of G.722), RFC 7587 7 (Opus), RFC 3389 (CN).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from media.sdp.model import MediaDescription, RtpMap

__all__ = [
    "CODECS",
    "COMFORT_NOISE",
    "TELEPHONE_EVENTS",
    "Codec",
    "Format",
    "common_codec",
    "find",
    "merge_numbers",
    "numbered",
    "offered_codecs",
]

_DYNAMIC: Final = range(96, 128)


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
