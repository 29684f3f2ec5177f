"""Masking sessions and the numbers enrolled for them (additive)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from api.http.endpoint import Context, Reply
from api.routes.masking.calls import masking_routes
from api.schemas.base import NoBody, NoQuery
from api.schemas.masking.sessions import (
    ChangeSession,
    CreateSession,
    EnrolNumber,
    MaskedNumberList,
    MaskedNumberObject,
    SessionList,
    SessionObject,
    WithdrawNumber,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.aio.tokens import utc_now
from callcontrol.errors import (
    Conflict,
    InboundConflict,
    InvalidNumbers,
    NotConfigured,
    NotFound,
    NumberNotOwned,
)
from callcontrol.masking.parties import mobile_of
from callcontrol.masking.sessions import MaskingSession, SessionFilter, SessionRequest, session_object
from callcontrol.models import PhoneNumber

__all__ = ["routes"]

_SESSIONS, _NUMBERS = "/v1/masking/sessions", "/v1/masking/numbers"
_SESSION = f"{_SESSIONS}/{{session_id}}"

routes = masking_routes()


@routes.post(
    _SESSIONS,
    response=SessionObject,
    success=201,
    errors=(InvalidNumbers, NumberNotOwned, Conflict),
    idempotent=True,
)
async def create_masking_session(context: Context[CreateSession, NoQuery]) -> Reply:
    """
    Create a masking session.

    Each party then reaches the other by calling the masked number, and sees it.
    """
    body = context.body
    party_a, party_b = mobile_of(body.party_a), mobile_of(body.party_b)
    assert party_a is not None and party_b is not None, "the body was checked"
    session = await context.storage.masking_sessions.create(
        context.account_sid,
        SessionRequest(
            party_a=party_a,
            party_b=party_b,
            masked_number=body.masked_number,
            expires_in_s=body.expires_in_sec,
            call_time_limit_s=body.call_time_limit_sec,
            record=body.record,
            geo_match=body.geo_match,
        ),
    )
    return Reply(_json(session))


@routes.get(_SESSIONS, response=SessionObject, paged=True)
async def list_masking_sessions(context: Context[NoBody, SessionList]) -> Reply:
    """List masking sessions, newest first."""
    query = context.query
    wanted = SessionFilter(
        status=query.status,
        party=query.party,
        masked_number=query.masked_number,
    )
    page = await context.storage.masking_sessions.list(
        context.account_sid, wanted, query.page, query.per_page
    )
    return Reply([_json(session) for session in page.items], page_meta(page))


@routes.get(_SESSION, response=SessionObject)
async def get_masking_session(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a masking session."""
    session_id = context.path["session_id"]
    return Reply(_json(await context.storage.masking_sessions.get(context.account_sid, session_id)))


@routes.patch(_SESSION, response=SessionObject, errors=(Conflict,))
async def change_masking_session(context: Context[ChangeSession, NoQuery]) -> Reply:
    """
    Change the expiry and call limit of a masking session.

    Active calls keep the old values.
    """
    body = context.body
    given = body.model_fields_set

    def changed(session: MaskingSession, now: datetime) -> MaskingSession:
        if body.expires_in_sec is not None:
            session = replace(session, expires_at=now + timedelta(seconds=body.expires_in_sec))
        if "call_time_limit_sec" in given:
            session = replace(session, call_time_limit_s=body.call_time_limit_sec)
        if "record" in given:
            session = replace(session, record=body.record)
        return session

    session = await context.storage.masking_sessions.update(
        context.account_sid, context.path["session_id"], changed
    )
    return Reply(_json(session))


@routes.delete(_SESSION, response=SessionObject)
async def close_masking_session(context: Context[NoBody, NoQuery]) -> Reply:
    """
    Close a masking session.

    Active calls continue. Repeating it is safe.
    """
    session_id = context.path["session_id"]
    return Reply(_json(await context.storage.masking_sessions.close(context.account_sid, session_id)))


@routes.get(_NUMBERS, response=MaskedNumberObject, paged=True)
async def list_masked_numbers(context: Context[NoBody, MaskedNumberList]) -> Reply:
    """List the numbers enrolled for masking, oldest first."""
    query = context.query
    page = await context.storage.masking_numbers.list(context.account_sid, query.page, query.per_page)
    return Reply([_number_json(number) for number in page.items], page_meta(page))


@routes.post(
    _NUMBERS, response=MaskedNumberObject, success=201, errors=(NotFound, InboundConflict, NotConfigured)
)
async def enrol_masked_number(context: Context[EnrolNumber, NoQuery]) -> Reply:
    """
    Enrol a number for masking.

    Its inbound calls are routed by the caller's session. It is registered if necessary.
    """
    body = context.body
    number = await context.storage.masking_numbers.enrol(
        context.account_sid, body.number, language=body.language, force=body.force
    )
    return Reply(_number_json(number))


@routes.delete(f"{_NUMBERS}/{{phone_number_id}}", errors=(Conflict,))
async def withdraw_masked_number(context: Context[NoBody, WithdrawNumber]) -> Reply:
    """
    Withdraw a number from masking.

    It stays registered for outbound calls.
    """
    await context.storage.masking_numbers.withdraw(
        context.account_sid, context.path["phone_number_id"], force=context.query.force
    )
    return Reply(None)


def _json(session: MaskingSession) -> dict[str, Any]:
    return session_object(session, utc_now())


def _number_json(number: PhoneNumber) -> dict[str, Any]:
    language = (number.binding.language if number.binding is not None else None) or "en"
    return shown(MaskedNumberObject, number, language=language)
