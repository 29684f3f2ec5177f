"""Call logs over a real database: which calls are found, and what is told of each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.records.cdr import CdrFilter
from callcontrol.models import Account, CallStatus, Quality
from tests.support.domain import new_record

NOW = utc_now()


async def put(storage: Storage, account: Account, hours_ago: float, **facts: Any) -> str:
    created_at = NOW - timedelta(hours=hours_ago)
    record = new_record(account.account_sid, **{"to": "+919800000001", "created_at": created_at, **facts})
    await storage.calls.insert(record)
    return record.call_sid


async def found(storage: Storage, account: Account, **query: Any) -> list[str]:
    span = {"start": NOW - timedelta(days=2), "end": NOW + timedelta(minutes=1)}
    page = await storage.call_logs.list(account.account_sid, CdrFilter(**{**span, **query}))
    assert page.total == len(page.items)
    return [entry.call_sid for entry in page.items]


async def test_an_entry_tells_of_the_trunk_even_when_that_is_gone(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    carrier = await storage.trunks.create_carrier(sid, {"name": "Own"})
    gateway = await storage.trunks.create_gateway(sid, carrier.carrier_sid, {"host": "192.0.2.7"})
    record = new_record(sid, created_at=NOW, carrier_sid=carrier.carrier_sid, gateway_sid=gateway.gateway_sid)
    await storage.calls.insert(record)
    record.status, record.answered_at, record.ended_at = CallStatus.COMPLETED, NOW, NOW
    record.duration_sec, record.hangup_cause, record.hangup_source = 12, "NORMAL_CLEARING", "callee"
    record.sip_call_id, record.quality = "abc@192.0.2.7", Quality(mos=4.3, jitter_ms=1.5, codec="PCMU")
    storage.calls.finish(record)
    await storage.calls.flush()
    await storage.trunks.delete_carrier(sid, carrier.carrier_sid)
    (entry,) = (
        await storage.call_logs.list(sid, CdrFilter(NOW - timedelta(days=1), NOW + timedelta(days=1)))
    ).items
    assert (entry.trunk, entry.remote_host, entry.host) == ("Own", "192.0.2.7", "local")
    assert (entry.status, entry.duration_sec, entry.termination_reason) == (
        "completed",
        12,
        "NORMAL_CLEARING",
    )
    assert (entry.codec, entry.mos, entry.jitter_ms, entry.packet_loss_pct) == ("PCMU", 4.3, 1.5, None)


async def test_calls_are_found_by_every_filter(storage: Storage, account: Account, stranger: Account) -> None:
    await put(storage, stranger, 1)
    old = await put(storage, account, 47, answered_at=NOW, sip_call_id="Round%Robin@host")
    inbound = await put(storage, account, 3, direction="inbound", to="+918047000000")
    last = await put(storage, account, 1, carrier_sid="c-1")
    await put(storage, account, 49)
    assert await found(storage, account) == [last, inbound, old]
    assert await found(storage, account, start=NOW - timedelta(hours=2)) == [last]
    assert await found(storage, account, end=NOW - timedelta(hours=2)) == [inbound, old]
    assert await found(storage, account, direction="inbound") == [inbound]
    assert await found(storage, account, answered=True) == [old]
    assert await found(storage, account, answered=False) == [last, inbound]
    assert await found(storage, account, carrier_sid="c-1") == [last]
    assert await found(storage, account, text="7000000") == [inbound]
    assert await found(storage, account, text="round%robin") == [old]
    assert await found(storage, account, text="d_o") == []


async def test_call_logs_are_paged(storage: Storage, account: Account) -> None:
    sids = [await put(storage, account, hours_ago) for hours_ago in (1, 2, 3)]
    wide = CdrFilter(NOW - timedelta(days=1), NOW)
    page = await storage.call_logs.list(account.account_sid, wide, 2, 2)
    assert ([entry.call_sid for entry in page.items], page.total, page.total_pages) == ([sids[2]], 3, 2)
