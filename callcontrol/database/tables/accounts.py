"""Accounts, API keys, and sessions of the console: those of keys, and those of operators."""

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
    text("former_webhook_secret"),
    whole("former_webhook_until"),
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

console_sessions: Final = sa.Table(
    "console_sessions",
    metadata,
    # The token itself is in the cookie of one browser, or in a link that was printed, and nowhere else.
    sa.Column("token_hash", sa.Text, primary_key=True),
    # "link" for one that opens a session once, "session" for a session.
    text("kind", nullable=False),
    sa.Column(
        "key_id",
        sa.Text,
        sa.ForeignKey("api_keys.key_id", name="fk_console_sessions_key_id_api_keys"),
        nullable=False,
    ),
    whole("created_at", nullable=False),
    whole("expires_at", nullable=False),
)
sa.Index("ix_console_sessions_key_id", console_sessions.c.key_id, console_sessions.c.created_at)
sa.Index("ix_console_sessions_expires_at", console_sessions.c.expires_at)

operator_sessions: Final = sa.Table(
    "operator_sessions",
    metadata,
    # As of a session of a key.
    sa.Column("token_hash", sa.Text, primary_key=True),
    text("kind", nullable=False),
    # The name given to the command that made the link.
    text("operator", nullable=False),
    # The account that the operator has chosen; None for all.
    sa.Column(
        "account_sid",
        sa.Text,
        sa.ForeignKey("accounts.account_sid", name="fk_operator_sessions_account_sid_accounts"),
    ),
    whole("created_at", nullable=False),
    whole("expires_at", nullable=False),
)
sa.Index("ix_operator_sessions_expires_at", operator_sessions.c.expires_at)

operator_actions: Final = sa.Table(
    "operator_actions",
    metadata,
    sa.Column("position", SERIAL, primary_key=True),
    text("operator", nullable=False),
    account(),
    text("path", nullable=False),
    whole("created_at", nullable=False),
)
