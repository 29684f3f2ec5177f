"""Objects shared by the calls of a process."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from callcontrol.calls.aio.media.conferences import Conferences
from callcontrol.calls.aio.media.leg import MediaSettings
from callcontrol.calls.aio.media.prompts import AudioSource
from callcontrol.calls.aio.registry import CallRegistry
from callcontrol.calls.aio.settings import Instructions
from callcontrol.calls.aio.sip_trace import TraceBook
from callcontrol.calls.ports import CallRecords, MaskedRoutes, Messages, Transcripts, Wallets
from callcontrol.calls.records.metrics import CallMetrics
from callcontrol.calls.records.quality import QualityMetrics
from callcontrol.egress.url_policy import Destinations
from callcontrol.models import Carrier, Gateway
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.router import Router
from callcontrol.trunks.outbound_invite import no_service_route
from callcontrol.wallet.meter import Rates
from media.aio import MediaEngine
from media.aio.agent_settings import AgentStreamSettings
from media.audio.speech import Synthesizer
from sip import SessionEvent
from sip.aio import UserAgent


@dataclass(frozen=True, slots=True)
class CallContext:
    """Lower layers, services and settings that every call needs."""

    user_agent: UserAgent
    engine: MediaEngine
    records: CallRecords
    wallets: Wallets
    destinations: Destinations
    router: Router
    capacity: Capacity
    audio: AudioSource
    traces: TraceBook
    registry: CallRegistry
    instructions: Instructions
    rates: Rates
    recordings_dir: Path
    media: MediaSettings
    streams: AgentStreamSettings = field(default_factory=AgentStreamSettings)
    quality: QualityMetrics = field(default_factory=QualityMetrics)
    metrics: CallMetrics = field(default_factory=CallMetrics)
    masked_routes: MaskedRoutes | None = None
    transcripts: Transcripts | None = None
    conferences: Conferences | None = None
    """Conferences of the process; None without conferences."""
    speech: Synthesizer | None = None
    """Text-to-speech engine; None without speech."""
    messages: Messages | None = None
    forwarded_headers: Collection[str] = frozenset()
    on_gateway: Callable[[str, SessionEvent], None] | None = None
    """Called with the session events of calls at each gateway."""
    service_route: Callable[[Carrier, Gateway], tuple[str, ...]] = no_service_route
