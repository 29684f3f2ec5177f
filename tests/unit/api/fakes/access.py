"""Keys, wallets and repeated requests, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from callcontrol.errors import IdempotencyConflict, Unauthorized
from callcontrol.models import LedgerEntry, LedgerFilter, Page, Position, Principal, Wallet
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    KEY,
    MESSAGING_KEY,
    MOMENT,
    READER_KEY,
    SCOPES,
    TOOLS_KEY,
)


class FakeKeys:
    def __init__(self) -> None:
        self.principals = {
            KEY: Principal(ACCOUNT, "key-1", "platform", SCOPES),
            READER_KEY: Principal(ACCOUNT, "key-2", "platform", frozenset({"calls.read"})),
            MESSAGING_KEY: Principal(ACCOUNT, "key-3", "messaging", frozenset({"messages.send"})),
            TOOLS_KEY: Principal(ACCOUNT, "key-4", "tools", frozenset({"tools"})),
        }
        self.asked = 0

    async def authenticate(self, key: str) -> Principal:
        self.asked += 1
        principal = self.principals.get(key)
        if principal is None:
            raise Unauthorized("This key is unknown or revoked; create another.")
        return principal


class FakeWallets:
    """A wallet that was spent from in an hour that is over, and one entry of each sign."""

    def __init__(self) -> None:
        self.held = Wallet(ACCOUNT, 100_050, 300, MOMENT, spent_hour=1, spent_paise=60)
        self.limit_paise: int | None = None
        self.asked: list[tuple[LedgerFilter, Position | None]] = []

    async def wallet(self, account_sid: str) -> Wallet:
        return self.held

    async def spend_limit(self, account_sid: str) -> int | None:
        return self.limit_paise

    async def ledger(
        self,
        account_sid: str,
        page: int,
        per_page: int,
        query: LedgerFilter,
        *,
        after: Position | None = None,
    ) -> Page[LedgerEntry]:
        self.asked.append((query, after))
        entries = [
            LedgerEntry(2, account_sid, "charge", -60, MOMENT, call_sid=CALL_SID),
            LedgerEntry(1, account_sid, "top_up", 100_110, MOMENT, reference="pay-1", note="opening"),
        ]
        return Page(entries[:per_page], 2, page, per_page, Position(5, "2") if per_page == 1 else None)


@dataclass(frozen=True)
class FakeReply:
    status: int
    body: bytes


@dataclass
class FakeIdempotency:
    claimed: dict[tuple[str, str], str] = field(default_factory=dict)
    replies: dict[tuple[str, str], FakeReply] = field(default_factory=dict)

    async def begin(self, account_sid: str, key: str, endpoint: str, body_hash: str) -> FakeReply | None:
        name = (account_sid, key)
        wanted = f"{endpoint} {body_hash}"
        if self.claimed.setdefault(name, wanted) != wanted:
            raise IdempotencyConflict("This key was used for another request.")
        return self.replies.get(name)

    async def complete(self, account_sid: str, key: str, status: int, body: bytes) -> None:
        self.replies[account_sid, key] = FakeReply(status, body)

    async def release(self, account_sid: str, key: str) -> None:
        del self.claimed[account_sid, key]
