"""`trunkline serve`: the server in the foreground."""

from __future__ import annotations

import argparse

from api.config import Settings
from api.logs import configure_logging
from api.server import run_loop, serve

__all__ = ["run"]


def run(settings: Settings, _: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, and return 0 after a drain."""
    configure_logging(settings.log_format, settings.log_level)
    run_loop(serve(settings))
    return 0
