"""Form of the Model Context Protocol's messages, checked before the SDK reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

__all__ = ["ErrorCode", "error_message", "form_error", "id_of"]


class ErrorCode(IntEnum):
    """Error codes of JSON-RPC 2.0, section 5.1, that a message gets for its form."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    INVALID_PARAMS = -32602


_NOT_JSON = "The body must be JSON."
_NO_MESSAGE = "The body must be one JSON-RPC 2.0 request, notification or response."
_WRONG_ID = "id: must be a text or a whole number; a notification has none."
_WRONG_METHOD = "method: must be a text."
_WRONG_PARAMS = "params: must be an object."


def form_error(body: bytes) -> dict[str, Any] | None:
    """
    Error message for a body that is no message of the protocol; None for one that is.

    The SDK takes a request whose id is null, or of any other wrong type, for a notification, and gives the
    code of invalid params to whatever else is no message.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return error_message(None, ErrorCode.PARSE_ERROR, _NOT_JSON)
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return error_message(_id_in(message), ErrorCode.INVALID_REQUEST, _NO_MESSAGE)
    if "method" not in message:
        if _is_response(message):
            return None
        return error_message(_id_in(message), ErrorCode.INVALID_REQUEST, _NO_MESSAGE)
    if "id" in message and _id_in(message) is None:
        return error_message(None, ErrorCode.INVALID_REQUEST, _WRONG_ID)
    if not isinstance(message["method"], str):
        return error_message(_id_in(message), ErrorCode.INVALID_REQUEST, _WRONG_METHOD)
    if not isinstance(message.get("params"), dict | None):
        return error_message(_id_in(message), ErrorCode.INVALID_PARAMS, _WRONG_PARAMS)
    return None


def error_message(named: str | int | None, code: int, text: str, data: Any = None) -> dict[str, Any]:
    """Make the error response to the request with an id; None where the request has none to repeat."""
    error = {"code": int(code), "message": text, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": named, "error": error}


def id_of(body: bytes) -> str | int | None:
    """Return the id of a request; None without one that an error could repeat."""
    try:
        return _id_in(json.loads(body))
    except (ValueError, RecursionError):
        return None


def _id_in(message: Any) -> str | int | None:
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str) or type(found) is int else None


def _is_response(message: Mapping[str, Any]) -> bool:
    """True for a result with the id of its request, or an error; that of an error may be unknown."""
    # Serializers of some clients write null for what is absent.
    result, error = message.get("result"), message.get("error")
    if error is None:
        return isinstance(result, dict) and _id_in(message) is not None
    return (
        result is None
        and isinstance(error, dict)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
        and (message.get("id") is None or _id_in(message) is not None)
    )
