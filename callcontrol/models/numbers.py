"""Numbers of accounts, their bindings and billing."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Literal

HOW_TO_REGISTER: Final = "POST /v1/phone-numbers/{id}/carrier"
"""Request that registers a number, for texts of refusals."""

TEST_PREFIX: Final = "+919800000"
"""Prefix of the sandbox carrier's numbers; three digits follow."""

InboundTarget = Literal[
    "voice_agent", "webhook", "media_stream", "model", "forward", "browser", "masking", "missed_call"
]


@dataclass(frozen=True, slots=True)
class Binding:
    """Target of a number's inbound calls; only the fields of that target are set."""

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
    transcribe: bool | None = None
    transcription_language: str | None = None
    webhook_url: str | None = None
    webhook_method: str | None = None
    webhook_format: str | None = None
    fallback_url: str | None = None
    status_webhook_url: str | None = None
    status_webhook_events: tuple[str, ...] | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    language: str | None = None
    identity: str | None = None
    model: Mapping[str, Any] | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are set, as stored."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Binding":
        """Parse the result of ``to_json``; unknown fields of a later version are ignored."""
        fields = {name: stored[name] for name in _BINDING_FIELDS if name in stored}
        events = fields.get("status_webhook_events")
        return cls(**{**fields, "status_webhook_events": None if events is None else tuple(events)})


_BINDING_FIELDS: Final = tuple(item.name for item in fields(Binding))


@dataclass(frozen=True, slots=True)
class Billing:
    """
    Billing state of a purchased number.

    ``paid_months`` calendar months from ``anchor_at`` end at ``next_at``, when the next one is charged. After
    a refused charge, ``deadline_at`` is the time of suspension, and once suspended the time of release.
    """

    anchor_at: datetime
    paid_months: int
    next_at: datetime
    deadline_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PhoneNumber:
    """
    Number of an account (a DID), in E.164 with ``+``.

    ``carrier_sid`` is None for a number of the platform, else the account's own carrier. A ``registered``
    number may be used as caller-ID. ``order_id`` and ``billing`` are set for a purchased number; others cost
    nothing.
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
        """Target of inbound calls; ``none`` without a binding."""
        return self.binding.target if self.binding else "none"


@dataclass(frozen=True, slots=True)
class NumberConfiguration:
    """Configuration state of a number, with the field names of the interface."""

    phone_number_id: str
    number: str
    carrier_registered: bool
    outbound_capable: bool
    inbound_bound: bool
    inbound_target: InboundTarget | None = None
    agent_id: str | None = None
    workspace_id: str | None = None

    @classmethod
    def of(cls, number: PhoneNumber) -> "NumberConfiguration":
        """Build the configuration state of a number."""
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
