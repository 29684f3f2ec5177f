"""Numbers on own carriers and applications over a real database: whose they are, and what may be deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import Conflict, Forbidden, NotFound, NumberNotOwned, ValidationFailed
from callcontrol.models import Account, Application, Binding, CallRecord, Carrier
from callcontrol.trunks.aio.service import TrunkService
from tests.support.domain import new_record

NUMBER = "+918047491899"
STREAM = {"name": "Bot", "target": "media_stream", "stream_url": "wss://agent.example/ws"}
MODEL = {"provider": "ultravox", "model": "ultravox-v0.7", "key": "desk"}


@pytest.fixture
async def carrier(storage: Storage, account: Account) -> Carrier:
    return await storage.trunks.create_carrier(account.account_sid, {"name": "Own"})


@pytest.fixture
async def application(storage: Storage, account: Account) -> Application:
    return await storage.applications.create(account.account_sid, STREAM)


def call_of(account: Account, **facts: Any) -> CallRecord:
    return new_record(account.account_sid, "inbound", **facts)


async def test_an_application_is_kept_changed_listed_and_deleted(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    auth = {"type": "bearer", "token": "s3cret"}
    made = await storage.applications.create(sid, {**STREAM, "stream_auth": auth, "record_all_calls": True})
    assert await storage.applications.get(sid, made.app_sid) == made
    assert storage.directory.application(made.app_sid) == made
    assert "s3cret" not in repr(made)
    changed = await storage.applications.update(sid, made.app_sid, {"sample_rate": 16000})
    assert (changed.binding.sample_rate, changed.binding.stream_auth) == (16000, auth)
    assert storage.directory.application(made.app_sid) == changed
    second = await storage.applications.create(sid, {**STREAM, "name": "Other"})
    page = await storage.applications.list(sid, 2, 1)
    assert (page.items, page.total, page.total_pages) == ([second], 2, 2)
    await storage.applications.delete(sid, made.app_sid)
    assert storage.directory.application(made.app_sid) is None
    for act in (storage.applications.get, storage.applications.delete):
        with pytest.raises(NotFound):
            await act(sid, made.app_sid)
    with pytest.raises(NotFound):
        await storage.applications.update(sid, made.app_sid, {})


async def test_an_application_must_be_able_to_reach_its_target(
    storage: Storage, account: Account, application: Application
) -> None:
    sid = account.account_sid
    for values, field in (
        ({**STREAM, "stream_url": "wss://127.0.0.1/ws"}, "stream_url"),
        ({"name": "F", "target": "forward", "forward_to": "sip:x@192.0.2.99"}, "forward_to"),
        (
            {"name": "F", "target": "forward", "forward_to": "+919800000001", "caller_id": "+918047000009"},
            "caller_id",
        ),
        ({**STREAM, "status_webhook_url": "http://10.0.0.1/"}, "status_webhook_url"),
        ({"name": "M", "target": "model", "model": {**MODEL, "url": "https://10.0.0.1/"}}, "model.url"),
    ):
        with pytest.raises(ValidationFailed) as caught:
            await storage.applications.create(sid, values)
        assert [error.field for error in caught.value.errors] == [field]
    await storage.applications.create(sid, {"name": "M", "target": "model", "model": MODEL})
    with pytest.raises(ValidationFailed):
        await storage.applications.update(sid, application.app_sid, {"stream_url": "wss://127.0.0.1/"})
    assert await storage.applications.get(sid, application.app_sid) == application


async def test_a_number_of_an_own_carrier(
    storage: Storage, account: Account, carrier: Carrier, application: Application
) -> None:
    sid = account.account_sid
    number = await storage.trunk_numbers.register(
        sid, NUMBER, carrier.carrier_sid, app_sid=application.app_sid, friendly_name="Desk"
    )
    assert await storage.numbers.owned(sid, NUMBER) == number
    assert await storage.numbers.get(sid, number.phone_number_id) == number
    with pytest.raises(Conflict):
        await storage.trunk_numbers.register(sid, NUMBER, carrier.carrier_sid)

    wider = await storage.trunks.create_carrier(sid, {"name": "Wider"})
    moved = await storage.trunk_numbers.update(
        sid,
        number.phone_number_id,
        {"carrier_sid": wider.carrier_sid, "app_sid": None, "friendly_name": None},
    )
    assert (moved.carrier_sid, moved.app_sid, moved.friendly_name) == (wider.carrier_sid, None, None)
    assert storage.directory.number(NUMBER) == moved
    with pytest.raises(ValidationFailed):
        await storage.trunk_numbers.update(sid, number.phone_number_id, {"number": "+918047000001"})

    assert (await storage.trunk_numbers.list(sid, {})).items == [moved]
    assert (await storage.trunk_numbers.list(sid, {"carrier_sid": carrier.carrier_sid})).total == 0
    await storage.trunk_numbers.remove(sid, number.phone_number_id)
    with pytest.raises(NumberNotOwned):
        await storage.numbers.owned(sid, NUMBER)
    again = await storage.trunk_numbers.register(sid, NUMBER, carrier.carrier_sid)
    assert again.phone_number_id != number.phone_number_id


async def test_what_is_another_accounts_and_what_is_not_there(
    storage: Storage, account: Account, carrier: Carrier, application: Application, stranger: Account
) -> None:
    other, sid = stranger.account_sid, account.account_sid
    number = await storage.trunk_numbers.register(sid, NUMBER, carrier.carrier_sid)
    own = await storage.trunks.create_carrier(other, {"name": "Theirs"})
    for refused in (
        storage.applications.get(other, application.app_sid),
        storage.applications.update(other, application.app_sid, {"name": "Mine"}),
        storage.applications.delete(other, application.app_sid),
        storage.trunk_numbers.update(other, number.phone_number_id, {"friendly_name": "Mine"}),
        storage.trunk_numbers.remove(other, number.phone_number_id),
        storage.trunk_numbers.register(other, "+918047491800", carrier.carrier_sid),
        storage.trunk_numbers.register(other, "+918047491800", own.carrier_sid, app_sid=application.app_sid),
        storage.trunks.create_carrier(other, {"name": "x", "app_sid": application.app_sid}),
        storage.trunks.update_carrier(other, own.carrier_sid, {"app_sid": application.app_sid}),
    ):
        with pytest.raises(Forbidden):
            await refused
    with pytest.raises(Conflict):
        await storage.trunk_numbers.register(other, NUMBER, own.carrier_sid)
    with pytest.raises(ValidationFailed) as caught:
        await storage.trunk_numbers.register(sid, "+918047491800", new_id(), app_sid=new_id())
    assert [error.field for error in caught.value.errors] == ["carrier_sid", "app_sid"]
    with pytest.raises(ValidationFailed):
        await storage.trunk_numbers.register(sid, "91804749180", carrier.carrier_sid)
    with pytest.raises(ValidationFailed):
        await storage.trunks.create_carrier(sid, {"name": "x", "app_sid": new_id()})
    with pytest.raises(ValidationFailed):
        await storage.trunks.add_platform_carrier(
            "P", [("udp", "192.0.2.1", 5060)], policy={"app_sid": application.app_sid}
        )
    platform = await storage.numbers.add(sid, "+918047491801")
    for refused_change in (
        storage.trunk_numbers.update(sid, platform.phone_number_id, {"friendly_name": "x"}),
        storage.trunk_numbers.remove(sid, platform.phone_number_id),
        storage.trunk_numbers.remove(sid, new_id()),
    ):
        with pytest.raises(NotFound):
            await refused_change
    assert (await storage.trunk_numbers.list(other, {})).total == 0
    assert (await storage.applications.list(other)).total == 0


async def test_what_is_in_use_is_not_deleted(
    storage: Storage, account: Account, carrier: Carrier, application: Application
) -> None:
    sid = account.account_sid
    number = await storage.trunk_numbers.register(
        sid, NUMBER, carrier.carrier_sid, app_sid=application.app_sid
    )
    await storage.trunks.update_carrier(sid, carrier.carrier_sid, {"app_sid": application.app_sid})
    with pytest.raises(Conflict) as caught:
        await storage.applications.delete(sid, application.app_sid)
    assert caught.value.details == {"numbers": 1, "carriers": 1}
    with pytest.raises(Conflict) as caught:
        await storage.trunks.delete_carrier(sid, carrier.carrier_sid)
    assert caught.value.details == {"numbers": 1}

    call = call_of(account, phone_number_id=number.phone_number_id, app_sid=application.app_sid)
    await storage.calls.insert(call)
    for refused in (
        storage.trunk_numbers.remove(sid, number.phone_number_id),
        storage.applications.delete(sid, application.app_sid),
    ):
        with pytest.raises(Conflict) as caught:
            await refused
        assert caught.value.details == {"calls": 1}
    call.ended_at = utc_now()
    storage.calls.finish(call)  # Not written yet: what is deleted next must wait for that.

    await storage.trunk_numbers.remove(sid, number.phone_number_id)
    busy = TrunkService(storage.database, storage.writer, storage.directory, lambda leg_sid: 1)
    with pytest.raises(Conflict) as caught:
        await busy.delete_carrier(sid, carrier.carrier_sid)
    assert caught.value.details == {"calls": 1}
    await storage.trunks.delete_carrier(sid, carrier.carrier_sid)
    await storage.applications.delete(sid, application.app_sid)


async def test_one_of_two_who_register_a_number_gets_it(
    storage: Storage, account: Account, carrier: Carrier
) -> None:
    register = storage.trunk_numbers.register
    outcomes = await asyncio.gather(
        *(register(account.account_sid, NUMBER, carrier.carrier_sid) for _ in range(4)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3
    assert (await storage.trunk_numbers.list(account.account_sid, {})).total == 1


async def test_the_own_binding_of_a_number_wins_over_its_application(
    storage: Storage, account: Account, carrier: Carrier, application: Application
) -> None:
    sid = account.account_sid
    number = await storage.trunk_numbers.register(
        sid, NUMBER, carrier.carrier_sid, app_sid=application.app_sid
    )
    # No carrier of the platform is needed for a number of one's own.
    wiring = await storage.numbers.bind(
        sid, number.phone_number_id, Binding("forward", forward_to="+919800000001")
    )
    assert (wiring.inbound_target, wiring.carrier_registered) == ("forward", True)
