"""
The tables, for SQLite and PostgreSQL alike.

Every column is text, an integer, a boolean or bytes, so that a row means the same to both drivers and the
hot statements can be handed to the driver without any conversion: timestamps are microseconds since the
epoch in UTC (exact, sortable, no time zone to lose), money is paise, structured values are JSON text.

Rows that the in-memory directory mirrors carry ``revision``, the value of ``directory_revision`` when they
were last changed; they are deleted by setting ``deleted_at``, because call records refer to them and because
a deletion must reach the mirrors of other processes too.
"""

from typing import Final

import sqlalchemy as sa

metadata: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only where the type is spelled INTEGER.
_SERIAL: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _text(name: str, *, nullable: bool = True) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _whole(name: str, *, nullable: bool = True) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _account() -> sa.Column[str]:
    return sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), nullable=False)


accounts: Final = sa.Table(
    "accounts",
    metadata,
    sa.Column("account_sid", sa.Text, primary_key=True),
    _text("name", nullable=False),
    _flag("is_active"),
    _flag("kyc_complete"),
    _whole("max_cps", nullable=False),
    _whole("max_calls", nullable=False),
    _text("webhook_secret", nullable=False),
    _whole("created_at", nullable=False),
    _whole("updated_at", nullable=False),
    _whole("revision", nullable=False),
)
sa.Index("ix_accounts_revision", accounts.c.revision)

api_keys: Final = sa.Table(
    "api_keys",
    metadata,
    sa.Column("key_id", sa.Text, primary_key=True),
    _account(),
    _text("service", nullable=False),
    _text("scopes", nullable=False),
    _text("prefix", nullable=False),
    sa.Column("key_hash", sa.Text, nullable=False, unique=True),
    _whole("created_at", nullable=False),
    _whole("revoked_at"),
)
sa.Index("ix_api_keys_account_sid", api_keys.c.account_sid)

carriers: Final = sa.Table(
    "carriers",
    metadata,
    sa.Column("carrier_sid", sa.Text, primary_key=True),
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid")),
    _text("name", nullable=False),
    _text("description"),
    _flag("is_active"),
    _text("trunk_type", nullable=False),
    _flag("e164_leading_plus"),
    _text("tech_prefix"),
    _flag("requires_register"),
    _text("register_username"),
    _text("register_password"),
    _text("register_sip_realm"),
    _text("register_from_user"),
    _text("register_from_domain"),
    _text("register_transport"),
    _text("inbound_auth_username"),
    _text("inbound_auth_password"),
    _text("outbound_proxy"),
    _text("diversion"),
    _text("dtmf_type", nullable=False),
    _text("codecs", nullable=False),
    _text("prefixes", nullable=False),
    _text("srtp", nullable=False),
    _whole("max_concurrent_calls"),
    _whole("max_cps"),
    _text("app_sid"),
    _text("number_format", nullable=False),
    _text("identity_header", nullable=False),
    _flag("trusts_identity"),
    _flag("forwards_history"),
    _text("forwarded_headers", nullable=False),
    _flag("allows_refer"),
    _flag("follows_redirects"),
    _text("rel100", nullable=False),
    _whole("session_expires_s"),
    _text("registrars", nullable=False),
    _whole("register_expires_s", nullable=False),
    _text("certificate_name"),
    _whole("created_at", nullable=False),
    _whole("updated_at", nullable=False),
    _whole("deleted_at"),
    _whole("revision", nullable=False),
)
sa.Index("ix_carriers_account_sid_created_at", carriers.c.account_sid, carriers.c.created_at)
sa.Index("ix_carriers_revision", carriers.c.revision)

gateways: Final = sa.Table(
    "gateways",
    metadata,
    sa.Column("gateway_sid", sa.Text, primary_key=True),
    sa.Column("carrier_sid", sa.Text, sa.ForeignKey("carriers.carrier_sid"), nullable=False),
    _text("host", nullable=False),
    _whole("port", nullable=False),
    _whole("netmask", nullable=False),
    _text("protocol", nullable=False),
    _flag("inbound"),
    _flag("outbound"),
    _whole("priority", nullable=False),
    _whole("weight", nullable=False),
    _flag("send_options_ping"),
    _flag("is_active"),
    _whole("max_concurrent_calls"),
    _whole("max_cps"),
    _whole("created_at", nullable=False),
    _whole("updated_at", nullable=False),
    _whole("deleted_at"),
    _whole("revision", nullable=False),
)
sa.Index("ix_gateways_carrier_sid", gateways.c.carrier_sid)
sa.Index("ix_gateways_revision", gateways.c.revision)

phone_numbers: Final = sa.Table(
    "phone_numbers",
    metadata,
    sa.Column("phone_number_id", sa.Text, primary_key=True),
    _account(),
    _text("number", nullable=False),
    _text("friendly_name"),
    _text("status", nullable=False),
    _text("number_type", nullable=False),
    _flag("voice_enabled"),
    _flag("sms_enabled"),
    _whole("monthly_cost_paise", nullable=False),
    sa.Column("carrier_sid", sa.Text, sa.ForeignKey("carriers.carrier_sid")),
    _text("app_sid"),
    _flag("registered"),
    _text("binding"),
    _whole("created_at", nullable=False),
    _whole("updated_at", nullable=False),
    _whole("deleted_at"),
    _whole("revision", nullable=False),
)
# A number belongs to one account at a time; a released one may be sold again.
sa.Index(
    "uq_phone_numbers_number",
    phone_numbers.c.number,
    unique=True,
    sqlite_where=phone_numbers.c.deleted_at.is_(None),
    postgresql_where=phone_numbers.c.deleted_at.is_(None),
)
sa.Index("ix_phone_numbers_account_sid_created_at", phone_numbers.c.account_sid, phone_numbers.c.created_at)
sa.Index("ix_phone_numbers_revision", phone_numbers.c.revision)

directory_revision: Final = sa.Table(
    "directory_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _whole("revision", nullable=False),
)

calls: Final = sa.Table(
    "calls",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    _account(),
    _text("parent_call_sid"),
    _text("direction", nullable=False),
    _text("from_number", nullable=False),
    _text("to_number", nullable=False),
    _text("status", nullable=False),
    _text("answered_by"),
    _text("carrier_sid"),
    _text("gateway_sid"),
    _text("phone_number_id"),
    _text("app_sid"),
    _text("stream"),
    _whole("created_at", nullable=False),
    _whole("ringing_at"),
    _whole("answered_at"),
    _whole("ended_at"),
    _whole("duration_sec"),
    _whole("bill_duration_sec"),
    _text("hangup_cause"),
    _whole("hangup_cause_code"),
    _text("hangup_source"),
    _whole("sip_status"),
    _text("sip_reason"),
    _text("sip_call_id"),
    _text("sip"),
    _whole("price_paise"),
    _text("currency", nullable=False),
    _text("recording_url"),
    _text("recording_path"),
    _text("recording_status"),
    _text("quality"),
    _text("tag"),
    _text("status_webhook_url"),
    _text("status_webhook_events"),
    _whole("sequence", nullable=False),
    _text("node", nullable=False),
)
sa.Index("ix_calls_account_sid_created_at", calls.c.account_sid, calls.c.created_at)
# What a restart has to reconcile; a handful of rows however many calls there were.
sa.Index(
    "ix_calls_unfinished",
    calls.c.node,
    sqlite_where=calls.c.ended_at.is_(None),
    postgresql_where=calls.c.ended_at.is_(None),
)

wallets: Final = sa.Table(
    "wallets",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    _whole("balance_paise", nullable=False),
    _whole("reserved_paise", nullable=False),
    _whole("updated_at", nullable=False),
    # The last line of defence: no statement, however wrong, can spend a rupee twice.
    sa.CheckConstraint("reserved_paise >= 0", name="reserved"),
    sa.CheckConstraint("balance_paise >= reserved_paise", name="balance"),
    sqlite_with_rowid=False,
)

# Only what is held now: a settlement deletes the row, so however many calls there were the table fits a page
# or two, and a restart finds what it has to reconcile without searching.
reserves: Final = sa.Table(
    "reserves",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    _account(),
    _whole("amount_paise", nullable=False),
    _whole("created_at", nullable=False),
    sqlite_with_rowid=False,
)

ledger: Final = sa.Table(
    "ledger",
    metadata,
    sa.Column("entry_id", _SERIAL, primary_key=True),
    _account(),
    _text("kind", nullable=False),
    _whole("amount_paise", nullable=False),
    _text("call_sid"),
    _text("reference"),
    _text("note"),
    _whole("created_at", nullable=False),
)
sa.Index("ix_ledger_account_sid", ledger.c.account_sid, ledger.c.entry_id)
# A call is charged once, and a top-up that is repeated with the same reference is the same top-up.
sa.Index(
    "uq_ledger_call_sid",
    ledger.c.call_sid,
    unique=True,
    sqlite_where=ledger.c.call_sid.is_not(None),
    postgresql_where=ledger.c.call_sid.is_not(None),
)
sa.Index(
    "uq_ledger_reference",
    ledger.c.account_sid,
    ledger.c.reference,
    unique=True,
    sqlite_where=ledger.c.reference.is_not(None),
    postgresql_where=ledger.c.reference.is_not(None),
)

deliveries: Final = sa.Table(
    "webhook_deliveries",
    metadata,
    # Rows are numbered in the order they were published, which is the order of a call's events.
    sa.Column("position", _SERIAL, primary_key=True),
    sa.Column("delivery_id", sa.Text, nullable=False, unique=True),
    _text("event_id", nullable=False),
    _account(),
    _text("call_sid"),
    _text("event", nullable=False),
    _text("method", nullable=False),
    _text("url", nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    _text("status", nullable=False),
    _whole("attempts", nullable=False),
    _whole("next_attempt_at", nullable=False),
    _text("node", nullable=False),
    _whole("leased_until", nullable=False),
    _whole("response_code", nullable=False),
    _text("last_error"),
    _whole("created_at", nullable=False),
    _whole("delivered_at"),
)
sa.Index(
    "ix_webhook_deliveries_pending",
    deliveries.c.next_attempt_at,
    sqlite_where=deliveries.c.status == "pending",
    postgresql_where=deliveries.c.status == "pending",
)
# What a delivery has to wait for: the older ones of its call.
sa.Index("ix_webhook_deliveries_call_sid_position", deliveries.c.call_sid, deliveries.c.position)
sa.Index("ix_webhook_deliveries_account_sid_created_at", deliveries.c.account_sid, deliveries.c.created_at)

idempotency_keys: Final = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    _text("endpoint", nullable=False),
    _text("body_hash", nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("body", sa.LargeBinary),
    _whole("created_at", nullable=False),
)
sa.Index("ix_idempotency_keys_created_at", idempotency_keys.c.created_at)

writer_probe: Final = sa.Table(
    "writer_probe",
    metadata,
    sa.Column("node", sa.Text, primary_key=True),
    _whole("probed_at", nullable=False),
)
