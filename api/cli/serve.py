"""`trunkline serve`: the server in the foreground."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from api.process.config import Settings, for_development
from api.process.logs import configure_logging, print_line, standard_descriptors
from api.process.run import run_loop, serve

__all__ = ["run"]

_DEVELOPMENT = (
    "For development (--dev): it listens on loopback only; webhooks and streams may reach private and"
    " loopback addresses."
)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, and return 0 after a drain."""
    if arguments.dev:
        settings = for_development(settings)
    standard_descriptors()
    configure_logging(settings.log_format, settings.log_level)
    if arguments.dev:
        print_line(_DEVELOPMENT)
    run_loop(serve(settings, _command()))
    return 0


def _command() -> str:
    """Shell command for `trunkline`: its bare name if it is on PATH, else the path it was started from."""
    started_as = Path(sys.argv[0])
    if started_as.name != "trunkline" or shutil.which("trunkline"):
        return "trunkline"
    return shlex.quote(str(started_as))
