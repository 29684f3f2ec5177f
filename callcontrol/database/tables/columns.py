"""Metadata shared by all tables, and their column types."""

from typing import Any, Final

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

# SQLite autoincrements only columns whose type is spelled INTEGER.
SERIAL: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def text(name: str, *, nullable: bool = True) -> sa.Column[str]:
    """Text column."""
    return sa.Column(name, sa.Text, nullable=nullable)


def whole(name: str, *, nullable: bool = True) -> sa.Column[int]:
    """Integer column: an amount, a count, or a time in microseconds."""
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def flag(name: str) -> sa.Column[bool]:
    """Boolean column."""
    return sa.Column(name, sa.Boolean, nullable=False)


def account() -> sa.Column[str]:
    """Column with the account that owns the row."""
    return sa.Column("account_sid", sa.Text, sa.ForeignKey("accounts.account_sid"), nullable=False)


def mirrored() -> tuple[sa.Column[int], ...]:
    """Columns of a table that the directory mirrors: times, and the revision of the last change."""
    return (
        whole("created_at", nullable=False),
        whole("updated_at", nullable=False),
        whole("deleted_at"),
        whole("revision", nullable=False),
    )


def partial_index(
    name: str,
    *columns: sa.Column[Any],
    where: sa.ColumnElement[bool] | sa.TextClause | None,
    unique: bool = False,
) -> sa.Index:
    """
    Index of the rows that meet a condition; of all rows for None.

    Migrations make it so on both databases. Its condition on PostgreSQL is not named here, as that would load
    the dialect, which a server on SQLite does not need.
    """
    return sa.Index(name, *columns, unique=unique, sqlite_where=where)
