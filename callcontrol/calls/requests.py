"""
API requests to place a call, and the plans they result in.

The API has checked JSON types and names; the values are checked here, and every wrong one is named by its
path in the request (``verbs[0].url``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from callcontrol.calls.plan import (
    DEFAULT_TIME_LIMIT_S,
    MachineDetection,
    Plan,
    Step,
    WebhookFormat,
    WebhookMethod,
    fallback_of,
)
from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.instructions.verbs import MAX_VERBS, Asking, VerbReader, VerbRules
from callcontrol.routing.party import DEFAULT_RING_TIMEOUT_S, Party

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

    ``to`` is E.164, a 10-digit Indian number or a ``sip:`` address at a gateway of a carrier. Exactly one of
    ``stream``, ``webhook_url``, ``agent_id`` and ``verbs`` defines the steps; a verb is its JSON object, and
    an agent is replaced by its stream, or the ``step`` that talks for it, before the plan is made
    (``callcontrol.agents.agent``). Without any of them the application ``app_sid`` defines the steps
    (``callcontrol.applications.call_defaults``); ``stream_fields`` then replace those of its stream, and
    ``needs_stream`` requires an application that has one. A ``sandbox`` call is confined to its
    ``carrier_sid`` and not charged (``callcontrol.assistant.sandbox``).
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
    sandbox: bool = False
    step: Step | None = None
    timeout_s: float = DEFAULT_RING_TIMEOUT_S
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    record: bool = False
    recording_channels: RecordingChannels = "dual"
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
    status_webhook_events: Sequence[str] = DEFAULT_STATUS_EVENTS

    @property
    def says_what_to_do(self) -> bool:
        """True when the request itself defines the steps of the call."""
        return any(way is not None for way in (self.stream, self.verbs, self.webhook_url, self.agent_id))


class _Reader:
    """Reads the values of one request and collects their errors."""

    def __init__(self, request: CreateCall, rules: VerbRules) -> None:
        self._request = request
        self._rules = rules
        self.errors: list[FieldError] = []

    def plan(self) -> Plan | None:
        request = self._request
        # The caller-ID is needed to read the verbs; its errors are listed first.
        numbers = VerbReader(self._rules, None)
        caller_id = numbers.number("from", request.from_)
        target = numbers.target("to", request.to)
        fallback = fallback_of(request.fallback_url, request.webhook_method, request.webhook_format)
        reader = VerbReader(self._rules, caller_id, asking=Asking(request.webhook_format, fallback))
        steps = self._steps(reader)
        if request.send_digits is not None:
            steps = [*reader.digits("send_digits", request.send_digits), *steps]
        if request.status_webhook_url is not None:
            reader.check_url("status_webhook_url", request.status_webhook_url, ("http", "https"))
        if request.fallback_url is not None:
            reader.check_url("fallback_url", request.fallback_url, ("http", "https"))
        self.errors = numbers.errors + reader.errors
        if caller_id is None or target is None or self.errors:
            return None
        party = Party(
            target,
            caller_id,
            caller_name=request.caller_name,
            ring_timeout_s=request.timeout_s,
            carrier_sid=request.carrier_sid,
            headers=tuple(request.headers.items()),
        )
        return Plan(
            tuple(steps),
            dial=party,
            record=request.record,
            recording_channels=1 if request.recording_channels == "mono" else 2,
            time_limit_s=request.time_limit_s,
            machine_detection=request.machine_detection,
        )

    def _steps(self, reader: VerbReader) -> list[Step]:
        request = self._request
        ways = (request.stream, request.verbs, request.webhook_url, request.step)
        if sum(way is not None for way in ways) != 1:
            reader.wrong("stream_url", "exactly one of stream_url, webhook_url and verbs must be given")
            return []
        if request.step is not None:
            return [request.step]
        if request.stream is not None:
            return reader.stream(request.stream.url, request.stream.fields, "", "stream_url")
        if request.webhook_url is not None:
            asked = ("webhook_url", request.webhook_url, "webhook_method", request.webhook_method)
            return [*reader.consult(*asked, "call.answered")]
        if not request.verbs:
            reader.wrong("verbs", f"must have 1 to {MAX_VERBS} verbs")
            return []
        steps = reader.read("verbs", request.verbs)
        for index, verb in enumerate(request.verbs):
            if verb.get("verb") == "reject":
                reader.wrong(f"verbs[{index}].verb", "reject is for calls that come in; use hangup")
        return steps


def plan_of(request: CreateCall, rules: VerbRules) -> Plan:
    """
    Return the plan of a request.

    Raises:
        ValidationFailed: Values are wrong; all of them are named.
        Forbidden: A number may not be dialled.
    """
    reader = _Reader(request, rules)
    plan = reader.plan()
    if plan is None:
        raise ValidationFailed(reader.errors)
    return plan
