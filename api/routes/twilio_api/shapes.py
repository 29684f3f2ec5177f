"""Parts that resources of Twilio's interface have in common."""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime
from typing import Any

from api.schemas.twilio_api.base import API_VERSION

__all__ = ["ACCOUNT", "moment", "numbered"]

ACCOUNT = f"/{API_VERSION}/Accounts/{{sid}}"


def moment(at: datetime | None) -> str | None:
    """Time as in mail (RFC 5322); None of none."""
    return format_datetime(at) if at is not None else None


def numbered(page: dict[str, Any], items: str) -> dict[str, Any]:
    """Add the numbers of its first and last item to a page; `items` is the name of their list."""
    start = page["page"] * page["page_size"]
    return {**page, "start": start, "end": start + max(0, len(page[items]) - 1)}
