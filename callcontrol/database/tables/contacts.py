"""Contacts of accounts, and the lists they are in."""

from typing import Final

import sqlalchemy as sa

from callcontrol.database.tables.columns import SERIAL, account, flag, metadata, text, whole

contacts: Final = sa.Table(
    "contacts",
    metadata,
    sa.Column("contact_id", SERIAL, primary_key=True, autoincrement=True),
    account(),
    # Creator of the row, so that a repeated commit recognizes its own row.
    text("made_by"),
    text("phone_number", nullable=False),
    text("first_name"),
    text("last_name"),
    text("email"),
    text("custom_fields"),
    text("notes"),
    flag("opted_out"),
    # Number, names and e-mail as `callcontrol.messaging.contacts.searched` folds them.
    text("search_text", nullable=False),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    sa.UniqueConstraint("account_sid", "phone_number", name="uq_contacts_account_sid_phone_number"),
    sqlite_autoincrement=True,
)
# Covers all columns of a search, so that it reads only the rows of the page.
sa.Index(
    "ix_contacts_account_sid_contact_id",
    contacts.c.account_sid,
    contacts.c.contact_id,
    contacts.c.search_text,
)

contact_lists: Final = sa.Table(
    "contact_lists",
    metadata,
    sa.Column("list_id", SERIAL, primary_key=True, autoincrement=True),
    account(),
    text("made_by", nullable=False),
    text("name", nullable=False),
    text("description"),
    whole("created_at", nullable=False),
    whole("updated_at", nullable=False),
    sa.UniqueConstraint("made_by"),
    sqlite_autoincrement=True,
)
sa.Index("ix_contact_lists_account_sid_list_id", contact_lists.c.account_sid, contact_lists.c.list_id)

contact_list_members: Final = sa.Table(
    "contact_list_members",
    metadata,
    sa.Column(
        "list_id", sa.BigInteger, sa.ForeignKey("contact_lists.list_id", ondelete="CASCADE"), nullable=False
    ),
    sa.Column(
        "contact_id", sa.BigInteger, sa.ForeignKey("contacts.contact_id", ondelete="CASCADE"), nullable=False
    ),
    sa.PrimaryKeyConstraint("list_id", "contact_id"),
)
sa.Index("ix_contact_list_members_contact_id", contact_list_members.c.contact_id)
