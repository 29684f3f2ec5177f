"""Conversations fed with whatever may come, in any order: nothing raises, and nothing is ever left."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callcontrol.agents.script_parser import read_script
from callcontrol.agents.steps.converse import Converse
from callcontrol.calls.effects.media import Speak
from callcontrol.calls.effects.records import Transcribe
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import RouteFound, RouteRefused, Timer, TimerFired
from callcontrol.calls.events.commands import HangupRequested, RedirectRequested, TransferCommand
from callcontrol.calls.events.instructions import InstructionsReceived
from callcontrol.calls.events.legs import LegAnswered, LegConfirmed, LegEnded, LegFailed, LegProgress
from callcontrol.calls.events.media import DigitReceived, PlaybackEnded, SpeechEnded, SpeechStarted
from callcontrol.calls.hangup_cause import NO_ROUTE_DESTINATION
from callcontrol.calls.plan import Pause
from tests.support.call_drive import A, Drive, assert_nothing_left, make_attempt, make_party, placed
from tests.support.domain import CALLEE
from tests.support.examples import examples

SCRIPT = {
    "max_turns": 6,
    "nodes": {
        "start": {
            "say": "One. Two three.",
            "gather": {"num_digits": 2, "timeout_s": 2, "retry_say": ""},
            "on": {"1": "told", "12": "desk", "speech": "told", "failed": "desk"},
        },
        "told": {"say": "Noted.", "next": "firm"},
        "firm": {
            "say": "Go on.",
            "gather": {"barge_in": False, "retries": 0},
            "on": {"digits": "start", "none": "bye"},
        },
        "desk": {"transfer": {"to": CALLEE}, "on": {"failed": "start"}},
        "bye": {"say": "Goodbye.", "hangup": True},
    },
}

legs = st.integers(0, 2)
turns = st.integers(0, 12)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(PlaybackEnded, st.just(A), st.sampled_from([None, "no voice"]), turns),
    st.builds(PlaybackEnded, st.just(A), st.none(), turns),
    st.builds(DigitReceived, legs, st.sampled_from("12#*"), st.just(100)),
    st.builds(SpeechStarted, legs),
    st.builds(SpeechEnded, legs, st.integers(60, 4000)),
    st.builds(TimerFired, st.just(Timer.PAUSE)),
    st.builds(LegProgress, legs, st.just(180)),
    st.builds(LegAnswered, legs, st.just(b"sdp")),
    st.builds(LegConfirmed, legs),
    st.builds(LegFailed, legs, st.just(486)),
    st.builds(LegEnded, legs),
    st.builds(RouteFound, st.just([make_attempt(1)])),
    st.builds(RouteRefused, st.just(NO_ROUTE_DESTINATION), st.just("")),
    st.builds(TransferCommand, st.just("a"), st.just(make_party("+919812345678"))),
    st.just(RedirectRequested("https://customer.example/")),
    st.builds(InstructionsReceived, st.just(1), st.just((Pause(1.0),))),
)


@settings(max_examples=examples(500), deadline=None)
@given(
    inbound=st.booleans(),
    obliging=st.booleans(),
    script=st.lists(st.tuples(st.floats(0, 4), events), max_size=30),
)
def test_a_conversation_ends_and_leaves_nothing(
    inbound: bool, obliging: bool, script: list[tuple[float, Event]]
) -> None:
    converse = Converse("agent-1", read_script(SCRIPT), greeting="Good day.")
    drive = Drive(converse).start() if inbound else placed(converse)
    drive.obliging = obliging
    for delay_s, event in script:
        drive.after(delay_s)
        drive.feed(event)
    drive.feed(HangupRequested())
    drive.after(11)  # the longest wait for a recording
    assert_nothing_left(drive)
    numbers = [effect.turn for effect in drive.done(Speak)]
    assert numbers == sorted(set(numbers)), "each sentence has a number of its own"
    for effect in drive.done(Transcribe):
        segment = effect.segment
        assert segment.text and 0 <= segment.start_ms <= (segment.end_ms or 0)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from(["1", "2", "#", "talk", "wait"]), max_size=60))
def test_whatever_the_party_does_the_agent_comes_to_an_end(does: list[str]) -> None:
    """With every sentence said to its end, and no order from outside, nobody need hang up."""
    drive = placed(Converse("agent-1", read_script(SCRIPT)))
    drive.obliging = True

    def says_on() -> None:
        while drive.done(Speak) and not drive.record.status.ended:
            before = len(drive.done(Speak))
            drive.feed(PlaybackEnded(A, turn=drive.done(Speak)[-1].turn))
            dialled: list[Any] = [leg for leg in drive.machine.legs.values() if leg.id != A and not leg.over]
            if dialled:
                drive.feed(LegFailed(dialled[-1].id, 486))
            if len(drive.done(Speak)) == before:
                return

    for deed in [*does, *["wait"] * 60]:
        says_on()
        if deed == "talk":
            drive.feed(SpeechStarted(A))
            drive.after(1)
            drive.feed(SpeechEnded(A, 900))
        elif deed != "wait":
            drive.feed(DigitReceived(A, deed, 100))
        drive.after(6)
    says_on()
    assert drive.record.status.ended
    assert_nothing_left(drive)
