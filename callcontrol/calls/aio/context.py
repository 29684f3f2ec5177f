"""Surroundings of calls: settings, services, the objects of the process, and the parts of one call."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from callcontrol.calls.aio.host_limits import CallGate
from callcontrol.calls.aio.mailbox import CallMailbox
from callcontrol.calls.aio.media.leg import MediaSettings
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.aio.media.prompts import AudioSource
from callcontrol.calls.aio.sip_trace import TraceBook
from callcontrol.calls.charges import Rates
from callcontrol.calls.effects import Effect
from callcontrol.calls.live.requests import ReadVerbs
from callcontrol.calls.plan import DEFAULT_TIME_LIMIT_S, Plan
from callcontrol.calls.product import Products
from callcontrol.calls.records.aio import CallStore
from callcontrol.calls.records.metrics import CallMetrics
from callcontrol.calls.records.quality import QualityMetrics
from callcontrol.calls.requests import CallMetadata, CreateCall
from callcontrol.calls.steps.base import StepMakers
from callcontrol.directory.directory import Directory
from callcontrol.egress.url_policy import Destinations
from callcontrol.ids import LegId
from callcontrol.models import Account, CallRecord, Carrier, Gateway, Message, TranscriptSegment
from callcontrol.nodes.duties import Duty
from callcontrol.numbers.aio.service import NumberService
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.router import Router
from callcontrol.trunks.aio.places import TrunkPlaces
from callcontrol.trunks.gateway_health import PING_EVERY_S
from callcontrol.trunks.inbound_invite import Caller
from callcontrol.wallet.aio import WalletService
from media.aio import MediaEngine
from media.aio.agent_settings import AgentStreamSettings
from media.aio.recognizer import Recognizer
from media.audio.speech import Synthesizer
from media.types import EngineSettings
from sip import SessionEvent
from sip.aio import HepSettings, Listen, UserAgent, UserAgentSettings
from sip.protection.rate_limits import ProtectionSettings
from sip.values import constructed_natively

if TYPE_CHECKING:
    from callcontrol.calls.aio.media.conferences import Conferences
    from callcontrol.calls.aio.media.shared_conferences import ConferenceOwners, SharedConferences
    from callcontrol.calls.aio.models import SpeechModels
    from callcontrol.calls.aio.on_net import OnNet
    from callcontrol.calls.aio.registry import CallRegistry
    from callcontrol.calls.aio.sip_legs import SipLegs


@dataclass(frozen=True, slots=True, kw_only=True)
class CallControlSettings:
    """
    Settings of calls.

    ``forwarded_headers`` (lower case, ``x-`` only) pass between all trunks, in addition to the trunks' own
    lists; ``allowed_countries`` are ISO 3166 codes. An INVITE from an unknown source gets 403, or no response
    when the server is ``silent_to_unknown_sources``. ``trusted_sources`` are never banned, and neither are
    ``fronts``: the SIP proxies before this server, which name the source of each request; ``front`` is the
    one by which carriers reach it. At ``node_sip`` it receives SIP of the other nodes of its database.
    Recordings go to ``data_dir/recordings``.

    A party on hold hears ``hold_music``: a WAV file, ``tones`` for the built-in melody, or ``none``. For the
    timeouts and the tone plan see ``callcontrol.calls.aio.media.leg.MediaSettings``.
    """

    sip_listens: Sequence[Listen]
    data_dir: Path
    media: EngineSettings = field(default_factory=EngineSettings)
    sip: UserAgentSettings = field(default_factory=UserAgentSettings)
    prompts_dir: Path | None = None
    rates: Rates = field(default_factory=Rates)
    allowed_countries: Collection[str] = frozenset({"IN"})
    max_calls: int = 2000
    max_cps: int = 200
    media_timeout_s: float = 60.0
    stream_protocol: str = "exotel"
    streams: AgentStreamSettings = field(default_factory=AgentStreamSettings)
    hold_timeout_s: float = 0.0
    hold_music: str = "none"
    tone_plan: str = "in"
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    forwarded_headers: Collection[str] = frozenset()
    silent_to_unknown_sources: bool = False
    trusted_sources: Collection[IPv4Network | IPv6Network] = ()
    fronts: Collection[IPv4Network | IPv6Network] = ()
    front: str | None = None
    protection: ProtectionSettings = field(default_factory=ProtectionSettings)
    ping_every_s: float = PING_EVERY_S
    node_sip: Listen | None = None
    hep: HepSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFeatures:
    """
    Contributions of the features above calls.

    Attributes:
        plan_request: Plans a request to place a call: its application, its agent and its verbs. It raises
            ``ValidationFailed`` or ``Forbidden``.
        read_verbs: Reads the verbs of an active call.
        effects: Performers of the effects that ``callcontrol.calls.aio`` does not perform.
        prepare: Completes the record of an inbound call before it is inserted, by the product of the call. It
            raises ``DomainError``.
        close: Closes all connections, after the last call.
    """

    products: Products
    steps: StepMakers
    plan_request: Callable[[str, CreateCall], Awaitable[tuple[Plan, CallMetadata]]]
    read_verbs: ReadVerbs
    effects: "Mapping[type[Effect], Callable[[ActiveCall, Any], None]]"
    prepare: Mapping[str, Callable[[CallRecord], Awaitable[None]]] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]]


class RecordingUploads(Protocol):
    """Uploads of recordings to an object store, which then publishes that they are ready."""

    def add(self, record: CallRecord, details: Mapping[str, Any], *, over: bool = False) -> None:
        """Upload what ``call.recording.ready`` with these details is about, once the call is over."""

    def call_over(self, call_sid: str) -> None:
        """Begin the uploads of a call whose record changes no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallServices:
    """
    Services that calls use, and the contributions of the features above them.

    ``speech`` speaks texts; without it none is spoken. ``recognizer`` recognises what
    parties say; without it none is. ``add_segment`` saves a segment of a transcript of a
    call with a voice agent; without it none are saved. ``add_message`` saves a message that a party leaves;
    without it its file remains, and nothing refers to it. ``uploads`` is set if recordings are kept in an
    object store. None waits, nor fails while the database is unavailable.

    ``registering`` is the duty of the server that registers with the carriers for all.

    ``gate`` refuses calls while they could not be recorded or carried. ``refresh`` updates the directory when
    an entry is missing: another process may have added it a moment ago. ``places`` counts legs at trunks with
    limits over all servers; without it each counts for itself. ``conferences`` is set where calls of several
    nodes meet in one conference. ``models`` has the stored keys and the tools of accounts for speech models;
    without it these use tools of the call only, with the key in the request.
    """

    calls: CallStore
    wallets: WalletService
    numbers: NumberService
    routes: Directory
    destinations: Destinations
    features: CallFeatures
    refresh: Callable[[], Awaitable[None]]
    gate: CallGate = field(default_factory=CallGate)
    add_segment: Callable[[CallRecord, TranscriptSegment], None] | None = None
    add_message: Callable[[Message], None] | None = None
    uploads: RecordingUploads | None = None
    speech: Synthesizer | None = None
    recognizer: Recognizer | None = None
    registering: Duty = field(default_factory=lambda: Duty("registrations"))
    places: TrunkPlaces | None = None
    conferences: "ConferenceOwners | None" = None
    models: "SpeechModels | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Objects shared by the calls of a process."""

    settings: CallControlSettings
    services: CallServices
    user_agent: UserAgent
    on_net: "OnNet"
    engine: MediaEngine
    router: Router
    capacity: Capacity
    audio: AudioSource
    traces: TraceBook
    registry: "CallRegistry"
    recordings_dir: Path
    media: MediaSettings
    quality: QualityMetrics
    metrics: CallMetrics
    conferences: "Conferences"
    shared_conferences: "SharedConferences | None"
    service_route: Callable[[Carrier, Gateway], tuple[str, ...]]
    on_gateway: Callable[[str, SessionEvent], None]
    """Called with the session events of calls at each gateway."""


@constructed_natively
@dataclass(slots=True)
class ActiveCall:
    """
    The parts of one call that the performers of its effects share.

    None of them refers back to it, so a call is freed as soon as it is over; see ``CallMailbox``.
    """

    context: CallContext
    record: CallRecord
    account: Account
    mailbox: CallMailbox
    sip: "SipLegs"
    media: MediaLegs
    trunks: dict[LegId, tuple[Carrier, Gateway]] = field(default_factory=dict)
    """Trunks of the legs, on which each leg counts until its media is closed."""
    caller: Caller | None = None
    """Caller of an inbound call, for steps that pass its number through."""
    messages_sent: int = 0
    """Chat messages that its verbs have sent, accepted or not."""

    def takes_info(self, leg: LegId) -> bool:
        """Return True for a leg whose trunk takes digits in INFO."""
        trunk = self.trunks.get(leg)
        return trunk is not None and trunk[0].dtmf_type == "info"


class EffectPerformer:
    """Performer of the effects of one topic for one call; it is created for the first of them."""

    def __init__(self, call: ActiveCall) -> None:
        """Keep the parts of the call that it needs."""

    def release(self) -> None:
        """Free what it holds: the call is over."""
