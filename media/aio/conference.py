"""Conferences: streams that hear one another, across codecs and engine threads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from media import _engine
from media.aio.playback import Playback, Playbacks
from media.aio.recording import Recording
from media.audio import Clip, Sound
from media.errors import InvalidMedia, MediaError, StreamClosed
from media.types import MediaEvent, RecordingSettings

if TYPE_CHECKING:
    from media.aio.engine import MediaEngine
    from media.aio.stream import RtpStream

# By the numbers of `EventKind` in event_queue.hpp.
_ACTIVE_TALKER = 50


@dataclass(frozen=True, slots=True)
class ActiveTalker:
    """The talking member changed, or nobody talks any more; a short noise such as a cough is ignored."""

    stream: RtpStream | None


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """A stream was closed while it was a member."""

    stream: RtpStream


ConferenceEvent = ActiveTalker | MemberLeft | MediaEvent


class Conference:
    """
    Streams that hear one another: each hears all others, not itself.

    A member sends the others' audio in place of a linked stream's; its own digits, tap and playback take
    precedence. Commands return at once. Created by `MediaEngine.open_conference`.
    """

    def __init__(
        self,
        engine: MediaEngine,
        native: _engine.Conference,
        sample_rate: int,
        on_event: Callable[[ConferenceEvent], None],
    ) -> None:
        self.native = native
        self.on_event = on_event
        self.sample_rate = sample_rate
        self.playbacks = Playbacks(native, engine.next_id)
        self.talker: RtpStream | None = None
        """Member that talks, as last reported; None when nobody does."""
        self._engine = engine
        self._members: dict[int, RtpStream] = {}
        self._recording: Recording | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """True after the conference was closed."""
        return self._closed

    @property
    def members(self) -> tuple[RtpStream, ...]:
        """Member streams, in the order they joined."""
        return tuple(self._members.values())

    def add(
        self,
        stream: RtpStream,
        *,
        listen_only: bool = False,
        muted: bool = False,
        whisper_to: Collection[RtpStream] | None = None,
    ) -> None:
        """
        Add a stream of any engine thread; unlinks it first.

        Args:
            stream: Open, and in no conference.
            listen_only: It hears the others and is not heard.
            muted: The same, for a member that usually speaks.
            whisper_to: Only these members hear it; None for all. It still hears the conference.

        Raises:
            MediaError: The stream is in a conference already, this one is full, or the target of a whisper
                is no member.
            StreamClosed: The stream or the conference was closed.
        """
        self._check_open()
        if stream.closed:
            raise StreamClosed("the stream was closed")
        if stream.conference is not None:
            raise MediaError("the stream is in a conference already")
        targets = self._targets(whisper_to)
        stream.unlink()
        if not self.native.add(stream.native, listen_only, muted, targets):
            raise MediaError("the conference is full")
        self._members[stream.native.id] = stream
        stream.conference = self

    def change(
        self,
        stream: RtpStream,
        *,
        listen_only: bool = False,
        muted: bool = False,
        whisper_to: Collection[RtpStream] | None = None,
    ) -> None:
        """
        Replace the options of a member; an omitted option gets its default, as in `add`.

        Raises:
            MediaError: It is no member, or the target of a whisper is none.
            StreamClosed: The conference was closed.
        """
        self._check_open()
        if stream.native.id not in self._members:
            raise MediaError("the stream is not a member of the conference")
        self.native.change(stream.native.id, listen_only, muted, self._targets(whisper_to))

    def remove(self, stream: RtpStream) -> None:
        """Remove a member; harmless when it is none. The stream stays open, and sends nothing by itself."""
        if self._members.pop(stream.native.id, None) is None:
            return
        stream.conference = None
        self.native.remove(stream.native.id)

    def levels(self) -> dict[RtpStream, int]:
        """Return each member's current level in decibels below full scale; 127 when silent."""
        return {
            self._members[stream_id]: level
            for stream_id, level in self.native.levels()
            if stream_id in self._members
        }

    def play(
        self, sounds: bytes | list[Sound], *, loop: bool | int = False, gain_db: float = 0.0
    ) -> Playback:
        """
        Queue a playback to all members.

        Args:
            sounds: Linear 16-bit mono samples at 8 kHz, or clips at 8 or 16 kHz and pauses.
            loop: Number of plays; True repeats until another playback waits.
            gain_db: From -60 to 18.

        Raises:
            InvalidMedia: A value is out of range, or a clip has another form.
            MediaError: Too many playbacks are already queued.
            StreamClosed: The conference was closed.
        """
        self._check_open()
        clips: list[Sound] = [Clip(sounds)] if isinstance(sounds, bytes) else sounds
        return self.playbacks.queue(clips, loop=loop, gain_db=gain_db)

    def stop_playback(self) -> None:
        """Drop the current playback and all waiting ones."""
        self.playbacks.stop()

    def record(self, path: str, settings: RecordingSettings | None = None) -> Recording:
        """
        Record in one channel what all may hear, with playback, without whispers; ends one in progress.

        Raises:
            InvalidMedia: A setting is out of range, or the encoding was not built in.
            RecordingFailed: The file cannot be created.
            StreamClosed: The conference was closed.
        """
        self._check_open()
        settings = settings or RecordingSettings(channels=1)
        if settings.channels != 1:
            raise InvalidMedia("a conference is recorded in one channel")
        started = self._engine.recordings.start(self.native, path, settings, self.sample_rate, self.on_event)
        if self._recording is not None:
            self._recording.let_go()
        self._recording = started
        return started

    def close(self) -> None:
        """Remove all members and end the recording. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for stream in self._members.values():
            stream.conference = None
        self._members.clear()
        self.talker = None
        self._engine.conferences.pop(self.native.id, None)
        self.playbacks.abandon()
        self.native.close()

    # For the engine.

    def member_closed(self, stream: RtpStream) -> None:
        """Remove a member whose stream is being closed, and report `MemberLeft`."""
        self.remove(stream)
        self._engine.call_soon(self.on_event, MemberLeft(stream))

    def decode(self, kind: int, a: int, b: int, c: int) -> ConferenceEvent | None:
        """Decode an event record of the engine; None for one that is obsolete."""
        if kind != _ACTIVE_TALKER:
            return self.playbacks.decode(kind, a, b, c)
        if b != 0 and b not in self._members:
            return None
        self.talker = self._members.get(b)
        return ActiveTalker(self.talker)

    def _targets(self, whisper_to: Collection[RtpStream] | None) -> list[int] | None:
        if whisper_to is None:
            return None
        targets = [stream.native.id for stream in whisper_to]
        if not self._members.keys() >= set(targets):
            raise MediaError("the target of a whisper is not a member of the conference")
        return targets

    def _check_open(self) -> None:
        if self._closed:
            raise StreamClosed("the conference was closed")
