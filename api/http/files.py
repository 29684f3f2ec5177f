"""Responses with a file, or an object of a store: whole, partial (206), not modified (304), refused (416)."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.typedefs import LooseHeaders
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict
from pydantic_core import to_json

from api.http.errors import ApiError, ErrorStyle
from api.http.middleware import current_request
from callcontrol.errors import DomainError
from callcontrol.recordings.objects import StoredObject

__all__ = ["PART_BYTES", "RANGE_NOT_SATISFIABLE", "PrivateFile", "send_object"]

_log = logging.getLogger("api.http.files")

RANGE_NOT_SATISFIABLE = "RANGE_NOT_SATISFIABLE"
"""Code of a ``Range`` outside the file."""

_ONE_RANGE = re.compile(r"bytes=\s*(?:\d+-\d*|-0*[1-9]\d*)\s*", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r'"[^"]*"')

PART_BYTES: Final = 1024 * 1024
"""Bytes of an object that are in memory for a response."""

_Read = Callable[[StoredObject, int, int], Awaitable[bytes]]


class PrivateFile(web.FileResponse):
    """
    A file for one customer, with range requests (RFC 9110, 14).

    Shared caches must not store it, and the customer's own cache must revalidate it. A `Range` of several
    parts, in another unit, of no bytes (`-0`) or malformed is ignored, as the RFC allows: the response is the
    complete file. An `If-Range` that names an earlier version gets the complete file as well. A `Range`
    outside the file is refused with an error in the `style` of its endpoint.
    """

    def __init__(self, path: Path, media_type: str, style: ErrorStyle = ErrorStyle.GENERAL) -> None:
        super().__init__(path, headers=_headers(path.name, media_type))
        self._file = path
        self._style = style
        self._refusal = b""
        self._is_head = False

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Start the response; drop a `Range` that is not honoured."""
        if "Range" in request.headers and not _honours(request, self._tag):
            headers = CIMultiDict(request.headers)
            headers.popall("Range")
            request = request.clone(headers=headers)
        self._is_head = request.method == "HEAD"
        return await super().prepare(request)

    def set_status(self, status: int, reason: str | None = None) -> None:
        """Set the status; 416 replaces the file by an error, which the library would leave without a body."""
        super().set_status(status, reason)
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            self._refusal = _refuse_range(self, self._style)

    async def write_eof(self, data: bytes = b"") -> None:
        """End the response, with the body of a refusal unless the request is a HEAD."""
        await super().write_eof(data if self._is_head else data or self._refusal)

    def _tag(self) -> str | None:
        """Entity tag of the file."""
        try:
            now = self._file.stat()
        except OSError:
            return None
        return f"{now.st_mtime_ns:x}-{now.st_size:x}"


async def send_object(
    found: StoredObject,
    media_type: str,
    read: _Read,
    request: web.Request,
    *,
    style: ErrorStyle = ErrorStyle.GENERAL,
) -> web.StreamResponse:
    """
    Send an object of a store as `PrivateFile` sends a file; `read` returns the bytes of a part of it.

    Raises:
        DomainError: The store does not answer; nothing was sent.
    """
    response = web.StreamResponse(headers=_headers(found.name, media_type))
    start, end = _outline(request, response, found)
    refused = response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    part = _refuse_range(response, style) if refused else b""
    if request.method == "HEAD":
        part = b""
    elif start < end:
        part = await read(found, start, min(start + PART_BYTES, end))
    current_request().mark(response)
    try:
        await response.prepare(request)
        while part:
            await response.write(part)
            start += len(part)
            part = await read(found, start, min(start + PART_BYTES, end)) if start < end else b""
        await response.write_eof()
    except (DomainError, ConnectionError) as error:
        # The status has been sent already, so only closing the connection can signal the failure.
        if isinstance(error, DomainError):
            _log.warning("the response with %s has ended early: %s", found.url, error.message)
        if request.transport is not None:
            request.transport.abort()
    return response


def _outline(request: web.Request, response: web.StreamResponse, found: StoredObject) -> tuple[int, int]:
    """Set status and headers of a response; returns which bytes follow, none for start = end."""
    size = found.size_bytes
    status = _condition(request, found)
    if status == 412:
        response.set_status(status)
        response.content_length = 0
        return 0, 0
    if status is not None:
        _name_version(response, found)
        response.set_status(status)
        return 0, 0
    start, end = 0, size
    if "Range" in request.headers and _honours(request, lambda: found.tag, found):
        try:
            asked = request.http_range
            start, end, _ = asked.indices(size)
        except ValueError:
            end = start
        if start >= end:
            response.set_status(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            response.headers["Content-Range"] = f"bytes */{size}"
            return 0, 0
        response.set_status(206)
        response.headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    _name_version(response, found)
    response.headers["Accept-Ranges"] = "bytes"
    response.content_length = end - start
    return start, end


def _name_version(response: web.StreamResponse, found: StoredObject) -> None:
    response.etag = found.tag
    response.last_modified = found.modified_at


def _condition(request: web.Request, found: StoredObject) -> int | None:
    """Status of a request whose condition does not hold (RFC 9110, 13.2.2); None if it does."""
    matching, others = request.if_match, request.if_none_match
    if matching is not None:
        if not any(tag.value in ("*", found.tag) and not tag.is_weak for tag in matching):
            return 412
    elif request.if_unmodified_since is not None and found.modified_at > request.if_unmodified_since:
        return 412
    if others is not None:
        return 304 if any(tag.value in ("*", found.tag) for tag in others) else None
    if request.if_modified_since is not None and found.modified_at <= request.if_modified_since:
        return 304
    return None


def _refuse_range(response: web.StreamResponse, style: ErrorStyle) -> bytes:
    """Make a response a refusal of its range; returns the body."""
    message = "The range lies outside the file; Content-Range has its length in bytes."
    error = ApiError(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, RANGE_NOT_SATISFIABLE, message, style=style)
    body = to_json(error.body())
    del response.headers["Content-Disposition"]
    response.content_type, response.charset = "application/json", "utf-8"
    response.content_length = len(body)
    return body


def _headers(name: str, media_type: str) -> LooseHeaders:
    return {
        "Content-Type": media_type,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-cache",
    }


def _honours(request: BaseRequest, tag: Callable[[], str | None], found: StoredObject | None = None) -> bool:
    """Return True if the one range that is asked for is to be sent."""
    ranges = request.headers.getall("Range")
    if len(ranges) > 1 or _ONE_RANGE.fullmatch(ranges[0]) is None:
        return False
    condition = request.headers.get("If-Range", "").strip()
    if not condition:
        return True
    if request.if_range is not None:
        # The time of a file is compared where it is opened.
        return found is None or found.modified_at <= request.if_range
    return _TAG.fullmatch(condition) is not None and condition[1:-1] == tag()
