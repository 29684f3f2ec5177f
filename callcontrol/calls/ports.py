"""
Interfaces between the call machinery and the services around it.

The services are implemented in the ``aio`` of each feature over one database; tests may replace them by
in-memory stand-ins. All methods may be called from the event loop only. For a request it refuses, each raises
``callcontrol.errors.DomainError`` and nothing else; ``ServiceUnavailable`` says that the database is failing
or its queue is full and that nothing was done.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from callcontrol.calls.events.instructions import RoutingResult
from callcontrol.errors import DomainError
from callcontrol.models import (
    CallFilter,
    CallRecord,
    Message,
    Page,
    PhoneNumber,
    Position,
    PublishedEvent,
    TranscriptSegment,
    WebhookEvent,
)


class CallAttachment(Protocol):
    """
    A row of a product that is written in the transaction that inserts its call.

    Its methods may run several times, each time in a new transaction after the previous one was rolled back.
    """

    def refusal(self, connection: Connection) -> DomainError | None:
        """Return why the call must not be placed, or None; called before anything is written."""

    def insert(self, connection: Connection, call_sid: str) -> None:
        """Write the row; the call is already inserted."""

    def take_back(self, connection: Connection) -> None:
        """Delete the row: the request that placed the call was abandoned."""


class EventOutbox(Protocol):
    """Queue of events for customers; see ``callcontrol.webhooks.aio.outbox.Outbox``."""

    def publish(self, connection: Connection, events: Sequence[PublishedEvent]) -> int:
        """Write the deliveries of events, which queues them for sending; returns their number."""

    def take_back(self, connection: Connection, events: Sequence[WebhookEvent]) -> None:
        """Delete deliveries whose transaction was abandoned."""

    def committed(self, events: Sequence[PublishedEvent]) -> None:
        """Deliver events that are now durable."""


class MaskedRoutes(Protocol):
    """Routing of callers of masked numbers; see ``callcontrol.masking.aio.routing.MaskedRouter``."""

    async def prepare(self, record: CallRecord) -> None:
        """
        Notify the account's masking webhook of a call that is about to be recorded.

        Raises:
            ServiceUnavailable: The database does not answer.
        """

    async def route(self, record: CallRecord, caller: str | None, masked_number: str) -> RoutingResult:
        """
        Find the party that a caller reaches.

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
        attachment: CallAttachment | None = None,
    ) -> None:
        """
        Commit a new call with its reserve, its events and its attachment.

        Raises:
            InsufficientBalance: The wallet cannot cover the reserve; nothing was written.
            ServiceUnavailable: The database cannot take the call; nothing was written.
            DomainError: The attachment refuses; nothing was written.
        """

    def update(self, record: CallRecord, *, events: Sequence[PublishedEvent] = ()) -> None:
        """
        Schedule the record's state to be written soon, with the events in the same transaction.

        Never waits and never fails while the database is unavailable: the newest state of each record is kept
        until it can be written.
        """

    def finish(
        self, record: CallRecord, *, charge_paise: int = 0, events: Sequence[PublishedEvent] = ()
    ) -> None:
        """
        Write the last state of a call, settle its reserve and queue its events, all in one transaction.

        Sets ``record.price_paise``. Like ``update`` it never waits and is never lost by a failing database.
        Finishing a call twice charges once.
        """

    async def flush(self) -> None:
        """Wait until all changes submitted before are durable."""

    async def get(self, account_sid: str, call_sid: str) -> CallRecord:
        """
        Return one call of the account, in its newest state.

        Raises:
            NotFound: There is no such call.
            Forbidden: The call belongs to another account.
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
        """Calls of the account, newest first: one page, or ``per_page`` calls behind ``after``."""

    async def unfinished(self, node: str | None = None) -> Sequence[CallRecord]:
        """Calls of this node, or of another, without an end: left behind by a previous process."""

    async def keep_dialogs(self, records: Sequence[CallRecord]) -> Mapping[str, Mapping[str, Any]]:
        """
        Save the dialog state needed to end the legs of unfinished calls, apart from their records.

        Returns the saved state of all calls of this node with legs to end, by call, then by leg; it is kept
        until ``forget_dialogs``.
        """

    async def forget_dialogs(self, call_sids: Sequence[str]) -> None:
        """Delete the saved dialogs of calls whose legs have ended."""

    async def cut_recordings(self, node: str | None = None) -> Sequence[CallRecord]:
        """Ended calls of this node, or of another, whose recording was left incomplete."""


class Messages(Protocol):
    """Messages that parties leave on calls; see ``callcontrol.recordings.aio.messages.MessageStore``."""

    def add(self, message: Message) -> None:
        """Save a message; never waits, and never fails while the database is unavailable."""


class Transcripts(Protocol):
    """Transcripts of calls with voice agents; see ``callcontrol.agents.aio.transcripts.TranscriptStore``."""

    def add(self, record: CallRecord, segment: TranscriptSegment) -> None:
        """Queue a segment for writing; never waits, and never fails while the database is unavailable."""


class Wallets(Protocol):
    """Prepaid wallets; see ``callcontrol.wallet.aio.WalletService``."""

    async def extend(self, call_sid: str, total_paise: int) -> None:
        """
        Raise the reserve of a call to a total; a total already held changes nothing.

        Raises:
            InsufficientBalance: The difference is not available; the reserve stays as it was.
            NotFound: The call has no open reserve.
        """


class Numbers(Protocol):
    """Numbers of accounts; see ``callcontrol.numbers.aio.service.NumberService``."""

    async def owned(self, account_sid: str, number: str) -> PhoneNumber:
        """
        Return the account's number, if it may be used as caller-ID.

        Raises:
            NumberNotOwned: It is not on the account, not active, or not registered on the carrier.
        """
