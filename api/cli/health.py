"""`trunkline health`: liveness check of the server with these settings, for containers and supervisors."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request

from api.process.config import Settings
from api.process.values import HostPort

__all__ = ["run"]

_TIMEOUT_S = 3.0
_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def run(settings: Settings, _: argparse.Namespace) -> int:
    """Ask GET /health of the address the server listens on; 0 when it answers 200."""
    listen = settings.http_listen
    url = f"http://{HostPort(_REACHABLE.get(listen.host, listen.host), listen.port)}/health"
    # The health check must not go through a proxy that the environment names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_S) as response:
            healthy = response.status == 200
    except (urllib.error.URLError, OSError) as error:
        print(f"{url} does not answer: {error}", file=sys.stderr)
        return 1
    return 0 if healthy else 1
