"""What the routes need of the domain, as interfaces; `api.server` puts the real services in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from callcontrol.agents import VoiceAgent
from callcontrol.applications import Application
from callcontrol.call_logs import CallLog, CallLogFilter
from callcontrol.gateway_health import GatewayTable
from callcontrol.inventory import Listing, ListingFilter
from callcontrol.live_requests import LiveUpdate
from callcontrol.masking import MaskedCallRequest
from callcontrol.masking_logs import MaskedCallFilter, MaskingStats
from callcontrol.masking_sessions import MaskingSession, SessionFilter, SessionRequest
from callcontrol.masking_settings import MaskingSettings, SettingsChange
from callcontrol.models import (
    Binding,
    CallFilter,
    CallRecord,
    Carrier,
    Gateway,
    LedgerEntry,
    LedgerFilter,
    Page,
    PhoneNumber,
    Position,
    Principal,
    Wallet,
    Wiring,
)
from callcontrol.number_orders import Purchase, PurchaseRequest
from callcontrol.otp import OtpCall, OtpFilter, OtpStats, Period, SendOtp, Verification
from callcontrol.registration import RegistrationView
from callcontrol.subscriptions import LoggedDelivery, Replayed, Subscription, Trial

__all__ = [
    "Agents",
    "Applications",
    "CallLogs",
    "Calls",
    "Idempotency",
    "Keys",
    "Lifecycle",
    "Market",
    "Masking",
    "MaskingNumbers",
    "MaskingSessions",
    "MaskingLogs",
    "MaskingSettingsOfAccounts",
    "Numbers",
    "Otp",
    "Phase",
    "Recordings",
    "Services",
    "StoredReply",
    "Subscriptions",
    "TrunkNumbers",
    "Trunks",
    "Wallets",
]


class Keys(Protocol):
    """API keys; see ``callcontrol.aio.keys.KeyService``."""

    async def authenticate(self, key: str) -> Principal:
        """
        Whose key this is.

        Raises:
            Unauthorized: It is malformed, unknown or revoked.
        """


class Calls(Protocol):
    """Calls; see ``callcontrol.aio.service.CallControl``."""

    @property
    def active_calls(self) -> int:
        """How many calls are up."""

    async def create_call(self, account_sid: str, request: Any) -> CallRecord:
        """Check, reserve, record and dial."""

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """One call of the account."""

    async def list_calls(
        self, account_sid: str, query: CallFilter, page: int, per_page: int, after: Position | None = None
    ) -> Page[CallRecord]:
        """Calls of the account, newest first; with ``after`` those behind that place."""

    async def update_call(self, account_sid: str, call_sid: str, update: LiveUpdate) -> CallRecord:
        """Change a call that is up: all that is asked for, or nothing."""

    async def hangup_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """Have a call ended; the record may still say that it is up."""

    @property
    def gateways(self) -> GatewayTable:
        """What is known of the health of gateways."""

    def trace(self, call_sid: str) -> Sequence[Any]:
        """The SIP messages of the call's legs that are still remembered."""

    def registrations(self, carrier_sid: str | None = None) -> Sequence[RegistrationView]:
        """How the registrations with a carrier stand, the worst first."""


class Numbers(Protocol):
    """Numbers and their wiring; see ``callcontrol.aio.numbers.NumberService``."""

    async def list(
        self,
        account_sid: str,
        page: int,
        per_page: int,
        *,
        status: str | None = None,
        number_type: str | None = None,
        region: str | None = None,
    ) -> Page[PhoneNumber]:
        """Numbers of the account."""

    async def wiring(self, account_sid: str, phone_number_id: str) -> Wiring:
        """The wiring state."""

    async def register(self, account_sid: str, phone_number_id: str) -> Wiring:
        """Allow the number as caller-ID."""

    async def deregister(self, account_sid: str, phone_number_id: str, *, force: bool) -> Wiring:
        """Disallow the number as caller-ID."""

    async def bind(self, account_sid: str, phone_number_id: str, binding: Binding, *, force: bool) -> Wiring:
        """Send the number's inbound calls somewhere."""

    async def unbind(self, account_sid: str, phone_number_id: str) -> Wiring:
        """Send the number's inbound calls nowhere."""

    async def show(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """One number."""

    async def rename(self, account_sid: str, phone_number_id: str, friendly_name: str | None) -> PhoneNumber:
        """Change the label of a number."""

    async def release(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """Take a number from the account."""


class Market(Protocol):
    """Numbers for sale; see ``callcontrol.aio.market.NumberMarket``."""

    async def search(self, wanted: ListingFilter, page: int, per_page: int) -> Page[Listing]:
        """Numbers that are for sale."""

    async def purchase(self, account_sid: str, request: PurchaseRequest) -> Purchase:
        """Buy a number with its first months."""


class Trunks(Protocol):
    """Carriers and gateways of accounts; see ``callcontrol.aio.trunks.TrunkService``."""

    async def create_carrier(self, account_sid: str, values: Mapping[str, Any]) -> Carrier:
        """Add a carrier; `values` are attributes of `Carrier`."""

    async def list_carriers(self, account_sid: str, page: int, per_page: int) -> Page[Carrier]:
        """Carriers of the account."""

    async def get_carrier(self, account_sid: str, carrier_sid: str) -> Carrier:
        """One carrier."""

    async def update_carrier(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Carrier:
        """Change a carrier; `values` are the attributes that are to change."""

    async def delete_carrier(self, account_sid: str, carrier_sid: str) -> None:
        """Remove a carrier and its gateways."""

    async def create_gateway(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Gateway:
        """Add a gateway; `values` are attributes of `Gateway`."""

    async def list_gateways(
        self, account_sid: str, carrier_sid: str, page: int, per_page: int
    ) -> Page[Gateway]:
        """Gateways of a carrier."""

    async def get_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> Gateway:
        """One gateway of a carrier."""

    async def update_gateway(
        self, account_sid: str, carrier_sid: str, gateway_sid: str, values: Mapping[str, Any]
    ) -> Gateway:
        """Change a gateway; `values` are the attributes that are to change."""

    async def delete_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> None:
        """Remove a gateway."""


class Otp(Protocol):
    """One-time passwords that are spoken; see ``callcontrol.aio.otp.VoiceOtp``."""

    async def send(self, account_sid: str, request: SendOtp) -> OtpCall:
        """Call somebody and speak a password."""

    async def get(self, account_sid: str, otp_id: str) -> OtpCall:
        """One password of the account, with its call."""

    async def list(self, account_sid: str, query: OtpFilter, page: int, per_page: int) -> Page[OtpCall]:
        """Passwords of the account, newest first."""

    async def stats(self, account_sid: str, period: Period) -> OtpStats:
        """How the passwords of some days went."""

    async def verify(self, account_sid: str, otp_id: str, guess: str) -> Verification:
        """Say whether a guess is the password."""


class Recordings(Protocol):
    """Recordings of calls; see ``callcontrol.aio.recordings.RecordingService``."""

    async def link(self, account_sid: str, call_sid: str) -> str:
        """A link that opens a recording for an hour, without a key."""

    async def link_of_product(self, account_sid: str, call_sid: str, product: str) -> str:
        """The same for a call that a product placed, and for no other."""

    async def admit(self, call_sid: str, query: Mapping[str, str]) -> Principal:
        """Who a link speaks for."""

    async def file(self, account_sid: str, call_sid: str) -> Path:
        """The file with a recording."""

    async def delete(self, account_sid: str, call_sid: str) -> None:
        """Delete a recording for ever."""


class MaskingSessions(Protocol):
    """Masking sessions; see ``callcontrol.aio.masking_sessions.MaskingSessionService``."""

    async def create(self, account_sid: str, request: SessionRequest) -> MaskingSession:
        """Begin a session."""

    async def get(self, account_sid: str, session_id: str) -> MaskingSession:
        """One session of the account."""

    async def list(
        self, account_sid: str, query: SessionFilter, page: int, per_page: int
    ) -> Page[MaskingSession]:
        """Sessions of the account, newest first."""

    async def update(
        self,
        account_sid: str,
        session_id: str,
        change: Callable[[MaskingSession, datetime], MaskingSession],
    ) -> MaskingSession:
        """Change a session that is active."""

    async def close(self, account_sid: str, session_id: str) -> MaskingSession:
        """End a session; calls that are up go on."""


class MaskingNumbers(Protocol):
    """Numbers enrolled for masking; see ``callcontrol.aio.masking_numbers.MaskingNumberService``."""

    async def enrol(
        self, account_sid: str, number: str, *, language: str | None = None, force: bool = False
    ) -> PhoneNumber:
        """Enrol a number of the account."""

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[PhoneNumber]:
        """The enrolled numbers of the account, oldest first."""

    async def withdraw(self, account_sid: str, phone_number_id: str, *, force: bool = False) -> None:
        """Take a number out."""


class Masking(Protocol):
    """Masked calls; see ``callcontrol.aio.masking.MaskingService``."""

    async def start_call(self, account_sid: str, request: MaskedCallRequest) -> CallRecord:
        """Call one party, and the other when the first has answered."""

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """One masked call of the account, in its newest state."""

    async def end_call(self, account_sid: str, call_sid: str) -> CallRecord:
        """Have a masked call ended; the record may still say that it is up."""


class MaskingLogs(Protocol):
    """Masked calls, listed and counted; see ``callcontrol.aio.masking_logs.MaskingLogs``."""

    async def list(
        self, account_sid: str, query: MaskedCallFilter, page: int, per_page: int
    ) -> Page[CallRecord]:
        """Masked calls of the account, newest first."""

    async def stats(self, account_sid: str, start: datetime | None, end: datetime | None) -> MaskingStats:
        """The use of masking within a window, both ends included."""


class MaskingSettingsOfAccounts(Protocol):
    """Masking settings; see ``callcontrol.aio.masking_settings.MaskingSettingsService``."""

    async def of(self, account_sid: str) -> MaskingSettings:
        """The settings of the account."""

    async def update(self, account_sid: str, change: SettingsChange) -> MaskingSettings:
        """Change what is given."""


class TrunkNumbers(Protocol):
    """Numbers on carriers of accounts' own; see ``callcontrol.aio.trunk_numbers.TrunkNumberService``."""

    async def register(
        self,
        account_sid: str,
        number: str,
        carrier_sid: str,
        *,
        app_sid: str | None = None,
        friendly_name: str | None = None,
    ) -> PhoneNumber:
        """Register a number on a carrier."""

    async def list(
        self, account_sid: str, filters: Mapping[str, str], page: int, per_page: int
    ) -> Page[PhoneNumber]:
        """Numbers of the account on its own carriers; `filters` are values of its attributes."""

    async def update(self, account_sid: str, number_sid: str, values: Mapping[str, Any]) -> PhoneNumber:
        """Change a number; `values` are the attributes that are to change."""

    async def remove(self, account_sid: str, number_sid: str) -> None:
        """Remove a number."""


class Applications(Protocol):
    """What to do with calls; see ``callcontrol.aio.applications.ApplicationService``."""

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Application:
        """Add an application; `values` are its attributes and those of its `Binding`."""

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[Application]:
        """Applications of the account."""

    async def get(self, account_sid: str, app_sid: str) -> Application:
        """One application."""

    async def update(self, account_sid: str, app_sid: str, values: Mapping[str, Any]) -> Application:
        """Change an application; `values` are the attributes that are to change."""

    async def delete(self, account_sid: str, app_sid: str) -> None:
        """Remove an application."""


class Wallets(Protocol):
    """Prepaid money; see ``callcontrol.aio.wallet.WalletService``."""

    async def wallet(self, account_sid: str) -> Wallet:
        """What the account has, what is held of it, and what its calls have cost in this hour."""

    async def spend_limit(self, account_sid: str) -> int | None:
        """What the account's calls may cost in an hour, in paise; None without a limit."""

    async def ledger(
        self,
        account_sid: str,
        page: int,
        per_page: int,
        query: LedgerFilter,
        *,
        after: Position | None = None,
    ) -> Page[LedgerEntry]:
        """Entries of the account's ledger, newest first; with ``after`` those behind that place."""


class CallLogs(Protocol):
    """Calls as those who run trunks look at them; see ``callcontrol.aio.call_logs.CallLogService``."""

    async def list(self, account_sid: str, query: CallLogFilter, page: int, per_page: int) -> Page[CallLog]:
        """Call logs of the account, newest first."""


class Agents(Protocol):
    """Voice agents; see ``callcontrol.aio.agents.AgentService``."""

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> VoiceAgent:
        """Add an agent; `values` are its attributes and those of its stream."""

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[VoiceAgent]:
        """Agents of the account, newest first."""

    async def get(self, account_sid: str, agent_id: str) -> VoiceAgent:
        """One agent."""

    async def update(self, account_sid: str, agent_id: str, values: Mapping[str, Any]) -> VoiceAgent:
        """Change an agent; `values` are what is to change."""

    async def delete(self, account_sid: str, agent_id: str) -> None:
        """Remove an agent."""


class Subscriptions(Protocol):
    """Webhook subscriptions; see ``callcontrol.aio.subscriptions.SubscriptionService``."""

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Subscription:
        """Subscribe a URL to events; `values` are attributes of `Subscription`."""

    async def list(self, account_sid: str) -> Sequence[Subscription]:
        """Subscriptions of the account, newest first."""

    async def update(self, account_sid: str, subscription_id: str, values: Mapping[str, Any]) -> Subscription:
        """Change a subscription; `values` are what is to change."""

    async def delete(self, account_sid: str, subscription_id: str) -> None:
        """Remove a subscription."""

    async def test(self, account_sid: str, subscription_id: str) -> Trial:
        """Send a test event now, and say how it was taken."""

    async def deliveries(
        self, account_sid: str, subscription_id: str, limit: int
    ) -> Sequence[LoggedDelivery]:
        """The newest deliveries of a subscription, newest first."""

    async def replay(self, account_sid: str, subscription_id: str, delivery_id: str) -> Replayed:
        """Send a delivery again."""

    async def replay_failed(
        self, account_sid: str, subscription_id: str, since: datetime | None, until: datetime | None
    ) -> Replayed:
        """Send the failed deliveries of a window again."""


class StoredReply(Protocol):
    """The answer that a request with this idempotency key had."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def body(self) -> bytes:
        """The body, to the byte."""


class Idempotency(Protocol):
    """Answers remembered by idempotency key; see ``callcontrol.aio.idempotency``."""

    async def begin(self, account_sid: str, key: str, endpoint: str, body_hash: str) -> StoredReply | None:
        """
        Claim a key, or return the answer it already has.

        Raises:
            IdempotencyConflict: The key belongs to another request, or its first request is running.
        """

    async def complete(self, account_sid: str, key: str, status: int, body: bytes) -> None:
        """Remember the answer of a claimed key."""

    async def release(self, account_sid: str, key: str) -> None:
        """Give a claimed key back: nothing was done."""


class Phase(Enum):
    """What the server is doing."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"


@dataclass(slots=True)
class Lifecycle:
    """The phase of the server, changed by `api.server` and read by the routes."""

    phase: Phase = Phase.STARTING

    @property
    def takes_calls(self) -> bool:
        """Whether new calls are accepted."""
        return self.phase is Phase.READY


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything the routes use."""

    keys: Keys
    calls: Calls
    numbers: Numbers
    market: Market
    trunks: Trunks
    otp: Otp
    recordings: Recordings
    masking: Masking
    masking_sessions: MaskingSessions
    masking_numbers: MaskingNumbers
    masking_logs: MaskingLogs
    masking_settings: MaskingSettingsOfAccounts
    masking_webhooks: Subscriptions
    trunk_numbers: TrunkNumbers
    applications: Applications
    wallets: Wallets
    call_logs: CallLogs
    agents: Agents
    subscriptions: Subscriptions
    idempotency: Idempotency
    lifecycle: Lifecycle
