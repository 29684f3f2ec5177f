"""
Messages of servers that recognise speech while a party talks, by the endpoint's form.

A dialect is the state of one connection, without I/O: it writes the session and the audio, and joins what the
server sends into utterances.

Sources: Deepgram API reference, Live Audio (`/v1/listen`); OpenAI, Realtime transcription
(developers.openai.com/api/docs/guides/realtime-transcription).
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, get_args
from urllib.parse import urlencode

from media.streams.conversion import AudioConverter

RecognizerProtocol = Literal["deepgram", "openai"]

RECOGNIZER_PROTOCOLS: Final[tuple[RecognizerProtocol, ...]] = get_args(RecognizerProtocol)
DEFAULT_MODELS: Final[Mapping[RecognizerProtocol, str]] = MappingProxyType(
    {"deepgram": "nova-3", "openai": "gpt-4o-transcribe"}
)
"""Model of a server whose operator names none, by its protocol."""

LANGUAGE_TAG: Final = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,3}")
"""Tag of a language that speech is recognised in."""

MAX_TEXT_CHARS: Final = 4000
"""Limit of an utterance."""

_MAX_ITEMS = 8
_MAX_TOKENS = 4000
_MAX_ID_CHARS = 200
_HUGE = 1e9
_OPENAI_RATE = 24_000
_SHORT_LANGUAGE = re.compile(r"[a-z]{2,3}")
_CODE = re.compile(r"[a-z0-9_.-]{1,64}")
_SERVER_ERROR = "server_error"
_NOTHING_TO_COMMIT = "input_audio_buffer_commit_empty"


@dataclass(frozen=True, slots=True)
class RecognizerServer:
    """
    A server that recognises speech.

    Attributes:
        url: Endpoint, such as `wss://api.deepgram.com/v1/listen` or `wss://api.openai.com/v1/realtime`.
        model: Model that listens.
        key: Token, if it wants one.
        protocol: Form of its messages.
        endpointing_ms: Silence that ends an utterance.
        connect_timeout_s: Limit for the connection.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    protocol: RecognizerProtocol = "deepgram"
    endpointing_ms: int = 700
    connect_timeout_s: float = 3.0


@dataclass(frozen=True, slots=True)
class Heard:
    """
    Words of the party, from the beginning of its utterance; empty while it talks and none is known.

    Attributes:
        final: True if the utterance is over.
        confidence: From 0 to 1; 0 if the server did not say.
    """

    text: str = field(repr=False)
    final: bool
    confidence: float = 0.0


class SessionRefused(Exception):
    """
    The server ends its service; the message is its code for the reason.

    Attributes:
        by_failure: True if the server has failed; False if it takes offence at this session alone, such as at
            its language.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.by_failure = code == _SERVER_ERROR


class RecognizerDialect(Protocol):
    """
    Messages of one connection.

    Attributes:
        speaking: True while the party talks, as far as the server has said so.
    """

    speaking: bool

    @property
    def settled(self) -> bool:
        """True when no words are due after the end of the audio; the server need not be waited for."""
        ...

    def url(self) -> str:
        """Return the address with the parameters of the session."""
        ...

    def headers(self) -> dict[str, str]:
        """Return the header fields of the handshake."""
        ...

    def opening(self) -> str | None:
        """Return the message before all audio, if there is one."""
        ...

    def audio(self, pcm: bytes) -> bytes | str | None:
        """Return the message with 16-bit mono samples, None while too few wait."""
        ...

    def flush(self) -> str | None:
        """Return the message that ends an utterance which the end of the audio cut off."""
        ...

    def closing(self) -> str | None:
        """Return the last message, if there is one."""
        ...

    def read(self, data: str) -> Heard | None:
        """
        Read a message; None if it adds nothing.

        Raises:
            ValueError: It is not what the server should send.
            SessionRefused: It says that nothing will be recognised.
        """
        ...


def make_recognizer_dialect(server: RecognizerServer, language: str, sample_rate: int) -> RecognizerDialect:
    """Make the dialect of a connection for a party with samples of this rate."""
    dialect = DeepgramDialect if server.protocol == "deepgram" else OpenAiDialect
    return dialect(server, language, sample_rate)


class DeepgramDialect:
    """
    Deepgram's streaming endpoint.

    A part that will not change any more is final for the server; the utterance is over with `speech_final`,
    or with `UtteranceEnd`.
    """

    speaking = False
    """Interim results tell of the party often enough."""

    settled = False
    """The server closes the connection behind its last words."""

    def __init__(self, server: RecognizerServer, language: str, sample_rate: int) -> None:
        self._server = server
        self._language = language
        self._sample_rate = sample_rate
        self._parts: list[str] = []
        self._confidences: list[float] = []

    def url(self) -> str:
        """Return the address, whose query is the whole session."""
        server = self._server
        query = {
            "model": server.model,
            "language": self._language,
            "encoding": "linear16",
            "sample_rate": self._sample_rate,
            "channels": 1,
            "interim_results": "true",
            "punctuate": "true",
            "endpointing": server.endpointing_ms,
            "utterance_end_ms": max(1000, server.endpointing_ms),
        }
        return _with_query(server.url, query)

    def headers(self) -> dict[str, str]:
        """Return the key."""
        return {} if self._server.key is None else {"Authorization": f"Token {self._server.key}"}

    def opening(self) -> str | None:
        """Return none."""
        return None

    def audio(self, pcm: bytes) -> bytes | str | None:
        """Return the samples as they are."""
        return pcm

    def flush(self) -> str | None:
        """Return none: the end of the stream ends an utterance."""
        return None

    def closing(self) -> str | None:
        """Return the message that ends the stream."""
        return '{"type":"CloseStream"}'

    def read(self, data: str) -> Heard | None:
        """Read a message; raises `ValueError` for what Deepgram does not send."""
        message = _object(data)
        match message.get("type"):
            case "Results":
                return self._result(message)
            case "UtteranceEnd":
                return self._end()
        return None

    def _result(self, message: Mapping[str, Any]) -> Heard | None:
        try:
            best = message["channel"]["alternatives"][0]
            text, confidence = best["transcript"], best.get("confidence", 0.0)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError("no transcript") from None
        confidence = _number(confidence)
        text = _printable(text).strip()
        if message.get("is_final") is True:
            if text and sum(map(len, self._parts)) < MAX_TEXT_CHARS:
                self._parts.append(text)
                self._confidences.append(min(max(confidence, 0.0), 1.0))
            text = ""
        if message.get("speech_final") is True:
            return self._end()
        so_far = " ".join((*self._parts, text)).strip()[:MAX_TEXT_CHARS]
        return Heard(so_far, final=False) if so_far else None

    def _end(self) -> Heard | None:
        parts, self._parts = self._parts, []
        confidences, self._confidences = self._confidences, []
        if not parts:
            return None
        return Heard(" ".join(parts)[:MAX_TEXT_CHARS], True, round(min(confidences), 3))


class OpenAiDialect:
    """
    OpenAI's Realtime interface in a session of the type `transcription`.

    The server's voice detection cuts utterances, each an item with its own deltas and transcript. Most models
    begin the deltas when the utterance is over, so its beginning and its end count as words not known yet.
    """

    def __init__(self, server: RecognizerServer, language: str, sample_rate: int) -> None:
        self.speaking = False
        self._server = server
        self._language = language.partition("-")[0].lower()
        self._converter = AudioConverter(("l16", sample_rate), ("l16", _OPENAI_RATE))
        self._deltas: dict[str, str] = {}
        self._begun = 0
        self._committed = 0
        self._transcribed = 0
        self._flushing = False

    @property
    def settled(self) -> bool:
        """True when every utterance that began has its words, or has none, and the last one is known."""
        return not self._flushing and self._transcribed >= max(self._begun, self._committed)

    def url(self) -> str:
        """Return the address of a session that only transcribes."""
        return _with_query(self._server.url, {"intent": "transcription"})

    def headers(self) -> dict[str, str]:
        """Return the key."""
        return {} if self._server.key is None else {"Authorization": f"Bearer {self._server.key}"}

    def opening(self) -> str | None:
        """Return the description of the session."""
        server = self._server
        # The documents want codes of two letters; there are some of three.
        known = _SHORT_LANGUAGE.fullmatch(self._language)
        transcription = {"model": server.model, **({"language": self._language} if known else {})}
        heard = {
            "format": {"type": "audio/pcm", "rate": _OPENAI_RATE},
            "transcription": transcription,
            "turn_detection": {"type": "server_vad", "silence_duration_ms": server.endpointing_ms},
        }
        session: dict[str, Any] = {"type": "transcription", "audio": {"input": heard}}
        # Whisper's transcripts have no probabilities.
        if "whisper" not in server.model:
            session["include"] = ["item.input_audio_transcription.logprobs"]
        return json.dumps({"type": "session.update", "session": session})

    def audio(self, pcm: bytes) -> bytes | str | None:
        """Return the samples at 24 kHz, the only rate of the endpoint."""
        converted = self._converter.convert(pcm)
        if not converted:
            return None
        return json.dumps({"type": "input_audio_buffer.append", "audio": b64encode(converted).decode()})

    def flush(self) -> str | None:
        """Return the message that makes an utterance of what was heard; its beginning may be unknown yet."""
        self._flushing = True
        return '{"type":"input_audio_buffer.commit"}'

    def closing(self) -> str | None:
        """Return none: closing the connection ends the session."""
        return None

    def read(self, data: str) -> Heard | None:
        """Read a message; raises as `RecognizerDialect.read`."""
        message = _object(data)
        match message.get("type"):
            case "input_audio_buffer.speech_started":
                self.speaking = True
                self._begun += 1
                return Heard("", final=False)
            case "input_audio_buffer.speech_stopped":
                self.speaking = False
                return Heard("", final=False)
            case "input_audio_buffer.committed":
                self._committed += 1
                self._flushing = False
            case "conversation.item.input_audio_transcription.delta":
                return self._delta(message)
            case "conversation.item.input_audio_transcription.completed":
                return self._completed(message)
            case "conversation.item.input_audio_transcription.failed":
                # This utterance is lost; the party may repeat it.
                self._deltas.pop(_item(message), None)
                self._transcribed += 1
            case "error":
                error = message.get("error")
                code = error.get("code") or error.get("type") if isinstance(error, Mapping) else None
                if self._flushing and code == _NOTHING_TO_COMMIT:
                    self._flushing = False
                    return None
                raise SessionRefused(code if isinstance(code, str) and _CODE.fullmatch(code) else "an error")
        return None

    def _delta(self, message: Mapping[str, Any]) -> Heard | None:
        item = _item(message)
        # Some models send deltas without text.
        added = message.get("delta")
        text = (self._deltas.pop(item, "") + _printable("" if added is None else added))[:MAX_TEXT_CHARS]
        while len(self._deltas) >= _MAX_ITEMS:
            del self._deltas[next(iter(self._deltas))]
        self._deltas[item] = text
        return Heard(text.strip(), final=False) if text.strip() else None

    def _completed(self, message: Mapping[str, Any]) -> Heard | None:
        self._deltas.pop(_item(message), None)
        self._transcribed += 1
        text = _printable(message.get("transcript")).strip()[:MAX_TEXT_CHARS]
        return Heard(text, True, _confidence(message.get("logprobs"))) if text else None


def _with_query(url: str, query: Mapping[str, Any]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"


def _object(data: str) -> Mapping[str, Any]:
    message = json.loads(data)
    if not isinstance(message, dict):
        raise ValueError("not an object")
    return message


def _printable(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError("no transcript")
    return "".join(character for character in text if character.isprintable())


def _number(value: object) -> float:
    # A whole number may be too large for a fraction.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _HUGE:
        raise ValueError("not a number")
    return float(value)


def _item(message: Mapping[str, Any]) -> str:
    item = message.get("item_id")
    if not isinstance(item, str) or len(item) > _MAX_ID_CHARS:
        raise ValueError("no item_id")
    return item


def _confidence(tokens: object) -> float:
    """Mean probability of the tokens of a transcript; 0 where there are none."""
    if not isinstance(tokens, list) or not tokens:
        return 0.0
    total = 0.0
    for token in tokens[:_MAX_TOKENS]:
        logprob = token.get("logprob") if isinstance(token, Mapping) else None
        total += min(_number(logprob), 0.0)
    return round(exp(total / min(len(tokens), _MAX_TOKENS)), 3)
