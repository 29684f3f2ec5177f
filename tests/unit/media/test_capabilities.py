"""Capabilities of this installation's engine."""

from __future__ import annotations

from media.capabilities import CODECS, built_codecs


def test_g711_is_always_there() -> None:
    built = built_codecs()
    assert {"PCMU", "PCMA"} <= set(built) <= set(CODECS)
