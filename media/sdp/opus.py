"""The format parameters of Opus (RFC 7587 6.1): each side says what it wants to receive."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from media.types import OpusSettings

__all__ = ["read_opus", "write_opus"]

# RFC 7587 6.1: 6000 to 510000 are reasonable; more than the default for one channel of speech serves nobody.
_BITRATES_BPS: Final = range(6_000, 510_001)
_PLAYBACK_HZ: Final = range(8_000, 48_001)
# What the engine works with, in both directions.
_OUR_RATE_HZ: Final = 16_000


@lru_cache(maxsize=256)
def read_opus(fmtp: str | None, wanted: OpusSettings) -> OpusSettings:
    """
    How to send to a side that has these parameters, as far as `wanted` goes.

    What cannot be read counts as absent. Whether the far end wants stereo does not matter: every decoder
    takes one channel (RFC 7587 3.4).
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
    """What we want to receive: no more than the engine plays, and nothing twice but what loss calls for."""
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
    """Read `a=1; b=2`; the first of equal names counts."""
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
