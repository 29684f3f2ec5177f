"""Stream settings of accounts: protocol and secrets."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("stream_protocol", sa.Text()),
    ("stream_secret", sa.Text()),
    ("stream_signed_since", sa.BigInteger()),
    ("former_stream_secret", sa.Text()),
    ("former_signature_until", sa.BigInteger()),
)


def upgrade() -> None:
    for name, kind in _COLUMNS:
        op.add_column("accounts", sa.Column(name, kind))


def downgrade() -> None:
    for name, _ in reversed(_COLUMNS):
        op.drop_column("accounts", name)
