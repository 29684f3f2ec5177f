"""
The records that the domain keeps: accounts, keys, numbers, trunks, calls, money.

Identifiers are opaque UUID strings made by the caller; timestamps are aware UTC datetimes; money is integer
paise. Everything but ``CallRecord`` is immutable. Secrets are left out of every ``repr``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Generic, Literal, TypeVar

T = TypeVar("T")

CURRENCY: Final = "INR"

Direction = Literal["inbound", "outbound"]
HangupSource = Literal["caller", "callee", "carrier", "api", "stream", "system"]
InboundTarget = Literal["voice_agent", "webhook", "media_stream", "forward"]
Protocol = Literal["udp", "tcp", "tls", "tls/srtp", "auto"]
NumberFormat = Literal["e164", "national", "significant"]
IdentityHeader = Literal["pai", "ppi", "rpid", "none"]
Reliability = Literal["off", "supported", "required"]
DtmfType = Literal["rfc2833", "info", "tones"]
MediaEncryption = Literal["off", "sdes", "require"]
RecordingStatus = Literal["in-progress", "paused", "completed", "failed"]
Service = Literal["platform", "messaging", "assistant", "tools", "admin"]
TrunkType = Literal["static_ip", "auth", "reg"]


class CallStatus(StrEnum):
    """The status of a call, as every interface spells it."""

    QUEUED = "queued"
    INITIATED = "initiated"
    RINGING = "ringing"
    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"
    BUSY = "busy"
    NO_ANSWER = "no-answer"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self in ENDED


ENDED: Final = frozenset(
    {CallStatus.COMPLETED, CallStatus.BUSY, CallStatus.NO_ANSWER, CallStatus.FAILED, CallStatus.CANCELED}
)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a list that is sorted by moment, then identifier, newest first: right after that item."""

    at_micros: int
    identifier: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; pages count from 1. ``after`` is where the list goes on, in lists that say so."""

    items: list[T]
    total: int
    page: int
    per_page: int
    after: Position | None = None

    @property
    def total_pages(self) -> int:
        """The number of pages that ``total`` items fill; 0 when there are none."""
        return -(-self.total // self.per_page)


@dataclass(frozen=True, slots=True)
class Account:
    """
    A customer: what it may do at once, and the secret that signs its webhooks.

    None for ``requests_per_minute`` is the limit of the server, for ``max_spend_paise_per_hour`` no limit.
    """

    account_sid: str
    name: str
    created_at: datetime
    updated_at: datetime
    is_active: bool = True
    kyc_complete: bool = False
    max_cps: int = 10
    max_calls: int = 100
    requests_per_minute: int | None = None
    max_spend_paise_per_hour: int | None = None
    webhook_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """
    An API key without the key itself, of which only a hash is kept; ``prefix`` is for recognition.

    ``revoked_at`` lies ahead while a key that was rotated may still be used beside its successor.
    """

    key_id: str
    account_sid: str
    service: Service
    scopes: tuple[str, ...]
    prefix: str
    created_at: datetime
    revoked_at: datetime | None = None

    def is_revoked(self, now: datetime) -> bool:
        """Whether the key opens nothing any more."""
        return self.revoked_at is not None and self.revoked_at <= now


@dataclass(frozen=True, slots=True)
class Principal:
    """
    Who makes a request: an authenticated key.

    ``requests_per_minute`` is the limit of the account's own, None when it has none.
    """

    account_sid: str
    key_id: str
    service: Service
    scopes: frozenset[str]
    requests_per_minute: int | None = None

    def may(self, scope: str) -> bool:
        """Whether the key carries the scope."""
        return scope in self.scopes


@dataclass(frozen=True, slots=True)
class Binding:
    """Where inbound calls of a number go; only the fields of its target are set."""

    target: InboundTarget
    stream_url: str | None = None
    sample_rate: int | None = None
    stream_protocol: str | None = None
    encoding: str | None = None
    custom_parameters: Mapping[str, str] | None = None
    stream_auth: Mapping[str, str] | None = field(default=None, repr=False)
    stream_track: str | None = None
    stream_max_retries: int | None = None
    forward_to: str | None = None
    caller_id: str | None = None
    timeout_s: int | None = None
    record: bool | None = None
    webhook_url: str | None = None
    webhook_method: str | None = None
    status_webhook_url: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields that are set, as they are stored."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Binding":
        """Read what ``to_json`` gave; fields of a later version are passed over."""
        return cls(**{name: stored[name] for name in _BINDING_FIELDS if name in stored})


_BINDING_FIELDS: Final = tuple(item.name for item in fields(Binding))


@dataclass(frozen=True, slots=True)
class Billing:
    """
    How far a number that was bought is paid for.

    ``paid_months`` calendar months from ``anchor_at`` end at ``next_at``, when the next one is charged. Since
    a charge was refused, ``deadline_at`` says when the number is suspended, and once it is, released.
    """

    anchor_at: datetime
    paid_months: int
    next_at: datetime
    deadline_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PhoneNumber:
    """
    A number of an account (a DID), in E.164 with ``+``.

    ``carrier_sid`` is None for a number of the platform and names the account's own carrier otherwise.
    ``registered`` says that the number may be used as caller-ID. ``order_id`` and ``billing`` are those of
    a number that was bought; nothing is charged for others.
    """

    phone_number_id: str
    account_sid: str
    number: str
    created_at: datetime
    updated_at: datetime
    friendly_name: str | None = None
    status: str = "active"
    number_type: str = "local"
    voice_enabled: bool = True
    sms_enabled: bool = False
    monthly_cost_paise: int = 0
    carrier_sid: str | None = None
    app_sid: str | None = None
    registered: bool = False
    binding: Binding | None = None
    region: str | None = None
    order_id: str | None = None
    billing: Billing | None = None

    @property
    def inbound_target_type(self) -> str:
        """The target of inbound calls, ``none`` when they have none."""
        return self.binding.target if self.binding else "none"


@dataclass(frozen=True, slots=True)
class Wiring:
    """The wiring state of a number, field by field as the interface names it."""

    phone_number_id: str
    number: str
    carrier_registered: bool
    outbound_capable: bool
    inbound_bound: bool
    inbound_target: InboundTarget | None = None
    agent_id: str | None = None
    workspace_id: str | None = None

    @classmethod
    def of(cls, number: PhoneNumber) -> "Wiring":
        """The wiring state of a number."""
        binding = number.binding
        return cls(
            phone_number_id=number.phone_number_id,
            number=number.number,
            carrier_registered=number.registered,
            outbound_capable=number.registered,
            inbound_bound=binding is not None,
            inbound_target=binding.target if binding else None,
            agent_id=binding.agent_id if binding else None,
            workspace_id=binding.workspace_id if binding else None,
        )


@dataclass(frozen=True, slots=True)
class Carrier:
    """
    A trunk: the relation to one carrier; ``account_sid`` is None when the platform owns it.

    With ``prefixes`` it serves numbers that begin with one of them and no others, and those before any
    carrier that serves all numbers.

    ``number_format`` says how numbers of its own country are written to it: ``e164`` (with ``+`` when
    ``e164_leading_plus``), ``national`` (with the trunk prefix, 09876543210) or ``significant`` (9876543210).
    ``identity_header`` carries the caller's identity; with ``trusts_identity`` the one it sends is believed.
    ``rel100`` is the use of reliable provisional responses (RFC 3262), ``session_expires_s`` the session
    interval that is asked for (RFC 4028, None: no session timer). ``registrars`` are hosts, if need be with a
    port, to register with; none means the outbound gateways. ``certificate_name`` is a name in the client
    certificate by which its calls are known. ``forwarded_headers`` are the X- header fields that may pass
    between it and another leg.

    ``dtmf_type`` is how digits pass to and from it: as telephone events in RTP, in INFO requests, or as tones
    in the audio. ``srtp`` is the encryption of its media (RFC 3711, keys by RFC 4568): ``off``, ``sdes``
    (encrypted where the far end can) or ``require``.
    """

    carrier_sid: str
    account_sid: str | None
    name: str
    created_at: datetime
    updated_at: datetime
    description: str | None = None
    is_active: bool = True
    trunk_type: TrunkType = "static_ip"
    e164_leading_plus: bool = True
    tech_prefix: str | None = None
    requires_register: bool = False
    register_username: str | None = None
    register_password: str | None = field(default=None, repr=False)
    register_sip_realm: str | None = None
    register_from_user: str | None = None
    register_from_domain: str | None = None
    register_transport: str | None = None
    inbound_auth_username: str | None = None
    inbound_auth_password: str | None = field(default=None, repr=False)
    outbound_proxy: str | None = None
    diversion: str | None = None
    dtmf_type: DtmfType = "rfc2833"
    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    prefixes: tuple[str, ...] = ()
    srtp: MediaEncryption = "off"
    max_concurrent_calls: int | None = None
    max_cps: int | None = None
    app_sid: str | None = None
    number_format: NumberFormat = "e164"
    identity_header: IdentityHeader = "pai"
    trusts_identity: bool = True
    forwards_history: bool = False
    forwarded_headers: tuple[str, ...] = ()
    allows_refer: bool = False
    follows_redirects: bool = False
    rel100: Reliability = "supported"
    session_expires_s: int | None = 1800
    registrars: tuple[str, ...] = ()
    register_expires_s: int = 3600
    certificate_name: str | None = None


@dataclass(frozen=True, slots=True)
class Gateway:
    """
    One reachable host of a carrier.

    A lower ``priority`` is tried first; among equals the share of calls follows ``weight``. ``netmask``
    widens an inbound address to a network (32: that address alone, also of IPv6). ``port`` 0 leaves port
    and, with protocol ``auto``, transport to what the name server says of the host (RFC 3263). The protocol
    ``tls/srtp`` is TLS, and media that is encrypted whatever the carrier says.
    """

    gateway_sid: str
    carrier_sid: str
    host: str
    created_at: datetime
    updated_at: datetime
    port: int = 5060
    netmask: int = 32
    protocol: Protocol = "udp"
    inbound: bool = True
    outbound: bool = True
    priority: int = 0
    weight: int = 1
    send_options_ping: bool = False
    is_active: bool = True
    max_concurrent_calls: int | None = None
    max_cps: int | None = None

    @property
    def transport(self) -> str | None:
        """The SIP transport it is reached by, None when that is looked up."""
        return None if self.protocol == "auto" else self.protocol.removesuffix("/srtp")

    @property
    def encrypts(self) -> bool:
        """Whether its media must be encrypted, whatever its carrier says."""
        return self.protocol == "tls/srtp"


@dataclass(slots=True)
class StreamInfo:
    """The agent stream of a call as the call object shows it."""

    stream_sid: str | None = None
    stream_url: str | None = None
    protocol: str = "exotel"
    encoding: str = "l16"
    sample_rate: int = 8000
    state: str | None = None


@dataclass(frozen=True, slots=True)
class DirectionQuality:
    """What the audio was like in one direction of a leg; None where nothing was measured."""

    mos: float | None = None
    jitter_ms: float | None = None
    packet_loss_pct: float | None = None


@dataclass(frozen=True, slots=True)
class LegQuality:
    """
    What one leg sounded like: ``received`` from its party, ``sent`` to it, as its RTCP reports say.

    ``leg`` is ``a`` for the first party and ``b`` for others.
    """

    leg: str
    codec: str | None
    encrypted: bool
    rtt_ms: float | None
    received: DirectionQuality
    sent: DirectionQuality


@dataclass(slots=True)
class Quality:
    """
    What the media was like, measured over the whole call.

    The figures of the call are those of what was received from its first party.
    """

    mos: float | None = None
    jitter_ms: float | None = None
    packet_loss_pct: float | None = None
    codec: str | None = None
    encrypted: bool = False
    legs: list[LegQuality] = field(default_factory=list)


@dataclass(slots=True)
class CallRecord:
    """
    A call as it is stored and shown; owned and changed by the one task that runs the call.

    ``node`` is the process that runs the call, ``sequence`` the number of the last webhook sent for it.
    ``price_paise`` is set by the settlement; ``product`` is what placed the call, when that is not the call
    interface, with what it keeps of it in ``details``. The owner changes fields, then hands the record to
    ``CallStore.update``; the store writes the state it finds when the transaction is assembled, so a
    record is never written older than it was handed over.
    """

    call_sid: str
    account_sid: str
    direction: Direction
    from_: str
    to: str
    created_at: datetime
    status: CallStatus = CallStatus.QUEUED
    parent_call_sid: str | None = None
    answered_by: str | None = None
    carrier_sid: str | None = None
    gateway_sid: str | None = None
    phone_number_id: str | None = None
    app_sid: str | None = None
    stream: StreamInfo | None = None
    ringing_at: datetime | None = None
    answered_at: datetime | None = None
    ended_at: datetime | None = None
    duration_sec: int | None = None
    bill_duration_sec: int | None = None
    hangup_cause: str | None = None
    hangup_cause_code: int | None = None
    hangup_source: HangupSource | None = None
    sip_status: int | None = None
    sip_reason: str | None = None
    sip_call_id: str | None = None
    sip: Mapping[str, Any] | None = None
    price_paise: int | None = None
    currency: str = CURRENCY
    recording_url: str | None = None
    recording_path: str | None = None
    recording_status: RecordingStatus | None = None
    quality: Quality | None = None
    tag: str | None = None
    status_webhook_url: str | None = None
    status_webhook_events: tuple[str, ...] = ()
    product: str | None = None
    details: Mapping[str, Any] | None = None
    sequence: int = 0
    node: str = ""


@dataclass(frozen=True, slots=True)
class CallFilter:
    """What a list of calls is narrowed to; ``start`` is inclusive, ``end`` exclusive, of ``created_at``."""

    status: CallStatus | None = None
    direction: Direction | None = None
    from_: str | None = None
    to: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Wallet:
    """
    The money of an account.

    ``balance_paise`` is the sum of the ledger; ``reserved_paise`` of it is held for calls that are up.
    ``spent_paise`` is what calls were charged in the hour ``spent_hour`` of the clock, the last one in which
    there was such a charge.
    """

    account_sid: str
    balance_paise: int
    reserved_paise: int
    updated_at: datetime
    spent_hour: int = 0
    spent_paise: int = 0

    @property
    def available_paise(self) -> int:
        """What may still be reserved or charged."""
        return self.balance_paise - self.reserved_paise


@dataclass(frozen=True, slots=True)
class Reserve:
    """Money held for one call until it is settled."""

    call_sid: str
    account_sid: str
    amount_paise: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """
    One entry of an account's ledger; entries are only ever added.

    A charge has a negative amount. ``reference`` names a top-up, so that repeating it adds nothing.
    """

    entry_id: int
    account_sid: str
    kind: str
    amount_paise: int
    created_at: datetime
    call_sid: str | None = None
    reference: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """What a list of ledger entries is narrowed to; ``start`` is inclusive, ``end`` exclusive."""

    kind: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """
    An event on its way to a customer's URL, complete but for its signature.

    ``delivery_id`` stays the same through all attempts and is the receiver's key for recognising doubles;
    it is the ``event_id`` where an event goes to one URL only. Events of one ``call_sid`` to one URL are
    delivered in the order they were published.
    """

    event_id: str
    account_sid: str
    event: str
    url: str
    body: bytes
    created_at: datetime
    call_sid: str | None = None
    method: Literal["POST", "GET"] = "POST"
    delivery_id: str = ""

    def __post_init__(self) -> None:
        if not self.delivery_id:
            object.__setattr__(self, "delivery_id", self.event_id)


@dataclass(slots=True)
class Delivery:
    """One event's way to one URL: ``pending``, ``delivered`` or ``failed``, and after how many attempts."""

    event: WebhookEvent
    next_attempt_at: datetime
    status: Literal["pending", "delivered", "failed"] = "pending"
    attempts: int = 0
    response_code: int = 0
    last_error: str | None = None
    delivered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The answer to a request with an idempotency key, kept for its repetitions."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class InterruptedRequest:
    """
    A request with an idempotency key whose process was killed after it had taken effect.

    ``effect`` is what it did, as kind and identifier: ``call:0198...``.
    """

    account_sid: str
    key: str
    effect: str
