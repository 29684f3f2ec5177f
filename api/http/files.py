"""File responses: complete, partial (206), not modified (304) or refused (416)."""

from __future__ import annotations

import re
from http import HTTPStatus
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.typedefs import LooseHeaders
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict
from pydantic_core import to_json

from api.http.errors import ApiError

__all__ = ["RANGE_NOT_SATISFIABLE", "PrivateFile"]

RANGE_NOT_SATISFIABLE = "RANGE_NOT_SATISFIABLE"
"""Code of a ``Range`` outside the file."""

_ONE_RANGE = re.compile(r"bytes=\s*(?:\d+-\d*|-\d+)\s*", re.IGNORECASE)
_TAG = re.compile(r'"[^"]*"')


class PrivateFile(web.FileResponse):
    """
    A file for one customer, with range requests (RFC 9110, 14).

    Shared caches must not store it, and the customer's own cache must revalidate it. A `Range` of several
    parts, in another unit or malformed is ignored, as the RFC allows: the response is the complete file. An
    `If-Range` that names an earlier version gets the complete file as well. A `Range` outside the file is
    refused with the error envelope.
    """

    def __init__(self, path: Path, media_type: str) -> None:
        headers: LooseHeaders = {
            "Content-Type": media_type,
            "Content-Disposition": f'attachment; filename="{path.name}"',
            "Cache-Control": "private, no-cache",
        }
        super().__init__(path, headers=headers)
        self._file = path
        self._refusal = b""
        self._is_head = False

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Start the response; drop a `Range` that is not honoured."""
        if "Range" in request.headers and not self._honours(request):
            headers = CIMultiDict(request.headers)
            headers.popall("Range")
            request = request.clone(headers=headers)
        self._is_head = request.method == "HEAD"
        return await super().prepare(request)

    def set_status(self, status: int, reason: str | None = None) -> None:
        """Set the status; 416 replaces the file by an error, which the library would leave without a body."""
        super().set_status(status, reason)
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            message = "The range lies outside the file; Content-Range has its length in bytes."
            self._refusal = to_json(ApiError(status, RANGE_NOT_SATISFIABLE, message).body())
            del self.headers["Content-Disposition"]
            self.content_type, self.charset = "application/json", "utf-8"
            self.content_length = len(self._refusal)

    async def write_eof(self, data: bytes = b"") -> None:
        """End the response, with the body of a refusal unless the request is a HEAD."""
        await super().write_eof(data if self._is_head else data or self._refusal)

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
