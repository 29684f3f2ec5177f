"""In-memory services behind the application, with what tests need to look at or to break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from api.services import Lifecycle, Phase, Services
from callcontrol.agents import VoiceAgent, changed_agent, new_agent
from callcontrol.applications import Application, changed_application, new_application
from callcontrol.call_logs import CallLog, CallLogFilter
from callcontrol.errors import (
    CallEnded,
    DomainError,
    Forbidden,
    IdempotencyConflict,
    NotFound,
    Unauthorized,
)
from callcontrol.gateway_health import GatewayTable
from callcontrol.inventory import Listing, ListingFilter
from callcontrol.live_requests import LiveUpdate
from callcontrol.models import (
    Binding,
    CallFilter,
    CallRecord,
    CallStatus,
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
from callcontrol.otp import OtpCall, OtpFilter, OtpState, OtpStats, Period, SendOtp, Verification
from callcontrol.otp_calls import otp_details
from callcontrol.registration import RegistrationView

ACCOUNT = "11111111-1111-4111-8111-111111111111"
OTHER_ACCOUNT = "22222222-2222-4222-8222-222222222222"
KEY = "vp_0123456789abcdefghijklmnopqrstuvwxyz"
READER_KEY = "vp_reader_789abcdefghijklmnopqrstuvwxyz"
REVOKED_KEY = "vp_revoked_89abcdefghijklmnopqrstuvwxyz"
MESSAGING_KEY = "vp_messaging_abcdefghijklmnopqrstuvwxyz"
NUMBER_ID = "33333333-3333-4333-8333-333333333333"
CALL_SID = "44444444-4444-4444-8444-444444444444"
ENDED_SID = "55555555-5555-4555-8555-555555555555"
OTHER_CALL_SID = "66666666-6666-4666-8666-666666666666"
CARRIER_SID = "77777777-7777-4777-8777-777777777777"
OTHER_CARRIER_SID = "88888888-8888-4888-8888-888888888888"
GATEWAY_SID = "99999999-9999-4999-8999-999999999999"
OTP_ID = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
APP_SID = "aaaaaaaa-9999-4999-8999-999999999999"
OTHER_APP_SID = "bbbbbbbb-9999-4999-8999-999999999999"
AGENT_ID = "cccccccc-9999-4999-8999-999999999999"
OTHER_AGENT_ID = "dddddddd-9999-4999-8999-999999999999"
NOWHERE = "00000000-0000-4000-8000-000000000000"
MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)

SCOPES = frozenset(
    {"calls.read", "calls.write", "numbers.read", "numbers.write", "trunks.read", "trunks.write"}
    | {"otp.send", "otp.read"}
)


CALL_LOG = CallLog(
    call_sid=CALL_SID,
    from_="+918047000001",
    to="+919800000001",
    direction="outbound",
    status="completed",
    carrier_sid=CARRIER_SID,
    gateway_sid=GATEWAY_SID,
    app_sid=None,
    sip_status=200,
    sip_reason="OK",
    sip_call_id="abc@host",
    duration_sec=61,
    attempted_at=MOMENT,
    answered_at=MOMENT,
    terminated_at=MOMENT,
    termination_reason="NORMAL_CLEARING",
    terminated_by="caller",
    host="local",
    remote_host="192.0.2.1",
    trunk="Own trunk",
    codec="PCMA",
    mos=4.2,
)


def call(call_sid: str = CALL_SID, account_sid: str = ACCOUNT, **changes: Any) -> CallRecord:
    return CallRecord(
        **{
            "call_sid": call_sid,
            "account_sid": account_sid,
            "direction": "outbound",
            "from_": "+918047000001",
            "to": "+919800000001",
            "created_at": MOMENT,
            **changes,
        }
    )


class FakeKeys:
    def __init__(self) -> None:
        self.principals = {
            KEY: Principal(ACCOUNT, "key-1", "platform", SCOPES),
            READER_KEY: Principal(ACCOUNT, "key-2", "platform", frozenset({"calls.read"})),
            MESSAGING_KEY: Principal(ACCOUNT, "key-3", "messaging", frozenset({"messages.send"})),
        }
        self.asked = 0

    async def authenticate(self, key: str) -> Principal:
        self.asked += 1
        principal = self.principals.get(key)
        if principal is None:
            raise Unauthorized("This key is unknown or revoked; create another.")
        return principal


@dataclass(frozen=True)
class FakeTraceEntry:
    at: datetime = MOMENT
    leg: str | None = "a"
    direction: str = "out"
    transport: str = "udp"
    peer: str = "127.0.0.1:5080"
    call_id: str | None = "abc@host"
    message: str = "INVITE sip:x SIP/2.0\r\n\r\n"


class FakeCalls:
    def __init__(self) -> None:
        self.updates: list[LiveUpdate] = []
        self.gateways = GatewayTable()
        self.failure: Exception | None = None
        self.requests: list[tuple[str, Any]] = []
        self.filters: list[CallFilter] = []
        self.places: list[Position | None] = []
        self.records = {
            CALL_SID: call(status=CallStatus.IN_PROGRESS),
            ENDED_SID: call(ENDED_SID, status=CallStatus.COMPLETED),
            OTHER_CALL_SID: call(OTHER_CALL_SID, OTHER_ACCOUNT),
        }
        self.active_calls = 1
        self.registered: dict[str, list[RegistrationView]] = {}

    async def create_call(self, account_sid: str, request: Any) -> CallRecord:
        self.requests.append((account_sid, request))
        if self.failure is not None:
            raise self.failure
        return call(f"{len(self.requests):08d}-4444-4444-8444-444444444444")

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        record = self.records.get(call_sid)
        if record is None:
            raise NotFound("There is no such call on the account.")
        if record.account_sid != account_sid:
            raise Forbidden("This call belongs to another account.")
        return record

    async def list_calls(
        self, account_sid: str, query: CallFilter, page: int, per_page: int, after: Position | None = None
    ) -> Page[CallRecord]:
        self.filters.append(query)
        self.places.append(after)
        if self.failure is not None:
            raise self.failure
        own = [record for record in self.records.values() if record.account_sid == account_sid]
        more = Position(int(own[-1].created_at.timestamp() * 1_000_000), own[-1].call_sid)
        return Page(own[:per_page], len(own), page, per_page, more if len(own) > per_page else None)

    async def update_call(self, account_sid: str, call_sid: str, update: LiveUpdate) -> CallRecord:
        record = await self.get_call(account_sid, call_sid)
        if record.status.ended:
            raise CallEnded("The call has already ended.")
        if self.failure is not None:
            raise self.failure
        self.updates.append(update)
        return record

    async def hangup_call(self, account_sid: str, call_sid: str) -> CallRecord:
        record = await self.get_call(account_sid, call_sid)
        if record.status.ended:
            raise CallEnded("The call has already ended.")
        return record

    def trace(self, call_sid: str) -> Sequence[Any]:
        return [FakeTraceEntry(), FakeTraceEntry(leg=None, direction="in", call_id=None)]

    def registrations(self, carrier_sid: str | None = None) -> Sequence[RegistrationView]:
        return self.registered.get(carrier_sid or "", [])


class FakeNumbers:
    def __init__(self) -> None:
        self.number = PhoneNumber(
            NUMBER_ID, ACCOUNT, "+918047000001", MOMENT, MOMENT, friendly_name="Front desk"
        )
        self.failure: DomainError | None = None
        self.forced: list[bool] = []
        self.listed: list[dict[str, Any]] = []

    async def list(self, account_sid: str, page: int, per_page: int, **filters: Any) -> Page[PhoneNumber]:
        self.listed.append(filters)
        return Page([self.number], 1, page, per_page)

    async def wiring(self, account_sid: str, phone_number_id: str) -> Wiring:
        if self.failure is not None:
            raise self.failure
        if phone_number_id != NUMBER_ID:
            raise NotFound("There is no such number on the account.")
        return Wiring.of(self.number)

    async def register(self, account_sid: str, phone_number_id: str) -> Wiring:
        self.number = replace(self.number, registered=True)
        return await self.wiring(account_sid, phone_number_id)

    async def deregister(self, account_sid: str, phone_number_id: str, *, force: bool) -> Wiring:
        self.forced.append(force)
        self.number = replace(self.number, registered=False)
        return await self.wiring(account_sid, phone_number_id)

    async def bind(self, account_sid: str, phone_number_id: str, binding: Binding, *, force: bool) -> Wiring:
        self.forced.append(force)
        self.number = replace(self.number, registered=True, binding=binding)
        return await self.wiring(account_sid, phone_number_id)

    async def unbind(self, account_sid: str, phone_number_id: str) -> Wiring:
        self.number = replace(self.number, binding=None)
        return await self.wiring(account_sid, phone_number_id)

    async def show(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        await self.wiring(account_sid, phone_number_id)
        return self.number

    async def rename(self, account_sid: str, phone_number_id: str, friendly_name: str | None) -> PhoneNumber:
        self.number = replace(await self.show(account_sid, phone_number_id), friendly_name=friendly_name)
        return self.number

    async def release(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        return await self.show(account_sid, phone_number_id)


class FakeMarket:
    def __init__(self) -> None:
        self.listing = Listing("did_1", "+911110000100", "Delhi", "local", 24_950, 50_000)
        self.failure: DomainError | None = None
        self.searches: list[ListingFilter] = []
        self.requests: list[PurchaseRequest] = []

    async def search(self, wanted: ListingFilter, page: int, per_page: int) -> Page[Listing]:
        self.searches.append(wanted)
        return Page([self.listing], 1, page, per_page)

    async def purchase(self, account_sid: str, request: PurchaseRequest) -> Purchase:
        if self.failure is not None:
            raise self.failure
        self.requests.append(request)
        total_paise = self.listing.total_paise(request.months)
        return Purchase(NUMBER_ID, self.listing.number, total_paise, 10_050, MOMENT)


class FakeTrunks:
    def __init__(self) -> None:
        self.carrier = Carrier(CARRIER_SID, ACCOUNT, "Own trunk", MOMENT, MOMENT, register_password="s3cret")
        self.values: list[Mapping[str, Any]] = []

    async def create_carrier(self, account_sid: str, values: Mapping[str, Any]) -> Carrier:
        self.values.append(values)
        return replace(self.carrier, **values)

    async def list_carriers(self, account_sid: str, page: int, per_page: int) -> Page[Carrier]:
        return Page([self.carrier], 1, page, per_page)

    async def get_carrier(self, account_sid: str, carrier_sid: str) -> Carrier:
        if carrier_sid == OTHER_CARRIER_SID:
            raise Forbidden("This carrier belongs to another account.")
        if carrier_sid != CARRIER_SID:
            raise NotFound("There is no such carrier on the account.")
        return self.carrier

    async def update_carrier(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Carrier:
        self.values.append(values)
        return replace(await self.get_carrier(account_sid, carrier_sid), **values)

    async def delete_carrier(self, account_sid: str, carrier_sid: str) -> None:
        await self.get_carrier(account_sid, carrier_sid)

    async def create_gateway(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Gateway:
        await self.get_carrier(account_sid, carrier_sid)
        self.values.append(values)
        return Gateway(
            gateway_sid=GATEWAY_SID, carrier_sid=carrier_sid, created_at=MOMENT, updated_at=MOMENT, **values
        )

    async def list_gateways(
        self, account_sid: str, carrier_sid: str, page: int, per_page: int
    ) -> Page[Gateway]:
        await self.get_carrier(account_sid, carrier_sid)
        return Page([Gateway(GATEWAY_SID, carrier_sid, "192.0.2.1", MOMENT, MOMENT)], 1, page, per_page)

    async def get_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> Gateway:
        await self.get_carrier(account_sid, carrier_sid)
        if gateway_sid != GATEWAY_SID:
            raise NotFound("There is no such gateway on the carrier.")
        return Gateway(GATEWAY_SID, carrier_sid, "192.0.2.1", MOMENT, MOMENT)

    async def update_gateway(
        self, account_sid: str, carrier_sid: str, gateway_sid: str, values: Mapping[str, Any]
    ) -> Gateway:
        self.values.append(values)
        return replace(await self.get_gateway(account_sid, carrier_sid, gateway_sid), **values)

    async def delete_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> None:
        await self.get_carrier(account_sid, carrier_sid)
        if gateway_sid != GATEWAY_SID:
            raise NotFound("There is no such gateway on the carrier.")


class FakeOtp:
    def __init__(self) -> None:
        self.sent: list[SendOtp] = []
        self.periods: list[Period] = []
        self.filters: list[OtpFilter] = []
        self.guesses: list[str] = []
        self.failure: DomainError | None = None

    def _call(self, otp_id: str = OTP_ID, verified_at: datetime | None = None) -> OtpCall:
        details = otp_details(otp_id, language="hi-IN", repeat=2, reference=None, expires_at=MOMENT)
        state = OtpState(otp_id, ACCOUNT, CALL_SID, MOMENT, attempts=0, verified_at=verified_at)
        return OtpCall(state, call(product="otp", details=details, to="+919876543210"))

    async def send(self, account_sid: str, request: SendOtp) -> OtpCall:
        self.sent.append(request)
        if self.failure is not None:
            raise self.failure
        return self._call()

    async def get(self, account_sid: str, otp_id: str) -> OtpCall:
        if otp_id != OTP_ID:
            raise NotFound("There is no such one-time password.")
        return self._call(verified_at=MOMENT)

    async def list(self, account_sid: str, query: OtpFilter, page: int, per_page: int) -> Page[OtpCall]:
        self.filters.append(query)
        return Page([self._call()], 1, page, per_page)

    async def stats(self, account_sid: str, period: Period) -> OtpStats:
        self.periods.append(period)
        return OtpStats(total=1, answered=1, completed=1, duration_sec=17, cost_paise=60)

    async def verify(self, account_sid: str, otp_id: str, guess: str) -> Verification:
        await self.get(account_sid, otp_id)
        self.guesses.append(guess)
        return Verification("wrong", 4)


class FakeTrunkNumbers:
    def __init__(self) -> None:
        self.number = PhoneNumber(
            NUMBER_ID, ACCOUNT, "+918047000002", MOMENT, MOMENT, carrier_sid=CARRIER_SID, registered=True
        )
        self.values: list[Mapping[str, Any]] = []

    async def register(self, account_sid: str, number: str, carrier_sid: str, **values: Any) -> PhoneNumber:
        self.values.append({"number": number, "carrier_sid": carrier_sid, **values})
        return replace(self.number, number=number, carrier_sid=carrier_sid, **values)

    async def list(
        self, account_sid: str, filters: Mapping[str, str], page: int, per_page: int
    ) -> Page[PhoneNumber]:
        self.values.append(filters)
        return Page([self.number], 1, page, per_page)

    async def update(self, account_sid: str, number_sid: str, values: Mapping[str, Any]) -> PhoneNumber:
        self.values.append(values)
        await self.remove(account_sid, number_sid)
        return replace(self.number, **values)

    async def remove(self, account_sid: str, number_sid: str) -> None:
        if number_sid != NUMBER_ID:
            raise NotFound("There is no such number.")


class FakeApplications:
    def __init__(self) -> None:
        self.application = new_application(
            APP_SID,
            ACCOUNT,
            {"name": "Desk", "target": "media_stream", "stream_url": "wss://a.example/"},
            MOMENT,
        )
        self.values: list[Mapping[str, Any]] = []

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Application:
        self.values.append(values)
        return new_application(APP_SID, account_sid, values, MOMENT)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[Application]:
        return Page([self.application], 1, page, per_page)

    async def get(self, account_sid: str, app_sid: str) -> Application:
        if app_sid == OTHER_APP_SID:
            raise Forbidden("The application belongs to another account.")
        if app_sid != APP_SID:
            raise NotFound("There is no such application.")
        return self.application

    async def update(self, account_sid: str, app_sid: str, values: Mapping[str, Any]) -> Application:
        self.values.append(values)
        return changed_application(await self.get(account_sid, app_sid), values, MOMENT)

    async def delete(self, account_sid: str, app_sid: str) -> None:
        await self.get(account_sid, app_sid)


class FakeCallLogs:
    def __init__(self) -> None:
        self.filters: list[CallLogFilter] = []

    async def list(self, account_sid: str, query: CallLogFilter, page: int, per_page: int) -> Page[CallLog]:
        self.filters.append(query)
        return Page([CALL_LOG], 1, page, per_page)


class FakeAgents:
    def __init__(self) -> None:
        values = {"name": "Asha", "stream_url": "wss://a.example/"}
        self.agent = new_agent(AGENT_ID, ACCOUNT, values, MOMENT)
        self.values: list[Mapping[str, Any]] = []

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> VoiceAgent:
        self.values.append(values)
        return new_agent(AGENT_ID, account_sid, values, MOMENT)

    async def list(self, account_sid: str, page: int, per_page: int) -> Page[VoiceAgent]:
        return Page([self.agent], 1, page, per_page)

    async def get(self, account_sid: str, agent_id: str) -> VoiceAgent:
        if agent_id == OTHER_AGENT_ID:
            raise Forbidden("The agent belongs to another account.")
        if agent_id != AGENT_ID:
            raise NotFound("There is no such agent.")
        return self.agent

    async def update(self, account_sid: str, agent_id: str, values: Mapping[str, Any]) -> VoiceAgent:
        self.values.append(values)
        return changed_agent(await self.get(account_sid, agent_id), values, MOMENT)

    async def delete(self, account_sid: str, agent_id: str) -> None:
        await self.get(account_sid, agent_id)


@dataclass(frozen=True)
class FakeReply:
    status: int
    body: bytes


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


@dataclass
class Fakes:
    keys: FakeKeys = field(default_factory=FakeKeys)
    calls: FakeCalls = field(default_factory=FakeCalls)
    numbers: FakeNumbers = field(default_factory=FakeNumbers)
    market: FakeMarket = field(default_factory=FakeMarket)
    trunks: FakeTrunks = field(default_factory=FakeTrunks)
    otp: FakeOtp = field(default_factory=FakeOtp)
    trunk_numbers: FakeTrunkNumbers = field(default_factory=FakeTrunkNumbers)
    applications: FakeApplications = field(default_factory=FakeApplications)
    call_logs: FakeCallLogs = field(default_factory=FakeCallLogs)
    agents: FakeAgents = field(default_factory=FakeAgents)
    wallets: FakeWallets = field(default_factory=FakeWallets)
    idempotency: FakeIdempotency = field(default_factory=FakeIdempotency)
    lifecycle: Lifecycle = field(default_factory=lambda: Lifecycle(Phase.READY))

    def services(self) -> Services:
        return Services(
            keys=self.keys,
            calls=self.calls,
            numbers=self.numbers,
            market=self.market,
            trunks=self.trunks,
            otp=self.otp,
            trunk_numbers=self.trunk_numbers,
            applications=self.applications,
            call_logs=self.call_logs,
            agents=self.agents,
            wallets=self.wallets,
            idempotency=self.idempotency,
            lifecycle=self.lifecycle,
        )
