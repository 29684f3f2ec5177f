"""One leg's media, as the parts that work on it share it."""

from dataclasses import dataclass
from typing import Final

from callcontrol.calls.events import MediaProblem
from callcontrol.trunks.media_policy import MediaPolicy
from media.aio import AgentTap, RtpStream
from media.audio import Clip
from media.sdp import LocalMedia, Negotiated, SessionDescription
from media.types import RemoteMedia


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


_NOTHING: Final = Clip(b"")


@dataclass(frozen=True, slots=True)
class MediaSettings:
    """
    How the media of all calls is treated.

    A call ends when a party sends no RTP for ``media_timeout_s``, or, while it is held, for
    ``hold_timeout_s``; 0 for never. A party on hold hears ``hold_music``, nothing when that is empty. Ringing
    sounds as ``tone_plan`` says: one of ``media.audio.TONE_PLANS``, or a tone written out.
    """

    media_timeout_s: float = 60.0
    hold_timeout_s: float = 0.0
    hold_music: Clip = _NOTHING
    tone_plan: str = "in"


@dataclass(slots=True, eq=False)
class LegMedia:
    """One leg's stream, what both sides last said about it, and our offer that waits for an answer."""

    stream: RtpStream
    local: LocalMedia
    policy: MediaPolicy
    ours: SessionDescription | None = None
    theirs: SessionDescription | None = None
    offer: SessionDescription | None = None
    remote: RemoteMedia | None = None
    agreed: Negotiated | None = None
    """What was agreed last, while ``local`` does not heed it yet."""
    holds: bool = False
    """Whether its party has put the other one on hold."""
    told_hold: bool = False
    """Whether the call knows of that."""
    company: "LegMedia | None" = None
    """The leg that it was dialled for, or that was dialled for it."""
    told: bool = False
    """Whether its party knows our description."""
    other: "LegMedia | None" = None
    """The leg that it is linked with."""
    tap: AgentTap | None = None
    by_taps: bool = False
    """Whether it is joined through this process, which passes on audio but no digits."""
    muted_says: bool = False
    muted_hears: bool = False
    """Whether its party is not to be heard, or not to hear."""
    music: int | None = None
    """The playback of hold music that it hears."""

    @property
    def wide(self) -> bool:
        """Whether its codec carries more than a telephone's band."""
        remote = self.remote
        return remote is not None and (remote.codec in ("G722", "OPUS") or remote.clock_rate > 8000)


MediaTable = dict[int, LegMedia]
"""The media of a call's legs."""
