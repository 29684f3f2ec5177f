"""Accounts, keys, numbers, trunks and the directory over a real database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.accounts import keys as rules
from callcontrol.accounts.aio import keys as keys_module
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.accounts import accounts
from callcontrol.directory.aio import loader as directory_loader
from callcontrol.errors import (
    BindFailed,
    Conflict,
    DomainError,
    Forbidden,
    InboundBound,
    InboundConflict,
    NotConfigured,
    NotFound,
    NumberNotOwned,
    ServiceUnavailable,
    Unauthorized,
    ValidationFailed,
)
from callcontrol.models import Account, Binding, CallRecord, Gateway, PhoneNumber
from tests.support.customers import add_platform_carrier
from tests.support.secrets import SECRETS
from tests.support.waiting import look_again, until

STREAM = Binding(target="media_stream", stream_url="wss://agent.example/ws")
FORWARD = Binding(target="forward", forward_to="+919800000001")
NUMBER = "+918047491899"


@pytest.fixture
async def other(storage: Storage, url: str) -> AsyncIterator[Storage]:
    """Another process on the same database, as the command line is."""
    opened = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    yield opened
    await opened.close()


@pytest.fixture
async def number(storage: Storage, account: Account) -> PhoneNumber:
    await add_platform_carrier(storage)
    return await storage.numbers.add(account.account_sid, NUMBER, "Front desk")


async def test_an_account_comes_with_a_wallet_and_a_key(storage: Storage) -> None:
    assert not await storage.accounts.any()
    account, key = await storage.accounts.create("Acme", balance_paise=500, kyc=True, max_cps=3, max_calls=7)
    assert await storage.accounts.any()
    assert await storage.accounts.get(account.account_sid) == account
    assert await storage.accounts.list() == [account]
    assert storage.directory.account(account.account_sid) == account
    assert (account.max_cps, account.max_calls, account.kyc_complete) == (3, 7, True)
    assert account.webhook_secret.startswith("whsec_")
    assert account.webhook_secret not in repr(account)
    assert await storage.wallet.balance(account.account_sid) == 500
    principal = await storage.keys.authenticate(key)
    assert (principal.account_sid, principal.service) == (account.account_sid, "platform")
    assert "calls.write" in principal.scopes
    assert "webhooks.write" not in principal.scopes
    with pytest.raises(NotFound):
        await storage.accounts.get(new_id())
    with pytest.raises(ValidationFailed):
        await storage.accounts.create("")


async def test_keys_are_made_used_and_revoked(storage: Storage, other: Storage, account: Account) -> None:
    key = await other.keys.create(account.account_sid, "platform", ["calls.read"])
    principal = await storage.keys.authenticate(key)
    assert principal.scopes == {"calls.read"}
    listed = await storage.keys.list(account.account_sid)
    assert [item.scopes for item in listed][1:] == [("calls.read",)]
    assert all(key not in repr(item) for item in listed)

    await storage.keys.revoke(account.account_sid, principal.key_id)
    with pytest.raises(Unauthorized):
        await storage.keys.authenticate(key)
    with pytest.raises(NotFound):
        await storage.keys.revoke(new_id(), principal.key_id)
    with pytest.raises(NotFound):
        await storage.keys.create(new_id(), "platform")
    with pytest.raises(ValidationFailed):
        await storage.keys.create(account.account_sid, "kitchen")


async def test_a_rotated_key_lives_on_until_its_overlap_is_over(
    storage: Storage, other: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, key = await storage.keys.issue(account.account_sid, "platform", ["calls.read"])
    successor, new_key, old = await other.keys.rotate(account.account_sid, record.key_id, 60)
    assert (successor.service, successor.scopes) == (record.service, record.scopes)
    assert old.key_id == record.key_id and old.revoked_at is not None
    assert old.revoked_at - successor.created_at == timedelta(seconds=60)
    for valid in (key, new_key):
        assert (await storage.keys.authenticate(valid)).scopes == {"calls.read"}
    with pytest.raises(Conflict):
        await storage.keys.rotate(account.account_sid, record.key_id, 60)

    # The key ends by itself at its moment, however long it could have been remembered.
    monkeypatch.setattr(keys_module, "CACHE_S", 3600.0)
    _, last_key, _ = await storage.keys.rotate(account.account_sid, successor.key_id, 0)
    with pytest.raises(Unauthorized):
        await storage.keys.authenticate(new_key)
    assert (await storage.keys.authenticate(last_key)).scopes == {"calls.read"}
    # Both must be gone when a key is revoked that was to live on for a while.
    revoked = await storage.keys.revoke(account.account_sid, record.key_id)
    assert revoked.revoked_at is not None and revoked.revoked_at < old.revoked_at
    with pytest.raises(Unauthorized):
        await storage.keys.authenticate(key)
    assert await storage.keys.revoke(account.account_sid, record.key_id) == revoked


async def test_a_key_is_remembered_no_longer_than_it_lives(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "CACHE_S", 3600.0)
    record, key = await storage.keys.issue(account.account_sid, "platform")
    await storage.keys.rotate(account.account_sid, record.key_id, 20)
    _, known_for_s = await storage.keys._look_up(rules.hash_key(key))
    assert 0 < known_for_s <= 20


async def test_two_processes_that_rotate_one_key_make_one_successor(
    storage: Storage, other: Storage, account: Account
) -> None:
    record, _ = await storage.keys.issue(account.account_sid, "platform")
    outcomes = await asyncio.gather(
        *(process.keys.rotate(account.account_sid, record.key_id, 60) for process in (storage, other) * 5),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 9
    listed = await storage.keys.list(account.account_sid)
    assert sum(item.revoked_at is None for item in listed) == 2, "the account's first key, and the successor"


async def test_a_key_that_another_process_revokes_ends_when_it_is_forgotten(
    storage: Storage, other: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "CACHE_S", 0.2)
    record, key = await other.keys.issue(account.account_sid, "platform")
    await storage.keys.authenticate(key)
    await other.keys.revoke(account.account_sid, record.key_id)

    async def is_forgotten() -> bool:
        with contextlib.suppress(Unauthorized):
            return not await storage.keys.authenticate(key)
        return True

    await until(is_forgotten)


async def test_what_cannot_be_rotated_or_listed(storage: Storage, account: Account) -> None:
    record, _ = await storage.keys.issue(account.account_sid, "platform")
    for overlap_s in (-1, rules.MAX_OVERLAP_S + 1):
        with pytest.raises(ValidationFailed):
            await storage.keys.rotate(account.account_sid, record.key_id, overlap_s)
    with pytest.raises(NotFound):
        await storage.keys.rotate(new_id(), record.key_id, 0)
    with pytest.raises(NotFound):
        await storage.keys.rotate(account.account_sid, new_id(), 0)
    with pytest.raises(NotFound):
        await storage.keys.list(new_id())


async def test_an_account_s_limit_of_requests_comes_with_its_keys(storage: Storage, account: Account) -> None:
    def limit(connection: Connection) -> None:
        connection.execute(sa.update(accounts).values(requests_per_minute=1234))

    await storage.writer.commit(limit)
    _, key = await storage.keys.issue(account.account_sid, "platform")
    assert (await storage.keys.authenticate(key)).requests_per_minute == 1234


async def test_unknown_keys_are_refused_and_remembered_briefly(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    look_up = storage.keys._look_up

    async def counting(key_hash: str) -> Any:
        looked_up.append(key_hash)
        return await look_up(key_hash)

    monkeypatch.setattr(storage.keys, "_look_up", counting)
    monkeypatch.setattr(keys_module, "CACHE_S", 3600.0)
    monkeypatch.setattr(keys_module, "MAX_CACHED", 3)
    for _ in range(5):
        with pytest.raises(Unauthorized):
            await storage.keys.authenticate("vp_" + "a" * 43)
    assert len(looked_up) == 1
    for letter in "bcde":
        with pytest.raises(Unauthorized):
            await storage.keys.authenticate("vp_" + letter * 43)
    assert len(storage.keys._cache) == 3
    for malformed in ("", "x", "vp_short"):
        with pytest.raises(Unauthorized):
            await storage.keys.authenticate(malformed)
    assert len(looked_up) == 5


async def test_wiring_a_number(storage: Storage, account: Account, number: PhoneNumber) -> None:
    sid, id_ = account.account_sid, number.phone_number_id
    wiring = await storage.numbers.configuration(sid, id_)
    assert (wiring.carrier_registered, wiring.inbound_bound) == (False, False)
    with pytest.raises(NumberNotOwned):
        await storage.numbers.owned(sid, NUMBER)

    assert (await storage.numbers.register(sid, id_)).outbound_capable
    assert (await storage.numbers.register(sid, id_)).outbound_capable
    assert (await storage.numbers.owned(sid, NUMBER)).number == NUMBER

    assert (await storage.numbers.bind(sid, id_, STREAM)).inbound_target == "media_stream"
    found = storage.directory.number(NUMBER)
    assert found is not None and found.binding is not None
    assert (found.binding.stream_url, found.binding.sample_rate) == ("wss://agent.example/ws", 8000)
    await storage.numbers.bind(sid, id_, STREAM)
    with pytest.raises(InboundConflict):
        await storage.numbers.bind(sid, id_, FORWARD)
    assert (await storage.numbers.bind(sid, id_, FORWARD, force=True)).inbound_target == "forward"
    with pytest.raises(InboundBound):
        await storage.numbers.deregister(sid, id_)

    wiring = await storage.numbers.unbind(sid, id_)
    assert (wiring.carrier_registered, wiring.inbound_bound) == (True, False)
    assert not (await storage.numbers.deregister(sid, id_)).carrier_registered
    with pytest.raises(NumberNotOwned):
        await storage.numbers.owned(sid, NUMBER)

    assert (await storage.numbers.bind(sid, id_, FORWARD)).carrier_registered
    wiring = await storage.numbers.deregister(sid, id_, force=True)
    assert (wiring.carrier_registered, wiring.inbound_bound) == (False, False)


async def test_a_forward_must_be_able_to_reach_its_target(
    storage: Storage, other: Storage, account: Account, number: PhoneNumber, stranger: Account
) -> None:
    sid, id_ = account.account_sid, number.phone_number_id
    await storage.numbers.add(stranger.account_sid, "+918047491898")
    await storage.numbers.add(sid, "+918047491897")
    wrong: dict[str, list[dict[str, Any]]] = {
        "caller_id": [
            {"forward_to": "+919800000001", "caller_id": "+918047491898"},  # another account's
            {"forward_to": "+919800000001", "caller_id": "+918047491897"},  # not registered
        ],
        "forward_to": [
            {"forward_to": "+14155550100"},
            {"forward_to": "sip:desk@192.0.2.77"},
            {"forward_to": "sips:desk@192.0.2.1"},
        ],
        "status_webhook_url": [{"forward_to": "+919800000001", "status_webhook_url": "ftp://x.example"}],
    }
    for field, bodies in wrong.items():
        for body in bodies:
            with pytest.raises(BindFailed) as caught:
                await storage.numbers.bind(sid, id_, Binding(target="forward", **body))
            assert [error.field for error in caught.value.errors] == [field], body
    assert not (await storage.numbers.configuration(sid, id_)).inbound_bound
    own = Binding(target="forward", forward_to="+919800000001", caller_id=NUMBER)
    assert (await storage.numbers.bind(sid, id_, own)).carrier_registered
    # A gateway that another process added a moment ago is known.
    await other.trunks.add_platform_carrier("More", [("udp", "192.0.2.78", 5060)])
    elsewhere = Binding(target="forward", forward_to="sip:desk@192.0.2.78")
    assert (await storage.numbers.bind(sid, id_, elsewhere, force=True)).inbound_bound


async def test_wiring_refuses_what_it_cannot_do(
    storage: Storage, account: Account, stranger: Account
) -> None:
    number = await storage.numbers.add(account.account_sid, NUMBER)
    sid, id_ = account.account_sid, number.phone_number_id
    with pytest.raises(NotConfigured):
        await storage.numbers.register(sid, id_)
    with pytest.raises(BindFailed):
        await storage.numbers.bind(sid, id_, Binding(target="media_stream", stream_url="http://x"))
    with pytest.raises(BindFailed) as caught:
        await storage.numbers.bind(sid, id_, Binding(target="media_stream", stream_url="ws://127.0.0.1/x"))
    assert [error.field for error in caught.value.errors] == ["stream_url"]
    for account_sid, phone_number_id in ((stranger.account_sid, id_), (sid, new_id())):
        with pytest.raises(NotFound):
            await storage.numbers.configuration(account_sid, phone_number_id)
        with pytest.raises(NotFound):
            await storage.numbers.register(account_sid, phone_number_id)
        with pytest.raises(NotFound):
            await storage.numbers.unbind(account_sid, phone_number_id)
    with pytest.raises(NumberNotOwned):
        await storage.numbers.owned(stranger.account_sid, NUMBER)


async def test_a_number_has_one_owner(
    storage: Storage, other: Storage, account: Account, stranger: Account
) -> None:

    async def add(service: Storage, owner: Account) -> bool:
        try:
            await service.numbers.add(owner.account_sid, NUMBER)
        except DomainError:
            return False
        return True

    added = await asyncio.gather(
        *(add((storage, other)[n % 2], (account, stranger)[n % 2]) for n in range(8))
    )
    assert sum(added) == 1
    with pytest.raises(Conflict):
        await storage.numbers.add(account.account_sid, NUMBER)
    with pytest.raises(ValidationFailed):
        await storage.numbers.add(account.account_sid, "12345")
    with pytest.raises(NotFound):
        await storage.numbers.add(new_id(), "+918047491800")


async def test_concurrent_bindings_leave_one_winner(
    storage: Storage, other: Storage, account: Account, number: PhoneNumber
) -> None:
    async def bind(position: int) -> bool:
        binding = Binding(target="forward", forward_to=f"+91980000000{position}")
        try:
            await (storage, other)[position % 2].numbers.bind(
                account.account_sid, number.phone_number_id, binding
            )
        except InboundConflict:
            return False
        return True

    assert sum(await asyncio.gather(*(bind(position) for position in range(8)))) == 1


async def test_numbers_are_listed_with_filters(storage: Storage, account: Account) -> None:
    for last in range(5):
        await storage.numbers.add(
            account.account_sid,
            f"+91{'80' if last % 2 else '22'}4749180{last}",
            number_type="mobile" if last == 4 else "local",
        )
    sid = account.account_sid
    page = await storage.numbers.list(sid, 1, 2)
    assert (len(page.items), page.total, page.total_pages) == (2, 5, 3)
    assert [item.number[-1] for item in page.items] == ["4", "3"]
    assert (await storage.numbers.list(sid, 4, 2)).items == []
    assert (await storage.numbers.list(sid, number_type="mobile")).total == 1
    assert (await storage.numbers.list(sid, region="+9180")).total == 2
    assert (await storage.numbers.list(sid, region="%")).total == 0
    assert (await storage.numbers.list(sid, status="released")).total == 0


async def test_carriers_and_gateways_of_an_account(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    values = {"name": "Mine", "trunk_type": "auth", "register_username": "u", "register_password": "hush"}
    carrier = await storage.trunks.create_carrier(sid, {**values, "codecs": ["PCMA"]})
    assert await storage.trunks.get_carrier(sid, carrier.carrier_sid) == carrier
    assert (await storage.trunks.list_carriers(sid)).items == [carrier]
    gateways = [
        await storage.trunks.create_gateway(sid, carrier.carrier_sid, {"host": f"192.0.2.{n}", "priority": n})
        for n in (2, 1)
    ]
    page = await storage.trunks.list_gateways(sid, carrier.carrier_sid, 1, 1)
    assert (page.items, page.total) == ([gateways[1]], 2)
    tls = await storage.trunks.create_gateway(
        sid, carrier.carrier_sid, {"host": "192.0.2.3", "protocol": "tls"}
    )
    assert tls.port == 5061
    assert storage.directory.gateway_for_source("192.0.2.3", 40_000) == (carrier, tls)

    assert await storage.trunks.get_gateway(sid, carrier.carrier_sid, tls.gateway_sid) == tls
    with pytest.raises(NotFound):
        await storage.trunks.get_gateway(sid, carrier.carrier_sid, new_id())
    await storage.trunks.delete_gateway(sid, carrier.carrier_sid, tls.gateway_sid)
    assert storage.directory.gateway_for_source("192.0.2.3", 40_000) is None
    with pytest.raises(NotFound):
        await storage.trunks.delete_gateway(sid, carrier.carrier_sid, tls.gateway_sid)
    await storage.trunks.delete_carrier(sid, carrier.carrier_sid)
    assert storage.directory.gateways() == []
    with pytest.raises(NotFound):
        await storage.trunks.get_carrier(sid, carrier.carrier_sid)


async def test_one_of_two_who_add_a_gateway_at_once_gets_it(storage: Storage, account: Account) -> None:
    sid, trunks = account.account_sid, storage.trunks
    carrier_sid = (await trunks.create_carrier(sid, {"name": "Mine"})).carrier_sid
    outcomes = await asyncio.gather(
        *(trunks.create_gateway(sid, carrier_sid, {"host": "192.0.2.1"}) for _ in range(4)),
        return_exceptions=True,
    )
    (made,) = (outcome for outcome in outcomes if isinstance(outcome, Gateway))
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert [refusal.details for refusal in refusals] == [{"gateway_sid": made.gateway_sid}] * 3
    others = [
        await trunks.create_gateway(sid, carrier_sid, {"host": "192.0.2.1", "port": port})
        for port in (5070, 5080)
    ]
    outcomes = await asyncio.gather(
        *(trunks.update_gateway(sid, carrier_sid, other.gateway_sid, {"port": 5090}) for other in others),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Gateway"]
    elsewhere = await trunks.create_carrier(sid, {"name": "Other"})
    await trunks.create_gateway(sid, elsewhere.carrier_sid, {"host": "192.0.2.1"})
    with pytest.raises(ValidationFailed, match="twice"):
        await trunks.add_platform_carrier("P", [("udp", "192.0.2.1", 5060)] * 2)


async def test_another_owners_carrier_is_forbidden(
    storage: Storage, account: Account, stranger: Account
) -> None:
    theirs = await storage.trunks.create_carrier(stranger.account_sid, {"name": "Theirs"})
    platform, _ = await storage.trunks.add_platform_carrier("P", [("udp", "192.0.2.1", 5060)])
    sid = account.account_sid
    for carrier_sid in (theirs.carrier_sid, platform.carrier_sid):
        with pytest.raises(Forbidden):
            await storage.trunks.get_carrier(sid, carrier_sid)
        with pytest.raises(Forbidden):
            await storage.trunks.create_gateway(sid, carrier_sid, {"host": "not even valid!"})
        with pytest.raises(Forbidden):
            await storage.trunks.list_gateways(sid, carrier_sid)
        with pytest.raises(Forbidden):
            await storage.trunks.delete_gateway(sid, carrier_sid, new_id())
        with pytest.raises(Forbidden):
            await storage.trunks.delete_carrier(sid, carrier_sid)
    with pytest.raises(Forbidden):
        await storage.trunks.delete_carrier(None, theirs.carrier_sid)
    assert (await storage.trunks.list_carriers(sid)).total == 0


async def test_unknown_and_wrong_trunk_fields_are_named(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    with pytest.raises(ValidationFailed) as caught:
        await storage.trunks.create_carrier(sid, {"nmae": "x", "account_sid": "y", "registers": True})
    assert {error.field for error in caught.value.errors} == {"nmae", "account_sid", "registers", "name"}
    carrier = await storage.trunks.create_carrier(sid, {"name": "x"})
    with pytest.raises(ValidationFailed) as caught:
        await storage.trunks.create_gateway(
            sid, carrier.carrier_sid, {"host": "?", "port": -1, "netmask": 99}
        )
    assert {error.field for error in caught.value.errors} == {"host", "port", "netmask"}
    with pytest.raises(ValidationFailed, match="transport"):
        await storage.trunks.create_gateway(
            sid, carrier.carrier_sid, {"host": "a.example", "transport": "tcp"}
        )
    made = await storage.trunks.create_gateway(
        sid, carrier.carrier_sid, {"host": "gw.example", "protocol": "tls"}
    )
    assert made.port == 5061
    with pytest.raises(ValidationFailed):
        await storage.trunks.add_platform_carrier("x", [])


async def test_a_carrier_with_calls_up_is_not_deleted(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    carrier = await storage.trunks.create_carrier(sid, {"name": "x"})
    gateway = await storage.trunks.create_gateway(sid, carrier.carrier_sid, {"host": "192.0.2.1"})
    call = CallRecord(new_id(), sid, "outbound", NUMBER, "+919800000001", utc_now())
    call.carrier_sid, call.gateway_sid = carrier.carrier_sid, gateway.gateway_sid
    await storage.calls.insert(call)
    for attempt in (
        storage.trunks.delete_carrier(sid, carrier.carrier_sid),
        storage.trunks.delete_gateway(sid, carrier.carrier_sid, gateway.gateway_sid),
    ):
        with pytest.raises(Conflict) as caught:
            await attempt
        assert caught.value.details == {"calls": 1}
    call.ended_at = utc_now()
    storage.calls.finish(call)
    await storage.calls.flush()
    await storage.trunks.delete_carrier(sid, carrier.carrier_sid)


async def test_platform_gateways_are_preferred_in_the_order_given(storage: Storage, account: Account) -> None:
    hosts = [("udp", f"192.0.2.{last}", 5060) for last in (9, 3, 5)]
    carrier, gateways = await storage.trunks.add_platform_carrier(
        "P", hosts, inbound=False, username="u", password="p"
    )
    route = storage.directory.outbound_route(account.account_sid, NUMBER)
    assert [item.host for _, item in route] == ["192.0.2.9", "192.0.2.3", "192.0.2.5"]
    assert await storage.trunks.platform_gateways(carrier.carrier_sid) == gateways
    assert await storage.trunks.platform_carriers() == [carrier]
    assert (carrier.trunk_type, carrier.register_username, carrier.register_password) == ("auth", "u", "p")
    assert storage.directory.gateway_for_source("192.0.2.9", 5060) is None
    await storage.trunks.delete_carrier(None, carrier.carrier_sid)
    assert storage.directory.outbound_route(account.account_sid, NUMBER) == []


async def test_changes_of_another_process_arrive_by_themselves(
    storage: Storage, other: Storage, account: Account
) -> None:
    await other.numbers.add(account.account_sid, NUMBER)
    async with asyncio.timeout(40):
        while storage.directory.number(NUMBER) is None:  # noqa: ASYNC110 (it is what is tested)
            await look_again()


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories that look at the database when they are asked to, and at no other time."""
    monkeypatch.setattr(directory_loader, "POLL_S", 3600.0)


async def test_a_look_up_that_misses_asks_the_database(
    no_polling: None, storage: Storage, other: Storage, account: Account
) -> None:
    for last in range(3):
        e164 = f"+9180474918{last:02d}"
        await other.numbers.add(account.account_sid, e164)
        assert storage.directory.number(e164) is None
        await asyncio.gather(*(storage.refresh() for _ in range(50)))
        assert storage.directory.number(e164) is not None


async def test_misses_share_their_queries(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = 0
    look_up = storage.database.look_up

    async def counting(operation: Any) -> Any:
        nonlocal queries
        queries += 1
        return await look_up(operation)

    monkeypatch.setattr(storage.database, "look_up", counting)
    await asyncio.gather(*(storage.refresh() for _ in range(500)))
    assert queries <= 3


async def test_a_number_registered_elsewhere_a_moment_ago_may_be_used(
    storage: Storage, other: Storage, account: Account, number: PhoneNumber
) -> None:
    await other.numbers.register(account.account_sid, number.phone_number_id)
    assert (await storage.numbers.owned(account.account_sid, NUMBER)).registered


async def test_a_key_that_is_known_is_believed_for_a_while_without_the_database(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "CACHE_S", 0.0)
    _, known = await storage.accounts.create("Acme")
    _, unknown = await storage.accounts.create("Other")
    principal = await storage.keys.authenticate(known)

    async def away(_: object) -> None:
        raise ServiceUnavailable("The database is away.")

    monkeypatch.setattr(storage.database, "look_up", away)
    assert await storage.keys.authenticate(known) == principal
    with pytest.raises(ServiceUnavailable):
        await storage.keys.authenticate(unknown)
    monkeypatch.undo()
    assert await storage.keys.authenticate(unknown)
