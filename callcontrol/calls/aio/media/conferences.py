"""The conferences of this process, by account and name."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.context import ActiveCall, EffectPerformer
from callcontrol.calls.conference_room import ConferenceRoom, MemberTerms
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects import media as do
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import (
    ConferenceBegan,
    ConferenceEntered,
    ConferenceOver,
    ConferenceRefused,
)
from callcontrol.errors import Conflict, NodeUnreachable, NotFound
from callcontrol.ids import LegId
from media.aio import Conference, ConferenceEvent, MediaEngine, MemberLeft, RtpStream
from media.audio import Clip, Sound, hold_music, tone
from media.errors import MediaError

log = logging.getLogger(__name__)

_COMING: Final[list[Sound]] = [Clip(tone(880.0, 120, -18.0))]
_GOING: Final[list[Sound]] = [Clip(tone(440.0, 120, -18.0))]


@dataclass(frozen=True, slots=True, eq=False)
class ConferenceMember:
    """
    A leg that takes part in a conference; ``post`` receives the events of its membership.

    ``link`` is the Call-ID of a leg between nodes, by which the party of a call elsewhere takes part.
    """

    call_sid: str
    leg: LegId
    stream: RtpStream
    post: Callable[[Event], None]
    link: str = ""

    @property
    def name(self) -> str:
        """Unique name of the member."""
        return f"{self.call_sid} {self.leg} {self.link}"


@dataclass(frozen=True, slots=True)
class Participant:
    """A member as it is shown: ``held``, it hears music and not the others, and is not heard."""

    call_sid: str
    terms: MemberTerms
    held: bool
    joined_at: datetime


@dataclass(frozen=True, slots=True)
class ConferenceState:
    """A conference as it is shown; before it has ``begun`` its members wait."""

    conference_sid: str
    name: str
    begun: bool
    created_at: datetime
    participants: tuple[Participant, ...]


@dataclass(slots=True, eq=False)
class _Hall:
    """A conference with its media, which exists once it has begun."""

    key: tuple[str, str]
    sid: str
    room: ConferenceRoom = field(default_factory=ConferenceRoom)
    members: dict[str, ConferenceMember] = field(default_factory=dict)
    terms: dict[str, MemberTerms] = field(default_factory=dict)
    media: Conference | None = None
    created_at: datetime = field(default_factory=utc_now)
    joined_at: dict[str, datetime] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)


class Conferences:
    """
    All conferences of the process. Conferences of two accounts with the same name are separate.

    Members that wait for the beginning hear ``music``, and not each other. ``on_empty`` is called with the
    account and the name of a conference that is over. ``make_sid`` makes identifiers, and ``node_of`` returns
    the other node that has made one, if it is none of this node's.
    """

    def __init__(
        self,
        engine: MediaEngine,
        music: Clip,
        on_empty: Callable[[tuple[str, str]], None] = lambda key: None,
        *,
        make_sid: Callable[[], str] = new_id,
        node_of: Callable[[str], str | None] = lambda sid: None,
    ) -> None:
        self._engine = engine
        self._on_empty = on_empty
        self._make_sid, self._node_of = make_sid, node_of
        self._music = music if music.pcm else Clip(hold_music())
        self._halls: dict[tuple[str, str], _Hall] = {}
        self._of: dict[str, _Hall] = {}

    def __len__(self) -> int:
        return len(self._halls)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._halls

    def enter(
        self, account_sid: str, name: str, member: ConferenceMember, terms: MemberTerms, max_members: int
    ) -> Event:
        """Add a member; return the event for its call."""
        key = (account_sid, name)
        hall = self._halls.get(key) or _Hall(key, self._make_sid())
        if not hall.room.has_room(max_members) or member.name in self._of:
            return ConferenceRefused(member.leg, "full")
        entered = hall.room.enter(member.name, terms)
        self._halls[key] = self._of[member.name] = hall
        hall.members[member.name], hall.terms[member.name] = member, terms
        hall.joined_at[member.name] = utc_now()
        try:
            if entered.waits:
                member.stream.playbacks.queue([self._music], loop=True)
            else:
                self._begin(hall)
                self._admit(hall, member, terms)
                for freed in entered.freed:
                    self._free(hall, hall.members[freed])
        except MediaError as error:
            _refused(member, error)
            self.leave(member.name, took_part=False)
            return ConferenceRefused(member.leg, "media")
        return ConferenceEntered(member.leg, entered.waits)

    def leave(self, name: str, *, took_part: bool = True) -> None:
        """
        Remove a member, and all members when that ends the conference; harmless when it is absent.

        A member that never ``took_part``, because the media engine refused it, ends nothing.
        """
        hall = self._of.get(name)
        if hall is None:
            return
        terms = hall.terms[name]
        left = hall.room.leave(name, took_part=took_part)
        self._part(hall, name)
        for dismissed in left.dismissed:
            member = hall.members[dismissed]
            self._part(hall, dismissed)
            member.post(ConferenceOver(member.leg))
        if left.empty:
            del self._halls[hall.key]
            if hall.media is not None:
                hall.media.close()
            self._on_empty(hall.key)
        elif hall.media is not None and terms.beeps:
            hall.media.play(_GOING)

    # --- for customers --------------------------------------------------------------------------------------

    def of_account(self, account_sid: str) -> list[ConferenceState]:
        """List the conferences of an account on this node, the latest first."""
        halls = [hall for (owner, _), hall in self._halls.items() if owner == account_sid]
        return [_state(hall) for hall in reversed(halls)]

    def find(self, account_sid: str, conference_sid: str) -> ConferenceState:
        """
        Find a conference of the account.

        Raises:
            NotFound: There is none, it is over, or another account's.
            NodeUnreachable: If it is not over, another node has it, as in the methods that follow.
        """
        return _state(self._hall(account_sid, conference_sid))

    def change(
        self,
        account_sid: str,
        conference_sid: str,
        call_sid: str,
        *,
        muted: bool | None = None,
        held: bool | None = None,
    ) -> None:
        """
        Mute or hold a member, or end that; None leaves it unchanged.

        Raises:
            NotFound: There is no such conference, or no such member in it.
            Conflict: The media engine refuses it.
        """
        hall, name = self._member(account_sid, conference_sid, call_sid)
        member = hall.members[name]
        if muted is not None:
            hall.terms[name] = replace(hall.terms[name], muted=muted)
        try:
            if held is not None and held is not (name in hall.held):
                self._hold(hall, member, held)
            if muted is not None and hall.media is not None and member.stream.conference is hall.media:
                hall.media.change(member.stream, muted=muted)
        except MediaError as error:
            raise Conflict("The call is leaving the conference.") from error

    def dismiss(self, account_sid: str, conference_sid: str, call_sid: str) -> None:
        """
        Remove a member, whose call goes on with its next step.

        Raises:
            NotFound: There is no such conference, or no such member in it.
        """
        hall, name = self._member(account_sid, conference_sid, call_sid)
        member = hall.members[name]
        self.leave(name)
        member.post(ConferenceOver(member.leg))

    def end(self, account_sid: str, conference_sid: str) -> None:
        """
        Remove all members.

        Raises:
            NotFound: There is no such conference.
        """
        hall = self._hall(account_sid, conference_sid)
        for name, member in list(hall.members.items()):
            if name in hall.members:  # One before it may have ended the conference.
                self.leave(name)
                member.post(ConferenceOver(member.leg))

    def _hall(self, account_sid: str, conference_sid: str) -> _Hall:
        for (owner, _), hall in self._halls.items():
            if owner == account_sid and hall.sid == conference_sid:
                return hall
        if (node := self._node_of(conference_sid)) is not None:
            raise NodeUnreachable(node, "If the conference is not over, it is")
        raise NotFound("There is no such conference, or it is over.")

    def _member(self, account_sid: str, conference_sid: str, call_sid: str) -> tuple[_Hall, str]:
        hall = self._hall(account_sid, conference_sid)
        for name, member in hall.members.items():
            if member.call_sid == call_sid:
                return hall, name
        raise NotFound("The call is not in the conference.")

    def _hold(self, hall: _Hall, member: ConferenceMember, held: bool) -> None:
        if held:
            hall.held.add(member.name)
        else:
            hall.held.discard(member.name)
        if hall.media is None:
            return  # It waits, and hears music until the conference begins.
        if held:
            hall.media.remove(member.stream)
            member.stream.playbacks.queue([self._music], loop=True)
        else:
            member.stream.stop_playback()
            hall.media.add(member.stream, muted=hall.terms[member.name].muted)

    # --- media ----------------------------------------------------------------------------------------------

    def _begin(self, hall: _Hall) -> None:
        if hall.media is None:
            hall.media = self._engine.open_conference(self._heard)

    def _admit(self, hall: _Hall, member: ConferenceMember, terms: MemberTerms) -> None:
        """Connect a member to the conference's audio."""
        assert hall.media is not None, "it has begun"
        if terms.beeps:
            hall.media.play(_COMING)
        hall.media.add(member.stream, muted=terms.muted)

    def _free(self, hall: _Hall, member: ConferenceMember) -> None:
        """Admit a waiting member."""
        try:
            if member.name not in hall.held:
                member.stream.stop_playback()
                self._admit(hall, member, hall.terms[member.name])
        except MediaError as error:
            _refused(member, error)
            self.leave(member.name, took_part=False)
            member.post(ConferenceOver(member.leg))
        else:
            member.post(ConferenceBegan(member.leg))

    def _part(self, hall: _Hall, name: str) -> None:
        member = hall.members.pop(name)
        del hall.terms[name], hall.joined_at[name], self._of[name]
        hall.held.discard(name)
        if hall.media is not None:
            hall.media.remove(member.stream)
        if not member.stream.closed:
            member.stream.stop_playback()

    def _heard(self, event: ConferenceEvent) -> None:
        if isinstance(event, MemberLeft):
            # Its stream was closed before its call left the conference.
            gone = [
                name
                for hall in self._halls.values()
                for name, member in hall.members.items()
                if member.stream is event.stream
            ]
            for name in gone:
                self.leave(name)


def _state(hall: _Hall) -> ConferenceState:
    participants = (
        Participant(member.call_sid, hall.terms[name], name in hall.held, hall.joined_at[name])
        for name, member in hall.members.items()
    )
    return ConferenceState(hall.sid, hall.key[1], hall.room.begun, hall.created_at, tuple(participants))


def _refused(member: ConferenceMember, error: MediaError) -> None:
    log.warning("cannot join the conference: %s", error, extra={"call_sid": member.call_sid})


class ConferencePerformer(EffectPerformer):
    """Performs the conference effects of one call."""

    def __init__(self, call: ActiveCall) -> None:
        self._conferences = call.context.conferences
        self._shared = call.context.shared_conferences
        self._record = call.record
        self._media = call.media
        self._mailbox = call.mailbox
        self._members: dict[int, str] = {}
        self._joining: dict[int, asyncio.Task[None]] = {}

    def release(self) -> None:
        """Leave all conferences: the call is over."""
        for leg in list(self._members):
            self._leave(do.LeaveConference(leg))

    def _enter(self, effect: do.EnterConference) -> None:
        stream = self._media.stream_of(effect.leg)
        if stream is None:
            self._mailbox.post_outcome(ConferenceRefused(effect.leg, "media"))
            return
        record = self._record
        member = ConferenceMember(record.call_sid, effect.leg, stream, self._mailbox.post)
        self._members[effect.leg] = member.name
        wanted = (record.account_sid, effect.name, member, effect.terms, effect.max_members)
        if self._shared is None:
            self._mailbox.post_outcome(self._conferences.enter(*wanted))
        else:
            self._joining[effect.leg] = self._mailbox.spawn_helper(self._shared.join(*wanted))

    def _leave(self, effect: do.LeaveConference) -> None:
        joining = self._joining.pop(effect.leg, None)
        if joining is not None:
            joining.cancel()
        name = self._members.pop(effect.leg, None)
        if name is None:
            return
        if self._shared is None:
            self._conferences.leave(name)
        else:
            self._shared.leave(name)


CONFERENCE_EFFECTS: Final[dict[type[Effect], Callable[[ConferencePerformer, Any], None]]] = {
    do.EnterConference: ConferencePerformer._enter,
    do.LeaveConference: ConferencePerformer._leave,
}
