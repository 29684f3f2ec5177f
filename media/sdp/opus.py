"""Format parameters of Opus (RFC 7587 6.1): each side states its preferences as a receiver."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from media.types import OpusSettings

__all__ = ["read_opus", "write_opus"]

# RFC 7587 6.1: 6000 to 510000 are reasonable; more than the default for mono speech has no use.
_BITRATES_BPS: Final = range(6_000, 510_001)
_PLAYBACK_HZ: Final = range(8_000, 48_001)
# Rate of the engine, in both directions.
_OUR_RATE_HZ: Final = 16_000


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
