"""Targets of agent streams and stored audio: frames of an agent, stream URLs, WAV files."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from urllib.parse import urlsplit

from fuzz.harness import Target
from media.audio import Clip, ToneError, WavError, parse_tone, read_wav, write_wav
from media.streams import (
    DIALECTS,
    AgentMark,
    CommandError,
    Dialect,
    StreamSetup,
    StreamSetupError,
    choose_stream,
)

SETUP = StreamSetup(
    url="ws://127.0.0.1/",
    stream_sid="s",
    call_sid="c",
    account_sid="a",
    from_="+919876543210",
    to="+918047491899",
)

FRAMES = [
    b'{"event":"media","stream_sid":"s","media":{"payload":"AAAAAAAA"}}',
    b'{"event": "media", "media": {"payload": "AQIDBA=="}}',
    b'{"event":"mark","stream_sid":"s","mark":{"name":"greeting"}}',
    b'{"event":"clear"}',
    b'{"event":"dtmf","dtmf":{"digits":"12w3#","duration_ms":160,"gap_ms":80}}',
    b'{"event":"sendDTMF","dtmf":"123#"}',
    b'{"event":"hangup","hangup":{"drain":true,"reason":"completed"}}',
    b'{"event":"stop"}',
    b'{"event":"transfer","transfer":{"to":"+919812345678","mode":"refer","timeout":30,"headers":{"X-A":"b"}}}',
    b'{"event":"hold","hold":{"active":true}}',
    b'{"event":"mute","mute":{"active":false}}',
    b'{"event":"record","record":{"action":"pause"}}',
]

FRAME_WORDS = [
    *(
        b'"event":',
        b'"media":{',
        b'"payload":"',
        b"AAAA",
        b"=",
        b'"}}',
        b"null",
        b"true",
        b"1e999",
        b"-0",
        b"NaN",
    ),
    *(b"\\u0041", b"\\ud800", b"[[[[", b'{"a":', b'"media"', b'"mark"', b'"clear"', b'"to":"sip:'),
    *(b'"type":"playAudio"', b'"data":{', b'"action":"notify"', b'"sampleRate":44100', b'"contentType":'),
]

URLS = [
    b"wss://bot.example.com/ws?customer=42&sample-rate=16000",
    b"ws://user:pass@127.0.0.1:8080/a;v=1?stream_protocol=exotel&stream_encoding=l16",
    b"wss://[2001:db8::1]:443/?a=%20&b",
    b"audiosocket://bot.example.com:9092?sample-rate=16000",
]


OWN_FRAMES: dict[str, list[bytes]] = {
    "plivo": [
        b'{"event":"playAudio","media":{"contentType":"audio/x-l16","sampleRate":16000,"payload":"AAAAAAAA"}}',
        b'{"event":"playAudio","media":{"contentType":"audio/x-mulaw","sampleRate":"8000","payload":"AQIDBA=="}}',
        b'{"event":"checkpoint","name":"m1"}',
        b'{"event":"clearAudio"}',
    ],
    "vonage": [
        b'{"action":"clear"}',
        b'{"action":"notify","payload":{"mark":"m1","n":[1,2.5,null]}}',
    ],
    "jambonz": [
        b'{"type":"playAudio","data":{"audioContentType":"raw","sampleRate":24000,"audioContent":"AAAAAAAA","id":"p"}}',
        b'{"type":"playAudio","data":{"audioContentType":"wav","audioContent":"UklGRg==","queuePlay":true}}',
        b'{"type":"killAudio"}',
        b'{"type":"mark","data":{"name":"m1"}}',
        b'{"type":"clearMarks"}',
        b'{"type":"disconnect"}',
    ],
}
OWN_FRAMES["vobiz"] = OWN_FRAMES["plivo"]
OWN_FRAMES["asterisk"] = [
    *(
        b"START_MEDIA_BUFFERING",
        b"STOP_MEDIA_BUFFERING 61ea9311",
        b"MARK_MEDIA m 1",
        b"GET_STATUS",
        b"HANGUP",
    ),
    *(b"PAUSE_MEDIA", b"CONTINUE_MEDIA", b"FLUSH_MEDIA", b"REPORT_QUEUE_DRAINED", b"ANSWER"),
    b'{"command":"MARK_MEDIA","correlation_id":"m1"}',
    b'{"command":"SET_MEDIA_DIRECTION","direction":"in"}',
]
OWN_FRAMES["asterisk_json"] = OWN_FRAMES["asterisk"]
OWN_FRAMES["audiosocket"] = [
    *(b"\x00\x00\x00", b"\x10\x00\x04\1\2\3\4", b"\x11\x00\x02\1\2", b"\x18\x00\x02\1\2"),
    *(b"\x03\x00\x01#", b"\xff\x00\x01\x04", b"\x01\x00\x10" + bytes(16)),
]

# Frames of audio whose envelope is remembered, and which leave nothing else behind.
LESSONS: dict[str, list[bytes]] = {
    **dict.fromkeys(("exotel", "twilio", "telnyx"), FRAMES[:2]),
    **dict.fromkeys(("plivo", "vobiz"), OWN_FRAMES["plivo"][1:2]),
}


class FrameCheck:
    """
    Whatever an agent of one dialect sends, as text and as binary, is read or refused.

    A reader that has learnt the sender's envelope reads what a fresh one reads.
    """

    def __init__(self, name: str) -> None:
        encoding, rate_hz = DIALECTS[name].formats[0]
        self._setup = replace(SETUP, dialect=name, encoding=encoding, sample_rate=rate_hz)
        self._sample_bytes = 2 if encoding == "l16" else 1
        self._lessons = LESSONS.get(name, [])
        self.seeds = [*OWN_FRAMES.get(name, []), *FRAMES]

    def __call__(self, data: bytes) -> str:
        """Judge one frame; gives what came of it, without its words."""
        outcome = self._decoded(self._fresh(), data)
        for lesson in self._lessons:
            taught = self._fresh()
            taught.decode(lesson)
            assert self._decoded(taught, data) == outcome
        self._decoded(self._fresh(), data, binary=True)
        return outcome.partition("(")[0].partition(":")[0]

    def _fresh(self) -> Dialect:
        return DIALECTS[self._setup.dialect](self._setup)

    def _decoded(self, dialect: Dialect, data: bytes, *, binary: bool = False) -> str:
        try:
            command = dialect.decode_binary(data) if binary else dialect.decode(data)
        except CommandError as error:
            written = dialect.error(error.code, error.message, error.ref)
            assert written is None or written.decode().isprintable()
            assert written is None or self._setup.dialect == "asterisk" or json.loads(written)["event"]
            return f"{error.code}: {error.message} {error.ref}"
        if isinstance(command, bytes):
            assert len(command) % self._sample_bytes == 0
            return f"audio ({command.hex()})"
        if isinstance(command, AgentMark):
            for cleared in (False, True):
                written = dialect.mark(command.name, cleared=cleared) or b"{}"
                assert not written.startswith(b"{") or json.loads(written) is not None
        return repr(command)


def check_url(data: bytes) -> str:
    """A URL that is chosen can be dialled as it is."""
    choice = choose_stream(data.decode("latin-1"))
    parts = urlsplit(choice.url)
    assert parts.hostname and parts.scheme.lower() in ("ws", "wss", "audiosocket")
    assert "@" not in parts.netloc and "#" not in choice.url
    assert choice.url.isascii() and choice.url.isprintable()
    assert choose_stream(choice.url).url == choice.url
    return f"{choice.tls} {choice.auth is not None} {choice.sample_rate}"


def check_wav(data: bytes) -> str:
    """A parsed file holds whole frames, and is written so that it parses to the same."""
    clip = read_wav(data)
    assert len(clip.pcm) % (2 * clip.channels) == 0
    assert read_wav(write_wav(clip)) == clip
    played = clip.for_engine()
    assert played.channels == 1 and played.sample_rate in (8000, 16_000)
    assert abs(played.duration_ms - clip.duration_ms) <= 1
    assert read_wav(data, partial=True) == clip
    return f"{clip.sample_rate > 8000} {clip.channels} {bool(clip.pcm)}"


def _other_form(coding: int, bits: int, rate: int = 44_100, channels: int = 1) -> bytes:
    """A file of samples that are not 16-bit PCM."""
    block = channels * bits // 8
    form = struct.pack("<HHIIHH", coding, channels, rate, rate * block, block, bits)
    return b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0" + form + b"data\x40\0\0\0" + bytes(range(64))


def check_tone(data: bytes) -> str:
    """A parsed tone can be generated, does not clip, and has whole samples."""
    tone = parse_tone(data.decode("latin-1"))
    if sum(part.duration_ms or 1000 for part in (*tone.intro, *tone.cycle)) > 2000:
        return "long"
    whole = tone.intro_pcm() + tone.cycle_pcm()
    assert whole and len(whole) % 2 == 0
    return f"{len(tone.intro)} {len(tone.cycle)}"


CHECKS = {name: FrameCheck(name) for name in DIALECTS}

TARGETS = [
    *(Target(f"agent-{name}", check, (), check.seeds, FRAME_WORDS) for name, check in CHECKS.items()),
    Target(
        "stream-url",
        check_url,
        (StreamSetupError,),
        URLS,
        [
            b"ws://",
            b"wss://",
            b"audiosocket://",
            b"@",
            b":0",
            b"//",
            b"sample-rate=",
            b"stream_events=x",
            b"#",
            b"[",
            b"]",
        ],
    ),
    Target(
        "tone",
        check_tone,
        (ToneError,),
        [b"400*25/400,0/200,400*25/400,0/2000", b"!350+440/100,!0/100,350+440@-13", b"425.5"],
        [b"400", b"*25", b"+440", b"/100", b",", b"!", b"@-10", b"0", b"."],
    ),
    Target(
        "wav",
        check_wav,
        (WavError,),
        [
            write_wav(Clip(bytes(range(64)))),
            write_wav(Clip(bytes(64), 16_000, 2)),
            _other_form(1, 24, channels=2),
            _other_form(1, 8, 11_025),
            _other_form(3, 32, 48_000),
            _other_form(7, 8, 8000),
        ],
        [b"RIFF", b"WAVE", b"fmt ", b"data", b"LIST", b"\6\0", b"\7\0", b"\xfe\xff", b"\x10\0\0\0"],
    ),
]
