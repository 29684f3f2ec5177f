"""Replies to repeated requests whose first run was cut off by a kill of the server."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from api.routes.assistant.calls import OUTBOUND
from api.routes.messaging.messages import sent_json
from api.schemas.dids import purchase_json
from callcontrol.aio.tokens import utc_now
from callcontrol.assistant.calls import PRODUCT as ASSISTANT
from callcontrol.assistant.calls import assistant_object
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.records.call_json import call_object
from callcontrol.clock import timestamp
from callcontrol.errors import Internal, NotFound
from callcontrol.masking.calls import PRODUCT as MASKING
from callcontrol.masking.calls import started_object
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.models import CallRecord, InterruptedRequest
from callcontrol.numbers.aio.marketplace import bought
from callcontrol.numbers.orders import Purchase
from callcontrol.otp.product import PRODUCT as OTP
from callcontrol.tools.results import call_result, message_result, otp_result

__all__ = ["answer_interrupted"]

_PLACED: Mapping[str | None, Callable[[CallRecord], dict[str, Any]]] = {
    None: call_object,
    MASKING: started_object,
}
"""By product: the serializer of the response to a request that placed a call."""

_TOOL = re.compile(r"POST /integrations/v1/tools/([^/]+)/execute")

_log = logging.getLogger("api.process.idempotency_recovery")


async def answer_interrupted(storage: Storage, node: str | None = None) -> None:
    """
    Store the missing response of every request with an idempotency key that a previous process left open.

    That was a process of this node, or of another which is dead.

    The key of a request without effect is already released, so that its repetition runs. A request that had
    placed its call, bought its number or accepted its message must not do so again: its repetition is
    answered with that call, number or message.
    """
    keys = storage.idempotency
    for request in await keys.interrupted(node):
        record: CallRecord | None = None
        purchase: Purchase | None = None
        kind, _, identifier = request.effect.partition(":")
        if kind == "call":
            try:
                record = await storage.calls.get(request.account_sid, identifier)
            except NotFound:
                # The call was rolled back before the process was killed, so the request had no effect.
                await keys.release(request.account_sid, request.key)
                continue
        if kind == "number":
            purchase = await bought(storage.database, request.account_sid, identifier)
            if purchase is None:
                await keys.release(request.account_sid, request.key)
                continue
        if kind == "message":
            sent = await _sent(storage, request.endpoint, identifier)
            if sent is not None:
                await keys.complete(request.account_sid, request.key, *sent)
                continue
        status, body = _answer(request, record, purchase)
        await keys.complete(request.account_sid, request.key, status, body)
        _log.info("a request interrupted by a restart is answered with %s", request.effect)


async def _sent(storage: Storage, endpoint: str, message_id: str) -> tuple[int, bytes] | None:
    """
    Response to the request that sent a message; None when the message no longer exists.

    The message was accepted, and is submitted to the network now if it was not before.
    """
    message = await storage.database.look_up(partial(chat_messages.get, message_id=message_id))
    if message is None:
        return None
    tool = _TOOL.fullmatch(endpoint)
    return _used(tool[1], message_result(message)) if tool else (200, _dump(sent_json(message)))


def _answer(
    request: InterruptedRequest, record: CallRecord | None, purchase: Purchase | None
) -> tuple[int, bytes]:
    tool = _TOOL.fullmatch(request.endpoint)
    if tool is not None and record is not None:
        result = otp_result(record) if record.product == OTP else call_result(record)
        return _used(tool[1], result)
    data = None if purchase is None else purchase_json(purchase)
    # A voice OTP call is described by its OTP row, which is not read here.
    if record is not None and record.product == ASSISTANT:
        # The call interface also places calls of agents, and shows them as any other call.
        assistant = request.endpoint.endswith(OUTBOUND)
        data = assistant_object(record) if assistant else call_object(record)
    elif record is not None and record.product in _PLACED:
        data = _PLACED[record.product](record)
    if data is not None:
        return 201, _enveloped(data)
    message = (
        f"The server was restarted while this request ran, after it had taken effect ({request.effect}). "
        "Look that up; do not repeat the request."
    )
    return 500, _dump({"error": {"code": Internal.code, "message": message}})


def _used(tool: str, result: Any) -> tuple[int, bytes]:
    """Response to the request that used a tool; the duration is unknown, so it is 0."""
    return 200, _enveloped({"tool": tool, "result": result, "duration_ms": 0})


def _enveloped(data: Any) -> bytes:
    return _dump({"data": data, "meta": {"request_id": "", "timestamp": timestamp(utc_now())}})


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
