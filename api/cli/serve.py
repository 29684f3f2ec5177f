"""`trunkline serve`: the server in the foreground."""

from __future__ import annotations

import argparse

from api.config import Settings
from api.server import run_loop, serve

__all__ = ["run"]


def run(settings: Settings, _: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, and return 0 after a drain."""
    run_loop(serve(settings))
    return 0
