"""Settings of calls, and the services they use."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Protocol

from callcontrol.calls.aio.admission import CallGate
from callcontrol.calls.aio.mailbox import CallLogger
from callcontrol.calls.effects.instructions import AskWebhook, RouteCaller
from callcontrol.calls.events import Event
from callcontrol.calls.plan import DEFAULT_TIME_LIMIT_S, Plan
from callcontrol.calls.ports import CallRecords, MaskedRoutes, Messages, Numbers, Transcripts, Wallets
from callcontrol.calls.product import Products
from callcontrol.calls.requests import CallMetadata, CreateCall
from callcontrol.calls.steps.base import MakeStep
from callcontrol.directory.directory import Directory
from callcontrol.egress.url_policy import Destinations
from callcontrol.models import Account, CallRecord
from callcontrol.trunks.gateway_health import PING_EVERY_S
from callcontrol.trunks.inbound_invite import Caller
from callcontrol.wallet.meter import Rates
from media.aio.agent_settings import AgentStreamSettings
from media.audio.speech import Synthesizer
from media.types import EngineSettings
from sip.aio import HepSettings, Listen, UserAgentSettings
from sip.protection.rate_limits import ProtectionSettings

__all__ = ["CallControlSettings", "CallFeatures", "CallServices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallControlSettings:
    """
    Settings of calls.

    ``forwarded_headers`` (lower case, ``x-`` only) pass between all trunks, in addition to the trunks' own
    lists; ``allowed_countries`` are ISO 3166 codes. An INVITE from an unknown source gets 403, or no response
    when the server is ``silent_to_unknown_sources``; ``trusted_sources`` are never banned. Recordings go to
    ``data_dir/recordings``.

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
    protection: ProtectionSettings = field(default_factory=ProtectionSettings)
    ping_every_s: float = PING_EVERY_S
    hep: HepSettings | None = None


class InstructionRequests(Protocol):
    """Requests of one call to its customer's server; implemented in ``callcontrol.instructions.aio``."""

    caller: Caller | None
    """The caller of an inbound call, for verbs that pass its number through."""

    def ask(self, effect: AskWebhook) -> None:
        """Send a request; ``InstructionsReceived`` or ``InstructionsFailed`` follows unless stopped."""

    def route(self, effect: RouteCaller) -> None:
        """Find the target of the caller of a masked number; ``CallerRouted`` follows, as for ``ask``."""

    def stop(self, number: int) -> None:
        """Cancel a request, if it is under way."""

    def stop_all(self) -> None:
        """Cancel all requests under way."""


class Instructions(Protocol):
    """Requests for instructions; see ``callcontrol.instructions.aio.InstructionClient``."""

    def for_call(
        self,
        record: CallRecord,
        account: Account,
        log: CallLogger,
        post: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        routes: MaskedRoutes | None = None,
    ) -> InstructionRequests:
        """Make the requests of one call, whose outcomes go to ``post``."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFeatures:
    """
    Contributions of the features above calls.

    ``plan_request`` plans a request to place a call: its application, its agent and its verbs. It raises
    ``ValidationFailed`` or ``Forbidden``.
    """

    products: Products
    make_step: MakeStep
    instructions: Instructions
    plan_request: Callable[[str, CreateCall], Awaitable[tuple[Plan, CallMetadata]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallServices:
    """
    Services that calls use, and the contributions of the features above them.

    ``masked_routes`` finds the parties that callers of masked numbers reach; without it no caller is known.
    ``speech`` speaks texts; without it none is spoken. ``transcripts`` saves transcripts of calls with voice
    agents; without it none are saved. ``messages`` saves messages that parties leave; without it their files
    remain, and nothing refers to them.

    ``gate`` refuses calls while they could not be recorded or carried. ``refresh`` updates the directory when
    an entry is missing: another process may have added it a moment ago.
    """

    calls: CallRecords
    wallets: Wallets
    numbers: Numbers
    routes: Directory
    destinations: Destinations
    features: CallFeatures
    refresh: Callable[[], Awaitable[None]]
    gate: CallGate = field(default_factory=lambda: CallGate(lambda: False))
    masked_routes: MaskedRoutes | None = None
    transcripts: Transcripts | None = None
    speech: Synthesizer | None = None
    messages: Messages | None = None
