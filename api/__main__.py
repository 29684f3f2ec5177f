"""Entry of the command `trunkline` and of ``python -m api``."""

from __future__ import annotations

import gc
import sys

from api.process.collector import collector_paused

with collector_paused():
    from api.cli import main
# What the modules have made is no garbage; the first collection would look at all of it.
gc.freeze()

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
