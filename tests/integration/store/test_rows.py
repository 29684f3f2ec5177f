"""Values that are written to their table and read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.agents.store.agents import AGENTS
from callcontrol.applications.store import APPLICATIONS
from callcontrol.database.encryption import OPTION
from callcontrol.database.rows import ValueTable
from callcontrol.database.tables.columns import metadata
from callcontrol.errors import Conflict, Forbidden, NotFound
from callcontrol.models import (
    Account,
    ApiKey,
    Application,
    Billing,
    Binding,
    Carrier,
    Gateway,
    StreamSecret,
    VoiceAgent,
)
from callcontrol.numbers.orders import Order, OrderEvent, OrderState
from callcontrol.numbers.store import orders
from callcontrol.numbers.store.numbers import NUMBERS
from callcontrol.secrets.aio import SecretBox
from callcontrol.trunks.store import CARRIERS, GATEWAYS
from tests.support.domain import NOW, make_account, make_number

LATER = NOW + timedelta(days=1, microseconds=1)
BINDING = Binding("media_stream", stream_url="wss://a.example", stream_auth={"token": "secret"})
ACCOUNT = make_account("A1", max_calls=7, requests_per_minute=60, webhook_secret="whsec_1")
AGENT = VoiceAgent("AG1", "A1", "Asha", NOW, NOW, stream=BINDING, script={"nodes": {}}, voice="f")
APPLICATION = Application("AP1", "A1", "Shop", BINDING, NOW, NOW, record_all_calls=True)
NUMBER = make_number(account_sid="A1", binding=BINDING, billing=Billing(NOW, 2, LATER), sms_enabled=True)
CARRIER = Carrier(
    *("C1", "A1", "Carrier", NOW, NOW),
    register_password="hidden",
    codecs=("PCMA",),
    prefixes=("+91", "+44"),
    registrars=(),
)
GATEWAY = Gateway("G1", "C1", "192.0.2.1", NOW, NOW, inbound=False, max_cps=3)
VALUES: list[tuple[ValueTable[Any], Any, Any]] = [
    (AGENTS, AGENT, replace(AGENT, stream=None, script=None, greeting="Hello", updated_at=LATER)),
    (APPLICATIONS, APPLICATION, replace(APPLICATION, binding=Binding("webhook"), updated_at=LATER)),
    (NUMBERS, NUMBER, replace(NUMBER, binding=None, billing=Billing(NOW, 3, LATER, LATER), region="KA")),
    (CARRIERS, CARRIER, replace(CARRIER, register_password=None, codecs=("OPUS", "PCMU"), srtp="sdes")),
    (GATEWAYS, GATEWAY, replace(GATEWAY, weight=5, inbound=True)),
]


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = sa.create_engine("sqlite://", execution_options={OPTION: SecretBox([bytes(32)])})
    with engine.connect() as opened:
        metadata.create_all(opened)
        yield opened


@pytest.mark.parametrize(("table", "value", "changed"), VALUES, ids=lambda item: type(item).__name__)
def test_a_value_is_read_as_it_was_written(
    connection: Connection, table: ValueTable[Any], value: Any, changed: Any
) -> None:
    (name,) = (column.name for column in table.table.primary_key.columns)
    key = getattr(value, name)
    table.insert(connection, value, 1)
    assert table.get(connection, key) == value
    table.update(connection, changed, 2)
    assert table.get(connection, key, lock=True) == changed
    assert list(table.changed_since(connection, 1)) == [(changed, True)]
    assert list(table.changed_since(connection, 2)) == []
    table.delete(connection, key, NOW, 3)
    assert table.get(connection, key) is None
    assert list(table.changed_since(connection, 2)) == [(changed, False)]


def test_secrets_are_stored_encrypted(connection: Connection) -> None:
    AGENTS.insert(connection, AGENT, 1)
    CARRIERS.insert(connection, CARRIER, 1)
    stored = connection.execute(sa.select(AGENTS.table.c.binding)).scalar_one()
    assert "wss://a.example" in stored and "secret" not in stored
    assert "hidden" not in connection.execute(sa.select(CARRIERS.table.c.register_password)).scalar_one()


def test_a_value_of_another_account_is_refused(connection: Connection) -> None:
    AGENTS.insert(connection, AGENT, 1)
    assert AGENTS.owned(connection, "A1", "AG1") == AGENT
    with pytest.raises(Forbidden):
        AGENTS.owned(connection, "A2", "AG1")
    with pytest.raises(NotFound):
        AGENTS.owned(connection, "A1", "AG2")
    AGENTS.check_room(connection, "A1", 2)
    with pytest.raises(Conflict):
        AGENTS.check_room(connection, "A1", 1)


def test_a_page_has_the_order_of_the_table_and_the_total(connection: Connection) -> None:
    for index in range(5):
        AGENTS.insert(connection, replace(AGENT, agent_id=f"AG{index}"), 1)
    found, total = AGENTS.of_account(connection, "A1", offset=1, limit=2)
    assert ([agent.agent_id for agent in found], total) == (["AG1", "AG2"], 5)
    assert AGENTS.of_account(connection, "A2") == ([], 0)
    assert AGENTS.by_keys(connection, ["AG3", "none", "AG0"]) == [
        replace(AGENT, agent_id="AG3"),
        replace(AGENT, agent_id="AG0"),
    ]


def test_the_stream_settings_of_an_account_are_written_alone(connection: Connection) -> None:
    accounts.insert(connection, ACCOUNT, 1)
    assert accounts.get(connection, "A1") == ACCOUNT
    secret = StreamSecret("new", NOW, "old", LATER)
    accounts.set_streams(
        connection, replace(ACCOUNT, name="not written", stream_protocol="x", stream_secret=secret), 2
    )
    written: Account = replace(ACCOUNT, stream_protocol="x", stream_secret=secret)
    assert accounts.every(connection) == [written]
    accounts.update(connection, replace(ACCOUNT, name="Other", webhook_secret="not written"), 3)
    assert accounts.changed_since(connection, 2) == [replace(written, name="Other")]


def test_keys_and_orders_are_read_as_they_were_written(connection: Connection) -> None:
    key = ApiKey("K1", "A1", "platform", ("calls.read", "calls.write"), "vp_ab", NOW, None, "CI", "sandbox")
    accounts.insert(connection, ACCOUNT, 1)
    accounts.insert_key(connection, key, "hash")
    found = accounts.key_by_hash(connection, "hash")
    assert found is not None
    assert (found.key, found.account_is_active, found.requests_per_minute) == (key, True, 60)
    assert accounts.keys_of(connection, "A1") == [key]
    order = Order("O1", "A1", "ref", "+911140000000", 3, 30_000, NOW, NOW)
    orders.insert(connection, order)
    assert orders.open_orders(connection) == [order]
    assert orders.advance(connection, "O1", OrderEvent.DELIVERED, LATER, phone_number_id="N1")
    assert orders.get(connection, "O1") == replace(
        order, state=OrderState.COMPLETED, updated_at=LATER, phone_number_id="N1"
    )
