"""Data to end the legs of calls whose process was killed: kept by node until the peers were notified."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.calls import former_dialogs
from callcontrol.models import Account, CallStatus
from tests.support.domain import new_record
from tests.support.secrets import SECRETS

LEG = {"kind": "up", "via": ["udp", "192.0.2.1", 5060], "remote": 'sip:"\ud83d\ude00"\x00@x'}


async def test_what_ends_the_legs_is_in_the_row_of_a_call_that_is_up_and_of_no_other(
    storage: Storage, account: Account
) -> None:
    call = new_record(account.account_sid, dialogs={"0": {"kind": "called"}})
    await storage.calls.insert(call)
    [found] = await storage.calls.unfinished()
    assert found.dialogs == {"0": {"kind": "called"}}
    call.dialogs["0"] = {"kind": "up"}
    call.dialogs["1"] = {"kind": "calling", "call_id": "a peer's byte \udce9 that is not UTF-8"}
    storage.calls.update(call)
    await storage.calls.flush()
    [found] = await storage.calls.unfinished()
    assert found.dialogs == call.dialogs
    call.status, call.ended_at = CallStatus.COMPLETED, utc_now() + timedelta(seconds=1)
    storage.calls.finish(call)
    await storage.calls.flush()
    assert await storage.calls.unfinished() == []
    assert (await storage.calls.get(account.account_sid, call.call_sid)).dialogs == {}


async def test_each_node_tells_the_peers_of_its_own_calls_until_they_know(url: str) -> None:
    one = await Storage.open(url, StorageSettings(node="one"), deliver=False, secrets=SECRETS)
    two = await Storage.open(url, StorageSettings(node="two"), deliver=False, secrets=SECRETS)
    account, _ = await one.accounts.create("Acme", balance_paise=100_000, kyc=True)
    call, other = (
        new_record(account.account_sid, dialogs={"0": LEG}),
        new_record(account.account_sid, dialogs={"0": LEG}),
    )
    await one.calls.insert(call)
    await two.calls.insert(other)
    unfinished = await one.calls.unfinished()
    assert [found.call_sid for found in unfinished] == [call.call_sid]
    assert [found.call_sid for found in await one.calls.unfinished("two")] == [other.call_sid]
    for _ in range(2):  # A process that is killed in between does it again.
        kept = await one.calls.keep_dialogs(unfinished)
        assert list(kept) == [call.call_sid] and kept[call.call_sid]["0"]["kind"] == "up"
    assert await two.calls.keep_dialogs([]) == {}
    await one.close()
    again = await Storage.open(url, StorageSettings(node="one"), deliver=False, secrets=SECRETS)
    assert list(await again.calls.keep_dialogs([])) == [call.call_sid]
    await again.calls.forget_dialogs([call.call_sid])
    assert await again.calls.keep_dialogs([]) == {}
    await again.close()
    await two.close()


@pytest.mark.parametrize("damage", ["", "{", "[]", "7", '{"0": 1}'])
async def test_a_row_that_cannot_be_read_keeps_nothing_from_starting(
    storage: Storage, account: Account, damage: str
) -> None:
    call, other = (
        new_record(account.account_sid, dialogs={"0": LEG}),
        new_record(account.account_sid, dialogs={"0": LEG}),
    )
    await storage.calls.keep_dialogs([call, other])
    await storage.writer.commit(
        lambda connection: (
            connection.execute(
                sa.update(former_dialogs)
                .where(former_dialogs.c.call_sid == call.call_sid)
                .values(dialogs=damage)
            )
            and None
        )
    )
    kept = await storage.calls.keep_dialogs([])
    assert kept[call.call_sid] == {} and kept[other.call_sid]["0"]["kind"] == "up"
