"""Servers that answer from a list, and keep what they were asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

from trunkline_client import AsyncClient, Client

META = {"request_id": "r-1", "timestamp": "2026-01-31T12:00:00.000Z"}
CALL: dict[str, Any] = {
    **dict.fromkeys(
        [
            *("parent_call_sid", "answered_by", "carrier_sid", "phone_number_id", "app_sid", "stream"),
            *("ringing_at", "answered_at", "ended_at", "duration_sec", "bill_duration_sec", "hangup_cause"),
            *(
                "hangup_cause_code",
                "hangup_source",
                "sip_status",
                "sip_reason",
                "sip_call_id",
                "sip",
                "price",
            ),
            *("recording_url", "recording_status", "quality", "tag"),
        ]
    ),
    **{"call_sid": "c-1", "sid": "c-1", "account_sid": "a-1", "direction": "outbound", "status": "queued"},
    **{"from": "+918047000001", "to": "+919800000001", "currency": "INR"},
    "created_at": "2026-01-31T12:00:00.000Z",
}

MakeClient = Callable[..., Client]
MakeAsyncClient = Callable[..., AsyncClient]
Answer = httpx.Response | Exception


class FakeServer:
    """Answers in the order of a list; an exception among them is an error of the network."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def body(self, number: int = -1) -> Any:
        return json.loads(self.asked[number].content)


def data(content: Any, status: int = 200, **meta: Any) -> httpx.Response:
    return httpx.Response(status, json={"data": content, "meta": {**META, **meta}})


def refusal(status: int, code: str, headers: dict[str, str] | None = None, **details: Any) -> httpx.Response:
    error = {"code": code, "message": "it is refused", "details": details}
    return httpx.Response(status, json={"error": error}, headers={"X-Request-Id": "r-9", **(headers or {})})
