"""Requests and answers of the wallet endpoints; amounts are rupees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Cursor, EndDate, Page, PerPage, StartDate, Timestamp, one_way_to_page
from callcontrol.errors import FieldError

__all__ = ["LedgerEntryObject", "LedgerList", "WalletObject"]


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
        str, Field(description="top_up, charge (of a call), number_purchase, number_renewal, and others.")
    ]
    amount: Annotated[float, Field(description="Negative for a charge.")]
    currency: str
    call_sid: Annotated[str | None, Field(description="The call that was charged.")]
    reference: Annotated[str | None, Field(description="Reference of a top-up or a payment.")]
    note: str | None
    created_at: Timestamp


class LedgerList(RequestModel):
    """Filters of the ledger."""

    kind: Annotated[str, Field(min_length=1, max_length=64, pattern="^[a-z_]+$")] | None = None
    start_date: StartDate | None = None
    end_date: EndDate | None = None
    page: Page = 1
    per_page: PerPage = 20
    cursor: Cursor | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Ask for one way to page."""
        return one_way_to_page(given)
