"""Number of examples of a property test."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["THOROUGH", "examples"]

THOROUGH: Final = os.environ.get("TRUNKLINE_THOROUGH", "") not in ("", "0")
"""True in a run with all examples; other runs use a fifth, the same ones each time."""


def examples(count: int) -> int:
    """`count` in a thorough run, else a fifth of it, but ten at least."""
    return count if THOROUGH else min(count, max(10, count // 5))
