"""Entry of the command `trunkline` and of ``python -m api``."""

from __future__ import annotations

import sys

from api.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
