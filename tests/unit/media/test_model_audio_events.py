"""Descriptions of the audio of speech models for the engine, and what dialects keep of what it played."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from media.streams import AudioEvent, ModelDialect
from tests.support.model_setups import accepted, delta, frames_of, make_dialect, parts_of, read, truncations

_PART = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": base64.b64encode(bytes(960)).decode()}}
_METADATA = {
    "type": "conversation_initiation_metadata",
    "conversation_initiation_metadata_event": {
        "agent_output_audio_format": "ulaw_8000",
        "user_input_audio_format": "pcm_16000",
    },
}


def described(dialect: ModelDialect) -> AudioEvent:
    envelope = dialect.envelope
    assert isinstance(envelope, AudioEvent)
    return envelope


def test_openai_audio_of_an_item_is_described_until_it_is_cut() -> None:
    dialect = accepted("openai")
    assert dialect.envelope is None, "no item has begun"
    read(dialect, **delta("one", 100))
    first = described(dialect)
    assert first.audio == "/delta" and first.equal["/item_id"] == "one" and first.converter is None
    read(dialect, type="response.created")
    read(dialect, **delta("one", 100))
    assert dialect.envelope is first, "the engine is told of a change alone"
    read(dialect, **delta("two", 100))
    assert described(dialect).equal["/item_id"] == "two"
    dialect.interrupted(150)
    assert dialect.envelope is None
    assert parts_of(read(dialect, **delta("two", 100))) == []
    assert dialect.envelope is None, "its further audio was not asked for"


def test_openai_items_are_truncated_to_what_was_played_of_them_without_being_parsed() -> None:
    dialect = accepted("openai")
    read(dialect, type="response.created")
    read(dialect, **delta("one", 100))
    dialect.played(7200)
    read(dialect, **delta("two", 100))
    dialect.played(1600)
    dialect.played(1600)
    assert truncations(dialect.interrupted(800)) == [("two", 0), ("one", 700)]


@pytest.mark.parametrize("item_id", ['a"b', "a\\", "\ud800", "न", "x" * 256, "\x00"])
def test_openai_any_name_of_an_item_can_be_described(item_id: str) -> None:
    dialect = accepted("openai")
    message: dict[str, Any] = delta("one", 20) | {"item_id": item_id}
    read(dialect, **message)
    texts = {place: text for place, _, text, _ in described(dialect).members()}
    assert texts["/item_id"].isascii() and json.loads(texts["/item_id"]) == item_id


def test_gemini_audio_is_described_once_the_user_is_known_to_have_stopped() -> None:
    dialect = accepted("gemini")
    assert dialect.envelope is None, "nobody has said a rate yet"
    content = {"modelTurn": {"parts": [_PART]}}
    read(dialect, serverContent=content)
    event = described(dialect)
    assert event.in_binary and not event.whole and event.converter is not None
    assert list(event.equal.values()) == ["audio/pcm;rate=24000"]
    assert set(event.alone) == {"", "/serverContent", "/serverContent/modelTurn/parts"}
    read(dialect, serverContent={"outputTranscription": {"text": "On its way."}})
    assert dialect.envelope is event
    read(dialect, serverContent={"inputTranscription": {"text": "And now?"}})
    assert dialect.envelope is None, "the next audio ends what the user says"
    read(dialect, serverContent=content)
    assert dialect.envelope is event
    other = {"inlineData": _PART["inlineData"] | {"mimeType": "audio/pcm;rate=16000"}}
    read(dialect, serverContent={"modelTurn": {"parts": [other]}})
    again = described(dialect)
    assert again is not event and again.converter is not None and again.converter.unchanged


def test_gemini_goes_on_converting_where_the_engine_stopped() -> None:
    dialect = accepted("gemini")
    read(dialect, serverContent={"modelTurn": {"parts": [_PART]}})
    converter = described(dialect).converter
    assert converter is not None
    converter.convert(bytes(960))
    (rest, *_) = parts_of(read(dialect, serverContent={"turnComplete": True}))
    # 40 ms came, of which the first part was played.
    assert isinstance(rest, bytes) and 0 < len(rest) <= 2 * 320
    assert parts_of(read(dialect, serverContent={"interrupted": True}))
    assert converter.flush() == b""


def test_elevenlabs_audio_is_described_from_the_event_after_the_interrupted_one() -> None:
    dialect = accepted("elevenlabs")
    before = described(dialect)
    assert before.at_least == {"/audio_event/event_id": 0} and before.whole
    read(dialect, type="ping", ping_event={"event_id": 3})
    assert dialect.envelope is before
    read(dialect, type="interruption", interruption_event={"event_id": 5})
    assert described(dialect).at_least == {"/audio_event/event_id": 6}
    read(dialect, type="interruption", interruption_event={"event_id": 2})
    assert described(dialect).at_least == {"/audio_event/event_id": 6}


def test_elevenlabs_interruptions_before_the_format_is_known_count_too() -> None:
    dialect = make_dialect("elevenlabs")
    read(dialect, type="interruption", interruption_event={"event_id": 5})
    assert dialect.envelope is None
    assert frames_of(read(dialect, **_METADATA)) == []
    event = described(dialect)
    assert event.at_least == {"/audio_event/event_id": 6}
    assert event.converter is not None and event.converter.sample_bytes == 1
