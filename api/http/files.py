"""File responses: complete, partial (206) or not modified (304)."""

from __future__ import annotations

import re
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.typedefs import LooseHeaders
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict

__all__ = ["PrivateFile"]

_ONE_RANGE = re.compile(r"bytes=\s*(?:\d+-\d*|-\d+)\s*", re.IGNORECASE)
_TAG = re.compile(r'"[^"]*"')


class PrivateFile(web.FileResponse):
    """
    A file for one customer, with range requests (RFC 9110, 14).

    Shared caches must not store it, and the customer's own cache must revalidate it. A `Range` of several
    parts, in another unit or malformed is ignored, as the RFC allows: the response is the complete file. An
    `If-Range` that names an earlier version gets the complete file as well.
    """

    def __init__(self, path: Path, media_type: str) -> None:
        headers: LooseHeaders = {
            "Content-Type": media_type,
            "Content-Disposition": f'attachment; filename="{path.name}"',
            "Cache-Control": "private, no-cache",
        }
        super().__init__(path, headers=headers)
        self._file = path

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Start the response; drop a `Range` that is not honoured."""
        if "Range" in request.headers and not self._honours(request):
            headers = CIMultiDict(request.headers)
            headers.popall("Range")
            request = request.clone(headers=headers)
        return await super().prepare(request)

    def _honours(self, request: BaseRequest) -> bool:
        ranges = request.headers.getall("Range")
        if len(ranges) > 1 or _ONE_RANGE.fullmatch(ranges[0]) is None:
            return False
        condition = request.headers.get("If-Range", "").strip()
        if not condition or request.if_range is not None:
            return True
        return _TAG.fullmatch(condition) is not None and condition[1:-1] == self._tag()

    def _tag(self) -> str | None:
        """Entity tag of the file."""
        try:
            now = self._file.stat()
        except OSError:
            return None
        return f"{now.st_mtime_ns:x}-{now.st_size:x}"
