"""Policy and number formats of trunks; limits of gateways."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_CARRIER = (
    ("number_format", sa.Text, "e164"),
    ("identity_header", sa.Text, "pai"),
    ("trusts_identity", sa.Boolean, sa.true()),
    ("forwards_history", sa.Boolean, sa.false()),
    ("forwarded_headers", sa.Text, ""),
    ("allows_refer", sa.Boolean, sa.false()),
    ("follows_redirects", sa.Boolean, sa.false()),
    ("rel100", sa.Text, "supported"),
    ("registrars", sa.Text, ""),
    ("register_expires_s", sa.BigInteger, "3600"),
)
_CARRIER_OPTIONAL = (("session_expires_s", sa.BigInteger), ("certificate_name", sa.Text))
_GATEWAY_OPTIONAL = (("max_concurrent_calls", sa.BigInteger), ("max_cps", sa.BigInteger))


def upgrade() -> None:
    for name, kind, default in _CARRIER:
        op.add_column("carriers", sa.Column(name, kind, nullable=False, server_default=default))
    for name, kind in _CARRIER_OPTIONAL:
        op.add_column("carriers", sa.Column(name, kind))
    for name, kind in _GATEWAY_OPTIONAL:
        op.add_column("gateways", sa.Column(name, kind))
    op.execute("UPDATE carriers SET session_expires_s = 1800")


def downgrade() -> None:
    for name, _ in _GATEWAY_OPTIONAL:
        op.drop_column("gateways", name)
    for name, *_ in (*_CARRIER_OPTIONAL, *_CARRIER):
        op.drop_column("carriers", name)
