"""API requests to change an active call, and the commands they contain."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from callcontrol.calls.events.commands import (
    DigitsRequested,
    DubRequested,
    HangupRequested,
    ListenRequested,
    ListenStatus,
    LiveCommand,
    MuteDirection,
    MuteRequested,
    PartyName,
    RecordingRequested,
    RedirectRequested,
    StepsRequested,
    TimeLimitRequested,
    TranscriptionRequested,
    TransferCommand,
)
from callcontrol.calls.hangup_cause import NO_ANSWER, NORMAL_CLEARING
from callcontrol.calls.plan import USUAL_LANGUAGE, Dub, RecordingAction, Step, WebhookFormat, WebhookMethod
from callcontrol.egress.url_policy import HOOK_SCHEMES, WEB_SCHEMES, CheckUrl, url_errors
from callcontrol.errors import RequestErrors, ValidationFailed
from callcontrol.models import CallRecord, CallStatus
from callcontrol.models.parties import Party
from callcontrol.routing.targets import normalise_number, parse_target

ReadVerbs = Callable[[CallRecord, Sequence[Mapping[str, Any]], WebhookFormat], Sequence[Step]]
"""Reads the verbs of a call into steps; raises ``ValidationFailed`` or ``Forbidden``."""

TRANSFER_RING_S: Final = 30.0
"""Ringing limit of a transfer's target, in seconds, unless the request sets another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRequest:
    """Target of a transfer, as requested."""

    to: str
    party: PartyName = "a"
    caller_id: str | None = None
    timeout_s: float = TRANSFER_RING_S
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveUpdate:
    """
    Requested changes of a call; applied all together or not at all.

    ``dub`` has the fields of the verb, ``verbs`` are new instructions, and the server at ``webhook_url`` is
    asked for some; ``webhook_format`` is that of the requests which either leads to.
    """

    call_status: Literal["completed", "no-answer"] | None = None
    mute_status: Literal["mute", "unmute"] | None = None
    mute_direction: MuteDirection = "says"
    party: PartyName = "a"
    listen_status: ListenStatus | None = None
    recording: RecordingAction | None = None
    recording_channels: Literal["mono", "dual"] = "dual"
    transcription: Literal["start", "stop"] | None = None
    transcription_language: str = USUAL_LANGUAGE
    dub: Mapping[str, Any] | None = None
    dub_party: PartyName = "a"
    digits: str | None = None
    digits_party: PartyName = "a"
    transfer: TransferRequest | None = None
    time_limit_s: float | None = None
    webhook_url: str | None = None
    webhook_method: WebhookMethod = "POST"
    webhook_format: WebhookFormat = "json"
    verbs: Sequence[Mapping[str, Any]] | None = None


FIELD_OF: Final[dict[type, str]] = {
    HangupRequested: "call_status",
    MuteRequested: "mute_status",
    ListenRequested: "listen_status",
    RecordingRequested: "record",
    TranscriptionRequested: "transcribe",
    DubRequested: "dub",
    DigitsRequested: "dtmf",
    TransferCommand: "transfer",
    TimeLimitRequested: "time_limit",
    RedirectRequested: "webhook_url",
    StepsRequested: "verbs",
}
"""Request field of each command."""


def commands_of(
    update: LiveUpdate,
    record: CallRecord,
    allowed_countries: Collection[str],
    check_url: CheckUrl,
    read: ReadVerbs,
) -> list[LiveCommand]:
    """
    Return the commands of an update, in the order of execution.

    ``check_url`` is ``Destinations.check_url``, ``read`` reads verbs.

    Raises:
        ValidationFailed: Values are wrong; all of them are named.
        Forbidden: A number may not be dialled.
    """
    values = RequestErrors()
    commands: list[LiveCommand] = []
    if update.time_limit_s is not None:
        commands.append(TimeLimitRequested(update.time_limit_s))
    commands += _audio(update)
    if (fields := update.dub) is not None:
        dub = values.read(lambda: _dub(fields, record, read))
        commands += [] if dub is None else [DubRequested(update.dub_party, dub)]
    if update.digits is not None:
        commands.append(DigitsRequested(update.digits_party, update.digits))
    if (asked := update.transfer) is not None:
        transfer = values.read(lambda: _transfer(asked, record, allowed_countries))
        commands += [] if transfer is None else [transfer]
    commands += _instructions(update, record, values, check_url, read)
    values.raise_found()
    if update.call_status == "completed":
        commands.append(HangupRequested("api", NORMAL_CLEARING))
    elif update.call_status == "no-answer":
        commands.append(HangupRequested("api", NO_ANSWER, CallStatus.NO_ANSWER))
    return commands


def _instructions(
    update: LiveUpdate, record: CallRecord, values: RequestErrors, check_url: CheckUrl, read: ReadVerbs
) -> Iterator[LiveCommand]:
    if update.webhook_url is not None:
        schemes = HOOK_SCHEMES if update.webhook_format == "jambonz" else WEB_SCHEMES
        values.errors += url_errors(check_url, "webhook_url", update.webhook_url, schemes=schemes)
        yield RedirectRequested(update.webhook_url, update.webhook_method, update.webhook_format)
    if (verbs := update.verbs) is not None:
        steps = values.read(lambda: read(record, verbs, update.webhook_format))
        yield StepsRequested(tuple(steps or ()))


def _mute(update: LiveUpdate) -> MuteRequested:
    muted = update.mute_status == "mute"
    return MuteRequested(
        update.party,
        says=muted if update.mute_direction != "hears" else None,
        hears=muted if update.mute_direction != "says" else None,
    )


def _audio(update: LiveUpdate) -> Iterator[LiveCommand]:
    """Yield the commands on what is heard and kept of the call."""
    if update.mute_status is not None:
        yield _mute(update)
    if update.listen_status is not None:
        yield ListenRequested(update.listen_status)
    if update.recording is not None:
        channels = 1 if update.recording_channels == "mono" else 2
        yield RecordingRequested(update.recording, channels)
    if update.transcription is not None:
        starts = update.transcription == "start"
        yield TranscriptionRequested(update.transcription_language if starts else None)


def _dub(fields: Mapping[str, Any], record: CallRecord, read: ReadVerbs) -> Dub:
    try:
        (step,) = read(record, [{"verb": "dub", **fields}], "json")
    except ValidationFailed as refusal:
        raise refusal.renamed(lambda field: field.replace("verbs[0]", "dub", 1)) from None
    assert isinstance(step, Dub), "the verb's only step"
    return step


def _transfer(
    request: TransferRequest, record: CallRecord, allowed_countries: Collection[str]
) -> TransferCommand:
    """Build the command; the caller-ID defaults to the account's number of the call."""
    values = RequestErrors()
    target = values.read(lambda: parse_target(request.to, allowed_countries, field="transfer.to"))
    own = record.to if record.direction == "inbound" else record.from_
    caller_id: str | None = own
    if (given := request.caller_id) is not None:
        caller_id = values.read(lambda: normalise_number(given, field="transfer.caller_id"))
    values.raise_found()
    assert target is not None and caller_id is not None, "their errors were raised"
    party = Party(target, caller_id, ring_timeout_s=request.timeout_s, headers=request.headers)
    return TransferCommand(request.party, party)
