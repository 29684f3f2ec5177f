"""Messages of OpenAI's realtime transcription: its session, its utterances, and what it should not send."""

from __future__ import annotations

import json
from base64 import b64decode
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.realtime import (
    ConversationItemInputAudioTranscriptionCompletedEvent,
    InputAudioBufferAppendEvent,
    InputAudioBufferCommitEvent,
    SessionUpdateEvent,
)

from media.audio import tone
from media.audio.recognition import Heard, OpenAiDialect, RecognizerServer, SessionRefused
from tests.support.levels import tone_level_dbfs

TRANSCRIPTION = "conversation.item.input_audio_transcription"
URL = "wss://api.openai.com/v1/realtime"


def make(language: str = "hi-IN", rate: int = 8000, model: str = "gpt-4o-transcribe") -> OpenAiDialect:
    return OpenAiDialect(RecognizerServer(URL, model, "sk-1", "openai"), language, rate)


def event(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, "event_id": "event_1", **fields})


def completed(text: object, item: str = "item_1", **fields: Any) -> str:
    return event(f"{TRANSCRIPTION}.completed", item_id=item, content_index=0, transcript=text, **fields)


def delta(text: object, item: str = "item_1") -> str:
    return event(f"{TRANSCRIPTION}.delta", item_id=item, content_index=0, delta=text)


def read(*messages: str) -> list[Heard]:
    dialect = make()
    return [heard for message in messages if (heard := dialect.read(message)) is not None]


def test_the_session_is_one_that_the_vendor_knows() -> None:
    dialect = make()
    assert dialect.url() == f"{URL}?intent=transcription"
    assert dialect.headers() == {"Authorization": "Bearer sk-1"}
    opening = json.loads(dialect.opening() or "")
    SessionUpdateEvent.model_validate(opening)
    assert opening["session"] == {
        "type": "transcription",
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "transcription": {"model": "gpt-4o-transcribe", "language": "hi"},
                "turn_detection": {"type": "server_vad", "silence_duration_ms": 700},
            }
        },
        "include": ["item.input_audio_transcription.logprobs"],
    }


def test_whisper_is_not_asked_for_what_it_does_not_have() -> None:
    assert "include" not in json.loads(make(model="whisper-1").opening() or "")["session"]


@pytest.mark.parametrize("rate", [8000, 16_000])
def test_the_audio_is_sent_at_the_only_rate_of_the_endpoint(rate: int) -> None:
    dialect, sent = make(rate=rate), b""
    pcm = tone(440.0, 1000, sample_rate=rate)
    for at in range(0, len(pcm), rate // 50 * 2):
        message = dialect.audio(pcm[at : at + rate // 50 * 2])
        if message is not None:
            InputAudioBufferAppendEvent.model_validate(json.loads(message))
            sent += b64decode(json.loads(message)["audio"], validate=True)
    assert len(sent) == pytest.approx(48_000, abs=48 * 60)
    assert tone_level_dbfs(sent[4800:43_200], 440.0, 24_000) > -11.0


def test_an_utterance_begins_grows_and_is_over() -> None:
    logprobs = [{"token": "haan", "logprob": log(0.9), "bytes": []}, {"token": "ji", "logprob": log(0.9)}]
    assert read(
        event("session.created", session={}),
        event("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=0),
        event("input_audio_buffer.speech_stopped", item_id="item_1", audio_end_ms=900),
        event("input_audio_buffer.committed", item_id="item_1"),
        delta("haan"),
        delta(""),
        delta(" ji"),
        completed("haan ji", logprobs=logprobs),
        completed("Thanks.", item="item_2"),
    ) == [
        Heard("", final=False),
        Heard("", final=False),
        Heard("haan", final=False),
        Heard("haan", final=False),
        Heard("haan ji", final=False),
        Heard("haan ji", final=True, confidence=0.9),
        Heard("Thanks.", final=True),
    ]


def test_the_party_talks_between_the_beginning_and_the_end() -> None:
    dialect = make()
    assert not dialect.speaking
    dialect.read(event("input_audio_buffer.speech_started"))
    assert dialect.speaking
    dialect.read(event("input_audio_buffer.speech_stopped"))
    assert not dialect.speaking


def test_noise_has_no_words_and_a_failed_utterance_is_forgotten() -> None:
    failed = event(f"{TRANSCRIPTION}.failed", item_id="item_1", error={"code": "audio_unintelligible"})
    assert read(completed(""), completed(" \n"), delta("haan"), failed, delta("ji"))[-1].text == "ji"


def test_what_is_kept_of_utterances_is_bounded() -> None:
    dialect = make()
    for number in range(1000):
        heard = dialect.read(delta("word \x07" * 2000, item=f"item_{number}"))
        assert heard is not None and len(heard.text) <= 4000 and heard.text.isprintable()
    assert len(dialect._deltas) <= 8
    done = dialect.read(completed("word " * 9000))
    assert done is not None and len(done.text) <= 4000


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"type": "invalid_request_error", "code": "session_expired", "message": "Bye"}, "session_expired"),
        ({"type": "server_error", "code": None, "message": "Oh"}, "server_error"),
        ({"code": "<script>" * 1000}, "an error"),
        ("text", "an error"),
        (None, "an error"),
    ],
)
def test_an_error_ends_the_session_with_its_code(error: object, said: str) -> None:
    with pytest.raises(SessionRefused) as refusal:
        make().read(event("error", error=error))
    assert str(refusal.value) == said


@pytest.mark.parametrize(
    "message",
    [
        "",
        "[]",
        event(f"{TRANSCRIPTION}.delta"),
        event(f"{TRANSCRIPTION}.failed", item_id=7),
        delta(7),
        delta("a", item="x" * 1000),
        completed(None),
        completed("a", logprobs=[7]),
        completed("a", logprobs=[{"logprob": float("nan")}]),
        completed("a", logprobs=[{"logprob": 10**400}]),
    ],
)
def test_what_no_recogniser_should_send_is_refused(message: str) -> None:
    with pytest.raises(ValueError, match="no|not|Expecting"):
        make().read(message)


def test_the_vendors_own_event_is_read() -> None:
    usage = {"type": "duration", "seconds": 1.0}
    ConversationItemInputAudioTranscriptionCompletedEvent.model_validate(
        json.loads(completed("haan", usage=usage))
    )
    assert read(completed("haan", usage=usage)) == [Heard("haan", final=True)]


def test_words_are_due_from_the_beginning_of_an_utterance_to_its_transcript() -> None:
    dialect = make()
    dialect.read(event("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=0))
    assert not dialect.settled
    dialect.read(event("input_audio_buffer.speech_stopped", item_id="item_1", audio_end_ms=900))
    dialect.read(event("input_audio_buffer.committed", item_id="item_1", previous_item_id=None))
    assert not dialect.settled
    dialect.read(completed("haan"))
    assert dialect.settled


def test_words_at_the_end_are_due_although_their_beginning_is_not_known() -> None:
    dialect = make()
    flush = dialect.flush()
    assert flush is not None and not dialect.settled
    InputAudioBufferCommitEvent.model_validate(json.loads(flush))
    dialect.read(event("input_audio_buffer.committed", item_id="item_1", previous_item_id=None))
    assert not dialect.settled
    dialect.read(completed("haan"))
    assert dialect.settled


def test_an_end_without_words_is_no_error() -> None:
    nothing = event("error", error={"code": "input_audio_buffer_commit_empty"})
    dialect = make()
    dialect.flush()
    assert dialect.read(nothing) is None and dialect.settled
    with pytest.raises(SessionRefused):
        dialect.read(nothing)


@pytest.mark.parametrize(("code", "by_failure"), [("server_error", True), ("invalid_value", False)])
def test_what_a_session_is_refused_for_says_something_of_the_server_or_not(
    code: str, by_failure: bool
) -> None:
    with pytest.raises(SessionRefused) as refused:
        make().read(event("error", error={"code": code}))
    assert refused.value.by_failure is by_failure


def test_a_transcription_that_fails_is_not_waited_for() -> None:
    dialect = make()
    dialect.read(event("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=0))
    dialect.read(event(f"{TRANSCRIPTION}.failed", item_id="item_1", content_index=0, error={}))
    assert dialect.settled


KINDS = st.sampled_from(["delta", "completed", "failed"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["logprob", "token"]), inner),
    max_leaves=6,
)


@given(kind=KINDS, item=JSON, text=JSON, logprobs=JSON)
def test_anything_is_read_or_refused(kind: str, item: object, text: object, logprobs: object) -> None:
    fields = {"item_id": item, "delta": text, "transcript": text, "logprobs": logprobs}
    try:
        heard = make().read(event(f"{TRANSCRIPTION}.{kind}", **fields))
    except ValueError:
        return
    assert heard is None or (heard.text.isprintable() and 0.0 <= heard.confidence <= 1.0)
