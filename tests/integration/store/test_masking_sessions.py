"""Masking sessions over a real database: allocation, expiry, lists, and two processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.masking_sessions import mappings
from callcontrol.errors import (
    Conflict,
    InvalidNumbers,
    NotFound,
    NumberNotOwned,
    ValidationFailed,
)
from callcontrol.masking.aio import sessions as module
from callcontrol.masking.aio.service import MaskingService
from callcontrol.masking.sessions import MaskingSession, SessionCounts, SessionFilter, SessionRequest
from callcontrol.masking.store import numbers as masking_numbers
from callcontrol.masking.store import sessions as masking_sessions
from callcontrol.models import Account, Binding
from tests.support.customers import add_platform_carrier
from tests.support.secrets import SECRETS

A, B, C, D = (f"+9198100000{n:02d}" for n in range(4))
POOL = ["+918047550001", "+918047550002", "+918047550003"]


@dataclass
class Shop:
    """An account with masked numbers."""

    storage: Storage
    account_sid: str

    async def begin(self, a: str = A, b: str = B, **request: Any) -> MaskingSession:
        wanted = SessionRequest(party_a=a, party_b=b, **request)
        return await self.storage.masking_sessions.create(self.account_sid, wanted)

    async def reached(self, caller: str, masked_number: str) -> str | None:
        """Return the party that a caller reaches."""
        found = await self.storage.masking_sessions.find(self.account_sid, caller, masked_number)
        return found.peer_of(caller) if found is not None else None

    async def listed(self, **query: Any) -> tuple[list[str], int]:
        page = await self.storage.masking_sessions.list(self.account_sid, SessionFilter(**query), 1, 20)
        return [item.session_id for item in page.items], page.total


async def enrolled(storage: Storage, account_sid: str) -> Shop:
    for number in POOL:
        await storage.numbers.add(account_sid, number)
        await storage.masking_numbers.enrol(account_sid, number)
    return Shop(storage, account_sid)


@pytest.fixture
async def shop(storage: Storage, account: Account) -> Shop:
    await add_platform_carrier(storage)
    return await enrolled(storage, account.account_sid)


@pytest.fixture
async def beside(url: str, shop: Shop) -> AsyncIterator[Shop]:
    """The same account in another process."""
    opened = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    yield Shop(opened, shop.account_sid)
    await opened.close()


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the services' clock forward."""
    monkeypatch.setattr(module, "utc_now", lambda: utc_now() + timedelta(seconds=seconds))


async def test_both_parties_reach_each_other_and_nobody_else_does(shop: Shop) -> None:
    session = await shop.begin()
    assert session.masked_number == POOL[0]
    assert await shop.reached(A, POOL[0]) == B
    assert await shop.reached(B, POOL[0]) == A
    assert await shop.reached(C, POOL[0]) is None
    assert await shop.reached(A, POOL[1]) is None
    assert await shop.storage.masking_sessions.get(shop.account_sid, session.session_id) == session


async def test_a_party_has_each_masked_number_once(shop: Shop) -> None:
    numbers = [(await shop.begin(A, b)).masked_number for b in (B, C, D)]
    assert numbers == POOL
    assert [await shop.reached(A, number) for number in POOL] == [B, C, D]
    with pytest.raises(Conflict, match="Each of the 3 masked numbers") as refused:
        await shop.begin(A, "+919810000099")
    assert refused.value.details == {"masked_numbers": 3}
    # Others share the numbers: who calls says whom they reach.
    assert (await shop.begin("+919810000098", "+919810000099")).masked_number == POOL[0]


async def test_a_number_is_free_again_after_the_session(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = await shop.begin()
    assert (await shop.storage.masking_sessions.close(shop.account_sid, closed.session_id)).ended == "closed"
    assert await shop.reached(A, POOL[0]) is None
    expiring = await shop.begin(expires_in_s=60)
    assert expiring.masked_number == POOL[0]
    later(monkeypatch, 61)
    assert await shop.reached(A, POOL[0]) is None
    again = await shop.begin(C, A)
    assert (again.masked_number, await shop.reached(A, POOL[0])) == (POOL[0], C)


async def test_the_masked_number_that_is_asked_for(shop: Shop) -> None:
    assert (await shop.begin(masked_number=POOL[2])).masked_number == POOL[2]
    with pytest.raises(Conflict, match="by this masked number already"):
        await shop.begin(B, C, masked_number=POOL[2])
    with pytest.raises(NumberNotOwned):
        await shop.begin(C, D, masked_number="+918047550009")


async def test_a_number_that_begins_like_a_partys_is_preferred_when_asked_for(shop: Shop) -> None:
    await shop.storage.numbers.add(shop.account_sid, "+919810999999")
    await shop.storage.masking_numbers.enrol(shop.account_sid, "+919810999999")
    assert (await shop.begin(geo_match=True)).masked_number == "+919810999999"
    assert (await shop.begin(geo_match=True)).masked_number == POOL[0]


async def test_masked_numbers_are_nobodys_to_call(shop: Shop) -> None:
    own = "+919810999998"
    await shop.storage.numbers.add(shop.account_sid, own)
    await shop.storage.masking_numbers.enrol(shop.account_sid, own)
    no_door: Any = None  # Nothing is placed.
    calls = MaskingService(shop.storage.database, no_door, shop.storage.masking_settings, {"IN"})
    for a, b, field in ((own, A, "party_a"), (A, own, "party_b")):
        with pytest.raises(InvalidNumbers) as refused:
            await shop.begin(a, b)
        assert [error.field for error in refused.value.errors] == [field]
        with pytest.raises(InvalidNumbers) as refused:
            await calls.start_call(shop.account_sid, a[3:], b[3:])
        assert [error.field for error in refused.value.errors] == [field]
    assert await shop.listed() == ([], 0)


async def test_without_an_enrolled_number_there_is_no_session(shop: Shop) -> None:
    for number in list((await shop.storage.masking_numbers.list(shop.account_sid, 1, 20)).items):
        await shop.storage.masking_numbers.withdraw(shop.account_sid, number.phone_number_id)
    with pytest.raises(Conflict, match="No number of the account is enrolled"):
        await shop.begin()


async def test_two_processes_never_give_a_party_the_same_number_twice(shop: Shop, beside: Shop) -> None:
    outcomes = await asyncio.gather(
        *(one.begin(A, f"+9198200000{n:02d}") for n in range(6) for one in (shop, beside)),
        return_exceptions=True,
    )
    made = [item for item in outcomes if isinstance(item, MaskingSession)]
    assert sorted(item.masked_number for item in made) == POOL
    assert all(isinstance(item, Conflict) for item in outcomes if item not in made)
    assert await beside.reached(A, made[0].masked_number) == made[0].party_b


async def test_the_index_refuses_what_the_allocation_would_not_do(shop: Shop) -> None:
    session = await shop.begin()
    twin = replace(session, session_id="twin")
    with pytest.raises(sa.exc.IntegrityError):
        await shop.storage.database.write(lambda connection: masking_sessions.insert(connection, twin))


async def test_a_change_holds_at_once_and_for_active_sessions_only(
    shop: Shop, beside: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = shop.storage.masking_sessions
    session = await shop.begin(expires_in_s=60)
    changed = await service.update(
        shop.account_sid,
        session.session_id,
        lambda was, now: replace(was, expires_at=now + timedelta(hours=1), call_time_limit_s=60),
    )
    later(monkeypatch, 120)
    assert changed.call_time_limit_s == 60
    assert await beside.reached(A, POOL[0]) == B
    later(monkeypatch, 3700)
    with pytest.raises(Conflict, match="expired") as refused:
        await service.update(shop.account_sid, session.session_id, lambda was, _: was)
    assert refused.value.details == {"status": "expired"}
    assert (await service.close(shop.account_sid, session.session_id)).ended is None
    with pytest.raises(NotFound):
        await service.update(shop.account_sid, "none", lambda was, _: was)


async def test_sessions_of_another_account_are_none(shop: Shop) -> None:
    session = await shop.begin()
    other, _ = await shop.storage.accounts.create("Other")
    service = shop.storage.masking_sessions
    for refused in (
        service.get(other.account_sid, session.session_id),
        service.close(other.account_sid, session.session_id),
        service.update(other.account_sid, session.session_id, lambda was, _: was),
    ):
        with pytest.raises(NotFound):
            await refused
    assert await service.find(other.account_sid, A, POOL[0]) is None
    assert (await service.list(other.account_sid, SessionFilter(), 1, 20)).total == 0


async def test_lists_by_status_party_and_number_agree_before_and_after_the_sweep(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    expiring = (await shop.begin(A, B, expires_in_s=60)).session_id
    closed = (await shop.begin(C, D)).session_id
    await shop.storage.masking_sessions.close(shop.account_sid, closed)
    active = (await shop.begin(A, C)).session_id
    start = utc_now() - timedelta(hours=1)
    later(monkeypatch, 61)
    now = utc_now() + timedelta(seconds=61)
    for _ in range(2):
        assert await shop.listed() == ([active, closed, expiring], 3)
        assert await shop.listed(status="active") == ([active], 1)
        assert await shop.listed(status="expired") == ([expiring], 1)
        assert await shop.listed(status="closed") == ([closed], 1)
        assert await shop.listed(party=A) == ([active, expiring], 2)
        assert await shop.listed(party=C, status="active") == ([active], 1)
        assert await shop.listed(masked_number=POOL[1]) == ([active], 1)
        found = await shop.storage.database.read(
            lambda connection: masking_sessions.counts(connection, shop.account_sid, start, now, now)
        )
        assert found == SessionCounts(3, 1, 6)
        swept = await shop.storage.masking_sessions.sweep()
    assert swept == 0
    session = await shop.storage.masking_sessions.get(shop.account_sid, expiring)
    assert (session.ended, session.ended_at) == ("expired", session.expires_at)
    rows = await shop.storage.database.read(
        lambda connection: connection.execute(sa.select(sa.func.count()).select_from(mappings)).scalar()
    )
    assert rows == 6, "what is over is still counted"


async def test_numbers_are_enrolled_once_and_taken_out_with_their_sessions(shop: Shop) -> None:
    numbers, sid = shop.storage.masking_numbers, shop.account_sid
    first = await numbers.enrol(sid, POOL[0])
    assert first.binding == Binding("masking", language="en")
    again = await numbers.enrol(sid, POOL[0], language="ta-IN")
    assert again.binding is not None and again.binding.language == "ta"
    with pytest.raises(ValidationFailed, match="language"):
        await numbers.enrol(sid, POOL[1], language="fr", force=True)
    with pytest.raises(NotFound):
        await numbers.enrol(sid, "+918047559999")
    assert [item.number for item in (await numbers.list(sid, 1, 2)).items] == POOL[:2]
    session = await shop.begin()
    with pytest.raises(Conflict, match="Sessions are active") as refused:
        await numbers.withdraw(sid, first.phone_number_id)
    assert refused.value.details == {"sessions": 1}
    await numbers.withdraw(sid, first.phone_number_id, force=True)
    assert (await shop.storage.masking_sessions.get(sid, session.session_id)).ended == "closed"
    with pytest.raises(NotFound):
        await numbers.withdraw(sid, first.phone_number_id)
    read = shop.storage.database.read
    assert await read(lambda connection: masking_numbers.pool(connection, sid)) == POOL[1:]
    assert await read(lambda connection: masking_numbers.caller_id(connection, sid, [POOL[1]])) == POOL[1]


async def test_a_number_that_is_suspended_or_bound_elsewhere_is_not_given_to_sessions(shop: Shop) -> None:
    found = await shop.storage.masking_numbers.list(shop.account_sid, 1, 20)
    stream = Binding("media_stream", stream_url="wss://agent.example.com/masking", sample_rate=8000)
    await shop.storage.numbers.bind(shop.account_sid, found.items[0].phone_number_id, stream, force=True)
    await shop.storage.numbers.deregister(shop.account_sid, found.items[1].phone_number_id, force=True)
    assert (await shop.begin()).masked_number == POOL[2]
