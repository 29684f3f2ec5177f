"""
Plans: the list of steps of a call.

A plan is made from an API request, or from the binding of the called number. It is only data;
``callcontrol.calls.call`` runs it.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, Final, Literal

from callcontrol.calls.charges import Rates
from callcontrol.models import Binding, StreamInfo
from callcontrol.models.parties import DEFAULT_RING_TIMEOUT_S, Party, Target
from callcontrol.numbers.binding import choice_of
from callcontrol.trunks.inbound_invite import Caller
from media.audio import Sound
from media.streams import StreamChoice, under_default
from sip.values import frozen

FALLBACK_EVENT: Final = "call.fallback"
"""Event of the request to a fallback URL."""

STREAMED_EVENT: Final = "call.streamed"
"""Event of the request behind a voice agent or a speech model."""

MESSAGED_EVENT: Final = "call.messaged"
"""Event of the request behind a chat message."""

DEFAULT_MISSED_CALL_S: Final = 30.0
DEFAULT_TIME_LIMIT_S: Final = 14_400.0

USUAL_LANGUAGE: Final = "en-IN"
"""Language of what is to be recognised, where none is named."""

WebhookMethod = Literal["POST", "GET"]

WebhookFormat = Literal["json", "form", "jambonz"]
"""
Format of requests to the customer's server.

It is our JSON, form fields as TwiML servers expect, or the JSON of jambonz, whose verbs are the answer.
"""

RecordingAction = Literal["start", "stop", "pause", "resume"]

TrackAction = Literal["add", "play", "say", "silence", "remove"]


MachineDetection = Literal["off", "detect", "hangup"]


class Step:
    """Base class of the steps of a plan. A product defines its own beside the machines that run them."""

    __slots__ = ()

    dials: ClassVar[bool] = False
    """True when the step may dial a second party."""


@frozen
class Answer(Step):
    """Answer the caller, if not yet answered."""


@frozen
class Play(Step):
    """Play audio: ``prompt:NAME``, or the http(s) URL of a WAV."""

    url: str
    loops: int = 1


@frozen
class Say(Step):
    """
    Speak a text ``loops`` times, in a language such as ``hi-IN``.

    ``voice`` is one of the speech server's; None is the server's usual one.
    """

    text: str
    language: str = "en-IN"
    loops: int = 1
    voice: str | None = None


@frozen
class Dub(Step):
    """
    Change a track: a sound that the party hears beside everything else, at ``gain_db``.

    ``sound`` goes with ``play``, ``say`` and, if there is one, ``add``; with ``loop`` it has no end.
    """

    action: TrackAction
    track: str
    sound: Play | Say | None = None
    loop: bool = False
    gain_db: float = 0.0


@frozen
class Pause(Step):
    """Wait for a while."""

    length_s: float


@frozen
class SendDtmf(Step):
    """Send telephone digits; ``w`` waits 500 ms, ``W`` one second."""

    digits: str


@frozen
class Stream(Step):
    """
    Connect the call to a voice agent until one of the two leaves.

    ``fallback`` is the request to the customer's server when the agent cannot be reached before the answer.
    """

    choice: StreamChoice
    fallback: "RequestInstructions | None" = None

    def pending(self, stream_sid: str, protocol: str) -> StreamInfo:
        """Return the stream before it is opened; the account speaks ``protocol`` by default."""
        return stream_info(under_default(self.choice, protocol), stream_sid, "pending")


def stream_info(choice: StreamChoice, stream_sid: str, state: str) -> StreamInfo:
    """Return a stream as the record of its call shows it."""
    model = choice.model.model if choice.model is not None else None
    return StreamInfo(
        stream_sid, choice.url, choice.protocol, choice.encoding, choice.sample_rate, state, model
    )


@frozen
class Dial(Step):
    """
    Dial a second party and connect the two until one hangs up.

    With ``action`` the customer's server is asked afterwards, whether or not the party was reached; the
    request carries the facts ``dial_call_status`` and ``dial_call_duration``. ``time_limit_s`` counts from
    that party's answer.
    """

    dials: ClassVar[bool] = True
    party: Party
    action: "RequestInstructions | None" = None
    time_limit_s: float | None = None


@frozen
class TransferParty(Step):
    """
    Transfer the party to another: the call goes on as a call of these two, without the rest of the plan.

    When that party is not reached, ``action`` is asked with the facts ``refer_status`` and
    ``final_referred_call_status``; without it the plan goes on.
    """

    dials: ClassVar[bool] = True
    party: Party
    action: "RequestInstructions | None" = None


@frozen
class ChangeRecording(Step):
    """Start, stop, pause or resume the recording of the call; without effect where that is impossible."""

    action: RecordingAction


@frozen
class ChangeTranscription(Step):
    """
    Begin to transcribe the call in ``language``, or transcribe it no more without one.

    Sentences are also sent to ``hook_url``, in jambonz's form. A step that ``waits`` lasts until the call
    ends or goes on with other steps, and ends the transcription then.
    """

    language: str | None
    hook_url: str | None = None
    waits: bool = False


@frozen
class SendMessage(Step):
    """
    Send a chat message to a number; the call goes on, whether or not it is accepted.

    ``from_`` has to be the number of the account's channel. With ``action`` the customer's server is asked
    with the result, in the facts ``message_status``, ``message_id`` and those of the error.
    """

    to: str
    text: str = field(repr=False)
    from_: str | None = None
    action: "RequestInstructions | None" = None


@frozen
class Annotate(Step):
    """Add ``details`` to those of the call's record, in place of earlier ones of the same name."""

    details: Mapping[str, Any]


@frozen
class Announce(Step):
    """
    Repeat the same sounds several times, with a short silence between; the key ``*`` repeats them.

    The sounds may be a secret, so no ``repr`` shows them.
    """

    sounds: tuple[Sound, ...] = field(repr=False)
    times: int = 2
    gap_s: float = 0.5
    max_again: int = 5


@frozen
class RequestInstructions(Step):
    """
    Ask the customer's server for instructions, which replace the rest of the plan.

    ``event`` is the reason of the request. A waiting caller hears ringing, and continues to hear it for
    ``ring_timeout_s`` when the server answers without instructions. ``facts`` are sent with the request (the
    digits that were gathered, the recording that was made, ...). ``fallback`` is asked instead when the
    request fails or the instructions are invalid; later requests that the instructions cause have the same
    fallback and the same ``format``. When the server answers without instructions, the steps ``otherwise``
    follow, if there are any.
    """

    url: str
    method: WebhookMethod = "POST"
    event: str = "call.redirected"
    ring_timeout_s: float = DEFAULT_RING_TIMEOUT_S
    facts: tuple[tuple[str, str | int | None], ...] = ()
    fallback: "RequestInstructions | None" = None
    format: WebhookFormat = "json"
    # Each of these steps may hold those behind it: comparing or showing them would not end.
    otherwise: tuple[Step, ...] = field(default=(), repr=False, compare=False)

    def after_failure(
        self, url: str, reason: str, message: str, facts: tuple[tuple[str, str | int | None], ...] = ()
    ) -> "RequestInstructions":
        """Return this request as the one to a fallback URL: it names what failed, behind ``facts``."""
        failure = (("failed_url", url), ("error_reason", reason), ("error_message", message))
        return replace(self, event=FALLBACK_EVENT, facts=(*facts, *failure))


@frozen
class Gather(Step):
    """
    Collect keys that the party presses, and what it says, while prompts are played.

    The step ends after ``num_digits`` keys, with ``finish_on_key``, after words in ``language``, or when
    nothing comes for ``timeout_s`` after the prompts or the last key or word. Without ``language`` it does
    not listen, and without ``keys`` it ignores them. With ``action`` the customer's server is asked then,
    with the facts ``digits`` and ``speech``; without input that happens only if ``action_on_empty``, else the
    plan goes on. ``inter_digit_s`` is the limit after a key, where it differs from ``timeout_s``.
    """

    prompts: "tuple[Play | Say | Pause, ...]" = ()
    num_digits: int = 32
    finish_on_key: str = "#"
    timeout_s: float = 5.0
    action: RequestInstructions | None = None
    action_on_empty: bool = False
    inter_digit_s: float | None = None
    language: str | None = None
    keys: bool = True


@frozen
class RecordMessage(Step):
    """
    Record the party's message into a file of the call.

    The step ends after ``max_length_s``, with a key of ``finish_on_keys``, or after ``silence_s`` of silence.
    ``action`` is asked then, with the facts ``recording_url`` and ``recording_duration_ms``.
    """

    max_length_s: float = 3600.0
    silence_s: float = 5.0
    finish_on_keys: str = "1234567890*#"
    beep: bool = True
    action: RequestInstructions | None = None


@frozen
class JoinConference(Step):
    """
    Connect the party to a conference of the account, by its name.

    The party hears hold music until the conference has begun, which is when a member with ``starts`` joins.
    When a member with ``ends`` leaves, the conference is over for all.
    """

    name: str
    muted: bool = False
    starts: bool = True
    ends: bool = False
    beep: bool = True
    max_members: int = 40


@frozen
class Ring(Step):
    """Ring without an answer, for ``timeout_s``."""

    timeout_s: float


@frozen
class Reject(Step):
    """Reject the caller; end a call that is already answered."""

    status: int = 486


@frozen
class Hangup(Step):
    """End the call."""


@frozen
class Plan:
    """
    Steps and limits of one call.

    ``dial`` is the party that an outbound call begins with; None for an inbound call. ``time_limit_s`` counts
    from the answer. ``machine_detection`` reports who answered an outbound call; with ``hangup`` a machine
    ends the call. An answered call is transcribed in the language ``transcribe``, if that is given.
    """

    steps: tuple[Step, ...]
    dial: Party | None = None
    record: bool = False
    recording_channels: int = 2
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    machine_detection: MachineDetection = "off"
    transcribe: str | None = None

    @property
    def answers(self) -> bool:
        """True when the first party may be connected, and charged."""
        return self.dial is not None or not all([isinstance(step, Ring | Reject) for step in self.steps])

    @property
    def dials(self) -> bool:
        """True when a second party may be dialled."""
        return any([step.dials for step in self.steps])

    @property
    def first_stream(self) -> Stream | None:
        """The stream that the call begins with, after the digits it may send; None if it begins otherwise."""
        first = next((step for step in self.steps if not isinstance(step, SendDtmf)), None)
        return first if isinstance(first, Stream) else None

    def reserve_paise(self, rates: Rates) -> int:
        """Return the reserve needed to begin the call: ``reserve_pulses`` of every leg it may have."""
        if not self.answers:
            return 0
        first_paise = rates.inbound_paise if self.dial is None else rates.outbound_paise
        second_paise = rates.outbound_paise if self.dials else 0
        return rates.reserve_pulses * (first_paise + second_paise)


def stream_plan(binding: Binding, time_limit_s: float) -> Plan:
    """
    Return the plan of an inbound call to a number bound to ``media_stream`` or ``model``.

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
) -> RequestInstructions | None:
    """Return the request to a customer's fallback URL, for a failed request or an unreachable agent."""
    return None if url is None else RequestInstructions(url, method, FALLBACK_EVENT, format=form)


def webhook_format_of(binding: Binding) -> WebhookFormat:
    """Return the format of requests to the server of a binding."""
    match binding.webhook_format:
        case "form" | "jambonz" as form:
            return form
    return "json"


def webhook_plan(binding: Binding, time_limit_s: float) -> Plan:
    """Return the plan of an inbound call to a number bound to ``webhook``."""
    method: WebhookMethod = "GET" if binding.webhook_method == "GET" else "POST"
    form = webhook_format_of(binding)
    request = RequestInstructions(
        binding.webhook_url or "",
        method,
        "call.incoming",
        float(binding.timeout_s or DEFAULT_RING_TIMEOUT_S),
        fallback=fallback_of(binding.fallback_url, method, form),
        format=form,
    )
    return Plan((request,), record=bool(binding.record), time_limit_s=time_limit_s)


def missed_call_plan(binding: Binding) -> Plan:
    """Return the plan of an inbound call to a number bound to ``missed_call``: ring without an answer."""
    return Plan((Ring(float(binding.timeout_s or DEFAULT_MISSED_CALL_S)),))


def forward_plan(binding: Binding, target: Target, caller: Caller, number: str, time_limit_s: float) -> Plan:
    """
    Return the plan of an inbound call to a number bound to ``forward`` or ``browser``: a plain B2BUA call.

    ``number`` was called; ``caller`` is shown to the second party unless the binding names a caller-ID. When
    that party is not reached, the binding's ``fallback_url`` is asked, if it has one.
    """
    passthrough = binding.caller_id in (None, "passthrough")
    party = Party(
        target=target,
        caller_id=caller.number if passthrough or binding.caller_id is None else binding.caller_id,
        caller_name=caller.name if passthrough else None,
        passthrough=passthrough,
        withheld=passthrough and caller.withheld,
        number=number if passthrough else None,
        trusted=caller.trusted or not passthrough,
        ring_timeout_s=float(binding.timeout_s or DEFAULT_RING_TIMEOUT_S),
    )
    step: Step = Dial(party)
    if binding.fallback_url:
        step = TransferParty(party, RequestInstructions(binding.fallback_url, event=FALLBACK_EVENT))
    return Plan((step,), record=bool(binding.record), time_limit_s=time_limit_s)
