"""What the engine of this installation has."""

from __future__ import annotations

from media.abilities import CODECS, built_codecs


def test_g711_is_always_there() -> None:
    built = built_codecs()
    assert {"PCMU", "PCMA"} <= set(built) <= set(CODECS)
