"""Values shared by the parts of `media`."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, NamedTuple

from media.values import frozen

Direction = Literal["sendrecv", "sendonly", "recvonly", "inactive"]
TapEncoding = Literal["l16", "mulaw", "alaw"]
# Inputs of the far end that can end a playback, and causes of its end.
BargeIn = Literal["digit", "speech"]
PlaybackEnd = Literal["ended", "stopped", "digit", "speech"]


SrtpUse = Literal["off", "optional", "required"]

SrtpSuite = Literal[
    "AES_CM_128_HMAC_SHA1_80",
    "AES_CM_128_HMAC_SHA1_32",
    "AES_256_CM_HMAC_SHA1_80",
    "AES_256_CM_HMAC_SHA1_32",
]


@frozen
class SrtpKey:
    """
    Master key and salt of one direction of SRTP (RFC 4568 6.1), hidden in the representation.

    Attributes:
        key: 30 bytes for AES-128, 46 for AES-256 (RFC 6188).
    """

    suite: SrtpSuite
    key: bytes = field(repr=False)


class OpusSettings(NamedTuple):
    """
    Opus preferences of the receiver (RFC 7587 6.1).

    Attributes:
        bitrate_bps: Average bit rate to send with.
        fec: True if it uses in-band error correction.
        dtx: True if it wants no packets during silence.
        max_playback_hz: Highest sampling rate that it plays.
    """

    bitrate_bps: int = 32_000
    fec: bool = True
    dtx: bool = False
    max_playback_hz: int = 16_000


@frozen
class RemoteMedia:
    """
    Parameters of a far end; `direction` is that of this side.

    Attributes:
        address: IP literal on which the far end receives.
        codec: "PCMU", "PCMA", "G722", "L16" or "OPUS".
        payload_type: Payload type that we send; `receive_payload_type` is the far end's, if it differs.
        clock_rate: Rate of the RTP timestamps; 8000 for G.722 too, 48000 for Opus.
        dtmf_payload_type: Payload type of telephone events, None if the far end accepts none.
        dtmf_receive_payload_type: Payload type of the events it sends, if it differs.
        dtmf_tones: True if digits are sent and received as tones in the audio.
        comfort_noise_payload_type: Payload type of RFC 3389 packets, None if the far end accepts none.
        rtcp_port: RTCP port of the far end; None if it shares `port` (RFC 5761).
        rtcp_address: IP literal for RTCP, if it differs from `address` (RFC 3605).
        opus: Opus preferences of the far end.
        srtp_send, srtp_receive: SRTP keys, both or none.
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


@frozen
class EngineSettings:
    """
    Settings of a media engine.

    Attributes:
        listen: IP literal to which the RTP sockets are bound.
        advertise: Address given to far ends; None means `listen`.
        port_min, port_max: UDP ports to use; the even ones carry RTP.
        threads: Number of engine threads. The streams of one call share one.
        quarantine_s: Time before a freed port is reused.
        continuous: True to send silence, or comfort noise where it was agreed, on every stream that may send
            and has nothing else to send. Far ends and NATs between then see no stream that stops.
    """

    listen: str = "127.0.0.1"
    advertise: str | None = None
    port_min: int = 20000
    port_max: int = 29999
    threads: int = 1
    quarantine_s: float = 4.0
    continuous: bool = False


@frozen
class EngineStats:
    """
    Current metrics of an engine.

    Attributes:
        ports_in_use: Ports of open streams, without quarantined ones.
        events_dropped: Events lost because they were not fetched in time.
        frames_dropped: Frames of taps lost for the same reason.
        underruns: Count of gaps in an agent's audio that ended within half a second.
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
    Metrics of a stream since it was opened.

    Attributes:
        lost: Packets of the far end that never arrived (RFC 3550 A.3).
        underruns: Count of gaps in an agent's audio that ended within half a second.
        late: Packets that arrived too late for the tap.
        jitter_ms: Interarrival jitter (RFC 3550 A.8).
        dropped_foreign: Packets from another source than the far end's.
        dropped_invalid: Datagrams that were no RTP, or of a payload type that was not negotiated.
        dropped_unwanted: Packets before `connect`, against the negotiated direction, or of a flood: beyond
            1.5 times real time with a burst of 10 s.
        dropped_unauthentic: Packets of an encrypted stream that were forged, damaged or under another key.
        rtcp_in, rtcp_out: Compound RTCP packets.
        suspects: Packets from the far end's address with an unconfirmed SSRC or far-off sequence number.
        ssrc_changes: Number of successive SSRCs; 1 for a far end that kept one.
        collisions: Changes of our SSRC because the far end used it (RFC 3550 8.2).
        rtt_ms: Round-trip time; None before a report of the far end.
        sent_lost: Our packets lost on the way to the far end; None before a report.
        sent_jitter_ms: Jitter of our packets at the far end, likewise.
        mos_received, mos_sent: Opinion scores by the E-model (ITU-T G.107), 1 to 4.5, of received audio, and
            of sent audio by the far end's reports; None without data.
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


class StreamMeter(NamedTuple):
    """
    Metrics of a stream that are read often.

    Attributes:
        level_db, sent_level_db: Loudest moment of the last second of what the far end says, and of what is
            sent to it, in decibels below full scale; 127 is silence. None while `Detection` does not measure
            them.
        packets_in, lost, packets_out, sent_lost: As in `StreamStats`.
    """

    level_db: int | None
    sent_level_db: int | None
    packets_in: int
    lost: int
    packets_out: int
    sent_lost: int | None


@frozen
class QualityInterval:
    """
    Quality of both directions of a stream between two RTCP reports, about five seconds apart.

    Attributes:
        ended_monotonic_s: End of the interval, on the monotonic clock.
        expected, lost: Packets expected from the far end, and those missing.
        discarded: Packets that arrived too late to be played.
        burst_packets: Mean number of consecutive lost packets; 0 without loss.
        sent_expected, sent_lost: Our packets by the far end's report; both 0 without one.
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


@frozen
class FirstPacket:
    """The first valid packet of the far end arrived."""


@frozen
class DtmfReceived:
    """The far end sent a digit, by telephone event or as a tone; reported once, when the key is released."""

    digit: str
    duration_ms: int


@frozen
class SpeechSettings:
    """
    Settings of speech detection.

    Attributes:
        min_speech_ms: Shorter sounds are no speech.
        hangover_ms: A pause of this length ends speech.
        margin_db: Least level of a voice above the noise.
        min_level_db: Least level of a voice, relative to full scale.
    """

    min_speech_ms: int = 60
    hangover_ms: int = 300
    margin_db: float = 9.0
    min_level_db: float = -46.0


@frozen
class MachineSettings:
    """
    Settings of answering machine detection, which starts at the answer.

    Attributes:
        initial_silence_ms: Silence of this length at the start: unknown.
        greeting_ms: Speech of this length: machine.
        after_greeting_silence_ms: Silence of this length after shorter speech: human.
        total_ms: No verdict by this time: unknown.
        min_word_ms: Shorter sounds are no words.
        between_words_ms: Least pause between two words.
        max_words: More words: machine.
        greeting_end_ms: Silence of this length ends a machine's greeting, unless a beep does before.
        greeting_timeout_ms: A greeting of this length counts as ended.
        min_beep_ms: Shorter tones are no beeps.
        speech: Settings of speech detection.
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


@frozen
class SpeechStarted:
    """The far end started speaking `min_speech_ms` ago."""


@frozen
class SpeechStopped:
    """The far end stopped speaking `hangover_ms` ago, after `duration_ms` with short pauses included."""

    duration_ms: int


@frozen
class MachineVerdict:
    """Verdict of machine detection, its reason, and the time since detection started; reported once."""

    verdict: Verdict
    reason: MachineReason
    took_ms: int


@frozen
class GreetingEnded:
    """
    A machine's greeting has ended and it records; follows a verdict of machine, except for fax machines.

    Attributes:
        reason: A beep, silence, or the time limit of a greeting.
        at_ms: Time since detection started.
    """

    reason: GreetingEnd
    at_ms: int


@frozen
class ToneDetected:
    """A machine's tone was detected; reported at its end, for an answering fax before its end."""

    kind: ToneName
    freq_hz: int
    duration_ms: int


@frozen
class DtmfSent:
    """All digits of one `send_dtmf` were sent, or dropped with the stream."""

    digits: str


@frozen
class PlaybackFinished:
    """
    A playback ended or was interrupted.

    Attributes:
        interrupted: True unless it was played to its end.
        why: Cause: its end, a stop, a digit or the speech of the far end.
        digit: The digit that ended it.
        played_ms: Duration that was sent; a loop counts every round.
    """

    playback_id: int
    interrupted: bool
    why: PlaybackEnd = "ended"
    digit: str | None = None
    played_ms: int = 0


@frozen
class PlaybackPosition:
    """Position of a playback with `position_every_ms`."""

    playback_id: int
    played_ms: int


@frozen
class MarkReached:
    """The audio before a mark was played, or dropped (`cleared`)."""

    name: str
    cleared: bool


@frozen
class PlayoutOverflow:
    """Audio written to a tap was dropped because its queue is full; reported once until there is room."""

    dropped_ms: int


@frozen
class PlayoutLevel:
    """Level of a tap's playout queue at which the writer should pause ("xoff") or resume ("xon")."""

    state: Literal["xoff", "xon"]
    level_ms: int


@frozen
class PlayoutStats:
    """
    Metrics of a tap's playout queue.

    Attributes:
        played_ms: Audio played or cleared.
        dropped_ms: Audio that did not fit.
        underruns: Count of gaps in the audio of the stream's taps that ended within half a second.
        prebuffer_ms: Prebuffer of the next utterance, 10 to 60; 0 once the tap is closed.
    """

    queued_ms: int
    played_ms: int
    dropped_ms: int
    underruns: int
    prebuffer_ms: int


@frozen
class PlayoutDrained:
    """The last audio in a tap's playout queue was played or dropped."""


RecordingEncoding = Literal["wav", "wav-mulaw", "ogg-opus"]
RecordingEnd = Literal["stopped", "max_duration", "max_bytes", "error"]


@frozen
class RecordingSettings:
    """
    Settings of a recording.

    Attributes:
        encoding: WAV of 16 bits, WAV of mu-law (half the size), or Ogg Opus (a tenth of it and less).
        channels: 2 for received audio left and sent audio right, 1 for their sum.
        sample_rate: Rate of the file; None means that of the codec.
        pause: "omit" leaves paused time out of the file, "silence" fills it.
        max_duration_s, max_bytes: Limits that end the recording; None for no limit.
    """

    encoding: RecordingEncoding = "wav"
    channels: Literal[1, 2] = 2
    sample_rate: Literal[8000, 16000] | None = None
    pause: Literal["omit", "silence"] = "omit"
    max_duration_s: float | None = None
    max_bytes: int | None = None


@frozen
class RecordingFinished:
    """
    A recording is complete on disk; with `error`, up to what could be written.

    Attributes:
        lost_ms: Silence in place of audio that a slow disk could not take.
    """

    path: str
    duration_ms: int
    bytes: int
    error: str | None
    ended_by: RecordingEnd = "stopped"
    lost_ms: int = 0


@frozen
class RecordingGap:
    """The disk was too slow for a recording, which so far has `lost_ms` of silence instead of audio."""

    path: str
    lost_ms: int


@frozen
class MediaTimeout:
    """
    The far end has sent nothing for `silent_s`, though it may; reported once until it sends again.

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
