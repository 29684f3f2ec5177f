"""Media state of one leg, shared by the parts that work on it."""

from dataclasses import dataclass
from typing import Final

from callcontrol.calls.events.legs import MediaProblem
from callcontrol.models.trunks import MediaPolicy
from media.aio import AgentTap, RtpStream
from media.audio import Clip
from media.sdp import LocalMedia, Negotiated, SessionDescription
from media.types import RemoteMedia
from sip.values import constructed_natively, frozen


class MediaRefusal(Exception):
    """
    A leg can have no media, or an offer is not acceptable.

    ``status`` rejects an offer; ``warning`` is the value of a Warning header (RFC 3261 20.43).
    """

    def __init__(self, problem: MediaProblem, *, status: int = 488, warning: str | None = None) -> None:
        super().__init__(warning or problem)
        self.problem: MediaProblem = problem
        self.status = status
        self.warning = warning


_NOTHING: Final = Clip(b"")


@frozen
class MediaSettings:
    """
    Media settings of all calls.

    A call ends when a party sends no RTP for ``media_timeout_s``, or, while it is held, for
    ``hold_timeout_s``; 0 disables the limit. A party on hold hears ``hold_music``, or nothing when that is
    empty. ``tone_plan`` defines the ringing tone: one of ``media.audio.TONE_PLANS``, or a tone written out.
    """

    media_timeout_s: float = 60.0
    hold_timeout_s: float = 0.0
    hold_music: Clip = _NOTHING
    tone_plan: str = "in"


@constructed_natively
@dataclass(slots=True, eq=False)
class LegMedia:
    """One leg's stream, the last session descriptions of both sides, and our last offer."""

    stream: RtpStream
    local: LocalMedia
    policy: MediaPolicy
    ours: SessionDescription | None = None
    theirs: SessionDescription | None = None
    offer: SessionDescription | None = None
    remote: RemoteMedia | None = None
    agreed: Negotiated | None = None
    """The last agreement, until ``local`` is updated from it."""
    holds: bool = False
    """True while its party has put the other one on hold."""
    told_hold: bool = False
    """Hold state last reported to the call."""
    peer_leg: "LegMedia | None" = None
    """The leg that it was dialled for, or that was dialled for it."""
    told: bool = False
    """True after our description was passed on for its party."""
    other: "LegMedia | None" = None
    """The leg that it is linked with."""
    tap: AgentTap | None = None
    by_taps: bool = False
    """True when it is linked through this process, which forwards audio but no digits."""
    music: int | None = None
    """Id of the playback of hold music that it hears."""

    @property
    def wide(self) -> bool:
        """True when its codec is wideband."""
        remote = self.remote
        return remote is not None and (remote.codec in ("G722", "OPUS") or remote.clock_rate > 8000)


MediaTable = dict[int, LegMedia]
"""The media of a call's legs."""
