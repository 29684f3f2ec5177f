"""Requests and answers of the wallet endpoints; amounts are rupees."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from api.schemas.base import ResponseModel
from api.schemas.common import (
    Cursor,
    CursorQuery,
    EndDate,
    Page,
    PeriodRequest,
    PerPage,
    StartDate,
    Timestamp,
)
from api.schemas.serializers import shown
from callcontrol.models import CURRENCY, LedgerEntry, LedgerKind, Wallet
from callcontrol.wallet.money import end_of_hour, hour_of, rupees

__all__ = ["LedgerEntryObject", "LedgerList", "WalletObject", "ledger_json", "wallet_json"]


class WalletObject(ResponseModel):
    """The prepaid money of an account."""

    account_sid: str
    balance: Annotated[float, Field(description="The sum of the ledger.")]
    reserved: Annotated[float, Field(description="Reserved for active calls.")]
    available: Annotated[float, Field(description="balance less reserved: available to new calls.")]
    currency: str
    spent_this_hour: Annotated[float, Field(description="Charged for calls in the current clock hour (UTC).")]
    spend_limit_per_hour: Annotated[float | None, Field(description="null: no limit.")]
    spend_resets_at: Annotated[Timestamp, Field(description="The end of this hour.")]
    updated_at: Timestamp


class LedgerEntryObject(ResponseModel):
    """One change of the balance; entries are never changed or removed."""

    id: int
    kind: Annotated[
        str,
        Field(description="charge (of a call), top_up, or number_purchase, _renewal or _refund."),
    ]
    amount: Annotated[float, Field(description="Negative for a charge.")]
    currency: str
    call_sid: Annotated[str | None, Field(description="The call that was charged.")]
    reference: Annotated[str | None, Field(description="Reference of a top-up or a payment.")]
    note: str | None
    created_at: Timestamp


class LedgerList(CursorQuery, PeriodRequest):
    """Filters of the ledger."""

    listed = ("ledger", "[0-9]{1,18}")

    kind: LedgerKind | None = None
    start_date: StartDate | None = None
    end_date: EndDate | None = None
    page: Page = 1
    per_page: PerPage = 20
    cursor: Cursor | None = None


def wallet_json(wallet: Wallet, limit_paise: int | None, now: datetime) -> dict[str, Any]:
    """Wallet of an account at `now`, in rupees."""
    hour = hour_of(now)
    return shown(
        WalletObject,
        wallet,
        balance=rupees(wallet.balance_paise),
        reserved=rupees(wallet.reserved_paise),
        available=rupees(wallet.available_paise),
        currency=CURRENCY,
        spent_this_hour=rupees(wallet.spent_paise if wallet.spent_hour >= hour else 0),
        spend_limit_per_hour=None if limit_paise is None else rupees(limit_paise),
        spend_resets_at=end_of_hour(hour),
    )


def ledger_json(entry: LedgerEntry) -> dict[str, Any]:
    """Public fields of a ledger entry, in rupees."""
    return shown(
        LedgerEntryObject, entry, id=entry.entry_id, amount=rupees(entry.amount_paise), currency=CURRENCY
    )
