"""Voice OTP: codes that were told by a call, a new one, and the check of a code."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from api.console.operations import Listed, ask, ask_list, change, may_ask, refused
from api.console.page import Navigation, Pages
from api.console.visit import HOME, Visit
from callcontrol.errors import DomainError

__all__ = ["pages"]

PATH: Final = f"{HOME}/otp"
_SEARCHED: Final = ("to", "reference", "start_date", "end_date")

pages = Pages("otp", scope="otp.read", writes="otp.send", nav=Navigation("products", 20, PATH))


@pages.get(PATH)
async def list_otps(visit: Visit) -> web.StreamResponse:
    """Show calls that told a code, newest first; never the codes."""
    return await _otps(visit)


@pages.post(f"{PATH}/send")
async def send_otp(visit: Visit) -> web.StreamResponse:
    """Tell somebody a code by a call."""
    return await change(visit, "send_otp", again=_otps, to=PATH, done="sent", form=visit.form)


@pages.post(f"{PATH}/verify")
async def verify_otp(visit: Visit) -> web.StreamResponse:
    """Check a code that somebody was told; an attempt counts."""
    form = visit.form
    try:
        outcome = await ask(visit, "verify_otp", {"id": form.get("id", "").strip()}, form=form)
    except DomainError as refusal:
        return await _otps(visit, refusal)
    return await _otps(visit, outcome=outcome)


async def _otps(
    visit: Visit, refusal: DomainError | None = None, outcome: dict[str, Any] | None = None
) -> web.StreamResponse:
    wanted = visit.queries(*_SEARCHED)
    values: dict[str, Any] = {
        "wanted": wanted,
        "otps": Listed([]),
        "stats": await ask(visit, "otp_stats"),
        "outcome": outcome,
        "may_send": may_ask(visit, "send_otp"),
    }
    try:
        values["otps"] = await ask_list(visit, "list_otps", query=wanted)
    except DomainError as error:
        return refused(visit, "otp.html", refusal or error, **values)
    if refusal is not None:
        return refused(visit, "otp.html", refusal, **values)
    return visit.show("otp.html", **values)
