"""Calls fed with whatever may come, in any order: nothing raises, and nothing is ever left."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from callcontrol.calls.effects.records import ExtendReserve, Finish
from callcontrol.calls.effects.signalling import DialLeg
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import (
    AgentClosed,
    AgentDigits,
    AgentExit,
    AgentHangup,
    AgentHold,
    AgentMute,
    AgentOpened,
    AgentRecord,
    AgentRefused,
    AgentTranscript,
    AgentTransfer,
)
from callcontrol.calls.events.answers import (
    ReserveExtended,
    ReserveRefused,
    RouteFound,
    RouteRefused,
    Timer,
    TimerFired,
)
from callcontrol.calls.events.commands import (
    DigitsRequested,
    HangupRequested,
    ListenRequested,
    MuteRequested,
    RecordingRequested,
    RedirectRequested,
    StepsRequested,
    TimeLimitRequested,
    TransferCommand,
)
from callcontrol.calls.events.instructions import InstructionsFailed, InstructionsReceived
from callcontrol.calls.events.legs import (
    LegAnswered,
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegOffered,
    LegProgress,
    LegRefused,
    MediaConnected,
    OfferTaken,
)
from callcontrol.calls.events.media import (
    ConferenceBegan,
    ConferenceEntered,
    ConferenceOver,
    ConferenceRefused,
    DigitReceived,
    DigitsSent,
    GreetingOver,
    LegHeld,
    MachineDetected,
    MediaSilent,
    MessageEnded,
    PlaybackEnded,
    PlayoutDrained,
    RecordingEnded,
    SpeechEnded,
    SpeechStarted,
)
from callcontrol.calls.events.transfers import (
    JoinRequested,
    LegReferred,
    PartnerDigit,
    PartnerFound,
    PartnerGone,
    PartnerMissing,
    PartnerReady,
    PartnerRefused,
    ReplacementCalled,
    TransferRequested,
)
from callcontrol.calls.hangup_cause import NO_ANSWER, NO_ROUTE_DESTINATION, ORIGINATOR_CANCEL
from callcontrol.calls.plan import (
    Answer,
    Dial,
    Gather,
    Hangup,
    JoinConference,
    Pause,
    Play,
    RecordMessage,
    Reject,
    RequestInstructions,
    Say,
    SendDtmf,
    Stream,
)
from callcontrol.models import CallStatus
from media.streams import choose_stream
from sip import Replaces, SipUri
from tests.support.call_drive import (
    Drive,
    assert_nothing_left,
    bridged,
    lasting,
    make_attempt,
    make_party,
    placed,
    streamed,
)
from tests.support.examples import examples
from tests.support.masked_drive import Masked

LASTING = choose_stream("wss://agent.example/?stream_events=speech,hold", {"stream_max_retries": 3})
MENU = RequestInstructions("https://customer.example/menu")
SPOKEN = (
    Say("Hello.", loops=2),
    Gather(
        (Say("Press one."), Pause(0.5), Play("prompt:x")), num_digits=2, action=MENU, action_on_empty=True
    ),
    RecordMessage(action=MENU),
    JoinConference("sales"),
)
legs = st.integers(0, 4)
names = st.sampled_from(["a", "b"])
bodies = st.sampled_from([b"", b"sdp"])
statuses = st.sampled_from([401, 404, 408, 480, 486, 488, 500, 503, 600, 603])
kinds = st.sampled_from(["response", "timeout", "transport", "cancelled", "resolve"])

events: st.SearchStrategy[Event] = st.one_of(
    st.builds(OfferTaken, legs),
    st.builds(LegProgress, legs, st.sampled_from([180, 181, 183, 199]), bodies),
    st.builds(LegAnswered, legs, bodies),
    st.builds(MediaConnected, legs),
    st.builds(LegConfirmed, legs, bodies),
    st.builds(LegFailed, legs, statuses, st.just(""), kinds, st.sampled_from([None, 5.0])),
    st.builds(LegCancelled, legs),
    st.builds(LegEnded, legs, st.booleans()),
    st.builds(LegOffered, legs, bodies),
    st.builds(LegRefused, legs, st.sampled_from(["codec", "ports"])),
    st.builds(DigitReceived, legs, st.just("1"), st.just(100), st.booleans()),
    st.builds(PlaybackEnded, legs),
    st.builds(DigitsSent, legs, st.just("1"), st.sampled_from([None, "cannot"])),
    st.builds(PlayoutDrained, legs),
    st.builds(SpeechStarted, legs),
    st.builds(SpeechEnded, legs, st.just(900)),
    st.builds(LegHeld, legs, st.booleans()),
    st.builds(MediaSilent, legs, st.just(60.0)),
    st.builds(PlaybackEnded, legs, st.sampled_from([None, "gone"]), st.integers(0, 3)),
    st.builds(MessageEnded, st.integers(1, 2), st.just("m"), st.just("/m.wav"), st.just(900)),
    st.builds(MessageEnded, st.just(1), st.just("m"), st.just("/m.wav"), st.just(0), st.just("disk full")),
    st.builds(ConferenceEntered, legs, st.booleans()),
    st.builds(ConferenceRefused, legs, st.sampled_from(["full", "media", "unavailable"])),
    st.builds(ConferenceBegan, legs),
    st.builds(ConferenceOver, legs),
    st.builds(RecordingEnded, legs, st.just("/x.wav"), st.just(1), st.sampled_from([None, "disk full"])),
    st.just(AgentOpened()),
    st.builds(AgentRefused, st.just("dns")),
    st.just(AgentRefused("http_status", 403)),
    st.builds(AgentClosed, st.sampled_from(AgentExit)),
    st.builds(AgentHangup, st.booleans()),
    st.builds(AgentHold, st.booleans()),
    st.builds(AgentMute, st.booleans()),
    st.builds(AgentRecord, st.sampled_from(["start", "stop", "pause", "resume"])),
    st.builds(AgentTranscript, st.just("user"), st.just("hello"), st.booleans()),
    st.builds(AgentDigits, st.just("1")),
    st.builds(AgentTransfer, st.sampled_from(["+919812345678", "sip:x@y", "nobody"])),
    st.builds(RouteFound, st.just([make_attempt(1), make_attempt(2)])),
    st.builds(RouteRefused, st.just(NO_ROUTE_DESTINATION), st.just("")),
    st.builds(ReserveExtended, st.integers(0, 10_000)),
    st.just(ReserveRefused()),
    st.builds(TimerFired, st.sampled_from(Timer)),
)
orders: st.SearchStrategy[Event] = st.one_of(
    st.builds(HangupRequested, st.just("api"), st.just(NO_ANSWER), st.just(CallStatus.NO_ANSWER)),
    st.builds(MuteRequested, names, st.sampled_from([None, True, False]), st.booleans()),
    st.builds(ListenRequested, st.sampled_from(["pause", "silence", "resume"])),
    st.builds(RecordingRequested, st.sampled_from(["start", "stop", "pause", "resume"])),
    st.builds(DigitsRequested, names, st.just("1")),
    st.builds(DigitsSent, legs, st.just("1"), st.none(), st.just(True)),
    st.builds(TransferCommand, names, st.just(make_party("+919812345678"))),
    st.builds(TimeLimitRequested, st.sampled_from([1.0, 60.0])),
    st.builds(MachineDetected, legs, st.sampled_from(["human", "machine"]), st.just("beep"), st.just(900)),
    st.builds(GreetingOver, legs, st.just("beep"), st.just(4000)),
)
instructing: st.SearchStrategy[Event] = st.one_of(
    st.just(RedirectRequested("https://customer.example/next")),
    st.just(StepsRequested((Pause(1),))),
    st.builds(
        InstructionsReceived,
        st.integers(1, 4),
        st.lists(
            st.sampled_from(
                [
                    Play("prompt:x"),
                    Pause(1.0),
                    Dial(make_party()),
                    Stream(choose_stream("wss://agent.example/")),
                    RequestInstructions("https://customer.example/again"),
                    *SPOKEN,
                    Reject(),
                    Hangup(),
                ]
            ),
            max_size=2,
        ),
    ),
    st.builds(InstructionsFailed, st.integers(1, 4), st.just("timeout"), st.just("no answer")),
)
OTHER = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
transfers: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        TransferRequested,
        legs,
        st.sampled_from(
            [SipUri.parse("tel:+919812345678"), SipUri.parse("sip:x@y"), SipUri.parse("sips:x@y")]
        ),
        st.sampled_from([None, Replaces("c", "t", "f")]),
        st.booleans(),
    ),
    st.builds(LegReferred, legs, st.sampled_from([100, 180, 200, 486])),
    st.builds(ReplacementCalled, legs, st.integers(1, 3)),
    st.builds(PartnerFound, st.just(OTHER), legs),
    st.just(PartnerMissing()),
    st.builds(JoinRequested, st.just(OTHER), legs),
    st.builds(PartnerReady, st.just(OTHER), legs),
    st.just(PartnerRefused()),
    st.just(PartnerGone()),
    st.builds(PartnerDigit, st.just("1"), st.just(100), st.booleans()),
    st.builds(AgentTransfer, st.just("tel:+91"), st.just("refer")),
)
steps = st.lists(
    st.sampled_from(
        [
            Answer(),
            Play("prompt:x"),
            Pause(1.0),
            SendDtmf("1"),
            Dial(make_party()),
            Stream(choose_stream("wss://agent.example/")),
            Stream(LASTING, RequestInstructions("https://customer.example/fallback")),
            RequestInstructions("https://customer.example/calls"),
            *SPOKEN,
            Reject(),
            Hangup(),
        ]
    ),
    max_size=4,
)


@settings(max_examples=examples(400), deadline=None)
@given(
    steps=steps,
    inbound=st.booleans(),
    obliging=st.booleans(),
    record=st.booleans(),
    script=st.lists(st.tuples(st.floats(0, 90), st.one_of(events, instructing)), max_size=25),
)
def test_every_call_ends_and_leaves_nothing(
    steps: list[object], inbound: bool, obliging: bool, record: bool, script: list[tuple[float, Event]]
) -> None:
    drive = Drive(*steps, inbound=inbound, obliging=obliging, record=record, routes=2).start()  # type: ignore[arg-type]
    for delay_s, event in script:
        drive.after(delay_s)
        drive.feed(event)
    drive.feed(HangupRequested())
    drive.after(20.0)
    assert_nothing_left(drive)
    reserved = max([500, *(effect.total_paise for effect in drive.done(ExtendReserve))])
    assert 0 <= drive.done(Finish)[0].charge_paise <= reserved + 10 * 500
    assert len([name for name in drive.events() if name == "call.answered"]) <= 1


@settings(max_examples=examples(600), deadline=None)
@given(
    agent=st.booleans(),
    lasts=st.booleans(),
    obliging=st.booleans(),
    script=st.lists(
        st.tuples(st.floats(0, 5), st.one_of(transfers, transfers, events, instructing)), max_size=25
    ),
)
def test_a_call_whose_parties_change_places_ends_and_leaves_nothing(
    agent: bool, lasts: bool, obliging: bool, script: list[tuple[float, Event]]
) -> None:
    drive = (lasting() if lasts else streamed()) if agent else bridged()
    drive.obliging = obliging
    for delay_s, event in script:
        drive.after(delay_s)
        drive.feed(event)
    drive.feed(HangupRequested())
    drive.after(11)  # the longest wait for a recording
    assert_nothing_left(drive)


@settings(max_examples=examples(300), deadline=None)
@given(
    kind=st.sampled_from(["streamed", "lasting", "bridged", "playing", "spoken", "conferring", "placed"]),
    script=st.lists(
        st.tuples(st.floats(0, 5), st.one_of(orders, orders, instructing, transfers, events)), max_size=25
    ),
)
def test_a_call_that_is_given_orders_ends_and_leaves_nothing(
    kind: str, script: list[tuple[float, Event]]
) -> None:
    drives: dict[str, Callable[[], Drive]] = {
        "streamed": streamed,
        "lasting": lasting,
        "bridged": bridged,
        "playing": lambda: placed(Play("prompt:x"), machine_detection="hangup"),
        "spoken": lambda: placed(*SPOKEN),
        "conferring": lambda: placed(JoinConference("sales"), Pause(1.0)),
        "placed": lambda: Drive(Play("prompt:x"), inbound=False, machine_detection="detect").start(),
    }
    drive = drives[kind]()
    for delay_s, event in script:
        drive.after(delay_s)
        drive.feed(event)
    drive.feed(HangupRequested())
    drive.after(11)  # the longest wait for a recording
    assert_nothing_left(drive)


STAGES = ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress"]


@settings(max_examples=examples(400), deadline=None)
@given(
    inbound=st.booleans(),
    obliging=st.booleans(),
    record=st.booleans(),
    limit_s=st.sampled_from([None, 10.0, 60.0]),
    script=st.lists(st.tuples(st.floats(0, 40), st.one_of(events, events, orders, transfers)), max_size=25),
)
def test_a_masked_call_ends_and_tells_of_itself_in_order(
    inbound: bool, obliging: bool, record: bool, limit_s: float | None, script: list[tuple[float, Event]]
) -> None:
    drive = Masked(inbound=inbound, record=record, limit_s=limit_s)
    drive.obliging = obliging
    for delay_s, event in script:
        drive.after(delay_s)
        drive.feed(event)
    drive.feed(HangupRequested())
    drive.after(11)  # the longest wait for a recording
    assert_nothing_left(drive)
    shown, told = drive.shown, drive.told
    assert told[-1] == shown["status"]
    assert [stage for stage in STAGES if stage in told] == told[:-1]
    talked = shown["answered_at"] is not None
    assert (shown["status"] == "completed") == talked
    # A caller who cancels while our 200 is prepared takes back an answer that was told.
    assert talked or "in-progress" not in told or shown["hangup_cause"] == ORIGINATOR_CANCEL.name
    assert not talked or "in-progress" in told
    assert (shown["bill_duration_sec"] >= 60) == talked
    assert all(leg["status"] in FINAL_LEGS for leg in shown["legs"])
    assert len({str(effect.party.target) for effect in drive.done(DialLeg)}) <= 2, "nobody else is called"


FINAL_LEGS = {"queued", "completed", "busy", "no-answer", "failed", "canceled"}
