"""
Interfaces between the call machinery and the services around it.

The services are implemented in the ``aio`` of each feature over one database; tests may replace them by
in-memory stand-ins. All methods may be called from the event loop only. For a request it refuses, each raises
``callcontrol.errors.DomainError`` and nothing else; ``ServiceUnavailable`` says that the database is failing
or its queue is full and that nothing was done.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy.engine import Connection

from callcontrol.agents.agent import VoiceAgent
from callcontrol.applications.application import Application
from callcontrol.errors import DomainError
from callcontrol.masking.routing import RouteFinding
from callcontrol.models import (
    Account,
    Binding,
    CallFilter,
    CallRecord,
    Carrier,
    Gateway,
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
    A row of a product that is written in the transaction that inserts its call.

    Its methods may run several times, each time in a new transaction after the previous one was rolled back.
    """

    def refusal(self, connection: Connection) -> DomainError | None:
        """Return why the call must not be placed, or None; called before anything is written."""

    def insert(self, connection: Connection, call_sid: str) -> None:
        """Write the row; the call is already inserted."""

    def take_back(self, connection: Connection) -> None:
        """Delete the row: the request that placed the call was abandoned."""


class MaskedRoutes(Protocol):
    """Routing of callers of masked numbers; see ``callcontrol.masking.aio.routing.MaskedRouter``."""

    async def prepare(self, record: CallRecord) -> None:
        """
        Notify the account's masking webhook of a call that is about to be recorded.

        Raises:
            ServiceUnavailable: The database does not answer.
        """

    async def route(self, record: CallRecord, caller: str | None, masked_number: str) -> RouteFinding:
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
        companion: Companion | None = None,
    ) -> None:
        """
        Commit a new call with its reserve, its events and its companion.

        Raises:
            InsufficientBalance: The wallet cannot cover the reserve; nothing was written.
            ServiceUnavailable: The database cannot take the call; nothing was written.
            DomainError: The companion refuses; nothing was written.
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
        Charge a call, release the remainder of its reserve, and return the amount charged.

        A charge above the reserve takes only what the wallet still has, so the balance never falls below
        zero. Settling again changes nothing and returns the first charge.
        """

    async def open_reserves(self) -> list[Reserve]:
        """Reserves that no settlement has closed."""


class Accounts(Protocol):
    """Customers; see ``callcontrol.accounts.aio.accounts.AccountService``."""

    async def get(self, account_sid: str) -> Account:
        """
        Return one account.

        Raises:
            NotFound: There is no such account.
        """


class Numbers(Protocol):
    """Numbers of accounts; see ``callcontrol.numbers.aio.service.NumberService``."""

    async def owned(self, account_sid: str, number: str) -> PhoneNumber:
        """
        Return the account's number, if it may be used as caller-ID.

        Raises:
            NumberNotOwned: It is not on the account, not active, or not registered on the carrier.
        """


class Routes(Protocol):
    """Trunks and numbers, in memory; see ``callcontrol.directory.directory.Directory``."""

    def account(self, account_sid: str) -> Account | None:
        """The account, with its limits."""

    def gateway_for_source(
        self, host: str, port: int, account_sid: str | None = None
    ) -> tuple[Carrier, Gateway] | None:
        """
        Find the inbound gateway that a request came from; the most specific match wins.

        With ``account_sid`` only the carriers of that account and the platform's count.
        """

    def gateways_at(self, host: str, port: int) -> Iterable[tuple[Carrier, Gateway]]:
        """All inbound gateways that match an address, the most specific match first."""

    @property
    def asks_passwords(self) -> bool:
        """True when some carrier authenticates with a password."""

    def carriers_with_user(self, username: str) -> Sequence[Carrier]:
        """Active carriers that authenticate with this user name."""

    def carriers_with_certificate(self, names: Iterable[str]) -> Sequence[Carrier]:
        """Active carriers that one of these names of a client certificate identifies."""

    def carriers(self) -> Sequence[Carrier]:
        """All carriers."""

    def gateways(self, carrier_sid: str | None = None) -> Sequence[Gateway]:
        """Gateways of a carrier, or all gateways."""

    def watch_trunks(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` whenever carriers or gateways have changed."""

    def knows_host(self, host: str) -> bool:
        """True when an address belongs to a gateway, inbound or outbound."""

    def number(self, e164: str) -> tuple[PhoneNumber, Binding | None] | None:
        """The number and the binding of its inbound calls."""

    def carrier(self, carrier_sid: str) -> Carrier | None:
        """A carrier by its identifier."""

    def application(self, app_sid: str) -> Application | None:
        """An application by its identifier, of any account."""

    def agent(self, agent_id: str) -> VoiceAgent | None:
        """A voice agent by its identifier, of any account."""

    def outbound_gateways(self) -> Sequence[tuple[Carrier, Gateway]]:
        """All gateways for outbound calls."""

    def gateway_for_host(
        self, account_sid: str, host: str, port: int | None = None
    ) -> tuple[Carrier, Gateway] | None:
        """The outbound gateway with a host (and port, when given), the account's own or the platform's."""

    def outbound_route(
        self,
        account_sid: str,
        from_number: str,
        carrier_sid: str | None = None,
        to_number: str | None = None,
    ) -> list[tuple[Carrier, Gateway]]:
        """The gateways to try, best first; empty when the call cannot leave."""


class Destinations(Protocol):
    """Rules for outgoing connections; see ``callcontrol.egress.aio.resolver``."""

    def check_url(self, url: str, *, schemes: Sequence[str]) -> None:
        """
        Check a URL without resolving its host.

        Raises:
            ValidationFailed: It is no URL of these schemes.
            DestinationForbidden: It names an address this server must not connect to.
        """

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        """
        Resolve a host once and return the socket addresses that may be connected to.

        Raises:
            DestinationForbidden: The host resolves, even in part, to a forbidden address.
            OSError: The host does not resolve.
        """


class SandboxCarrier(Protocol):
    """A scripted SIP peer in this process, over real sockets; implemented in ``fixtures``."""

    @property
    def address(self) -> tuple[str, int]:
        """The address on which it listens for SIP."""

    async def start(self) -> None:
        """Bind its sockets and answer calls from now on."""

    async def stop(self) -> None:
        """End its calls and close its sockets."""

    async def place_call(self, to_number: str, script: str) -> Any:
        """Call a number of the server and play a script's part; returns when the call has ended."""
