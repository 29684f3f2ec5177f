"""Conferences in Twilio's interface: those that go on, and the calls in them."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.http.errors import ErrorStyle
from api.http.middleware import current_request
from api.routes.twilio_api.shapes import ACCOUNT, moment, numbered
from api.schemas.base import NoBody, NoQuery
from api.schemas.twilio_api.base import API_VERSION, TwilioQuery
from api.schemas.twilio_api.conferences import (
    EndTwilioConference,
    TwilioConference,
    TwilioConferenceList,
    TwilioConferenceQuery,
    TwilioParticipant,
    TwilioParticipantList,
    TwilioParticipantQuery,
    UpdateTwilioParticipant,
)
from callcontrol.calls.aio.media.conferences import ConferenceState, Participant
from callcontrol.errors import NotFound

__all__ = ["routes"]

_ALL = f"{ACCOUNT}/Conferences.json"
_ONE = f"{ACCOUNT}/Conferences/{{conferenceSid}}.json"
_MEMBERS = f"{ACCOUNT}/Conferences/{{conferenceSid}}/Participants.json"
_MEMBER = f"{ACCOUNT}/Conferences/{{conferenceSid}}/Participants/{{callSid}}.json"

routes = Routes(
    "calls.read", "calls.write", style=ErrorStyle.TWILIO, tag="conferences, as Twilio's clients ask"
)


@routes.get(_ALL, response=TwilioConferenceList)
async def list_twilio_conferences(context: Context[NoBody, TwilioConferenceQuery]) -> Reply:
    """
    List the conferences that go on, in Twilio's shape.

    Those of the server that answers, of several on one database.
    """
    query, sid = context.query, context.account_sid
    shown = [_shown(sid, state) for state in context.services.calls.conferences.of_account(sid)]
    wanted = [
        item
        for item in shown
        if query.FriendlyName in (None, item["friendly_name"]) and query.Status in (None, item["status"])
    ]
    return _page(query, _ALL.format(sid=sid), "conferences", wanted)


@routes.get(_ONE, response=TwilioConference, owned=True)
async def get_twilio_conference(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a conference that goes on, in Twilio's shape."""
    return Reply(_shown(context.account_sid, _found(context)))


@routes.post(_ONE, response=TwilioConference, owned=True)
async def end_twilio_conference(context: Context[EndTwilioConference, NoQuery]) -> Reply:
    """
    End a conference.

    Its calls go on with their next instructions.
    """
    state = _found(context)
    context.services.calls.conferences.end(context.account_sid, state.conference_sid)
    return Reply({**_shown(context.account_sid, state), "status": "completed"})


@routes.get(_MEMBERS, response=TwilioParticipantList, owned=True)
async def list_twilio_participants(context: Context[NoBody, TwilioParticipantQuery]) -> Reply:
    """List the calls in a conference, in Twilio's shape."""
    query, state = context.query, _found(context)
    shown = [_participant(context.account_sid, state, member) for member in state.participants]
    wanted = [
        item for item in shown if query.Muted in (None, item["muted"]) and query.Hold in (None, item["hold"])
    ]
    path = _MEMBERS.format(sid=context.account_sid, conferenceSid=state.conference_sid)
    return _page(query, path, "participants", wanted)


@routes.get(_MEMBER, response=TwilioParticipant, owned=True)
async def get_twilio_participant(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a call in a conference, in Twilio's shape."""
    return Reply(_member(context))


@routes.post(_MEMBER, response=TwilioParticipant, owned=True)
async def update_twilio_participant(context: Context[UpdateTwilioParticipant, NoQuery]) -> Reply:
    """Mute or hold a call in a conference, or end that."""
    path, body = context.path, context.body
    context.services.calls.conferences.change(
        context.account_sid, path["conferenceSid"], path["callSid"], muted=body.Muted, held=body.Hold
    )
    return Reply(_member(context))


@routes.delete(_MEMBER, owned=True)
async def remove_twilio_participant(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Remove a call from a conference.

    It goes on with its next instructions.
    """
    path = context.path
    current_request().call_sid = path["callSid"]
    context.services.calls.conferences.dismiss(context.account_sid, path["conferenceSid"], path["callSid"])
    return Reply(None)


def _found(context: Context[Any, Any]) -> ConferenceState:
    return context.services.calls.conferences.find(context.account_sid, context.path["conferenceSid"])


def _member(context: Context[Any, Any]) -> dict[str, Any]:
    state = _found(context)
    for member in state.participants:
        if member.call_sid == context.path["callSid"]:
            return _participant(context.account_sid, state, member)
    raise NotFound("The call is not in the conference.")


def _page(query: TwilioQuery, path: str, name: str, items: list[dict[str, Any]]) -> Reply:
    start = query.Page * query.PageSize
    links = query.links(path, has_next=len(items) > start + query.PageSize)
    return Reply(numbered({name: items[start : start + query.PageSize], **links}, name))


def _shown(account_sid: str, state: ConferenceState) -> dict[str, Any]:
    address = {"sid": account_sid, "conferenceSid": state.conference_sid}
    joined = (member.joined_at for member in state.participants)
    return {
        "sid": state.conference_sid,
        "account_sid": account_sid,
        "friendly_name": state.name,
        "status": "in-progress" if state.begun else "init",
        "region": None,
        "reason_conference_ended": None,
        "call_sid_ending_conference": None,
        "date_created": moment(state.created_at),
        "date_updated": moment(max(joined, default=state.created_at)),
        "api_version": API_VERSION,
        "uri": _ONE.format(**address),
        "subresource_uris": {"participants": _MEMBERS.format(**address)},
    }


def _participant(account_sid: str, state: ConferenceState, member: Participant) -> dict[str, Any]:
    address = {"sid": account_sid, "conferenceSid": state.conference_sid, "callSid": member.call_sid}
    return {
        "account_sid": account_sid,
        "call_sid": member.call_sid,
        "conference_sid": state.conference_sid,
        "label": None,
        "status": "connected",
        "muted": member.terms.muted,
        "hold": member.held,
        "coaching": False,
        "call_sid_to_coach": None,
        "queue_time": None,
        "start_conference_on_enter": member.terms.starts,
        "end_conference_on_exit": member.terms.ends,
        "date_created": moment(member.joined_at),
        "date_updated": moment(member.joined_at),
        "api_version": API_VERSION,
        "uri": _MEMBER.format(**address),
    }
