"""Entry of the command `trunkline` and of ``python -m api``."""

from __future__ import annotations

import enum
import gc
import sys

from api.process.collector import collector_paused

with collector_paused():
    from api.cli import main
if sys.version_info < (3, 12):
    # Members of an enumeration are attributes of its class, so 3.12 has dropped this. With it, each look-up
    # takes three times as long, and a call has a hundred.
    delattr(enum.EnumType, "__getattr__")
# What the modules have made is no garbage; the first collection would look at all of it.
gc.freeze()

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
