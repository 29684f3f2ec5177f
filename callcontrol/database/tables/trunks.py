"""Carriers, their gateways with the legs on them, and numbers."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import account, flag, metadata, mirrored, partial_index, text, whole

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
    *mirrored(),
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
    *mirrored(),
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
    *mirrored(),
)
# A number belongs to one account at a time; a released one may be sold again.
partial_index(
    "uq_phone_numbers_number",
    phone_numbers.c.number,
    where=phone_numbers.c.deleted_at.is_(None),
    unique=True,
)
sa.Index("ix_phone_numbers_account_sid_created_at", phone_numbers.c.account_sid, phone_numbers.c.created_at)
sa.Index("ix_phone_numbers_revision", phone_numbers.c.revision)
# Numbers to renew, in order of their due time.
partial_index(
    "ix_phone_numbers_due",
    phone_numbers.c.next_billing_at,
    phone_numbers.c.phone_number_id,
    where=sa.and_(phone_numbers.c.next_billing_at.is_not(None), phone_numbers.c.deleted_at.is_(None)),
)

# Legs at carriers and gateways with a limit, of all servers on a PostgreSQL, by call and number.
trunk_legs: Final = sa.Table(
    "trunk_legs",
    metadata,
    sa.Column("leg", sa.Text, primary_key=True),
    sa.Column("sid", sa.Text, primary_key=True),
    text("node", nullable=False),
    sqlite_with_rowid=False,
)
sa.Index("ix_trunk_legs_sid", trunk_legs.c.sid)

# Moments up to which the rates of new legs of carriers and gateways are used, by the clock of PostgreSQL.
trunk_paces: Final = sa.Table(
    "trunk_paces",
    metadata,
    sa.Column("sid", sa.Text, primary_key=True),
    whole("paced_until", nullable=False),
    sqlite_with_rowid=False,
)
