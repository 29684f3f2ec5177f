"""Rows of the database that tests of the API begin with, and the moment all of them are from."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.accounts.keys import SCOPES, hash_key, shown_prefix
from callcontrol.bootstrap.reseal import reseal_all
from callcontrol.calls.records.store import calls
from callcontrol.database.revisions import next_revision
from callcontrol.models import ApiKey, CallRecord, CallStatus, Environment, Service
from callcontrol.numbers.store.numbers import NUMBERS
from callcontrol.trunks.store import CARRIERS, GATEWAYS
from callcontrol.wallet.store import ledger, reserves
from tests.support.domain import make_account, make_carrier, make_gateway, make_number, make_record

ACCOUNT = "11111111-1111-4111-8111-111111111111"
OTHER_ACCOUNT = "22222222-2222-4222-8222-222222222222"
KEY, READER_KEY, REVOKED_KEY = ("vp_" + letter * 43 for letter in "krz")
MESSAGING_KEY = "vm_" + "m" * 43
TOOLS_KEY = "vt_" + "t" * 43
NUMBER = "+918047000001"
NUMBER_ID = "33333333-3333-4333-8333-333333333333"
CALL_SID = "44444444-4444-4444-8444-444444444444"
ENDED_SID = "55555555-5555-4555-8555-555555555555"
OTHER_CALL_SID = "66666666-6666-4666-8666-666666666666"
CARRIER_SID = "77777777-7777-4777-8777-777777777777"
OTHER_CARRIER_SID = "88888888-8888-4888-8888-888888888888"
PLATFORM_CARRIER_SID = "88888888-9999-4999-8999-999999999999"
GATEWAY_SID = "99999999-9999-4999-8999-999999999999"
PLATFORM_GATEWAY_SID = "99999999-8888-4888-8888-888888888888"
GATEWAY_HOST = "192.0.2.1"
PLATFORM_HOST = "192.0.2.9"
NOWHERE = "00000000-0000-4000-8000-000000000000"
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
CHARGED_PAISE: Final = 60
RESERVED_PAISE: Final = 300


def fill(connection: Connection) -> None:
    """Insert two accounts, with their keys, numbers, carriers, calls and wallets."""
    revision = next_revision(connection)
    for account_sid in (ACCOUNT, OTHER_ACCOUNT):
        accounts.insert(connection, make_account(account_sid, kyc_complete=True, max_cps=1000), revision)
        ledger.create(connection, account_sid, MOMENT)
    _insert_keys(connection)
    _insert_trunks(connection, revision)
    for record in (
        call(status=CallStatus.IN_PROGRESS),
        call(ENDED_SID, status=CallStatus.COMPLETED, ended_at=MOMENT),
        call(OTHER_CALL_SID, OTHER_ACCOUNT),
    ):
        calls.insert(connection, [calls.row_of(record)])
    ledger.top_up(connection, ACCOUNT, 100_110, MOMENT, reference="pay-1", note="opening")
    reserves.reserve(connection, ACCOUNT, ENDED_SID, CHARGED_PAISE, MOMENT)
    reserves.settle(connection, ENDED_SID, CHARGED_PAISE, MOMENT)
    reserves.reserve(connection, ACCOUNT, CALL_SID, RESERVED_PAISE, MOMENT)
    # As a server leaves it: the next one need not look at every secret.
    reseal_all(connection)


def call(call_sid: str = CALL_SID, account_sid: str = ACCOUNT, **changes: Any) -> CallRecord:
    """A call from the account's number."""
    given = {"from_": NUMBER, "to": "+919800000001", "created_at": MOMENT, **changes}
    return make_record(**{"call_sid": call_sid, "account_sid": account_sid, **given})


def insert_key(
    connection: Connection,
    key: str,
    service: Service,
    scopes: Collection[str],
    *,
    key_id: str | None = None,
    environment: Environment = "live",
) -> None:
    """Insert a key of the account, by its text."""
    record = ApiKey(
        key_id or f"key-{key}",
        ACCOUNT,
        service,
        tuple(scopes),
        shown_prefix(key, service),
        MOMENT,
        environment=environment,
    )
    accounts.insert_key(connection, record, hash_key(key))


def _insert_keys(connection: Connection) -> None:
    insert_key(connection, KEY, "platform", SCOPES["platform"])
    insert_key(connection, READER_KEY, "platform", ["calls.read"])
    insert_key(connection, REVOKED_KEY, "platform", SCOPES["platform"], key_id="revoked")
    accounts.revoke_key(connection, ACCOUNT, "revoked", MOMENT)
    insert_key(connection, MESSAGING_KEY, "messaging", SCOPES["messaging"])
    insert_key(connection, TOOLS_KEY, "tools", SCOPES["tools"])


def _insert_trunks(connection: Connection, revision: int) -> None:
    dated: dict[str, Any] = {"created_at": MOMENT, "updated_at": MOMENT}
    for carrier_sid, owner in (
        (PLATFORM_CARRIER_SID, None),
        (CARRIER_SID, ACCOUNT),
        (OTHER_CARRIER_SID, OTHER_ACCOUNT),
    ):
        carrier = make_carrier(carrier_sid, owner, name="Own trunk", register_password="s3cret", **dated)
        CARRIERS.insert(connection, carrier, revision)
    for gateway_sid, carrier_sid, host, outbound in (
        (PLATFORM_GATEWAY_SID, PLATFORM_CARRIER_SID, PLATFORM_HOST, True),
        (GATEWAY_SID, CARRIER_SID, GATEWAY_HOST, False),
    ):
        gateway = make_gateway(gateway_sid, host, 5060, carrier_sid=carrier_sid, outbound=outbound, **dated)
        GATEWAYS.insert(connection, gateway, revision)
    number = make_number(
        NUMBER, phone_number_id=NUMBER_ID, account_sid=ACCOUNT, friendly_name="Front desk", **dated
    )
    NUMBERS.insert(connection, number, revision)
