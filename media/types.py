"""Values shared by the parts of `media`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

__all__ = [
    "BargeIn",
    "Direction",
    "DtmfReceived",
    "DtmfSent",
    "EngineSettings",
    "EngineStats",
    "FirstPacket",
    "GreetingEnd",
    "GreetingEnded",
    "MachineReason",
    "MachineSettings",
    "MachineVerdict",
    "MarkReached",
    "MediaEvent",
    "MediaTimeout",
    "OpusSettings",
    "PlaybackEnd",
    "PlaybackFinished",
    "PlaybackPosition",
    "PlayoutDrained",
    "PlayoutLevel",
    "PlayoutOverflow",
    "PlayoutStats",
    "QualityInterval",
    "RecordingEncoding",
    "RecordingEnd",
    "RecordingFinished",
    "RecordingGap",
    "RecordingSettings",
    "RemoteMedia",
    "SpeechSettings",
    "SpeechStarted",
    "SpeechStopped",
    "SrtpKey",
    "SrtpSuite",
    "SrtpUse",
    "StreamStats",
    "TapEncoding",
    "ToneDetected",
    "ToneName",
    "Verdict",
]

Direction = Literal["sendrecv", "sendonly", "recvonly", "inactive"]
TapEncoding = Literal["l16", "mulaw", "alaw"]
# What of the far end ends a playback that asks for it, and why a playback ended.
BargeIn = Literal["digit", "speech"]
PlaybackEnd = Literal["ended", "stopped", "digit", "speech"]


SrtpUse = Literal["off", "optional", "required"]

SrtpSuite = Literal[
    "AES_CM_128_HMAC_SHA1_80",
    "AES_CM_128_HMAC_SHA1_32",
    "AES_256_CM_HMAC_SHA1_80",
    "AES_256_CM_HMAC_SHA1_32",
]


@dataclass(frozen=True, slots=True)
class SrtpKey:
    """
    Master key and salt of one direction of SRTP (RFC 4568 6.1), never shown.

    Attributes:
        key: 30 bytes for AES-128, 46 for AES-256 (RFC 6188).
    """

    suite: SrtpSuite
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpusSettings:
    """
    What the receiver of our Opus asked for (RFC 7587 6.1).

    Attributes:
        bitrate_bps: Average bit rate to send with.
        fec: Whether it makes use of in-band error correction.
        dtx: Whether it wants nothing sent during silence.
        max_playback_hz: Highest sampling rate that it plays.
    """

    bitrate_bps: int = 32_000
    fec: bool = True
    dtx: bool = False
    max_playback_hz: int = 16_000


@dataclass(frozen=True, slots=True)
class RemoteMedia:
    """
    Where and how to send; `direction` is what this side does.

    Attributes:
        address: IP literal the far end receives on.
        codec: "PCMU", "PCMA", "G722", "L16" or "OPUS".
        payload_type: What we send with; `receive_payload_type` is what the far end sends with, if it differs.
        clock_rate: Of the RTP timestamps; 8000 for G.722 too, 48000 for Opus.
        dtmf_payload_type: Payload type of telephone events, None when the far end takes none.
        dtmf_receive_payload_type: That of the events it sends, when it differs.
        dtmf_tones: Whether digits go to and come from the far end as tones in the audio.
        comfort_noise_payload_type: Of RFC 3389 packets, None when the far end takes none.
        rtcp_port: Where the far end takes RTCP; None when it shares `port` (RFC 5761).
        rtcp_address: IP literal of that, if it differs from `address` (RFC 3605).
        opus: What the far end asked of Opus.
        srtp_send, srtp_receive: Keys of SRTP, both or none.
    """

    address: str
    port: int
    codec: str
    payload_type: int
    ptime_ms: int = 20
    dtmf_payload_type: int | None = None
    direction: Direction = "sendrecv"
    dtmf_receive_payload_type: int | None = None
    receive_payload_type: int | None = None
    clock_rate: int = 8000
    dtmf_tones: bool = False
    comfort_noise_payload_type: int | None = None
    rtcp_port: int | None = None
    rtcp_address: str | None = None
    opus: OpusSettings = OpusSettings()
    srtp_send: SrtpKey | None = field(default=None, repr=False)
    srtp_receive: SrtpKey | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """
    How a media engine is set up.

    Attributes:
        listen: IP literal the RTP sockets are bound to.
        advertise: Address told to far ends; that listened on when None.
        port_min, port_max: UDP ports to use; the even ones carry RTP.
        threads: Engine threads. The streams of one call share one.
        quarantine_s: How long a port rests before another call may have it.
    """

    listen: str = "127.0.0.1"
    advertise: str | None = None
    port_min: int = 20000
    port_max: int = 29999
    threads: int = 1
    quarantine_s: float = 4.0


@dataclass(frozen=True, slots=True)
class EngineStats:
    """
    Figures of an engine at one moment.

    Attributes:
        ports_in_use: Ports of open streams; those at rest are not counted.
        events_dropped: Events lost because nobody fetched them in time.
        frames_dropped: Frames of taps lost for the same reason.
        underruns: How often an agent's audio ran dry and went on within half a second.
    """

    streams: int
    ports_in_use: int
    ports_total: int
    packets_in: int
    packets_out: int
    events_dropped: int
    frames_dropped: int
    underruns: int = 0


class StreamStats(NamedTuple):
    """
    Figures of a stream since it was opened.

    Attributes:
        lost: Packets of the far end that never came (RFC 3550 A.3).
        underruns: How often an agent's audio ran dry and went on within half a second.
        late: Packets that came too late for the tap.
        jitter_ms: Interarrival jitter (RFC 3550 A.8).
        dropped_foreign: Packets from another source than the far end's.
        dropped_invalid: Datagrams that were no RTP, or of a payload type nobody agreed on.
        dropped_unwanted: Packets before `connect`, against the agreed direction, or of a flood: what is said
            faster than one and a half times real time, beyond a reserve of 10 s.
        dropped_unauthentic: Packets of an encrypted stream that were forged, damaged or under another key.
        rtcp_in, rtcp_out: Compound RTCP packets.
        suspects: Packets from the far end's address under an SSRC or a number that did not prove itself.
        ssrc_changes: Sources heard one after another; 1 for a far end that kept to one.
        collisions: How often our SSRC had to be changed because the far end used it (RFC 3550 8.2).
        rtt_ms: Time to the far end and back; None before its reports tell it.
        sent_lost: Packets of ours that the far end missed; None before it reported.
        sent_jitter_ms: Jitter of ours at the far end, likewise.
        mos_received, mos_sent: Opinion scores by the E-model (ITU-T G.107), 1 to 4.5, of what we hear and
            of what the far end hears by its reports; None where there is nothing to judge by.
    """

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
    underruns: int = 0


@dataclass(frozen=True, slots=True)
class QualityInterval:
    """
    How both directions of a stream fared between two RTCP reports, about five seconds.

    Attributes:
        ended_monotonic_s: When it ended, on the monotonic clock.
        expected, lost: Packets of the far end that should have come, and that did not.
        discarded: Packets that came too late to be played.
        burst_packets: Mean number of packets lost in a row; 0 without loss.
        sent_expected, sent_lost: Our packets as the far end reports them; both 0 where it did not.
        mos_received, mos_sent, rtt_ms, sent_jitter_ms: As in `StreamStats`.
    """

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


@dataclass(frozen=True, slots=True)
class FirstPacket:
    """The first valid packet of the far end came."""


@dataclass(frozen=True, slots=True)
class DtmfReceived:
    """The far end pressed a key, by telephone event or as a tone; told once, when the key is up again."""

    digit: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    """
    What counts as speech.

    Attributes:
        min_speech_ms: Shorter sounds are none.
        hangover_ms: A pause of this length ends it.
        margin_db: How far above the noise a voice lies.
        min_level_db: Below full scale; what is softer is no voice.
    """

    min_speech_ms: int = 60
    hangover_ms: int = 300
    margin_db: float = 9.0
    min_level_db: float = -46.0


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """
    How a person is told from an answering machine, from the moment of the answer.

    Attributes:
        initial_silence_ms: Nobody speaks so long: unknown.
        greeting_ms: Speech as long as this: machine.
        after_greeting_silence_ms: Silence of this length after less speech: human.
        total_ms: Unknown, when nothing was told by then.
        min_word_ms: Shorter sounds are no words.
        between_words_ms: The pause that parts two words.
        max_words: More of them: machine.
        greeting_end_ms: A machine's greeting is over when it is silent so long, if no beep comes before.
        greeting_timeout_ms: Or when it has spoken so long.
        min_beep_ms: Shorter tones are no beeps.
        speech: What counts as speech.
    """

    initial_silence_ms: int = 3000
    greeting_ms: int = 1800
    after_greeting_silence_ms: int = 800
    total_ms: int = 5000
    min_word_ms: int = 100
    between_words_ms: int = 60
    max_words: int = 6
    greeting_end_ms: int = 2500
    greeting_timeout_ms: int = 60_000
    min_beep_ms: int = 80
    speech: SpeechSettings = SpeechSettings()


Verdict = Literal["human", "machine", "unknown"]
MachineReason = Literal[
    "initial_silence",
    "short_greeting",
    "long_greeting",
    "many_words",
    "beep",
    "fax",
    "announcement",
    "timeout",
]
GreetingEnd = Literal["beep", "silence", "timeout"]
ToneName = Literal["beep", "fax_call", "fax_answer", "announcement"]


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The far end has begun to speak, `min_speech_ms` ago."""


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The far end ceased to speak `hangover_ms` ago; it spoke for `duration_ms`, short pauses included."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class MachineVerdict:
    """Who answered, what told it, and how long that took since detection began; told once."""

    verdict: Verdict
    reason: MachineReason
    took_ms: int


@dataclass(frozen=True, slots=True)
class GreetingEnded:
    """
    A machine's greeting is over and it records; follows a verdict of machine, but for fax machines.

    Attributes:
        reason: A beep, silence, or the time a greeting may last.
        at_ms: Since detection began.
    """

    reason: GreetingEnd
    at_ms: int


@dataclass(frozen=True, slots=True)
class ToneDetected:
    """A machine's tone was heard; told at its end, a fax that answers before."""

    kind: ToneName
    freq_hz: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class DtmfSent:
    """All digits of one `send_dtmf` were sent, or dropped with the stream."""

    digits: str


@dataclass(frozen=True, slots=True)
class PlaybackFinished:
    """
    A playback came to its end, or was cut off.

    Attributes:
        interrupted: Whether it was cut off, by whatever.
        why: What ended it: its own end, an order, a digit or the speech of the far end.
        digit: The key that ended it.
        played_ms: How much of it was sent; a loop counts every round.
    """

    playback_id: int
    interrupted: bool
    why: PlaybackEnd = "ended"
    digit: str | None = None
    played_ms: int = 0


@dataclass(frozen=True, slots=True)
class PlaybackPosition:
    """How far a playback has come that is to tell it."""

    playback_id: int
    played_ms: int


@dataclass(frozen=True, slots=True)
class MarkReached:
    """The audio before a mark was played, or dropped (`cleared`)."""

    name: str
    cleared: bool


@dataclass(frozen=True, slots=True)
class PlayoutOverflow:
    """Audio written to a tap was dropped because its queue is full; told once until there is room again."""

    dropped_ms: int


@dataclass(frozen=True, slots=True)
class PlayoutLevel:
    """A tap's playout queue holds so much that the writer should pause ("xoff"), or go on ("xon")."""

    state: Literal["xoff", "xon"]
    level_ms: int


@dataclass(frozen=True, slots=True)
class PlayoutStats:
    """
    Figures of a tap's playout queue.

    Attributes:
        played_ms: What was played, or cleared.
        dropped_ms: What there was no room for.
        underruns: How often the audio of the stream's taps ran dry and went on within half a second.
    """

    queued_ms: int
    played_ms: int
    dropped_ms: int
    underruns: int


@dataclass(frozen=True, slots=True)
class PlayoutDrained:
    """The last audio in a tap's playout queue was played or dropped."""


RecordingEncoding = Literal["wav", "wav-mulaw", "ogg-opus"]
RecordingEnd = Literal["stopped", "max_duration", "max_bytes", "error"]


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """
    How a recording is made.

    Attributes:
        encoding: WAV of 16 bits, WAV of mu-law (half the size), or Ogg Opus (a tenth of it and less).
        channels: 2 for what is received left and what is sent right, 1 for their sum.
        sample_rate: That of the codec when None.
        pause: Whether paused time is left out of the file or is silence there.
        max_duration_s, max_bytes: Where the recording ends by itself; never when None.
    """

    encoding: RecordingEncoding = "wav"
    channels: Literal[1, 2] = 2
    sample_rate: Literal[8000, 16000] | None = None
    pause: Literal["omit", "silence"] = "omit"
    max_duration_s: float | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RecordingFinished:
    """
    A recording is complete on disk; with `error`, up to what could be written.

    Attributes:
        lost_ms: Silence in it in place of audio that the disk was too slow for.
    """

    path: str
    duration_ms: int
    bytes: int
    error: str | None
    ended_by: RecordingEnd = "stopped"
    lost_ms: int = 0


@dataclass(frozen=True, slots=True)
class RecordingGap:
    """The disk was too slow for a recording, which has `lost_ms` of silence so far in place of audio."""

    path: str
    lost_ms: int


@dataclass(frozen=True, slots=True)
class MediaTimeout:
    """
    The far end has sent nothing for `silent_s`, though it may; told once until it sends again.

    While `held`, no audio was due, and no RTCP came either.
    """

    silent_s: float
    held: bool = False


MediaEvent = (
    DtmfReceived
    | DtmfSent
    | GreetingEnded
    | MachineVerdict
    | SpeechStarted
    | SpeechStopped
    | ToneDetected
    | FirstPacket
    | MarkReached
    | MediaTimeout
    | PlaybackFinished
    | PlaybackPosition
    | PlayoutDrained
    | PlayoutLevel
    | PlayoutOverflow
    | RecordingFinished
    | RecordingGap
)
