"""
The native media engine.

All methods must be called from one thread at a time; none waits for an engine thread but `Engine.close`.
Orders are queued and run in the order given. Events and frames are fetched with `Engine.drain`.
"""

from collections.abc import Sequence
from typing import TypedDict

def srtp_ready() -> bool:
    """Whether the engine has SRTP; sets the library up if nobody has."""

class EngineFigures(TypedDict):
    streams: int
    ports_in_use: int
    ports_total: int
    packets_in: int
    packets_out: int
    events_dropped: int
    frames_dropped: int
    underruns: int

class StreamFigures(TypedDict):
    packets_in: int
    bytes_in: int
    packets_out: int
    bytes_out: int
    lost: int
    duplicates: int
    late: int
    dropped_foreign: int
    dropped_invalid: int
    dropped_unwanted: int
    dropped_unauthentic: int
    send_errors: int
    underruns: int
    rtcp_in: int
    jitter_ms: float
    ssrc_in: int
    ssrc_out: int
    rtcp_out: int
    suspects: int
    ssrc_changes: int
    collisions: int
    rtt_ms: float | None
    sent_lost: int | None
    sent_jitter_ms: float | None
    mos_received: float | None
    mos_sent: float | None

class IntervalFigures(TypedDict):
    ended_monotonic_s: float
    duration_ms: int
    expected: int
    lost: int
    discarded: int
    burst_packets: float
    jitter_ms: float
    mos_received: float | None
    sent_expected: int
    sent_lost: int
    sent_jitter_ms: float | None
    mos_sent: float | None
    rtt_ms: float | None

class MediaSettings:
    """
    What SDP agreed about a stream; a negative payload type stands for none.

    Each setter raises ValueError, naming what is out of range or a codec the engine was built without.
    """

    ptime_ms: int
    send: bool
    receive: bool

    def __init__(self) -> None: ...
    @property
    def host(self) -> str: ...
    @property
    def udp_port(self) -> int: ...
    @property
    def payload_type(self) -> int: ...
    @property
    def dtmf_types(self) -> tuple[int, int]:
        """Payload types of the telephone events we send and receive."""
    def set_remote(self, host: str, udp_port: int, /) -> None: ...
    def set_rtcp_remote(self, host: str, udp_port: int, /) -> None:
        """Send RTCP there; without it, RTCP shares the port of RTP (RFC 5761)."""
    def set_codec(self, name: str, clock_hz: int, payload_type: int, receive_type: int, /) -> None: ...
    def set_encoder(self, bitrate_bps: int, fec: bool, dtx: bool, max_playback_hz: int, /) -> None: ...
    def set_dtmf(self, send_type: int, receive_type: int, tones: bool, /) -> None: ...
    def set_noise(self, payload_type: int, /) -> None: ...
    def set_srtp_send(self, suite: str, key: bytes, /) -> None: ...
    def set_srtp_receive(self, suite: str, key: bytes, /) -> None: ...

def resample(pcm: bytes, from_hz: int, to_hz: int, /) -> bytes:
    """
    Bring a whole sound of 16-bit samples to another rate, aligned in time with the original.

    Raises:
        ValueError: A rate is out of range (4000 to 192000), or the engine was built without libspeexdsp.
    """

def to_linear(data: bytes, form: str, mixed: bool, /) -> bytes:
    """
    Turn the samples of a file into 16 bits: "u8", "s16", "s24", "s32", "f32", "f64", "alaw" or "mulaw".

    With `mixed`, the data is that of two channels, and their mean is returned.

    Raises:
        ValueError: Another form.
    """

def supports(codec: str, clock_hz: int, /) -> bool:
    """
    Whether the engine was built with a codec ("PCMU", "PCMA", "G722", "L16", "OPUS") at that RTP clock.

    Raises:
        ValueError: There is no codec of that name.
    """

class Decoder:
    """
    A decoder by itself, for tests and tools: payloads in, samples of `rate_hz` out.

    Raises:
        ValueError: The engine has no such codec.
    """

    def __init__(self, name: str, clock_hz: int, /) -> None: ...
    @property
    def rate_hz(self) -> int: ...
    def decode(self, payload: bytes, /) -> bytes:
        """Decode a packet; empty for one that is broken."""
    def recover(self, following: bytes, duration_ms: int, /) -> bytes:
        """Recover the packet lost before `following`; empty when that carries nothing of it."""
    def conceal(self, duration_ms: int, /) -> bytes: ...
    def reset(self) -> None: ...

class Encoder:
    """
    An encoder by itself, for tests and tools: frames of 10 to 60 ms at `rate_hz` in, payloads out.

    Raises:
        ValueError: The engine has no such codec.
    """

    def __init__(
        self,
        name: str,
        clock_hz: int,
        bitrate_bps: int = 32_000,
        fec: bool = True,
        dtx: bool = False,
        expected_loss_pct: int = 0,
        max_playback_hz: int = 16_000,
    ) -> None: ...
    @property
    def rate_hz(self) -> int: ...
    def encode(self, pcm: bytes, /) -> bytes:
        """Encode one frame; empty when nothing need be sent (DTX)."""
    def reset(self) -> None: ...

class RecordingOptions:
    """
    How a recording is made; a limit of 0 is none.

    Raises:
        ValueError: An encoding that is unknown or was not built in, a number of channels other than 1 and 2,
            or a rate other than 8000 and 16000.
    """

    pause_as_silence: bool
    max_duration_ms: int
    max_bytes: int

    def __init__(self, encoding: str, channels: int, rate_hz: int, /) -> None: ...

class VoiceSettings:
    """
    What counts as speech.

    Raises:
        ValueError: A value is out of range; names it.
    """

    def __init__(
        self, min_speech_ms: int, hangover_ms: int, margin_db: float, min_level_db: float, /
    ) -> None: ...

class AnswerSettings:
    """
    How a person is told from a machine; `limits` are those of `media.types.MachineSettings` by name.

    Raises:
        ValueError: A limit is unknown or out of range; names it.
    """

    def __init__(self, voice: VoiceSettings, limits: dict[str, int], /) -> None: ...

class RateConverter:
    """
    What a stream puts between codecs of different rates, 8000 and 16000, block by block.

    Raises:
        ValueError: The rates are others.
    """

    def __init__(self, from_hz: int, to_hz: int, /) -> None: ...
    def process(self, pcm: bytes, /) -> bytes: ...

class Tap:
    """An agent's end of a stream. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    @property
    def sent_id(self) -> int:
        """Number under which frames of what is sent come; 0 when they were not asked for."""
    def write(self, audio: bytes, /) -> int:
        """Queue audio; returns how many bytes there was no room for."""
    def mark(self, mark: int, /) -> None: ...
    def clear(self) -> None: ...
    def queued_ms(self) -> int: ...
    def played_ms(self) -> int:
        """Milliseconds that were played or dropped."""
    def watch_level(self, full_ms: int, low_ms: int, /) -> None:
        """Tell when at least `full_ms` wait, and after that when no more than `low_ms` do; 0 and 0 never."""
    def close(self) -> None: ...

class Stream:
    """One RTP stream. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    @property
    def udp_port(self) -> int: ...
    def connect(self, settings: MediaSettings, /) -> None:
        """
        Set what SDP agreed.

        Raises:
            ValueError: A value is out of range.
        """
    def link(self, other: Stream, /) -> bool:
        """Relay both ways; False when the other stream belongs to another engine thread."""
    def unlink(self) -> None: ...
    def mute(self, received: bool, sent: bool, /) -> None:
        """Put silence in place of what the far end says, or of what is sent to it."""
    def comfort_noise(self, active: bool, /) -> None:
        """Send soft noise where there is nothing else to send."""
    def play(
        self,
        playback_id: int,
        clips: Sequence[tuple[bytes, int, int]],
        plays: int,
        gain: int,
        position_every_ms: int,
        ends_by_digit: bool,
        ends_by_speech: bool,
        /,
    ) -> None:
        """
        Queue clips, each with its rate and the pause behind it in ms; 0 plays go on without end.

        Raises:
            ValueError: A value is out of range.
        """
    def pause_playback(self) -> None: ...
    def resume_playback(self) -> None: ...
    def stop_playback(self) -> None: ...
    def send_dtmf(self, token: int, digits: str, duration_ms: int, gap_ms: int, /) -> None: ...
    def set_media_timeout(self, timeout_ms: int, hold_timeout_ms: int, /) -> None: ...
    def start_recording(self, recording_id: int, path: str, options: RecordingOptions, /) -> int:
        """Record to a file; returns 0 or an error number. The end is an event for `recording_id`."""
    def pause_recording(self, paused: bool, /) -> None: ...
    def stop_recording(self) -> None: ...
    def detect_dtmf(self) -> None:
        """
        Listen for digits in the audio.

        Raises:
            ValueError: The engine was built without libspandsp.
        """
    def detect_speech(self, settings: VoiceSettings, /) -> None: ...
    def detect_machine(self, settings: AnswerSettings, /) -> None: ...
    def detect_tones(self) -> None: ...
    def stop_detecting(self, detector: str, /) -> None:
        """Take away "dtmf", "speech", "machine" or "tones"."""
    def open_tap(self, encoding: str, rate_hz: int, both: bool, /) -> Tap | None:
        """Open the agent's end; with `both`, what is sent is heard too, under `Tap.sent_id`."""
    def stats(self) -> StreamFigures: ...
    def intervals(self) -> list[IntervalFigures]:
        """Quality by intervals, the oldest first; at most 36."""
    def close(self) -> None: ...

class Conference:
    """Streams of any engine thread that hear one another. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    def add(
        self, stream: Stream, listen_only: bool, muted: bool, whisper_to: Sequence[int] | None, /
    ) -> bool:
        """
        Take a stream in; False when the conference is full.

        Raises:
            ValueError: It is a member already, or a whisper is for somebody who is no member.
        """
    def change(
        self, stream: int, listen_only: bool, muted: bool, whisper_to: Sequence[int] | None, /
    ) -> None:
        """
        Change how a member takes part.

        Raises:
            ValueError: It is no member, or a whisper is for somebody who is none.
        """
    def remove(self, stream: int, /) -> None: ...
    def levels(self) -> list[tuple[int, int]]:
        """How loud each member is, in decibels below full scale; 127 when silent."""
    def play(
        self,
        playback_id: int,
        clips: Sequence[tuple[bytes, int, int]],
        plays: int,
        gain: int,
        position_every_ms: int,
        ends_by_digit: bool,
        ends_by_speech: bool,
        /,
    ) -> None:
        """
        Queue clips as `Stream.play` does; nobody's digit or speech ends them.

        Raises:
            ValueError: A value is out of range.
        """
    def pause_playback(self) -> None: ...
    def resume_playback(self) -> None: ...
    def stop_playback(self) -> None: ...
    def start_recording(self, recording_id: int, path: str, options: RecordingOptions, /) -> int:
        """Record what everybody may hear; returns 0 or an error number."""
    def pause_recording(self, paused: bool, /) -> None: ...
    def stop_recording(self) -> None: ...
    def close(self) -> None: ...

class Engine:
    """
    Engine threads and their streams.

    Raises:
        ValueError: The settings cannot work.
        OSError: The system refused a thread or a descriptor.
    """

    def __init__(
        self, listen: str, port_min: int, port_max: int, threads: int, quarantine_ms: int, driven: bool, /
    ) -> None: ...
    def open_stream(self, near: Stream | None) -> Stream | None:
        """
        Open a stream, on the thread of `near` if given; None when no port is left.

        Raises:
            OSError: The system refused the socket for another reason.
        """
    def open_conference(self, rate_hz: int, /) -> Conference:
        """
        Open a conference at that rate.

        Raises:
            ValueError: The rate is neither 8000 nor 16000.
        """
    def fileno(self) -> int:
        """Descriptor that is readable while `drain` has something."""
    def advance(self, now_ns: int, /) -> int:
        """
        Of a driven engine: move its clock and do what is due by then; when more will be, in ns.

        That is the present while there was anything to do: it is to be asked again, and so are engines that
        it may have sent to.
        """
    def next_id(self) -> int: ...
    def drain(self) -> tuple[list[tuple[int, int, int, int, int]], list[tuple[int, bytes]]]:
        """Take all events (stream, kind, a, b, c; see outlet.hpp) and all frames (tap, audio)."""
    def stats(self) -> EngineFigures: ...
    def close(self) -> None:
        """Close all streams, complete all recordings and end the threads."""

def to_base64(before: bytes, audio: bytes, after: bytes, /) -> bytes:
    """Join `before`, the base64 of the audio, and `after`."""

def from_base64(frame: bytes, before: bytes, after: bytes, /) -> bytes | None:
    """The bytes whose base64 stands between `before` and `after`; None if the frame is not exactly that."""
