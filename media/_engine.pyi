"""
The native media engine.

All methods must be called from one thread at a time; only `Engine.close` waits for an engine thread.
Commands are queued and run in order. `Engine.drain` fetches events and frames.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

def srtp_ready() -> bool:
    """Return True if the engine has SRTP; initialises the library on the first call."""

def construct_natively(cls: type, /) -> None:
    """Let a data class with slots be constructed without a call of its `__init__`; as in `sip._wire`."""

class EngineFigures(TypedDict):
    streams: int
    ports_in_use: int
    ports_total: int
    packets_in: int
    packets_out: int
    events_dropped: int
    frames_dropped: int
    underruns: int

class MediaSettings:
    """
    Negotiated SDP parameters of a stream.

    Raises:
        ValueError: A value is out of range, or the engine was built without the codec; it is named.
    """

    def __init__(
        self,
        remote: tuple[str, int],
        rtcp_remote: tuple[str, int] | None,
        codec: str,
        clock_hz: int,
        payload_type: int,
        receive_type: int | None,
        ptime_ms: int,
        send: bool,
        receive: bool,
        dtmf_send_type: int | None,
        dtmf_receive_type: int | None,
        dtmf_tones: bool,
        noise_type: int | None,
        encoding: tuple[int, bool, bool, int],
        srtp_send: tuple[str, bytes] | None,
        srtp_receive: tuple[str, bytes] | None,
        /,
    ) -> None:
        """
        Make settings; see `RemoteMedia` for what they mean.

        `encoding` is the average bit rate in bits a second, FEC, DTX and the highest sampling rate of the far
        end. Without `rtcp_remote`, RTCP shares the port of RTP (RFC 5761).
        """
    @property
    def host(self) -> str: ...
    @property
    def udp_port(self) -> int: ...
    @property
    def payload_type(self) -> int: ...
    @property
    def dtmf_types(self) -> tuple[int | None, int | None]:
        """Payload types of the telephone events we send and receive."""
    @property
    def ptime_ms(self) -> int: ...
    @property
    def send(self) -> bool: ...
    @property
    def receive(self) -> bool: ...

def resample(pcm: bytes, from_hz: int, to_hz: int, /) -> bytes:
    """
    Convert a whole sound of 16-bit samples to another rate, aligned in time with the original.

    Raises:
        ValueError: A rate is out of range (4000 to 192000), or the engine was built without libspeexdsp.
    """

class AudioConverter:
    """
    Converts continuous audio in pieces, as if it were one piece.

    Attributes:
        sample_bytes: Size of an input sample.
        unchanged: True if input and output have the same format.
    """

    def __init__(self, source: tuple[str, int], target: tuple[str, int], /) -> None:
        """
        Create a converter between two formats, each an encoding and a rate.

        Raises:
            ValueError: An encoding is unknown, or a rate is out of range (4000 to 192000), or the engine was
                built without libspeexdsp.
        """
    @property
    def sample_bytes(self) -> int: ...
    @property
    def unchanged(self) -> bool: ...
    def convert(self, audio: bytes, /) -> bytes:
        """
        Convert whole samples; the last few milliseconds may wait for later audio.

        Raises:
            ValueError: The audio ends within a sample.
        """
    def flush(self) -> bytes:
        """Convert the waiting audio without waiting for more; more may still follow."""
    def whole(self, audio: bytes, /) -> bytes:
        """
        Convert a complete piece, with the audio that waited before it.

        Raises:
            ValueError: The audio ends within a sample.
        """
    def reset(self) -> None:
        """Drop the waiting audio and the context."""

def to_linear(data: bytes, form: str, mixed: bool, /) -> bytes:
    """
    Convert samples of a file to 16 bits, from "u8", "s16", "s24", "s32", "f32", "f64", "alaw" or "mulaw".

    With `mixed`, the data has two channels, and their mean is returned.

    Raises:
        ValueError: The form is unknown.
    """

def supports(codec: str, clock_hz: int, /) -> bool:
    """
    Return True if the engine has a codec ("PCMU", "PCMA", "G722", "L16", "OPUS") at that RTP clock.

    Raises:
        ValueError: There is no codec of that name.
    """

class Decoder:
    """
    A standalone decoder for tests and tools: payloads in, samples of `rate_hz` out.

    Raises:
        ValueError: The engine has no such codec.
    """

    def __init__(self, name: str, clock_hz: int, /) -> None: ...
    @property
    def rate_hz(self) -> int: ...
    def decode(self, payload: bytes, /) -> bytes:
        """Decode a packet; returns nothing for a malformed one."""
    def recover(self, following: bytes, duration_ms: int, /) -> bytes:
        """Recover the packet lost before `following`; empty if that carries no redundancy."""
    def conceal(self, duration_ms: int, /) -> bytes: ...
    def reset(self) -> None: ...

class Encoder:
    """
    A standalone encoder for tests and tools: frames of 10 to 60 ms at `rate_hz` in, payloads out.

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
        """Encode one frame; empty if nothing needs to be sent (DTX)."""
    def reset(self) -> None: ...

class RecordingOptions:
    """
    Settings of a recording; a limit of 0 means no limit.

    Raises:
        ValueError: The encoding is unknown or was not built in, the number of channels is not 1 or 2, or the
            rate is not 8000 or 16000.
    """

    pause_as_silence: bool
    max_duration_ms: int
    max_bytes: int

    def __init__(self, encoding: str, channels: int, rate_hz: int, /) -> None: ...

class VoiceSettings:
    """
    Settings of speech detection.

    Raises:
        ValueError: A value is out of range; names it.
    """

    def __init__(
        self, min_speech_ms: int, hangover_ms: int, margin_db: float, min_level_db: float, /
    ) -> None: ...

class AnswerSettings:
    """
    Settings of answering machine detection; `limits` are those of `media.types.MachineSettings` by name.

    Raises:
        ValueError: A limit is unknown or out of range; names it.
    """

    def __init__(self, voice: VoiceSettings, limits: dict[str, int], /) -> None: ...

class RateConverter:
    """
    Blockwise converter between the rates 8000 and 16000, as streams use it between codecs.

    Raises:
        ValueError: A rate is neither 8000 nor 16000.
    """

    def __init__(self, from_hz: int, to_hz: int, /) -> None: ...
    def process(self, pcm: bytes, /) -> bytes: ...

class Tap:
    """An agent's end of a stream. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    @property
    def sent_id(self) -> int:
        """Id of the frames of sent audio; 0 if they were not requested."""
    def write(self, audio: bytes, /) -> int:
        """Queue audio; returns the number of bytes that did not fit."""
    def mark(self, mark: int, /) -> None: ...
    def clear(self) -> None: ...
    def pause(self, active: bool, /) -> None:
        """Play nothing and keep what is queued, until `active` is false or the queue is cleared."""
    def queued_ms(self) -> int: ...
    def played_ms(self) -> int:
        """Return the milliseconds that were played or dropped."""
    def refused_ms(self) -> int:
        """Return the milliseconds that an agent's socket had no room for."""
    def prebuffer_ms(self) -> int:
        """Return the prebuffer of the next utterance, in milliseconds."""
    def watch_level(self, full_ms: int, low_ms: int, /) -> None:
        """Report when at least `full_ms` wait, then when at most `low_ms` do; 0 and 0 turn it off."""
    def close(self) -> None: ...

class FrameListener:
    """A listener to what a stream receives. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    def close(self) -> None: ...

class Monitor:
    """One stream that hears both directions of another. Harmless after `close`."""

    def close(self) -> None: ...

class TlsContext:
    """Authorities and policy of TLS that connections share."""

    def __init__(self, authorities_file: str, /) -> None:
        """
        Trust the authorities of a PEM file, or those of the system if it is empty.

        Raises:
            ValueError: It cannot be read, or the engine was built without TLS.
        """

class TlsClient:
    """Client's end of a TLS connection, until `Engine.open_agent_socket` takes it over."""

    def __init__(self, context: TlsContext, host: str, /) -> None:
        """
        Begin the handshake with a host, which the certificate must name.

        Raises:
            ValueError: The name cannot be one.
        """
    @property
    def state(self) -> int:
        """Number of the state, as in client.hpp."""
    @property
    def fault(self) -> str:
        """Cause of the failure."""
    def receive(self, data: bytes, /) -> None:
        """Take bytes that came."""
    def read(self) -> bytes:
        """Return the content of the next record; empty if there is no whole one."""
    def write(self, data: bytes, /) -> bool:
        """Encrypt bytes; False if the connection is not open."""
    def take_output(self) -> bytes:
        """Return the bytes to send."""

class AgentSocket:
    """The connected socket of a WebSocket to an agent. Harmless after `release`."""

    @property
    def id(self) -> int: ...
    @property
    def frames_sent(self) -> int: ...
    @property
    def frames_dropped(self) -> int: ...
    @property
    def clock_ms(self) -> int: ...
    def attach(self, tap: Tap, /) -> bool:
        """
        Pass audio between socket and tap; False if they are on different threads, or the tap is closed.

        Raises:
            ValueError: They have different formats.
        """
    def set_templates(self, inbound: bytes, outbound: bytes, origin_ms: int, /) -> None:
        """Set how the audio of each track is written; see frame_template.hpp."""
    def learn(self, before: bytes, after: bytes, /) -> None:
        """Recognise audio in text frames by their beginning and end; in all binary ones if both are empty."""
    def learn_event(
        self,
        members: list[tuple[str, int, str, int]],
        binary: bool,
        converter: AudioConverter | None,
        whole: bool,
    ) -> None:
        """
        Recognise audio in messages of JSON by their members, and convert it.

        Args:
            members: Place, kind, value and least number of each; see audio_event.hpp.
            binary: True if those in binary frames are some, too.
            converter: The engine uses it while no message waits to be handled, and its owner only in handling
                one. None for audio in the format of the tap.
            whole: True if nothing of a message waits for the next.

        Raises:
            ValueError: The description is none.
        """
    def convert(self, converter: AudioConverter | None, /) -> None:
        """Convert audio to the agent from now on; the converter is the engine's alone."""
    def unlearn(self) -> None: ...
    def listen(self, listening: int, /) -> None:
        """
        Send all audio (0), none (1), or silence in its place (2).

        Raises:
            ValueError: Another number.
        """
    def audio(self, outbound: bool, frame: bytes, /) -> None:
        """
        Send a frame of audio.

        Raises:
            ValueError: It has not the length of the format.
        """
    def send(self, text: bytes, /) -> None:
        """Send another text frame, with a number at its place."""
    def ping(self) -> None: ...
    def finish(self, last: bytes, /) -> None:
        """Drop waiting audio, send all else that waits, then a last frame unless it is empty."""
    def close(self, code: int, reason: str, /) -> None:
        """Send a close frame, and obey nothing but the answer to it."""
    def disconnect(self, at_once: bool, /) -> None:
        """End the connection at once, or our side of it when all is written."""
    def handled(self, spent_ns: int, /) -> None:
        """Go on after a text or binary message, which took so long."""
    def release(self) -> None:
        """End the connection at once and let go of the socket."""

class Stream:
    """One RTP stream. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    @property
    def udp_port(self) -> int: ...
    def connect(self, settings: MediaSettings, /) -> None:
        """
        Set the negotiated SDP parameters.

        Raises:
            ValueError: A value is out of range.
        """
    def link(self, other: Stream, /) -> bool:
        """Relay both ways; False when the other stream belongs to another engine thread."""
    def unlink(self) -> None: ...
    def mute(self, received: bool, sent: bool, /) -> None:
        """Replace the far end's audio, or the audio sent to it, by silence."""
    def comfort_noise(self, active: bool, /) -> None:
        """Send soft noise when there is nothing else to send."""
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
        Queue clips, each with its rate and the pause after it in ms; with 0 plays they repeat endlessly.

        Raises:
            ValueError: A value is out of range.
        """
    def pause_playback(self) -> None: ...
    def resume_playback(self) -> None: ...
    def stop_playback(self) -> None: ...
    def play_track(
        self,
        track: int,
        playback_id: int,
        clips: Sequence[tuple[bytes, int, int]],
        plays: int,
        gain: int,
        /,
    ) -> None:
        """Add a playback to all that is sent, behind those of its track, which is 0 to 3."""
    def stop_track(self, track: int, /) -> None: ...
    def send_dtmf(self, token: int, digits: str, duration_ms: int, gap_ms: int, /) -> None: ...
    def set_media_timeout(self, timeout_ms: int, hold_timeout_ms: int, /) -> None: ...
    def start_recording(self, recording_id: int, path: str, options: RecordingOptions, /) -> int:
        """Record to a file; returns 0 or an error number. An event of `recording_id` reports the end."""
    def pause_recording(self, paused: bool, /) -> None: ...
    def stop_recording(self) -> None: ...
    def detect_dtmf(self) -> None:
        """
        Detect DTMF digits in the audio.

        Raises:
            ValueError: The engine was built without libspandsp.
        """
    def detect_speech(self, settings: VoiceSettings, /) -> None: ...
    def detect_machine(self, settings: AnswerSettings, /) -> None: ...
    def detect_tones(self) -> None: ...
    def detect_level(self) -> None: ...
    def stop_detecting(self, detector: str, /) -> None:
        """Stop the detector "dtmf", "speech", "machine", "tones" or "level"."""
    def open_tap(self, encoding: str, rate_hz: int, both: bool, /) -> Tap | None:
        """Open the agent's end; with `both`, sent audio is delivered too, under `Tap.sent_id`."""
    def listen(self, rate_hz: int, /) -> FrameListener | None:
        """
        Deliver what is received in frames of 100 ms; None when the stream was closed.

        Raises:
            ValueError: Another rate than 8000 or 16000.
        """
    def monitor(self, hearing: Stream, /) -> Monitor | None:
        """
        Have another stream send what this one receives and sends; None when one of them was closed.

        Raises:
            ValueError: They are the same.
        """
    def stats(self) -> tuple[Any, ...]:
        """Return the fields of `StreamStats`, in their order; the final ones after `close`."""
    def meter(self) -> tuple[int | None, int | None, int, int, int, int | None]:
        """Return both levels in dBov, packets in, lost, packets out, and sent ones that were lost."""
    def intervals(self) -> list[tuple[Any, ...]]:
        """Return the fields of up to 36 `QualityInterval`, the oldest first."""
    def close(self) -> None: ...

class Conference:
    """Streams of any engine thread that hear one another. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    def add(
        self, stream: Stream, listen_only: bool, muted: bool, whisper_to: Sequence[int] | None, /
    ) -> bool:
        """
        Add a stream; False if the conference is full.

        Raises:
            ValueError: It is a member already, or the target of a whisper is no member.
        """
    def change(
        self, stream: int, listen_only: bool, muted: bool, whisper_to: Sequence[int] | None, /
    ) -> None:
        """
        Change the options of a member.

        Raises:
            ValueError: It is no member, or the target of a whisper is none.
        """
    def remove(self, stream: int, /) -> None: ...
    def levels(self) -> list[tuple[int, int]]:
        """Return each member's level in decibels below full scale; 127 when silent."""
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
        Queue clips as `Stream.play` does; no digit or speech ends them.

        Raises:
            ValueError: A value is out of range.
        """
    def pause_playback(self) -> None: ...
    def resume_playback(self) -> None: ...
    def stop_playback(self) -> None: ...
    def start_recording(self, recording_id: int, path: str, options: RecordingOptions, /) -> int:
        """Record the audio that all members may hear; returns 0 or an error number."""
    def pause_recording(self, paused: bool, /) -> None: ...
    def stop_recording(self) -> None: ...
    def close(self) -> None: ...

class BrowserSocket:
    """The UDP socket of all browsers. Harmless after `release`."""

    def send(self, datagram: bytes, host: str, port: int, /) -> bool:
        """
        Send a datagram; False if the system would not take it.

        Raises:
            ValueError: The host is no IP literal.
        """
    def open_leg(self) -> BrowserLeg | None:
        """Open a leg; None once released."""
    def release(self) -> None:
        """Let go of the legs and of the socket."""

class BrowserLeg:
    """One browser's leg. Harmless after `close`; hosts that are no IP literals are a ValueError."""

    @property
    def packets(self) -> int:
        """RTP and RTCP packets that have come from the browser."""
    def learn(self, host: str, port: int, /) -> None:
        """Take packets from this address for the browser's."""
    def select(self, host: str, port: int, /) -> None:
        """Send packets to the browser at this address."""
    def connect(self, host: str, port: int, /) -> bool:
        """Join it to the stream that receives at this address of ours; False if there is none."""
    def close(self) -> None: ...

class Engine:
    """
    Engine threads and their streams.

    Raises:
        ValueError: The settings are invalid.
        OSError: The system refused a thread or a descriptor.
    """

    def __init__(
        self,
        listen: str,
        port_min: int,
        port_max: int,
        threads: int,
        quarantine_ms: int,
        driven: bool,
        continuous: bool,
        /,
    ) -> None: ...
    def open_stream(self, near: Stream | None) -> Stream | None:
        """
        Open a stream, on the thread of `near` if given; None when no port is left.

        Raises:
            OSError: The system refused the socket for another reason.
        """
    def open_agent_socket(
        self,
        near: Stream | None,
        descriptor: int,
        tls: TlsClient | None,
        read: bytes,
        binary: bool,
        encoding: str,
        rate_hz: int,
        max_frames: int,
        max_message_bytes: int,
    ) -> AgentSocket:
        """
        Adopt a connected socket after the handshake, with what was read behind it.

        `tls` is its TLS, which is open and now the engine's; None for a connection without. The socket lives
        on the thread of `near`, or on the one with fewest streams.

        Raises:
            ValueError: The format is unknown.
        """
    def open_browser_socket(self, descriptor: int, upward: int, /) -> BrowserSocket:
        """
        Adopt the bound socket of all browsers, and one end of a pair of datagram sockets.

        At the other end come the datagrams of STUN and DTLS. Each begins with 19 bytes: 4 or 6 for the
        version of IP, the port, and the host in the first bytes of 16.

        Raises:
            OSError: The system refused to watch it.
        """
    def open_conference(self, rate_hz: int, /) -> Conference:
        """
        Open a conference at that rate.

        Raises:
            ValueError: The rate is neither 8000 nor 16000.
        """
    def fileno(self) -> int:
        """Return the descriptor that is readable while `drain` has data."""
    def advance(self, now_ns: int, /) -> int:
        """
        Advance the clock of a driven engine, do the due work and return the time of the next work, in ns.

        It returns the present time if there was any work: then call it again, and all engines that it may
        have sent to.
        """
    def next_id(self) -> int: ...
    def drain(
        self,
    ) -> tuple[
        list[tuple[int, int, int, int, int]],
        list[tuple[int, bytes]],
        list[tuple[int, int, int, bytes, int]],
    ]:
        """
        Fetch all events, all frames, and all messages of agents.

        Events are (stream, kind, a, b, c), as in event_queue.hpp, frames (tap, audio), messages (socket,
        kind, code, bytes, bytes of audio played before it), as in inbound.hpp.
        """
    def stats(self) -> EngineFigures: ...
    def dropped(self) -> tuple[int, int, int, int, int, int]:
        """
        Return how many packets of all streams were dropped, of closed ones too.

        They were foreign, invalid, unwanted, unauthentic, duplicates and late.
        """
    def close(self) -> None:
        """Close all streams, complete all recordings and end the threads."""

def to_base64(before: bytes, audio: bytes, after: bytes, /) -> bytes:
    """Join `before`, the base64 of the audio, and `after`."""

def from_base64(frame: bytes, before: bytes, after: bytes, /) -> bytes | None:
    """Return the bytes whose base64 is between `before` and `after`; None if the frame has another form."""
