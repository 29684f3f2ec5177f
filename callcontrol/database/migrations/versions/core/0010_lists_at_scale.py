"""Indexes for lists of a million calls; spending per hour; node of an unfinished request."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_ORDER = ("created_at", "call_sid")
_LISTS = {
    "ix_calls_list": ("account_sid", *_ORDER),
    "ix_calls_list_direction": ("account_sid", "direction", *_ORDER),
    "ix_calls_list_from": ("account_sid", "from_number", *_ORDER),
    "ix_calls_list_to": ("account_sid", "to_number", *_ORDER),
}


def upgrade() -> None:
    op.add_column("calls", sa.Column("outcome", sa.Text()))
    op.execute(
        "UPDATE calls SET outcome = status"
        " WHERE status IN ('completed', 'busy', 'no-answer', 'failed', 'canceled')"
    )
    op.drop_index("ix_calls_account_sid_created_at", "calls")
    op.drop_index("ix_calls_unfinished", "calls")
    for name, columns in _LISTS.items():
        op.create_index(name, "calls", list(columns))
    _create_partial("ix_calls_list_outcome", ("account_sid", "outcome", *_ORDER), "outcome IS NOT NULL")
    _create_partial("ix_calls_unfinished", ("account_sid", *_ORDER), "ended_at IS NULL")
    op.drop_index("ix_ledger_account_sid", "ledger")
    op.create_index("ix_ledger_list", "ledger", ["account_sid", "created_at", "entry_id", "kind"])
    for name in ("spent_hour", "spent_paise"):
        op.add_column("wallets", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    for name in ("node", "effect"):
        op.add_column("idempotency_keys", sa.Column(name, sa.Text()))
    _create_partial("ix_idempotency_keys_running", ("node",), "status IS NULL", "idempotency_keys")


def downgrade() -> None:
    op.drop_index("ix_idempotency_keys_running", "idempotency_keys")
    for name in ("effect", "node"):
        op.drop_column("idempotency_keys", name)
    for name in ("spent_paise", "spent_hour"):
        op.drop_column("wallets", name)
    op.drop_index("ix_ledger_list", "ledger")
    op.create_index("ix_ledger_account_sid", "ledger", ["account_sid", "entry_id"])
    for name in ("ix_calls_unfinished", "ix_calls_list_outcome", *_LISTS):
        op.drop_index(name, "calls")
    _create_partial("ix_calls_unfinished", ("node",), "ended_at IS NULL")
    op.create_index("ix_calls_account_sid_created_at", "calls", ["account_sid", "created_at"])
    op.drop_column("calls", "outcome")


def _create_partial(name: str, columns: tuple[str, ...], condition: str, table: str = "calls") -> None:
    where = sa.text(condition)
    op.create_index(name, table, list(columns), sqlite_where=where, postgresql_where=where)
