"""A monitoring system that asks the server for its metrics while it is measured, as it does in production."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.server_process import ServerProcess

__all__ = ["SCRAPED_EVERY_S", "scraped"]

SCRAPED_EVERY_S = 15.0
"""As often as Prometheus asks by default."""


@contextmanager
def scraped(server: ServerProcess, every_s: float = SCRAPED_EVERY_S) -> Iterator[None]:
    """Scrape the metrics until the end of the block."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(every_s):
            # A server that answers late or not at all shows in the figures, not here.
            with suppress(OSError):
                server.request("GET", "/metrics")

    scraper = threading.Thread(target=ask, daemon=True)
    scraper.start()
    try:
        yield
    finally:
        over.set()
        scraper.join(every_s)
