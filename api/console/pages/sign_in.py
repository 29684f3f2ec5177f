"""Sign-in with an API key or a printed link, and sign-out."""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web

from api.console.page import Pages
from api.console.visit import HOME, Visit
from callcontrol.accounts.aio.sessions import OPERATOR_PREFIX
from callcontrol.errors import RateLimited, Unauthorized

__all__ = ["pages"]

# A path of ours: nothing that a browser could read as another host.
_NEXT: Final = re.compile(r"/console(?:[/?#][\w\-./?=&%:+~#]*)?", re.ASCII)

pages = Pages("sign_in", every_account=True)


@pages.get(f"{HOME}/sign-in", public=True)
async def ask(visit: Visit) -> web.StreamResponse:
    """Show the form; that of a link with a token is one button."""
    token = visit.request.query.get("token")
    if token is not None:
        # A link is for one use, and programs look at what stands in messages.
        return visit.show("link.html", token=token)
    return visit.show("sign_in.html", next=_next(visit.query("next")))


@pages.post(f"{HOME}/sign-in/link", public=True)
async def sign_in_by_link(visit: Visit) -> web.StreamResponse:
    """Open a session with the token of a link, which is used up."""
    token = visit.form.get("token", "")
    try:
        visit.console.count_sign_in(visit.request)
        storage = visit.storage
        sessions = storage.operators if token.startswith(OPERATOR_PREFIX) else storage.console_sessions
        session = await sessions.redeem(token)
    except (Unauthorized, RateLimited) as error:
        return visit.show_invalid("sign_in.html", error, next=HOME)
    return _signed_in(visit, session, HOME)


@pages.post(f"{HOME}/sign-in", public=True)
async def sign_in(visit: Visit) -> web.StreamResponse:
    """Open a session with an API key."""
    following = _next(visit.form.get("next", ""))
    try:
        visit.console.count_sign_in(visit.request)
        session = await visit.storage.console_sessions.open(visit.form.get("key", "").strip())
    except (Unauthorized, RateLimited) as error:
        return visit.show_invalid("sign_in.html", error, next=following)
    return _signed_in(visit, session, following)


@pages.post(f"{HOME}/sign-out", of_session=True)
async def sign_out(visit: Visit) -> web.StreamResponse:
    """End the session."""
    storage = visit.storage
    sessions = storage.console_sessions if visit.operator is None else storage.operators
    await sessions.close(visit.token)
    visit.console.feed.judge(visit.token)
    response = visit.show("sign_in.html", next=HOME)
    visit.console.keep_session(visit.request, response, "")
    response.set_status(303)
    response.headers["Location"] = f"{HOME}/sign-in"
    return response


def _signed_in(visit: Visit, session: str, following: str) -> web.StreamResponse:
    # A page that leads on, as a redirection of a link elsewhere would not carry the new cookie.
    response = visit.show("signed_in.html", next=following)
    visit.console.keep_session(visit.request, response, session)
    return response


def _next(path: str) -> str:
    """Path of the console to go to; the first page for anything else."""
    if _NEXT.fullmatch(path) is None or "//" in path or path.startswith(f"{HOME}/sign-"):
        return HOME
    return path
