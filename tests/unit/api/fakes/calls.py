"""Calls, their logs and their traces, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.calls.records.cdr import Cdr, CdrFilter
from callcontrol.errors import CallEnded, Forbidden, NotFound
from callcontrol.models import CallFilter, CallRecord, CallStatus, Page, Position
from callcontrol.trunks.gateway_health import GatewayTable
from callcontrol.trunks.registration import RegistrationView
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    CARRIER_SID,
    ENDED_SID,
    GATEWAY_SID,
    MOMENT,
    OTHER_ACCOUNT,
    OTHER_CALL_SID,
)

CALL_LOG = Cdr(
    call_sid=CALL_SID,
    from_="+918047000001",
    to="+919800000001",
    direction="outbound",
    status="completed",
    carrier_sid=CARRIER_SID,
    gateway_sid=GATEWAY_SID,
    app_sid=None,
    sip_status=200,
    sip_reason="OK",
    sip_call_id="abc@host",
    duration_sec=61,
    attempted_at=MOMENT,
    answered_at=MOMENT,
    terminated_at=MOMENT,
    termination_reason="NORMAL_CLEARING",
    terminated_by="caller",
    host="local",
    remote_host="192.0.2.1",
    trunk="Own trunk",
    codec="PCMA",
    mos=4.2,
)


def call(call_sid: str = CALL_SID, account_sid: str = ACCOUNT, **changes: Any) -> CallRecord:
    return CallRecord(
        **{
            "call_sid": call_sid,
            "account_sid": account_sid,
            "direction": "outbound",
            "from_": "+918047000001",
            "to": "+919800000001",
            "created_at": MOMENT,
            **changes,
        }
    )


@dataclass(frozen=True)
class FakeTraceEntry:
    at: datetime = MOMENT
    leg: str | None = "a"
    direction: str = "out"
    transport: str = "udp"
    peer: str = "127.0.0.1:5080"
    call_id: str | None = "abc@host"
    message: str = "INVITE sip:x SIP/2.0\r\n\r\n"


class FakeCalls:
    def __init__(self) -> None:
        self.updates: list[LiveUpdate] = []
        self.gateways = GatewayTable()
        self.failure: Exception | None = None
        self.requests: list[tuple[str, Any]] = []
        self.filters: list[CallFilter] = []
        self.places: list[Position | None] = []
        self.records = {
            CALL_SID: call(status=CallStatus.IN_PROGRESS),
            ENDED_SID: call(ENDED_SID, status=CallStatus.COMPLETED),
            OTHER_CALL_SID: call(OTHER_CALL_SID, OTHER_ACCOUNT),
        }
        self.active_calls = 1
        self.registered: dict[str, list[RegistrationView]] = {}

    async def create_call(self, account_sid: str, request: Any) -> CallRecord:
        self.requests.append((account_sid, request))
        if self.failure is not None:
            raise self.failure
        return call(f"{len(self.requests):08d}-4444-4444-8444-444444444444")

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        record = self.records.get(call_sid)
        if record is None:
            raise NotFound("There is no such call on the account.")
        if record.account_sid != account_sid:
            raise Forbidden("This call belongs to another account.")
        return record

    async def list_calls(
        self, account_sid: str, query: CallFilter, page: int, per_page: int, after: Position | None = None
    ) -> Page[CallRecord]:
        self.filters.append(query)
        self.places.append(after)
        if self.failure is not None:
            raise self.failure
        own = [record for record in self.records.values() if record.account_sid == account_sid]
        more = Position(int(own[-1].created_at.timestamp() * 1_000_000), own[-1].call_sid)
        return Page(own[:per_page], len(own), page, per_page, more if len(own) > per_page else None)

    async def update_call(self, account_sid: str, call_sid: str, update: LiveUpdate) -> CallRecord:
        record = await self.get_call(account_sid, call_sid)
        if record.status.ended:
            raise CallEnded("The call has already ended.")
        if self.failure is not None:
            raise self.failure
        self.updates.append(update)
        return record

    async def hangup_call(self, account_sid: str, call_sid: str) -> CallRecord:
        record = await self.get_call(account_sid, call_sid)
        if record.status.ended:
            raise CallEnded("The call has already ended.")
        return record

    def trace(self, call_sid: str) -> Sequence[Any]:
        return [FakeTraceEntry(), FakeTraceEntry(leg=None, direction="in", call_id=None)]

    def registrations(self, carrier_sid: str | None = None) -> Sequence[RegistrationView]:
        return self.registered.get(carrier_sid or "", [])


class FakeCallLogs:
    def __init__(self) -> None:
        self.filters: list[CdrFilter] = []

    async def list(self, account_sid: str, query: CdrFilter, page: int, per_page: int) -> Page[Cdr]:
        self.filters.append(query)
        return Page([CALL_LOG], 1, page, per_page)
