"""
Plans: the short list of things to do with a call.

A plan is made from what the API was asked for, or from the binding of the number that was called. It is
only data; ``callcontrol.calls.call`` runs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from callcontrol.agents.script import Script
from callcontrol.models import Binding
from callcontrol.numbers.binding import choice_of
from callcontrol.routing.party import DEFAULT_RING_TIMEOUT_S, Party
from callcontrol.routing.targets import Target
from callcontrol.trunks.caller_identity import Caller
from media.audio import Sound
from media.streams import StreamChoice

FALLBACK_EVENT: Final = "call.fallback"
"""Why a server is asked in the place of one that failed."""

DEFAULT_MISSED_CALL_S: Final = 30.0
DEFAULT_TIME_LIMIT_S: Final = 14_400.0

WebhookMethod = Literal["POST", "GET"]

WebhookFormat = Literal["json", "form"]
"""How the customer's server is asked: in our JSON, or as servers written for TwiML expect it."""


MachineDetection = Literal["off", "detect", "hangup"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the caller, if that has not happened."""


@dataclass(frozen=True, slots=True)
class Play:
    """Play audio: ``prompt:NAME``, or the http(s) URL of a WAV."""

    url: str
    loops: int = 1


@dataclass(frozen=True, slots=True)
class Say:
    """Speak a text, in the language given such as ``hi-IN``, as often as asked."""

    text: str
    language: str = "en-IN"
    loops: int = 1


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for a while."""

    length_s: float


@dataclass(frozen=True, slots=True)
class SendDtmf:
    """Send telephone digits; ``w`` waits 500 ms, ``W`` one second."""

    digits: str


@dataclass(frozen=True, slots=True)
class Stream:
    """
    Connect the call to a voice agent until one of the two leaves.

    ``fallback`` asks the customer's server what to do when the agent cannot be reached before the answer.
    """

    choice: StreamChoice
    fallback: "Consult | None" = None


@dataclass(frozen=True, slots=True)
class Converse:
    """
    Have the built-in agent talk with the party, by its script, in a language such as ``hi-IN``.

    The greeting comes before the first node, and only a key breaks it off. ``variables`` are what texts may
    name; beside them they may name ``from`` and ``to``.
    """

    agent_id: str
    script: Script
    language: str = "en-IN"
    greeting: str = ""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Dial:
    """
    Dial a second party and let the two hear each other until one hangs up.

    With ``action`` the customer's server is asked then, whether or not the party was reached, and told the
    facts ``dial_call_status`` and ``dial_call_duration``. ``time_limit_s`` counts from that party's answer.
    """

    party: Party
    action: "Consult | None" = None
    time_limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Connect:
    """
    Dial the second party of a masked call and let the two hear each other until one hangs up.

    ``max_duration_s`` counts from that party's answer; None is no limit. ``record`` records the two from then
    on.
    """

    party: Party
    max_duration_s: float | None = None
    record: bool = False


@dataclass(frozen=True, slots=True)
class RouteByCaller:
    """
    Find out whom the caller of a masked number reaches, and ``Connect`` the two.

    A caller who shows no number is None. Who reaches nobody is told so in ``language``.
    """

    caller_number: str | None
    masked_number: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Announce:
    """
    Say the same several times, each time after a short silence; the key ``*`` has it said again.

    What is said may be somebody's secret, so no ``repr`` shows it.
    """

    sounds: tuple[Sound, ...] = field(repr=False)
    times: int = 2
    gap_s: float = 0.5
    max_again: int = 5


@dataclass(frozen=True, slots=True)
class Consult:
    """
    Ask the customer's server what to do; what it answers takes the place of all that would follow.

    ``event`` tells the server why it is asked. A caller who waits hears ringing, and goes on hearing it for
    ``ring_timeout_s`` when the server has nothing to say. ``facts`` are told with the question (the digits
    that were gathered, the recording that was made, ...). ``fallback`` is asked instead when the server
    cannot be asked, or answers what cannot be followed; questions that the answer brings about have the
    same one, and the same ``format``.
    """

    url: str
    method: WebhookMethod = "POST"
    event: str = "call.redirected"
    ring_timeout_s: float = DEFAULT_RING_TIMEOUT_S
    facts: tuple[tuple[str, str | int | None], ...] = ()
    fallback: "Consult | None" = None
    format: WebhookFormat = "json"


@dataclass(frozen=True, slots=True)
class Gather:
    """
    Collect keys that the party presses, while something is played.

    It is over with ``num_digits`` keys, with ``finish_on_key``, or when nothing is pressed for ``timeout_s``
    after the prompts or the last key. With ``action`` the customer's server is asked then, and told the
    digits as the fact ``digits``; without keys that is done only if ``action_on_empty``, else the plan goes
    on.
    """

    prompts: "tuple[Play | Say | Pause, ...]" = ()
    num_digits: int = 32
    finish_on_key: str = "#"
    timeout_s: float = 5.0
    action: Consult | None = None
    action_on_empty: bool = False


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """
    Record what the party says, as one leaves a message, into a file of the call.

    It is over after ``max_length_s``, with a key of ``finish_on_keys``, or after ``silence_s`` of silence.
    ``action`` is asked then, and told the facts ``recording_url`` and ``recording_duration_ms``.
    """

    max_length_s: float = 3600.0
    silence_s: float = 5.0
    finish_on_keys: str = "1234567890*#"
    beep: bool = True
    action: Consult | None = None


@dataclass(frozen=True, slots=True)
class JoinConference:
    """
    Let the party hear and be heard in a conference of the account's, by its name.

    It hears hold music until the conference has begun, which is when somebody with ``starts`` is there.
    When somebody with ``ends`` leaves, everybody's turn is over.
    """

    name: str
    muted: bool = False
    starts: bool = True
    ends: bool = False
    beep: bool = True
    max_members: int = 40


@dataclass(frozen=True, slots=True)
class Ring:
    """Let a caller who waits hear ringing for a while, and answer never."""

    timeout_s: float


@dataclass(frozen=True, slots=True)
class Reject:
    """Refuse the caller; a call that is already answered is ended."""

    status: int = 486


@dataclass(frozen=True, slots=True)
class Hangup:
    """End the call."""


Step = (
    Answer
    | Play
    | Say
    | Gather
    | RecordMessage
    | JoinConference
    | Announce
    | Pause
    | SendDtmf
    | Stream
    | Converse
    | Dial
    | Connect
    | RouteByCaller
    | Consult
    | Ring
    | Reject
    | Hangup
)


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What a call is to do.

    ``dial`` is the party an outbound call begins with; it is None for an inbound one, which has its caller.
    ``time_limit_s`` counts from the answer. ``machine_detection`` tells who answered an outbound call;
    ``hangup`` ends the call then when it is a machine.
    """

    steps: tuple[Step, ...]
    dial: Party | None = None
    record: bool = False
    recording_channels: int = 2
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    machine_detection: MachineDetection = "off"

    @property
    def answers(self) -> bool:
        """Whether the first party may come to be connected, which is what costs."""
        return self.dial is not None or not all(isinstance(step, Ring | Reject) for step in self.steps)

    @property
    def dials(self) -> bool:
        """Whether a second party may be dialled."""
        return any(isinstance(step, Dial | Connect | RouteByCaller) for step in self.steps)


def stream_plan(binding: Binding, time_limit_s: float) -> Plan:
    """
    The plan of an inbound call to a number bound to ``media_stream``.

    Raises:
        StreamSetupError: The binding no longer describes a stream that is possible.
    """
    choice = choice_of(binding)
    return Plan(
        (Stream(choice, fallback_of(binding.fallback_url)),),
        record=bool(binding.record),
        time_limit_s=time_limit_s,
    )


def fallback_of(
    url: str | None, method: WebhookMethod = "POST", form: WebhookFormat = "json"
) -> Consult | None:
    """The question to whom a customer names for when something cannot be asked or reached."""
    return None if url is None else Consult(url, method, FALLBACK_EVENT, format=form)


def consult_plan(binding: Binding, time_limit_s: float) -> Plan:
    """The plan of an inbound call to a number bound to ``webhook``."""
    method: WebhookMethod = "GET" if binding.webhook_method == "GET" else "POST"
    form: WebhookFormat = "form" if binding.webhook_format == "form" else "json"
    consult = Consult(
        binding.webhook_url or "",
        method,
        "call.incoming",
        float(binding.timeout_s or DEFAULT_RING_TIMEOUT_S),
        fallback=fallback_of(binding.fallback_url, method, form),
        format=form,
    )
    return Plan((consult,), record=bool(binding.record), time_limit_s=time_limit_s)


def missed_call_plan(binding: Binding) -> Plan:
    """The plan of an inbound call to a number bound to ``missed_call``: it rings, and nobody is there."""
    return Plan((Ring(float(binding.timeout_s or DEFAULT_MISSED_CALL_S)),))


def forward_plan(binding: Binding, target: Target, caller: Caller, number: str, time_limit_s: float) -> Plan:
    """
    The plan of an inbound call to a number bound to ``forward``: the plainest B2BUA call.

    ``number`` was called; ``caller`` is shown to the second party unless the binding names an own number.
    """
    passthrough = binding.caller_id in (None, "passthrough")
    party = Party(
        target=target,
        caller_id=caller.number if passthrough or binding.caller_id is None else binding.caller_id,
        caller_name=caller.name if passthrough else None,
        passthrough=passthrough,
        withheld=passthrough and caller.withheld,
        number=number if passthrough else None,
        vouched=caller.vouched or not passthrough,
        ring_timeout_s=float(binding.timeout_s or DEFAULT_RING_TIMEOUT_S),
    )
    return Plan((Dial(party),), record=bool(binding.record), time_limit_s=time_limit_s)


def masking_plan(binding: Binding, caller: Caller, number: str, time_limit_s: float) -> Plan:
    """The plan of an inbound call to a number that is enrolled for masking; the caller says where it goes."""
    shown = None if caller.withheld or not caller.number.startswith("+") else caller.number
    return Plan((RouteByCaller(shown, number, binding.language or "en"),), time_limit_s=time_limit_s)
