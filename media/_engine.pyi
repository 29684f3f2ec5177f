"""
The native media engine.

All methods must be called from one thread at a time; none waits for an engine thread but `Engine.close`.
Orders are queued and run in the order given. Events and frames are fetched with `Engine.drain`.
"""

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
    send_errors: int
    rtcp_in: int
    jitter_ms: float
    ssrc_in: int
    ssrc_out: int

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
    def set_encoder(self, bitrate_bps: int, fec: bool, dtx: bool, /) -> None: ...
    def set_dtmf(self, send_type: int, receive_type: int, tones: bool, /) -> None: ...
    def set_noise(self, payload_type: int, /) -> None: ...
    def set_srtp_send(self, suite: str, key: bytes, /) -> None: ...
    def set_srtp_receive(self, suite: str, key: bytes, /) -> None: ...

class Tap:
    """An agent's end of a stream. Harmless after `close`."""

    @property
    def id(self) -> int: ...
    def write(self, audio: bytes, /) -> int:
        """Queue audio; returns how many bytes there was no room for."""
    def mark(self, mark: int, /) -> None: ...
    def clear(self) -> None: ...
    def queued_ms(self) -> int: ...
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
    def play(self, playback_id: int, pcm: bytes, loop: bool, /) -> None: ...
    def stop_playback(self) -> None: ...
    def send_dtmf(self, token: int, digits: str, duration_ms: int, gap_ms: int, /) -> None: ...
    def set_media_timeout(self, timeout_ms: int, /) -> None: ...
    def start_recording(self, recording_id: int, path: str, channels: int, /) -> int:
        """Record to a file; returns 0 or an error number. The end is an event for `recording_id`."""
    def stop_recording(self) -> None: ...
    def open_tap(self, encoding: str, rate_hz: int, /) -> Tap | None: ...
    def stats(self) -> StreamFigures: ...
    def close(self) -> None: ...

class Engine:
    """
    Engine threads and their streams.

    Raises:
        ValueError: The settings cannot work.
        OSError: The system refused a thread or a descriptor.
    """

    def __init__(
        self, listen: str, port_min: int, port_max: int, threads: int, quarantine_ms: int, /
    ) -> None: ...
    def open_stream(self, near: Stream | None) -> Stream | None:
        """
        Open a stream, on the thread of `near` if given; None when no port is left.

        Raises:
            OSError: The system refused the socket for another reason.
        """
    def fileno(self) -> int:
        """Descriptor that is readable while `drain` has something."""
    def next_id(self) -> int: ...
    def drain(self) -> tuple[list[tuple[int, int, int, int, int]], list[tuple[int, bytes]]]:
        """Take all events (stream, kind, a, b, c; see outlet.hpp) and all frames (tap, audio)."""
    def stats(self) -> EngineFigures: ...
    def close(self) -> None:
        """Close all streams, complete all recordings and end the threads."""
