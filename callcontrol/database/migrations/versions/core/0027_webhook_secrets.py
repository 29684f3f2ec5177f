"""Previous webhook secrets of accounts, which sign until a rotation is over."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("former_webhook_secret", sa.Text()),
    ("former_webhook_until", sa.BigInteger()),
)


def upgrade() -> None:
    for name, kind in _COLUMNS:
        op.add_column("accounts", sa.Column(name, kind))


def downgrade() -> None:
    for name, _ in reversed(_COLUMNS):
        op.drop_column("accounts", name)
