"""Capabilities of the installed media engine."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

CODECS: Final = ("PCMU", "PCMA", "G722", "L16", "OPUS")
"""All codecs that an engine may have."""

_CLOCK_RATES: Final = {"OPUS": 48000}


@lru_cache(maxsize=1)
def built_codecs() -> tuple[str, ...]:
    """Return the codecs of the engine; all where no engine is installed, so that none is ruled out."""
    try:
        from media import _engine
    except ImportError:  # Administrative commands work beside a server that is installed elsewhere.
        return CODECS
    return tuple(codec for codec in CODECS if _engine.supports(codec, _CLOCK_RATES.get(codec, 8000)))


@lru_cache(maxsize=1)
def has_srtp() -> bool:
    """Return True if the engine encrypts media, and where no engine is installed."""
    try:
        from media import _engine
    except ImportError:  # As above.
        return True
    return _engine.srtp_ready()
