"""
API requests to place a call, and the contents of its record.

The API has checked JSON types and names; ``callcontrol.instructions.call_plan`` checks the values and makes
the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from callcontrol.calls.plan import (
    DEFAULT_TIME_LIMIT_S,
    MachineDetection,
    Step,
    WebhookFormat,
    WebhookMethod,
)
from callcontrol.models.parties import DEFAULT_RING_TIMEOUT_S

RecordingChannels = Literal["mono", "dual"]

DEFAULT_STATUS_EVENTS: Final = ("initiated", "ringing", "answered", "completed")
"""Events that a status webhook gets by default."""


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A voice agent to stream to; ``fields`` are the fields of ``media.streams.choose_stream``."""

    url: str
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCall:
    """
    A call to place: the party, the caller-ID, and the steps after the answer.

    ``to`` is a number in any writing or a ``sip:`` address at a gateway of a carrier. Exactly one of
    ``stream``, ``webhook_url``, ``agent_id``, ``model`` and ``verbs`` defines the steps; a verb and a model
    are JSON objects, and an agent is replaced by its stream, or the ``step`` that talks for it, before the
    plan is made (``callcontrol.agents.agent``). Without any of them the application ``app_sid`` defines
    the steps (``callcontrol.applications.call_defaults``); ``stream_fields`` then replace those of its
    stream, and ``needs_stream`` requires an application that has one. A ``sandbox`` call is confined to its
    ``carrier_sid`` and not charged (``callcontrol.assistant.sandbox``). ``customer_data`` is the tag of
    a call as jambonz has it, an object.
    """

    from_: str
    to: str
    stream: StreamRequest | None = None
    verbs: Sequence[Mapping[str, Any]] | None = None
    webhook_url: str | None = None
    webhook_method: WebhookMethod = "POST"
    webhook_format: WebhookFormat = "json"
    fallback_url: str | None = None
    agent_id: str | None = None
    model: Mapping[str, Any] | None = field(default=None, repr=False)
    sandbox: bool = False
    step: Step | None = None
    timeout_s: float = DEFAULT_RING_TIMEOUT_S
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    record: bool = False
    recording_channels: RecordingChannels = "dual"
    transcribe: bool = False
    transcription_language: str | None = None
    machine_detection: MachineDetection = "off"
    send_digits: str | None = None
    caller_name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = None
    carrier_sid: str | None = None
    app_sid: str | None = None
    stream_fields: Mapping[str, object] = field(default_factory=dict)
    needs_stream: bool = False
    status_webhook_url: str | None = None
    status_webhook_events: Sequence[str] | None = None
    status_webhook_format: WebhookFormat = "json"
    customer_data: Mapping[str, Any] | None = None

    @property
    def says_what_to_do(self) -> bool:
        """True when the request itself defines the steps of the call."""
        ways = (self.stream, self.verbs, self.webhook_url, self.agent_id, self.model)
        return any(way is not None for way in ways)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMetadata:
    """
    Contents of a placed call's record beyond its plan.

    ``product`` is the product that placed the call, when that is not the call interface (``otp``, ...), and
    ``details`` are the product's data for it; both decide the form of its events
    (``callcontrol.calls.product``).
    """

    tag: str | None = None
    app_sid: str | None = None
    product: str | None = None
    details: Mapping[str, Any] | None = None
    status_webhook_url: str | None = None
    status_webhook_events: Sequence[str] = DEFAULT_STATUS_EVENTS
