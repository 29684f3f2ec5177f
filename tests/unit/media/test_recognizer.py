"""Messages of a recogniser: parts of an utterance, and what no recogniser should send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.audio.recognition import DeepgramDialect, Heard, RecognizerServer


def result(text: object, *, final: bool = False, over: bool = False, confidence: object = 0.9) -> str:
    alternatives = [{"transcript": text, "confidence": confidence}]
    return json.dumps(
        {
            "type": "Results",
            "is_final": final,
            "speech_final": over,
            "channel": {"alternatives": alternatives},
        }
    )


def dialect() -> DeepgramDialect:
    return DeepgramDialect(RecognizerServer("wss://dg.example/v1/listen", "nova-3", "dg-1"), "en-IN", 8000)


def read(*messages: str) -> list[Heard]:
    utterances = dialect()
    return [heard for message in messages if (heard := utterances.read(message)) is not None]


def test_parts_are_joined_until_the_utterance_is_over() -> None:
    assert read(
        result("I would"),
        result("I would like", final=True, confidence=0.8),
        result("to book"),
        result("to book a table.", final=True, over=True),
        result("Thanks"),
    ) == [
        Heard("I would", final=False),
        Heard("I would like", final=False),
        Heard("I would like to book", final=False),
        Heard("I would like to book a table.", final=True, confidence=0.8),
        Heard("Thanks", final=False),
    ]


def test_the_end_of_an_utterance_may_come_by_itself() -> None:
    end = json.dumps({"type": "UtteranceEnd", "channel": [0, 1], "last_word_end": 2.1})
    assert read(end, result("yes", final=True), end, end)[-1:] == [Heard("yes", True, 0.9)]


def test_silence_and_other_messages_are_nothing() -> None:
    messages = [
        result(""),
        result("", final=True, over=True),
        '{"type":"Metadata"}',
        '{"type":"SpeechStarted"}',
    ]
    assert read(*messages, '{"type":7}', "{}") == []


def test_an_utterance_is_bounded_and_printable() -> None:
    (heard,) = read(*[result("word \x07" * 100, final=True)] * 100, result("", over=True))[-1:]
    assert len(heard.text) <= 4000 and heard.text.isprintable() and heard.final


@pytest.mark.parametrize(
    "message",
    [
        "",
        "nonsense",
        "[]",
        '{"type":"Results"}',
        '{"type":"Results","channel":{"alternatives":[]}}',
        '{"type":"Results","channel":{"alternatives":[7]}}',
        '{"type":"Results","channel":[]}',
        result(7),
        result("a", confidence="high"),
        result("a", confidence=None),
        result("a", confidence=True),
        result("a", confidence=float("nan")),
        result("a", confidence=10**400),
    ],
)
def test_what_no_recogniser_should_send_is_refused(message: str) -> None:
    with pytest.raises(ValueError, match=""):
        dialect().read(message)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["channel", "alternatives", "transcript", "confidence"]), inner, max_size=4
        )
    ),
)


@given(channel=JSON, final=JSON, over=JSON)
def test_anything_is_read_or_refused(channel: Any, final: Any, over: Any) -> None:
    message = {"type": "Results", "channel": channel, "is_final": final, "speech_final": over}
    try:
        heard = dialect().read(json.dumps(message))
    except ValueError:
        return
    assert heard is None or (heard.text.isprintable() and 0.0 <= heard.confidence <= 1.0)
