"""What repetitions of a request are answered when the server was killed while it ran."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from callcontrol.aio.storage import Storage
from callcontrol.call_object import call_object
from callcontrol.errors import Internal, NotFound
from callcontrol.models import CallRecord, InterruptedRequest

__all__ = ["answer_interrupted"]

_log = logging.getLogger("api.interrupted")


async def answer_interrupted(storage: Storage) -> None:
    """
    Give every request with an idempotency key that a former process left behind the answer it did not give.

    One that had done nothing had its key freed already, so that its repetition runs. One that had placed its
    call must not place another: its repetition is answered with that call.
    """
    keys = storage.idempotency
    for request in await keys.interrupted():
        record: CallRecord | None = None
        kind, _, identifier = request.effect.partition(":")
        if kind == "call":
            try:
                record = await storage.calls.get(request.account_sid, identifier)
            except NotFound:
                # It was taken back before the process was killed, so nothing is left of the request.
                await keys.release(request.account_sid, request.key)
                continue
        status, body = _answer(request, record)
        await keys.complete(request.account_sid, request.key, status, body)
        _log.info("a request that a restart cut off is answered with %s", request.effect)


def _answer(request: InterruptedRequest, record: CallRecord | None) -> tuple[int, bytes]:
    # A call that a product placed is told in the words of the product, which are not known here.
    if record is not None and record.product is None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return 201, _dump({"data": call_object(record), "meta": {"request_id": "", "timestamp": now}})
    message = (
        f"The server was restarted while this request ran, after it had taken effect ({request.effect}). "
        "Look that up; do not repeat the request."
    )
    return 500, _dump({"error": {"code": Internal.code, "message": message}})


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
