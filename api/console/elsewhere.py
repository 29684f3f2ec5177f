"""Calls of other servers on the database, for the pages that are open here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from callcontrol.bootstrap.aio.services import Services
from callcontrol.models import CallFilter, CallRecord

__all__ = ["Elsewhere"]

_MOST: Final = 200
"""The newest calls, which are read at each look."""
_MOST_SOUGHT: Final = 50
"""Calls of one look that are read by themselves: they have ended, or are behind the newest."""


class Elsewhere:
    """
    The calls of an account, or with None of all accounts, that are up on other servers.

    They are read once for all its pages, which then are told of those that have changed.
    """

    def __init__(self, services: Services, account_sid: str | None) -> None:
        self._services = services
        self._account_sid = account_sid
        self._seen: dict[str, tuple[Any, ...]] = {}

    def __contains__(self, call_sid: str) -> bool:
        return call_sid in self._seen

    async def look(self) -> Sequence[CallRecord]:
        """Return the calls that have changed since the last look, those that have ended among them."""
        own, seen = self._services.storage.membership.name, self._seen
        up = {record.call_sid: record for record in await self._active() if record.node != own}
        now = {call_sid: _state(record) for call_sid, record in up.items()}
        changed = [record for call_sid, record in up.items() if seen.get(call_sid) != now[call_sid]]
        gone = [call_sid for call_sid in seen if call_sid not in now]
        # Those that were not looked for have their turn next, and before those that were.
        kept = now | {call_sid: seen[call_sid] for call_sid in gone[_MOST_SOUGHT:]}
        for call_sid in gone[:_MOST_SOUGHT]:
            record = await self._services.storage.calls.find(call_sid)
            if record is None:
                continue
            if _state(record) != seen[call_sid]:
                changed.append(record)
            if not record.status.ended and record.node != own:
                # It is up, behind so many newer ones, and its end has to be told, too.
                kept[call_sid] = _state(record)
        self._seen = kept
        return changed

    async def _active(self) -> Sequence[CallRecord]:
        query = CallFilter(active=True)
        if self._account_sid is None:
            return (await self._services.storage.calls.list_of_all_accounts(query, _MOST)).items
        return (await self._services.calls.list_calls(self._account_sid, query, 1, _MOST)).items


def _state(record: CallRecord) -> tuple[Any, ...]:
    """Return what lists show of a call and may change."""
    stream = None if record.stream is None else record.stream.state
    return record.status, record.answered_at, stream, record.product, record.node
