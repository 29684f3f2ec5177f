"""Accounts, keys, trunks, numbers, calls, money and webhooks."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import SERIAL, account, flag, metadata, text, whole

accounts: Final = sa.Table(
    "accounts",
    metadata,
    sa.Column("account_sid", sa.Text, primary_key=True),
    text("name", nullable=False),
    flag("is_active"),
    flag("kyc_complete"),
    whole("max_cps", nullable=False),
    whole("max_calls", nullable=False),
    text("webhook_secret", nullable=False),
    whole("requests_per_minute"),
    whole("max_spend_paise_per_hour"),
    whole("recording_retention_days"),
    text("stream_protocol"),
    text("stream_secret"),
    whole("stream_signed_since"),
    text("former_stream_secret"),
    whole("former_signature_until"),
    whole("assistant_requests_per_minute"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    whole("revision", nullable=False),
)
sa.Index("ix_accounts_revision", accounts.c.revision)

api_keys: Final = sa.Table(
    "api_keys",
    metadata,
    sa.Column("key_id", sa.Text, primary_key=True),
    account(),
    text("service", nullable=False),
    text("scopes", nullable=False),
    text("prefix", nullable=False),
    sa.Column("key_hash", sa.Text, nullable=False, unique=True),
    whole("created_at", nullable=False),
    whole("revoked_at"),
    text("name"),
    # None means live.
    text("environment"),
)
sa.Index("ix_api_keys_account_sid", api_keys.c.account_sid)

carriers: Final = sa.Table(
    "carriers",
    metadata,
    sa.Column("carrier_sid", sa.Text, primary_key=True),
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid")),
    text("name", nullable=False),
    text("description"),
    flag("is_active"),
    text("trunk_type", nullable=False),
    flag("e164_leading_plus"),
    text("tech_prefix"),
    flag("requires_register"),
    text("register_username"),
    text("register_password"),
    text("register_sip_realm"),
    text("register_from_user"),
    text("register_from_domain"),
    text("register_transport"),
    text("inbound_auth_username"),
    text("inbound_auth_password"),
    text("outbound_proxy"),
    text("diversion"),
    text("dtmf_type", nullable=False),
    text("codecs", nullable=False),
    text("prefixes", nullable=False),
    text("srtp", nullable=False),
    whole("max_concurrent_calls"),
    whole("max_cps"),
    text("app_sid"),
    text("number_format", nullable=False),
    text("identity_header", nullable=False),
    flag("trusts_identity"),
    flag("forwards_history"),
    text("forwarded_headers", nullable=False),
    flag("allows_refer"),
    flag("follows_redirects"),
    text("rel100", nullable=False),
    whole("session_expires_s"),
    text("registrars", nullable=False),
    whole("register_expires_s", nullable=False),
    text("certificate_name"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    whole("deleted_at"),
    whole("revision", nullable=False),
)
sa.Index("ix_carriers_account_sid_created_at", carriers.c.account_sid, carriers.c.created_at)
sa.Index("ix_carriers_revision", carriers.c.revision)

gateways: Final = sa.Table(
    "gateways",
    metadata,
    sa.Column("gateway_sid", sa.Text, primary_key=True),
    sa.Column("carrier_sid", sa.Text, sa.ForeignKey("carriers.carrier_sid"), nullable=False),
    text("host", nullable=False),
    whole("port", nullable=False),
    whole("netmask", nullable=False),
    text("protocol", nullable=False),
    flag("inbound"),
    flag("outbound"),
    whole("priority", nullable=False),
    whole("weight", nullable=False),
    flag("send_options_ping"),
    flag("is_active"),
    whole("max_concurrent_calls"),
    whole("max_cps"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    whole("deleted_at"),
    whole("revision", nullable=False),
)
sa.Index("ix_gateways_carrier_sid", gateways.c.carrier_sid)
sa.Index("ix_gateways_revision", gateways.c.revision)

phone_numbers: Final = sa.Table(
    "phone_numbers",
    metadata,
    sa.Column("phone_number_id", sa.Text, primary_key=True),
    account(),
    text("number", nullable=False),
    text("friendly_name"),
    text("status", nullable=False),
    text("number_type", nullable=False),
    flag("voice_enabled"),
    flag("sms_enabled"),
    whole("monthly_cost_paise", nullable=False),
    sa.Column("carrier_sid", sa.Text, sa.ForeignKey("carriers.carrier_sid")),
    text("app_sid"),
    flag("registered"),
    text("binding"),
    text("region"),
    text("order_id"),
    whole("billing_anchor_at"),
    whole("paid_months"),
    whole("next_billing_at"),
    whole("payment_deadline_at"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    whole("deleted_at"),
    whole("revision", nullable=False),
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
# Numbers to renew, in order of their due time.
sa.Index(
    "ix_phone_numbers_due",
    phone_numbers.c.next_billing_at,
    phone_numbers.c.phone_number_id,
    sqlite_where=sa.and_(phone_numbers.c.next_billing_at.is_not(None), phone_numbers.c.deleted_at.is_(None)),
    postgresql_where=sa.and_(
        phone_numbers.c.next_billing_at.is_not(None), phone_numbers.c.deleted_at.is_(None)
    ),
)

directory_revision: Final = sa.Table(
    "directory_revision",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    whole("revision", nullable=False),
)

calls: Final = sa.Table(
    "calls",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    text("parent_call_sid"),
    text("direction", nullable=False),
    text("from_number", nullable=False),
    text("to_number", nullable=False),
    text("status", nullable=False),
    # The final status. A separate column, because an index over ``status`` would change at every step of a
    # call, and PostgreSQL would update all other indexes with it.
    text("outcome"),
    text("answered_by"),
    text("carrier_sid"),
    text("gateway_sid"),
    text("phone_number_id"),
    text("app_sid"),
    text("stream"),
    whole("created_at", nullable=False),
    whole("ringing_at"),
    whole("answered_at"),
    whole("ended_at"),
    whole("duration_sec"),
    whole("bill_duration_sec"),
    text("hangup_cause"),
    whole("hangup_cause_code"),
    text("hangup_source"),
    whole("sip_status"),
    text("sip_reason"),
    text("sip_call_id"),
    text("sip"),
    whole("price_paise"),
    text("currency", nullable=False),
    text("recording_url"),
    text("recording_path"),
    text("recording_status"),
    text("quality"),
    text("tag"),
    text("status_webhook_url"),
    text("status_webhook_events"),
    text("product"),
    text("details"),
    whole("sequence", nullable=False),
    text("node", nullable=False),
    # Dialog state to end its legs if its process is killed; None once the call has ended.
    text("dialogs"),
)

# Legs of closed calls whose peers have not been notified yet, by the node that notifies them.
former_dialogs: Final = sa.Table(
    "former_dialogs",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    text("node", nullable=False),
    text("dialogs", nullable=False),
    sqlite_with_rowid=False,
)

# Lists are ordered by (created_at, call_sid), newest first. Each index has the columns of the order, so that
# counting and skipping use the index alone; indexed columns never change once set.
_ORDER: Final = (calls.c.created_at, calls.c.call_sid)
sa.Index("ix_calls_list", calls.c.account_sid, *_ORDER)
sa.Index("ix_calls_list_direction", calls.c.account_sid, calls.c.direction, *_ORDER)
sa.Index("ix_calls_list_from", calls.c.account_sid, calls.c.from_number, *_ORDER)
sa.Index("ix_calls_list_to", calls.c.account_sid, calls.c.to_number, *_ORDER)
sa.Index(
    "ix_calls_list_outcome",
    calls.c.account_sid,
    calls.c.outcome,
    *_ORDER,
    sqlite_where=calls.c.outcome.is_not(None),
    postgresql_where=calls.c.outcome.is_not(None),
)
# Active calls, and calls that a restart must reconcile; few rows, however many calls there were.
sa.Index(
    "ix_calls_unfinished",
    calls.c.account_sid,
    *_ORDER,
    sqlite_where=calls.c.ended_at.is_(None),
    postgresql_where=calls.c.ended_at.is_(None),
)

wallets: Final = sa.Table(
    "wallets",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    whole("balance_paise", nullable=False),
    whole("reserved_paise", nullable=False),
    # Sum charged for calls in one clock hour (hours since the epoch), for the limit of the account.
    whole("spent_hour", nullable=False),
    whole("spent_paise", nullable=False),
    whole("updated_at", nullable=False),
    # Last line of defence: no wrong statement can spend a rupee twice.
    sa.CheckConstraint("reserved_paise >= 0", name="reserved"),
    sa.CheckConstraint("balance_paise >= reserved_paise", name="balance"),
    sqlite_with_rowid=False,
)

# Only open reserves: a settlement deletes the row, so the table stays within a page or two, and a restart
# finds the reserves to reconcile without searching.
reserves: Final = sa.Table(
    "reserves",
    metadata,
    sa.Column("call_sid", sa.Text, primary_key=True),
    account(),
    whole("amount_paise", nullable=False),
    whole("created_at", nullable=False),
    sqlite_with_rowid=False,
)

ledger: Final = sa.Table(
    "ledger",
    metadata,
    sa.Column("entry_id", SERIAL, primary_key=True),
    account(),
    text("kind", nullable=False),
    whole("amount_paise", nullable=False),
    text("call_sid"),
    text("reference"),
    text("note"),
    whole("created_at", nullable=False),
)
# The kind comes last, so that lists of one kind use the index alone.
sa.Index("ix_ledger_list", ledger.c.account_sid, ledger.c.created_at, ledger.c.entry_id, ledger.c.kind)
# A call is charged once, and a top-up repeated with the same reference is the same top-up.
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
    # Rows are numbered in order of publication, which is the order of a call's events.
    sa.Column("position", SERIAL, primary_key=True),
    sa.Column("delivery_id", sa.Text, nullable=False, unique=True),
    text("event_id", nullable=False),
    account(),
    # None for a delivery to the URL given for the call itself.
    text("subscription_id"),
    text("call_sid"),
    text("event", nullable=False),
    text("method", nullable=False),
    text("url", nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    text("status", nullable=False),
    whole("attempts", nullable=False),
    whole("next_attempt_at", nullable=False),
    text("node", nullable=False),
    whole("leased_until", nullable=False),
    whole("response_code", nullable=False),
    text("last_error"),
    whole("created_at", nullable=False),
    whole("delivered_at"),
)
sa.Index(
    "ix_webhook_deliveries_pending",
    deliveries.c.next_attempt_at,
    sqlite_where=deliveries.c.status == "pending",
    postgresql_where=deliveries.c.status == "pending",
)
# The older deliveries of its call, which a delivery has to wait for.
sa.Index("ix_webhook_deliveries_call_sid_position", deliveries.c.call_sid, deliveries.c.position)
sa.Index("ix_webhook_deliveries_account_sid_created_at", deliveries.c.account_sid, deliveries.c.created_at)
# The log of a subscription, newest first.
sa.Index(
    "ix_webhook_deliveries_subscription",
    deliveries.c.subscription_id,
    deliveries.c.position,
    sqlite_where=deliveries.c.subscription_id.is_not(None),
    postgresql_where=deliveries.c.subscription_id.is_not(None),
)
# Pending deliveries of subscriptions, for pausing, deletion and a change of URL.
_waits: Final = sa.and_(deliveries.c.subscription_id.is_not(None), deliveries.c.status == "pending")
sa.Index(
    "ix_webhook_deliveries_subscription_pending",
    deliveries.c.subscription_id,
    sqlite_where=_waits,
    postgresql_where=_waits,
)
# Failed deliveries for bulk replays: few rows, and none to a call's own URL.
sa.Index(
    "ix_webhook_deliveries_failed",
    deliveries.c.subscription_id,
    deliveries.c.created_at,
    sqlite_where=sa.text("status = 'failed' AND subscription_id IS NOT NULL"),
    postgresql_where=sa.text("status = 'failed' AND subscription_id IS NOT NULL"),
)

idempotency_keys: Final = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    text("endpoint", nullable=False),
    text("body_hash", nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("body", sa.LargeBinary),
    # Process and effect of the running request, in case the process is killed.
    text("node"),
    text("effect"),
    whole("created_at", nullable=False),
)
sa.Index("ix_idempotency_keys_created_at", idempotency_keys.c.created_at)
# Finds requests of a killed process at the next start without reading stored responses.
sa.Index(
    "ix_idempotency_keys_running",
    idempotency_keys.c.node,
    sqlite_where=idempotency_keys.c.status.is_(None),
    postgresql_where=idempotency_keys.c.status.is_(None),
)

writer_probe: Final = sa.Table(
    "writer_probe",
    metadata,
    sa.Column("node", sa.Text, primary_key=True),
    whole("probed_at", nullable=False),
)
