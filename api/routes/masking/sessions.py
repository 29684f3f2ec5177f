"""Masking sessions and the numbers enrolled for them (additive)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from api.http.endpoint import Context, Endpoint, Reply
from api.routes.masking.calls import MASKING
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
    party_number,
)
from api.schemas.serializers import page_meta, rfc3339
from callcontrol.aio.tokens import utc_now
from callcontrol.errors import (
    Conflict,
    InboundConflict,
    InvalidNumbers,
    NotConfigured,
    NotFound,
    NumberNotOwned,
)
from callcontrol.masking.request import mobile_of
from callcontrol.masking.sessions import MaskingSession, SessionFilter, SessionRequest, session_object
from callcontrol.models import PhoneNumber

__all__ = ["ENDPOINTS"]


async def create_masking_session(context: Context[CreateSession, NoQuery]) -> Reply:
    """Answer POST /masking/sessions."""
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


async def list_masking_sessions(context: Context[NoBody, SessionList]) -> Reply:
    """Answer GET /masking/sessions."""
    query = context.query
    wanted = SessionFilter(
        status=query.status,
        party=party_number(query.party) if query.party is not None else None,
        masked_number=query.masked_number,
    )
    page = await context.storage.masking_sessions.list(
        context.account_sid, wanted, query.page, query.per_page
    )
    return Reply([_json(session) for session in page.items], page_meta(page))


async def get_masking_session(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer GET /masking/sessions/{session_id}."""
    session_id = context.path["session_id"]
    return Reply(_json(await context.storage.masking_sessions.get(context.account_sid, session_id)))


async def change_masking_session(context: Context[ChangeSession, NoQuery]) -> Reply:
    """Answer PATCH /masking/sessions/{session_id}."""
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


async def close_masking_session(context: Context[NoBody, NoQuery]) -> Reply:
    """Answer DELETE /masking/sessions/{session_id}."""
    session_id = context.path["session_id"]
    return Reply(_json(await context.storage.masking_sessions.close(context.account_sid, session_id)))


async def list_masked_numbers(context: Context[NoBody, MaskedNumberList]) -> Reply:
    """Answer GET /masking/numbers."""
    query = context.query
    page = await context.storage.masking_numbers.list(context.account_sid, query.page, query.per_page)
    return Reply([_number_json(number) for number in page.items], page_meta(page))


async def enrol_masked_number(context: Context[EnrolNumber, NoQuery]) -> Reply:
    """Answer POST /masking/numbers."""
    body = context.body
    number = await context.storage.masking_numbers.enrol(
        context.account_sid, body.number, language=body.language, force=body.force
    )
    return Reply(_number_json(number))


async def withdraw_masked_number(context: Context[NoBody, WithdrawNumber]) -> Reply:
    """Answer DELETE /masking/numbers/{phone_number_id}."""
    await context.storage.masking_numbers.withdraw(
        context.account_sid, context.path["phone_number_id"], force=context.query.force
    )
    return Reply(None)


def _json(session: MaskingSession) -> dict[str, Any]:
    return session_object(session, utc_now())


def _number_json(number: PhoneNumber) -> dict[str, Any]:
    return {
        "phone_number_id": number.phone_number_id,
        "number": number.number,
        "language": (number.binding.language if number.binding is not None else None) or "en",
        "status": number.status,
        "created_at": rfc3339(number.created_at),
    }


_SESSIONS, _NUMBERS = "/v1/masking/sessions", "/v1/masking/numbers"
_SESSION = f"{_SESSIONS}/{{session_id}}"

ENDPOINTS: tuple[Endpoint[Any, Any], ...] = (
    Endpoint(
        method="POST",
        path=_SESSIONS,
        handler=create_masking_session,
        scope="masking.write",
        summary="Create a masking session",
        description="Each party then reaches the other by calling the masked number, and sees it.",
        success=201,
        body=CreateSession,
        response=SessionObject,
        errors=(InvalidNumbers, NumberNotOwned, Conflict),
        idempotent=True,
        **MASKING,
    ),
    Endpoint(
        method="GET",
        path=_SESSIONS,
        handler=list_masking_sessions,
        scope="masking.read",
        summary="List masking sessions, newest first",
        query=SessionList,
        response=SessionObject,
        paged=True,
        **MASKING,
    ),
    Endpoint(
        method="GET",
        path=_SESSION,
        handler=get_masking_session,
        scope="masking.read",
        summary="Get a masking session",
        response=SessionObject,
        **MASKING,
    ),
    Endpoint(
        method="PATCH",
        path=_SESSION,
        handler=change_masking_session,
        scope="masking.write",
        summary="Change the expiry and call limit of a masking session",
        description="Active calls keep the old values.",
        body=ChangeSession,
        response=SessionObject,
        errors=(Conflict,),
        **MASKING,
    ),
    Endpoint(
        method="DELETE",
        path=_SESSION,
        handler=close_masking_session,
        scope="masking.write",
        summary="Close a masking session",
        description="Active calls continue. Repeating it is safe.",
        response=SessionObject,
        **MASKING,
    ),
    Endpoint(
        method="GET",
        path=_NUMBERS,
        handler=list_masked_numbers,
        scope="masking.read",
        summary="List the numbers enrolled for masking, oldest first",
        query=MaskedNumberList,
        response=MaskedNumberObject,
        paged=True,
        **MASKING,
    ),
    Endpoint(
        method="POST",
        path=_NUMBERS,
        handler=enrol_masked_number,
        scope="masking.write",
        summary="Enrol a number for masking",
        description="Its inbound calls are routed by the caller's session. It is registered if necessary.",
        success=201,
        body=EnrolNumber,
        response=MaskedNumberObject,
        errors=(NotFound, InboundConflict, NotConfigured),
        **MASKING,
    ),
    Endpoint(
        method="DELETE",
        path=f"{_NUMBERS}/{{phone_number_id}}",
        handler=withdraw_masked_number,
        scope="masking.write",
        summary="Withdraw a number from masking",
        description="It stays registered for outbound calls.",
        success=204,
        query=WithdrawNumber,
        response=None,
        errors=(Conflict,),
        **MASKING,
    ),
)
