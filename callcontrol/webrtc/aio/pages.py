"""Web pages with a telephone that can be called, and what they are told."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from callcontrol.aio.page_events import PageEvents
from callcontrol.errors import ServiceUnavailable

MAX_PAGES: Final = 2000
"""Pages that may be open at the same time."""

MAX_PAGES_EACH: Final = 20
"""Pages that may be open with one telephone."""

_KEPT: Final = 64
"""Events that wait for a page that reads too slowly; the newest say what rings now."""

_RETRY_AFTER_S: Final = 5.0

Telephone = tuple[str, str]
"""Account and name of a telephone."""


def event_of(name: str, data: Mapping[str, Any]) -> bytes:
    """Return an event as pages read it (server-sent events)."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class OpenPages:
    """The open pages of all telephones."""

    def __init__(self) -> None:
        self._pages: dict[Telephone, list[PageEvents]] = {}
        self._closed = False

    def __len__(self) -> int:
        return sum(len(pages) for pages in self._pages.values())

    def of(self, telephone: Telephone) -> list[PageEvents]:
        """Return the pages of a telephone."""
        return list(self._pages.get(telephone, ()))

    @contextmanager
    def open(self, telephone: Telephone) -> Iterator[PageEvents]:
        """
        Open a page until the block ends.

        Raises:
            ServiceUnavailable: Too many pages are open, or the server stops.
        """
        if self._closed or len(self) >= MAX_PAGES:
            raise ServiceUnavailable("No more pages can be called now.", retry_after_s=_RETRY_AFTER_S)
        pages = self._pages.setdefault(telephone, [])
        if len(pages) >= MAX_PAGES_EACH:
            raise ServiceUnavailable(
                f"{MAX_PAGES_EACH} pages with this telephone are open.", retry_after_s=_RETRY_AFTER_S
            )
        page = PageEvents(_KEPT)
        pages.append(page)
        try:
            yield page
        finally:
            pages.remove(page)
            if not pages:
                self._pages.pop(telephone, None)

    def tell(self, telephone: Telephone, name: str, data: Mapping[str, Any]) -> None:
        """Send an event to the pages of a telephone."""
        event = event_of(name, data)
        for page in self.of(telephone):
            page.put(event)

    def close(self) -> None:
        """End the events of all pages; no more are opened."""
        self._closed = True
        for pages in self._pages.values():
            for page in pages:
                page.end()
