"""Accounts, numbers, trunks, calls, money and the webhook outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _accounts()
    _directory_revision()
    _api_keys()
    _carriers()
    _gateways()
    _phone_numbers()
    _calls()
    _wallets()
    _reserves()
    _ledger()
    _webhook_deliveries()
    _idempotency_keys()
    _writer_probe()


def downgrade() -> None:
    for table in (
        "writer_probe",
        "idempotency_keys",
        "webhook_deliveries",
        "ledger",
        "reserves",
        "wallets",
        "calls",
        "phone_numbers",
        "gateways",
        "carriers",
        "api_keys",
        "directory_revision",
        "accounts",
    ):
        op.drop_table(table)


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("kyc_complete", sa.Boolean(), nullable=False),
        sa.Column("max_cps", sa.BigInteger(), nullable=False),
        sa.Column("max_calls", sa.BigInteger(), nullable=False),
        sa.Column("webhook_secret", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_sid", name=op.f("pk_accounts")),
    )
    op.create_index("ix_accounts_revision", "accounts", ["revision"], unique=False)


def _directory_revision() -> None:
    op.create_table(
        "directory_revision",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_directory_revision")),
    )
    op.execute("INSERT INTO directory_revision (id, revision) VALUES (1, 0)")


def _api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_api_keys_account_sid")
        ),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
    )
    op.create_index("ix_api_keys_account_sid", "api_keys", ["account_sid"], unique=False)


def _carriers() -> None:
    op.create_table(
        "carriers",
        sa.Column("carrier_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("trunk_type", sa.Text(), nullable=False),
        sa.Column("e164_leading_plus", sa.Boolean(), nullable=False),
        sa.Column("tech_prefix", sa.Text(), nullable=True),
        sa.Column("requires_register", sa.Boolean(), nullable=False),
        sa.Column("register_username", sa.Text(), nullable=True),
        sa.Column("register_password", sa.Text(), nullable=True),
        sa.Column("register_sip_realm", sa.Text(), nullable=True),
        sa.Column("register_from_user", sa.Text(), nullable=True),
        sa.Column("register_from_domain", sa.Text(), nullable=True),
        sa.Column("register_transport", sa.Text(), nullable=True),
        sa.Column("inbound_auth_username", sa.Text(), nullable=True),
        sa.Column("inbound_auth_password", sa.Text(), nullable=True),
        sa.Column("outbound_proxy", sa.Text(), nullable=True),
        sa.Column("diversion", sa.Text(), nullable=True),
        sa.Column("dtmf_type", sa.Text(), nullable=False),
        sa.Column("codecs", sa.Text(), nullable=False),
        sa.Column("prefixes", sa.Text(), nullable=False),
        sa.Column("srtp", sa.Text(), nullable=False),
        sa.Column("max_concurrent_calls", sa.BigInteger(), nullable=True),
        sa.Column("max_cps", sa.BigInteger(), nullable=True),
        sa.Column("app_sid", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_carriers_account_sid")
        ),
        sa.PrimaryKeyConstraint("carrier_sid", name=op.f("pk_carriers")),
    )
    op.create_index(
        "ix_carriers_account_sid_created_at", "carriers", ["account_sid", "created_at"], unique=False
    )
    op.create_index("ix_carriers_revision", "carriers", ["revision"], unique=False)


def _gateways() -> None:
    op.create_table(
        "gateways",
        sa.Column("gateway_sid", sa.Text(), nullable=False),
        sa.Column("carrier_sid", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("port", sa.BigInteger(), nullable=False),
        sa.Column("netmask", sa.BigInteger(), nullable=False),
        sa.Column("protocol", sa.Text(), nullable=False),
        sa.Column("inbound", sa.Boolean(), nullable=False),
        sa.Column("outbound", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("weight", sa.BigInteger(), nullable=False),
        sa.Column("send_options_ping", sa.Boolean(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["carrier_sid"], ["carriers.carrier_sid"], name=op.f("fk_gateways_carrier_sid")
        ),
        sa.PrimaryKeyConstraint("gateway_sid", name=op.f("pk_gateways")),
    )
    op.create_index("ix_gateways_carrier_sid", "gateways", ["carrier_sid"], unique=False)
    op.create_index("ix_gateways_revision", "gateways", ["revision"], unique=False)


def _phone_numbers() -> None:
    op.create_table(
        "phone_numbers",
        sa.Column("phone_number_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("friendly_name", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("number_type", sa.Text(), nullable=False),
        sa.Column("voice_enabled", sa.Boolean(), nullable=False),
        sa.Column("sms_enabled", sa.Boolean(), nullable=False),
        sa.Column("monthly_cost_paise", sa.BigInteger(), nullable=False),
        sa.Column("carrier_sid", sa.Text(), nullable=True),
        sa.Column("app_sid", sa.Text(), nullable=True),
        sa.Column("registered", sa.Boolean(), nullable=False),
        sa.Column("binding", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_phone_numbers_account_sid")
        ),
        sa.ForeignKeyConstraint(
            ["carrier_sid"], ["carriers.carrier_sid"], name=op.f("fk_phone_numbers_carrier_sid")
        ),
        sa.PrimaryKeyConstraint("phone_number_id", name=op.f("pk_phone_numbers")),
    )
    op.create_index(
        "ix_phone_numbers_account_sid_created_at",
        "phone_numbers",
        ["account_sid", "created_at"],
        unique=False,
    )
    op.create_index("ix_phone_numbers_revision", "phone_numbers", ["revision"], unique=False)
    op.create_index(
        "uq_phone_numbers_number",
        "phone_numbers",
        ["number"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )


def _calls() -> None:
    op.create_table(
        "calls",
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("parent_call_sid", sa.Text(), nullable=True),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("from_number", sa.Text(), nullable=False),
        sa.Column("to_number", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("carrier_sid", sa.Text(), nullable=True),
        sa.Column("gateway_sid", sa.Text(), nullable=True),
        sa.Column("phone_number_id", sa.Text(), nullable=True),
        sa.Column("app_sid", sa.Text(), nullable=True),
        sa.Column("stream", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ringing_at", sa.BigInteger(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("duration_sec", sa.BigInteger(), nullable=True),
        sa.Column("bill_duration_sec", sa.BigInteger(), nullable=True),
        sa.Column("hangup_cause", sa.Text(), nullable=True),
        sa.Column("hangup_cause_code", sa.BigInteger(), nullable=True),
        sa.Column("hangup_source", sa.Text(), nullable=True),
        sa.Column("sip_status", sa.BigInteger(), nullable=True),
        sa.Column("sip_reason", sa.Text(), nullable=True),
        sa.Column("sip_call_id", sa.Text(), nullable=True),
        sa.Column("price_paise", sa.BigInteger(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("recording_url", sa.Text(), nullable=True),
        sa.Column("recording_path", sa.Text(), nullable=True),
        sa.Column("quality", sa.Text(), nullable=True),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.Column("status_webhook_url", sa.Text(), nullable=True),
        sa.Column("status_webhook_events", sa.Text(), nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["account_sid"], ["accounts.account_sid"], name=op.f("fk_calls_account_sid")),
        sa.PrimaryKeyConstraint("call_sid", name=op.f("pk_calls")),
    )
    op.create_index("ix_calls_account_sid_created_at", "calls", ["account_sid", "created_at"], unique=False)
    op.create_index(
        "ix_calls_unfinished",
        "calls",
        ["node"],
        unique=False,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )


def _wallets() -> None:
    op.create_table(
        "wallets",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("balance_paise", sa.BigInteger(), nullable=False),
        sa.Column("reserved_paise", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("balance_paise >= reserved_paise", name=op.f("ck_wallets_balance")),
        sa.CheckConstraint("reserved_paise >= 0", name=op.f("ck_wallets_reserved")),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_wallets_account_sid")
        ),
        sa.PrimaryKeyConstraint("account_sid", name=op.f("pk_wallets")),
        sqlite_with_rowid=False,
    )


def _reserves() -> None:
    op.create_table(
        "reserves",
        sa.Column("call_sid", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("amount_paise", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_reserves_account_sid")
        ),
        sa.PrimaryKeyConstraint("call_sid", name=op.f("pk_reserves")),
        sqlite_with_rowid=False,
    )


def _ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("entry_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("amount_paise", sa.BigInteger(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=True),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_ledger_account_sid")
        ),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_ledger")),
    )
    op.create_index("ix_ledger_account_sid", "ledger", ["account_sid", "entry_id"], unique=False)
    op.create_index(
        "uq_ledger_call_sid",
        "ledger",
        ["call_sid"],
        unique=True,
        sqlite_where=sa.text("call_sid IS NOT NULL"),
        postgresql_where=sa.text("call_sid IS NOT NULL"),
    )
    op.create_index(
        "uq_ledger_reference",
        "ledger",
        ["account_sid", "reference"],
        unique=True,
        sqlite_where=sa.text("reference IS NOT NULL"),
        postgresql_where=sa.text("reference IS NOT NULL"),
    )


def _webhook_deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("call_sid", sa.Text(), nullable=True),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("leased_until", sa.BigInteger(), nullable=False),
        sa.Column("response_code", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_webhook_deliveries_account_sid")
        ),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint("delivery_id", name=op.f("uq_webhook_deliveries_delivery_id")),
    )
    op.create_index(
        "ix_webhook_deliveries_account_sid_created_at",
        "webhook_deliveries",
        ["account_sid", "created_at"],
        unique=False,
    )
    op.create_index(
        "ix_webhook_deliveries_call_sid_position",
        "webhook_deliveries",
        ["call_sid", "position"],
        unique=False,
    )
    op.create_index(
        "ix_webhook_deliveries_pending",
        "webhook_deliveries",
        ["next_attempt_at"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_idempotency_keys_account_sid")
        ),
        sa.PrimaryKeyConstraint("account_sid", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"], unique=False)


def _writer_probe() -> None:
    op.create_table(
        "writer_probe",
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("probed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("node", name=op.f("pk_writer_probe")),
    )
