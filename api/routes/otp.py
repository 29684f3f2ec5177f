"""Voice OTP (telephony specification, voice OTP; the additive verification)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.http.middleware import current_request
from api.http.time_ranges import time_span
from api.schemas.base import NoBody, NoQuery
from api.schemas.otp import (
    OtpCallObject,
    OtpList,
    OtpStatsObject,
    OtpStatsQuery,
    SendOtp,
    VerificationObject,
    VerifyOtp,
)
from api.schemas.serializers import page_meta, shown
from callcontrol.aio.tokens import utc_now
from callcontrol.clock import timestamp
from callcontrol.errors import InsufficientBalance, NumberNotOwned, SpendLimitReached
from callcontrol.models import CURRENCY, CallStatus
from callcontrol.otp.otp import OtpCall, OtpFilter, period_of, stats_object
from callcontrol.otp.otp import SendOtp as Wanted
from callcontrol.otp.product import otp_object

__all__ = ["routes"]

SENDS_PER_MINUTE = 60

routes = Routes("otp.read", "otp.send", tag="voice OTP")


@routes.post(
    "/v1/voice-otp/send",
    response=OtpCallObject,
    success=201,
    errors=(InsufficientBalance, NumberNotOwned, SpendLimitReached),
    places_calls=True,
    idempotent=True,
    requests_per_minute=SENDS_PER_MINUTE,
)
async def send_otp(context: Context[SendOtp, NoQuery]) -> Reply:
    """
    Call a number and speak a one-time password.

    The password is never returned or stored. At most five calls per number in ten minutes.
    """
    body = context.body
    sent = await context.services.otp.send(
        context.account_sid,
        Wanted(
            to=body.to,
            code=body.otp,
            length=body.length,
            language=body.language,
            repeat=body.repeat,
            template=body.template,
            from_=body.from_,
            ttl_s=body.ttl_sec,
            status_webhook_url=body.status_webhook_url,
            reference=body.reference,
        ),
    )
    current_request().call_sid = sent.record.call_sid
    return Reply(_json(sent))


@routes.get("/v1/voice-otp/calls/{id}", response=OtpCallObject)
async def get_otp(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a voice OTP call."""
    return Reply(_json(await context.services.otp.get(context.account_sid, context.path["id"])))


@routes.get("/v1/voice-otp/calls", response=OtpCallObject, paged=True)
async def list_otps(context: Context[NoBody, OtpList]) -> Reply:
    """List voice OTP calls, newest first."""
    query = context.query
    start, end = time_span(query.start_date, query.end_date)
    wanted = OtpFilter(
        status=CallStatus(query.status) if query.status else None,
        to=query.to,
        reference=query.reference,
        start=start,
        end=end,
    )
    page = await context.services.otp.list(context.account_sid, wanted, query.page, query.per_page)
    return Reply([_json(item) for item in page.items], page_meta(page))


@routes.get("/v1/voice-otp/stats", response=OtpStatsObject)
async def otp_stats(context: Context[NoBody, OtpStatsQuery]) -> Reply:
    """Statistics of the voice OTP calls of a period."""
    period = period_of(context.query.start_date, context.query.end_date, utc_now().date())
    stats = await context.services.otp.stats(context.account_sid, period)
    return Reply(stats_object(period, stats, CURRENCY))


@routes.post("/v1/voice-otp/{id}/verify", response=VerificationObject, idempotent=True)
async def verify_otp(context: Context[VerifyOtp, NoQuery]) -> Reply:
    """
    Verify the password that the user typed.

    A password is valid once, for five guesses, and for ttl_sec.
    """
    outcome = await context.services.otp.verify(context.account_sid, context.path["id"], context.body.otp)
    return Reply(shown(VerificationObject, outcome, reason=outcome.verdict))


def _json(otp: OtpCall) -> dict[str, Any]:
    return {**otp_object(otp.record), "verified_at": timestamp(otp.state.verified_at)}
