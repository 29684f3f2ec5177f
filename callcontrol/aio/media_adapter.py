"""The media of one call: an RTP stream and the session descriptions for each leg."""

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from callcontrol.events import (
    DigitReceived,
    DigitsSent,
    Event,
    MediaProblem,
    MediaSilent,
    PlaybackEnded,
    PlayoutDrained,
    RecordingEnded,
)
from callcontrol.ids import LegId
from callcontrol.models import Carrier, Quality
from callcontrol.quality import mos
from media.aio import AgentTap, MediaEngine, RtpStream
from media.audio import RINGBACK_INDIA, tones
from media.errors import InvalidMedia, MediaError, PortsExhausted, RecordingFailed
from media.sdp import (
    LocalMedia,
    NegotiationError,
    SdpError,
    SessionDescription,
    accept_answer,
    answer_offer,
    is_unchanged,
    make_offer,
    revise,
)
from media.streams import StreamChoice
from media.types import (
    DtmfReceived,
    DtmfSent,
    MarkReached,
    MediaTimeout,
    PlaybackFinished,
    PlayoutOverflow,
    RecordingFinished,
    RemoteMedia,
)

log = logging.getLogger(__name__)

_SHORTEST_DIGIT_MS: Final = 40  # Q.24: receivers take digits of 40 ms, and the engine sends no shorter ones
_DRAIN_MARK: Final = "\0drained"  # no agent can send a mark of this name: control characters are refused


class MediaRefusal(Exception):
    """
    A leg can have no media, or an offer cannot be taken.

    ``status`` refuses an offer; ``warning`` is the value of a Warning header (RFC 3261 20.43).
    """

    def __init__(self, problem: MediaProblem, *, status: int = 488, warning: str | None = None) -> None:
        super().__init__(warning or problem)
        self.problem: MediaProblem = problem
        self.status = status
        self.warning = warning


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """What a leg's trunk takes: codecs in its order, and digits in RTP (RFC 4733) or not."""

    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    dtmf: bool = True

    @classmethod
    def of(cls, carrier: Carrier) -> "MediaPolicy":
        """The policy of a carrier."""
        return cls(carrier.codecs, carrier.dtmf_type == "rfc2833")


@dataclass(slots=True)
class _LegMedia:
    """One leg's stream, what both sides last said about it, and our offer that waits for an answer."""

    stream: RtpStream
    local: LocalMedia
    ours: SessionDescription | None = None
    theirs: SessionDescription | None = None
    offer: SessionDescription | None = None
    remote: RemoteMedia | None = None
    tap: AgentTap | None = None
    by_taps: bool = False
    """Whether it is joined through this process, which passes on audio but no digits."""


class MediaLegs:
    """
    The media of one call, by leg.

    ``post`` takes what the streams report. Marks of an agent go to ``on_mark`` and overflows of its queue to
    ``on_overflow`` at once: nothing is decided about them.
    """

    def __init__(
        self,
        engine: MediaEngine,
        post: Callable[[Event], None],
        *,
        media_timeout_s: float,
        on_mark: Callable[[str, bool], None],
        on_overflow: Callable[[int], None],
    ) -> None:
        self._engine = engine
        self._post = post
        self._media_timeout_s = media_timeout_s
        self._on_mark = on_mark
        self._on_overflow = on_overflow
        self._legs: dict[LegId, _LegMedia] = {}
        self._plays: dict[int, LegId] = {}
        self._qualities: dict[LegId, Quality] = {}

    # --- descriptions ---------------------------------------------------------------------------------------

    def take_offer(self, leg: LegId, body: bytes, policy: MediaPolicy) -> None:
        """
        Open the stream of a caller and apply its offer; an empty body makes us offer in our answer.

        Of the codecs in the offer that one is chosen which the trunk prefers.

        Raises:
            MediaRefusal: The offer cannot be used, or no port is free.
        """
        offer = _parse(body) if body else None
        media = self._open(leg, policy, near=next(iter(self._legs.values()), None))
        if offer is None:
            media.ours = media.offer = make_offer(media.local)
        else:
            self._apply_offer(media, offer)

    def offer(self, leg: LegId, like: LegId | None, policy: MediaPolicy) -> bytes:
        """
        Open the stream of a leg that is to be dialled and describe it, its codecs in the trunk's order.

        The codec of the leg ``like`` goes first if the trunk takes it, so that nothing need be transcoded.

        Raises:
            MediaRefusal: No port is free.
        """
        other = self._legs.get(like) if like is not None else None
        if other is not None and other.remote is not None:
            spoken = other.remote.codec
            codecs = sorted(policy.codecs, key=lambda codec: codec != spoken)
            policy = MediaPolicy(tuple(codecs), policy.dtmf)
        media = self._open(leg, policy, near=other)
        media.ours = media.offer = make_offer(media.local)
        return media.ours.to_bytes()

    def description(self, leg: LegId) -> bytes:
        """Our description of the leg, as it stands."""
        media = self._legs.get(leg)
        return media.ours.to_bytes() if media is not None and media.ours is not None else b""

    def apply_answer(self, leg: LegId, body: bytes) -> None:
        """
        Apply the answer to our offer; an answer without a body confirms an earlier one.

        Raises:
            MediaRefusal: It does not fit the offer.
        """
        media = self._legs.get(leg)
        if media is None:
            return
        if not body:
            if media.remote is None:
                raise MediaRefusal("codec")
            return
        answer = _parse(body)
        if media.theirs is not None and is_unchanged(media.theirs, answer) and media.remote is not None:
            return
        offer = media.offer or media.ours
        assert offer is not None
        try:
            negotiated = accept_answer(offer, answer)
        except NegotiationError as error:
            raise MediaRefusal("codec", warning=error.warning_header("trunkline")) from None
        self._connect(media, answer, negotiated.remote)

    def answer_offer(self, leg: LegId, body: bytes) -> bytes:
        """
        Apply a party's new offer and return our answer; an empty body asks for our offer, which is returned.

        Raises:
            MediaRefusal: The offer cannot be used; everything stays as it was.
        """
        media = self._legs.get(leg)
        if media is None or media.ours is None:
            raise MediaRefusal("codec", status=488)
        if not body:
            media.ours = media.offer = revise(media.ours, make_offer(media.local))
            return media.ours.to_bytes()
        offer = _parse(body)
        if media.theirs is None or not is_unchanged(media.theirs, offer):
            self._apply_offer(media, offer)
        return media.ours.to_bytes()

    def _apply_offer(self, media: _LegMedia, offer: SessionDescription) -> None:
        try:
            negotiated = answer_offer(offer, media.local)
        except NegotiationError as error:
            raise MediaRefusal(
                "codec", status=error.status, warning=error.warning_header("trunkline")
            ) from None
        assert negotiated.answer is not None
        self._connect(media, offer, negotiated.remote)
        media.ours = revise(media.ours, negotiated.answer) if media.ours else negotiated.answer

    def _connect(self, media: _LegMedia, theirs: SessionDescription, remote: RemoteMedia) -> None:
        try:
            media.stream.connect(remote)
        except InvalidMedia as error:
            raise MediaRefusal("codec", warning=f'399 trunkline "{error}"') from None
        media.theirs, media.remote = theirs, remote

    def _open(self, leg: LegId, policy: MediaPolicy, near: _LegMedia | None) -> _LegMedia:
        try:
            stream = self._engine.open_stream(
                lambda event: self._on_event(leg, event), near.stream if near is not None else None
            )
        except PortsExhausted:
            raise MediaRefusal("ports", status=503) from None
        address, port = stream.local
        local = LocalMedia(address, port, policy.codecs, dtmf=policy.dtmf, session_id=secrets.randbits(31))
        media = self._legs[leg] = _LegMedia(stream, local)
        return media

    # --- audio ----------------------------------------------------------------------------------------------

    def watch(self, leg: LegId) -> None:
        """Report when the party of an answered leg sends nothing for too long."""
        media = self._legs.get(leg)
        if media is not None:
            media.stream.set_media_timeout(self._media_timeout_s)

    def link(self, leg: LegId, other: LegId) -> None:
        """Let two legs hear each other."""
        one, two = self._legs.get(leg), self._legs.get(other)
        if one is not None and two is not None:
            one.stream.link(two.stream)

    def link_across(self, leg: LegId, others: "MediaLegs", other: LegId) -> None:
        """
        Let a leg and one of another call hear each other.

        Streams that the engine serves apart are joined through this process, a little later than by relay.
        """
        one, two = self._legs.get(leg), others._legs.get(other)
        if one is None or two is None:
            return
        try:
            one.stream.link(two.stream)
        except MediaError:
            for media in (one, two):
                media.stream.unlink()
                media.by_taps = True
            one.tap = one.stream.open_tap(
                sample_rate=8000, encoding="l16", on_frames=lambda frames: _pass(frames, two)
            )
            two.tap = two.stream.open_tap(
                sample_rate=8000, encoding="l16", on_frames=lambda frames: _pass(frames, one)
            )

    def joined_by_taps(self, leg: LegId) -> bool:
        """Whether digits in RTP of the other call do not reach the leg by themselves."""
        media = self._legs.get(leg)
        return media is not None and media.by_taps

    def play(self, leg: LegId, pcm: bytes, loops: int) -> None:
        """Play samples, L16 at 8 kHz; ``PlaybackEnded`` follows."""
        media = self._legs.get(leg)
        if media is None or not pcm:
            self._post(PlaybackEnded(leg))
            return
        try:
            self._plays[media.stream.play(pcm * max(loops, 1))] = leg
        except MediaError as error:
            self._post(PlaybackEnded(leg, str(error)))

    def play_ringback(self, leg: LegId) -> None:
        """Play the ringing tone until ``stop_audio``."""
        media = self._legs.get(leg)
        if media is not None:
            media.stream.play(_ringback(), loop=True)

    def stop_audio(self, leg: LegId) -> None:
        """Play nothing more to the leg."""
        media = self._legs.get(leg)
        if media is not None:
            media.stream.stop_playback()

    def send_digits(self, leg: LegId, digits: str, duration_ms: int, gap_ms: int) -> None:
        """Send telephone digits, none too short to be recognised; ``DigitsSent`` follows."""
        media = self._legs.get(leg)
        if media is None:
            return
        try:
            media.stream.send_dtmf(digits, max(duration_ms, _SHORTEST_DIGIT_MS), gap_ms)
        except MediaError as error:
            self._post(DigitsSent(leg, digits, str(error)))

    def record(self, leg: LegId, path: str, channels: int) -> None:
        """Record the leg into a file; ``RecordingEnded`` follows when its media is closed, or it fails."""
        media = self._legs.get(leg)
        if media is None:
            self._post(RecordingEnded(leg, path, 0, "the leg has no media"))
            return
        try:
            media.stream.start_recording(path, channels=1 if channels == 1 else 2)
        except RecordingFailed as error:
            self._post(RecordingEnded(leg, path, 0, str(error)))

    def open_tap(
        self, leg: LegId, choice: StreamChoice, on_frames: Callable[[bytes], None]
    ) -> AgentTap | None:
        """Connect the leg's audio to an agent; None when the leg is gone."""
        media = self._legs.get(leg)
        if media is None:
            return None
        media.tap = media.stream.open_tap(
            sample_rate=16000 if choice.sample_rate == 16000 else 8000,
            encoding=choice.encoding,
            on_frames=on_frames,
        )
        return media.tap

    def drain(self, leg: LegId) -> None:
        """Report when everything that was written to the leg's tap is played."""
        media = self._legs.get(leg)
        if media is None or media.tap is None:
            self._post(PlayoutDrained(leg))
        else:
            media.tap.mark(_DRAIN_MARK)

    def close_taps(self) -> None:
        """Take agents' audio off all legs."""
        for media in self._legs.values():
            if media.tap is not None:
                media.tap.close()
                media.tap = None

    # --- the end --------------------------------------------------------------------------------------------

    def close(self, leg: LegId) -> None:
        """Free the leg's stream; a recording is completed first and reported."""
        media = self._legs.pop(leg, None)
        if media is not None:
            self._qualities[leg] = _quality_of(media)
            media.stream.close()

    def close_all(self) -> None:
        """Free everything; for the end of the call."""
        for leg in list(self._legs):
            self.close(leg)

    def quality(self, leg: LegId) -> Quality | None:
        """What the leg's received media was like; None before its media is closed."""
        return self._qualities.get(leg)

    def _on_event(self, leg: LegId, event: object) -> None:
        match event:
            case MarkReached():
                if event.name == _DRAIN_MARK:
                    self._post(PlayoutDrained(leg))
                else:
                    self._on_mark(event.name, event.cleared)
            case PlayoutOverflow():
                self._on_overflow(event.dropped_ms)
            case PlaybackFinished():
                if self._plays.pop(event.playback_id, None) is not None:
                    self._post(PlaybackEnded(leg))
            case DtmfReceived():
                self._post(DigitReceived(leg, event.digit, event.duration_ms))
            case DtmfSent():
                self._post(DigitsSent(leg, event.digits))
            case MediaTimeout():
                self._post(MediaSilent(leg, event.silent_s))
            case RecordingFinished():
                self._post(RecordingEnded(leg, event.path, event.duration_ms, event.error))


def _pass(frames: bytes, to: _LegMedia) -> None:
    if to.tap is not None:
        to.tap.write(frames)


def _parse(body: bytes) -> SessionDescription:
    try:
        return SessionDescription.parse(body)
    except SdpError as error:
        raise MediaRefusal("codec", warning=f'399 trunkline "{error.reason}"') from None


def _quality_of(media: _LegMedia) -> Quality:
    stats = media.stream.stats()
    codec = media.remote.codec if media.remote is not None else None
    expected = stats.packets_in + stats.lost
    if stats.packets_in == 0:
        return Quality(codec=codec)
    loss_pct = round(100.0 * stats.lost / expected, 2)
    jitter_ms = round(stats.jitter_ms, 2)
    return Quality(mos(loss_pct, jitter_ms), jitter_ms, loss_pct, codec)


@lru_cache(maxsize=1)
def _ringback() -> bytes:
    return tones(RINGBACK_INDIA)
