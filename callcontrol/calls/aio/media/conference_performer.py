"""Performs the conference effects of a call."""

from collections.abc import Callable
from typing import Any, Final

from callcontrol.calls import effects as do
from callcontrol.calls.aio.context import CallContext
from callcontrol.calls.aio.media.conferences import ConferenceMember
from callcontrol.calls.aio.media.legs import MediaLegs
from callcontrol.calls.aio.owner import Owner
from callcontrol.calls.events import ConferenceRefused
from callcontrol.models import CallRecord


class ConferencePerformer:
    """Performs the conference effects of one call."""

    def __init__(self, context: CallContext, record: CallRecord, media: MediaLegs, owner: Owner) -> None:
        self._conferences = context.conferences
        self._record = record
        self._media = media
        self._owner = owner
        self._members: dict[int, str] = {}

    def performs(self, effect: Any) -> bool:
        """True when this performer handles an effect."""
        return type(effect) in PERFORMERS

    def perform(self, effect: Any) -> None:
        """Perform one effect."""
        PERFORMERS[type(effect)](self, effect)

    def release(self) -> None:
        """Leave all conferences at the end of the call."""
        for leg in list(self._members):
            self._leave(do.LeaveConference(leg))

    def _enter(self, effect: do.EnterConference) -> None:
        stream = self._media.stream_of(effect.leg)
        if self._conferences is None or stream is None:
            self._owner.follow(ConferenceRefused(effect.leg, "media"))
            return
        record = self._record
        member = ConferenceMember(record.call_sid, effect.leg, stream, self._owner.post)
        self._members[effect.leg] = member.name
        self._owner.follow(
            self._conferences.enter(record.account_sid, effect.name, member, effect.terms, effect.max_members)
        )

    def _leave(self, effect: do.LeaveConference) -> None:
        name = self._members.pop(effect.leg, None)
        if name is not None and self._conferences is not None:
            self._conferences.leave(name)


PERFORMERS: Final[dict[type, Callable[[ConferencePerformer, Any], None]]] = {
    do.EnterConference: ConferencePerformer._enter,
    do.LeaveConference: ConferencePerformer._leave,
}
