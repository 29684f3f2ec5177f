"""Recordings, in memory; the file of the call that has one may be put there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from callcontrol.errors import Conflict, Forbidden, NotFound
from callcontrol.models import Message, Principal
from tests.support.api_facts import ACCOUNT, CALL_SID, ENDED_SID, OTHER_CALL_SID

VALID = "f" * 64


class FakeRecordings:
    def __init__(self) -> None:
        self.path = Path("missing.wav")
        self.deleted: list[str] = []

    def _check(self, account_sid: str, call_sid: str) -> None:
        if call_sid == OTHER_CALL_SID:
            raise Forbidden("The call belongs to another account.")
        if account_sid != ACCOUNT or call_sid not in (CALL_SID, ENDED_SID):
            raise NotFound("There is no such call.")

    async def link(self, account_sid: str, call_sid: str) -> str:
        self._check(account_sid, call_sid)
        return f"/recordings/{call_sid}.wav?expires=1788000000&signature={VALID}"

    async def link_of_product(self, account_sid: str, call_sid: str, product: str) -> str:
        if product != "masking" or call_sid != ENDED_SID:
            raise NotFound("There is no such call.")
        return await self.link(account_sid, call_sid)

    async def admit(self, call_sid: str, query: Mapping[str, str]) -> Principal:
        if query.get("signature") != VALID or "expires" not in query:
            raise Forbidden("This link to a recording is not valid, or no longer; ask for a new one.")
        return Principal(ACCOUNT, f"link {call_sid}", "platform", frozenset({"calls.read"}))

    async def file(self, account_sid: str, call_sid: str) -> Path:
        self._check(account_sid, call_sid)
        if not self.path.exists():
            raise NotFound("The recording is no longer kept.")
        return self.path

    async def delete(self, account_sid: str, call_sid: str) -> None:
        self._check(account_sid, call_sid)
        if call_sid == CALL_SID:
            raise Conflict("The call is up.")
        self.deleted.append(call_sid)

    async def messages(self, account_sid: str, call_sid: str) -> list[tuple[Message, str]]:
        self._check(account_sid, call_sid)
        return []

    async def delete_message(self, account_sid: str, call_sid: str, message_sid: str) -> None:
        self._check(account_sid, call_sid)
        raise NotFound("The call has no such message.")
