"""
What the call machinery asks of the services around it, and of what lies outside the edge.

The services are implemented in the ``aio`` of each feature over one database; tests may put in-memory
stand-ins in their place. All methods may be called from the event loop only. Every one of them raises
``callcontrol.errors.DomainError`` and nothing else for a request it refuses; ``ServiceUnavailable`` says
that the database is failing or its queue full and that nothing was done.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from callcontrol.errors import DomainError
from callcontrol.masking.routing import RouteFinding
from callcontrol.models import (
    Account,
    CallFilter,
    CallRecord,
    Message,
    Page,
    PhoneNumber,
    Position,
    PublishedEvent,
    Reserve,
    TranscriptSegment,
    Wallet,
    WebhookEvent,
)


class Companion(Protocol):
    """
    What belongs to a new call and is written in the transaction that inserts it; products have such things.

    Its methods may run several times, each time in a new transaction after the former was rolled back.
    """

    def refusal(self, connection: Connection) -> DomainError | None:
        """Why the call must not be placed; asked before anything is written."""

    def insert(self, connection: Connection, call_sid: str) -> None:
        """Write it; the call is inserted already."""

    def take_back(self, connection: Connection) -> None:
        """Delete it: nobody waits for the call any more."""


class MaskedRoutes(Protocol):
    """Whom callers of masked numbers reach; see ``callcontrol.masking.aio.routing.MaskedRouter``."""

    async def prepare(self, record: CallRecord) -> None:
        """
        Have the account's masking webhook told of a call that is about to be recorded.

        Raises:
            ServiceUnavailable: The database does not answer.
        """

    async def route(self, record: CallRecord, caller: str | None, masked_number: str) -> RouteFinding:
        """
        Whom a caller reaches.

        Raises:
            ServiceUnavailable: The database does not answer.
        """


class CallRecords(Protocol):
    """The records of calls; see ``callcontrol.calls.records.aio.CallStore``."""

    async def insert(
        self,
        record: CallRecord,
        *,
        reserve_paise: int = 0,
        events: Sequence[WebhookEvent] = (),
        companion: Companion | None = None,
    ) -> None:
        """
        Make a new call durable with its reserve and what belongs to it; then all of them survive the process.

        Raises:
            InsufficientBalance: The wallet cannot cover the reserve; nothing was written.
            ServiceUnavailable: The database cannot take the call; nothing was written.
            DomainError: As the companion refuses; nothing was written.
        """

    def update(self, record: CallRecord, *, events: Sequence[PublishedEvent] = ()) -> None:
        """
        Have the record's state written soon, with the events in the same transaction.

        Never waits and never fails while the database is away: the newest state of each record is kept
        until it can be written.
        """

    def finish(
        self, record: CallRecord, *, charge_paise: int = 0, events: Sequence[PublishedEvent] = ()
    ) -> None:
        """
        Write the last state of a call, settle its reserve and queue its events, all in one transaction.

        Sets ``record.price_paise``. Like ``update`` it never waits and is never lost to a failing database.
        Finishing a call twice charges once.
        """

    async def flush(self) -> None:
        """Wait until everything handed over before this is durable."""

    async def get(self, account_sid: str, call_sid: str) -> CallRecord:
        """
        One call of the account, in its newest state.

        Raises:
            NotFound: There is no such call.
            Forbidden: It is another account's.
        """

    async def list(
        self,
        account_sid: str,
        query: CallFilter,
        page: int,
        per_page: int,
        *,
        after: Position | None = None,
    ) -> Page[CallRecord]:
        """Calls of the account, newest first: a page, or as many as a page holds ``after`` a place."""

    async def unfinished(self, node: str | None = None) -> Sequence[CallRecord]:
        """Calls of this node, or of another, without an end: what a former process left behind."""

    async def keep_dialogs(self, records: Sequence[CallRecord]) -> Mapping[str, Mapping[str, Any]]:
        """
        Keep what ends the legs of unfinished calls, apart from their records, until it is forgotten.

        Returns that of all calls of this node whose legs are still to be ended: by call, then by leg.
        """

    async def forget_dialogs(self, call_sids: Sequence[str]) -> None:
        """Their legs have ended."""

    async def cut_recordings(self, node: str | None = None) -> Sequence[CallRecord]:
        """Calls of this node, or of another, that are over and whose recording was left incomplete."""


class Messages(Protocol):
    """Messages that parties leave on calls; see ``callcontrol.recordings.aio.messages.MessageStore``."""

    def add(self, message: Message) -> None:
        """Keep a message; never waits, and never fails while the database is away."""


class Transcripts(Protocol):
    """What is said on calls with voice agents; see ``callcontrol.agents.aio.transcripts.TranscriptStore``."""

    def add(self, record: CallRecord, segment: TranscriptSegment) -> None:
        """Have a segment written soon; never waits, and never fails while the database is away."""


class Wallets(Protocol):
    """Prepaid money; see ``callcontrol.wallet.aio.WalletService``."""

    async def balance(self, account_sid: str) -> int:
        """The balance in paise: the sum of the ledger, reserves not subtracted."""

    async def wallet(self, account_sid: str) -> Wallet:
        """Balance, reserved and available money of the account."""

    async def reserve(self, account_sid: str, call_sid: str, amount_paise: int) -> None:
        """
        Hold money for a call before it is dialled; repeating it for the same call changes nothing.

        Raises:
            InsufficientBalance: Less than the amount is available.
        """

    async def extend(self, call_sid: str, total_paise: int) -> None:
        """
        Raise the reserve of a call to a total; a total already held changes nothing.

        Raises:
            InsufficientBalance: The difference is not available; the reserve stays as it was.
            NotFound: The call has no open reserve.
        """

    async def settle(self, call_sid: str, charge_paise: int) -> int:
        """
        Charge a call, release the rest of its reserve, and return what was charged.

        A charge above the reserve takes what the wallet still has and no more, so that it never falls
        below zero. Settling again changes nothing and returns the first charge.
        """

    async def open_reserves(self) -> list[Reserve]:
        """Reserves that no settlement has closed."""


class Accounts(Protocol):
    """Customers; see ``callcontrol.accounts.aio.accounts.AccountService``."""

    async def get(self, account_sid: str) -> Account:
        """
        One account.

        Raises:
            NotFound: There is no such account.
        """


class Numbers(Protocol):
    """Numbers of accounts; see ``callcontrol.numbers.aio.service.NumberService``."""

    async def owned(self, account_sid: str, number: str) -> PhoneNumber:
        """
        The account's number, if it may be used as caller-ID.

        Raises:
            NumberNotOwned: It is not on the account, not active, or not registered on the carrier.
        """
