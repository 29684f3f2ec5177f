"""Contacts and lists of them."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "contacts",
        sa.Column("contact_id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("made_by", sa.Text()),
        sa.Column("phone_number", sa.Text(), nullable=False),
        sa.Column("first_name", sa.Text()),
        sa.Column("last_name", sa.Text()),
        sa.Column("email", sa.Text()),
        sa.Column("custom_fields", sa.Text()),
        sa.Column("notes", sa.Text()),
        sa.Column("opted_out", sa.Boolean(), nullable=False),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_contacts_account_sid")
        ),
        sa.PrimaryKeyConstraint("contact_id", name=op.f("pk_contacts")),
        sa.UniqueConstraint("account_sid", "phone_number", name=op.f("uq_contacts_account_sid_phone_number")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_contacts_account_sid_contact_id"), "contacts", ["account_sid", "contact_id", "search_text"]
    )
    op.create_table(
        "contact_lists",
        sa.Column("list_id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("account_sid", sa.Text(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_sid"], ["accounts.account_sid"], name=op.f("fk_contact_lists_account_sid")
        ),
        sa.PrimaryKeyConstraint("list_id", name=op.f("pk_contact_lists")),
        sa.UniqueConstraint("made_by", name=op.f("uq_contact_lists_made_by")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_contact_lists_account_sid_list_id"), "contact_lists", ["account_sid", "list_id"])
    op.create_table(
        "contact_list_members",
        sa.Column("list_id", sa.BigInteger(), nullable=False),
        sa.Column("contact_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["contact_id"],
            ["contacts.contact_id"],
            name=op.f("fk_contact_list_members_contact_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["list_id"],
            ["contact_lists.list_id"],
            name=op.f("fk_contact_list_members_list_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("list_id", "contact_id", name=op.f("pk_contact_list_members")),
    )
    op.create_index(op.f("ix_contact_list_members_contact_id"), "contact_list_members", ["contact_id"])


def downgrade() -> None:
    op.drop_table("contact_list_members")
    op.drop_table("contact_lists")
    op.drop_table("contacts")
