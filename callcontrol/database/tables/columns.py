"""The metadata that all tables share, and the few kinds of columns they have."""

from typing import Final

import sqlalchemy as sa

metadata: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only where the type is spelled INTEGER.
SERIAL: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def text(name: str, *, nullable: bool = True) -> sa.Column[str]:
    """Text."""
    return sa.Column(name, sa.Text, nullable=nullable)


def whole(name: str, *, nullable: bool = True) -> sa.Column[int]:
    """A whole number: an amount, a count, or a moment in microseconds."""
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def flag(name: str) -> sa.Column[bool]:
    """True or false."""
    return sa.Column(name, sa.Boolean, nullable=False)


def account() -> sa.Column[str]:
    """Whose the row is."""
    return sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), nullable=False)
