"""
Sessions of people who are signed in to the console, as requests carry them.

A session is in a cookie. Browsers send it by themselves, so whatever changes something is also judged by
where it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

from api.http.auth import check_service
from callcontrol.accounts.aio.sessions import OPERATOR_PREFIX
from callcontrol.accounts.keys import EVERY_SCOPE, granted
from callcontrol.accounts.store import OperatorSession
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.errors import Forbidden
from callcontrol.models import Principal, Service

__all__ = [
    "API_PATH",
    "COOKIE",
    "OPERATOR",
    "SignedIn",
    "TAKES_SESSIONS",
    "check_origin",
    "principal_of_session",
    "signed_in_by",
]

COOKIE: Final = "trunkline_console"
"""Name of the cookie with the token of a session."""
TAKES_SESSIONS: Final = web.AppKey("takes_sessions", bool)
"""Set in an application that has the console; without it there are no sessions."""
API_PATH: Final = "/api/webhook-endpoints"
"""The part of the API that takes sessions."""
OPERATOR: Final = "operator:"
"""Beginning of what stands for the id of a key in the session of an operator."""

_SEEN_EVERYWHERE: Final = frozenset({"calls.read", "webhooks.read", "assistant", "admin"})
"""Scopes of an operator who has chosen no account: enough for calls and the server, and to change nothing."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class SignedIn:
    """
    Somebody's session: the rights of its key, or of an operator.

    Attributes:
        principal: Its rights; of no account for an operator who has chosen none.
        operator: Name of the operator; None for a session of a key.
    """

    principal: Principal
    operator: str | None = None

    @classmethod
    def as_operator(cls, session: OperatorSession, *, is_active: bool = True) -> SignedIn:
        """Session of an operator: every scope in the account that is chosen, only sight without one."""
        name, chosen = OPERATOR + session.operator, session.account_sid
        if chosen is None:
            return cls(Principal("", name, "all", _SEEN_EVERYWHERE), session.operator)
        # Keys of an account that is disabled are refused; an operator may still see why.
        scopes = granted("all", [EVERY_SCOPE]) if is_active else _SEEN_EVERYWHERE
        return cls(Principal(chosen, name, "all", scopes), session.operator)

    @property
    def chosen(self) -> str:
        """Account that an operator has chosen; empty for all, and for a session of a key."""
        return "" if self.operator is None else self.principal.account_sid

    @property
    def every_account(self) -> bool:
        """True for an operator who has chosen no account."""
        return self.operator is not None and not self.principal.account_sid


async def signed_in_by(storage: Storage, token: str) -> SignedIn:
    """
    Find the session of a token.

    Raises:
        Unauthorized: It has ended.
    """
    if token.startswith(OPERATOR_PREFIX):
        session = await storage.operators.find(token)
        account = session.account_sid and storage.directory.account(session.account_sid)
        return SignedIn.as_operator(session, is_active=not account or account.is_active)
    return SignedIn(await storage.console_sessions.principal(token))


async def principal_of_session(
    request: web.Request, storage: Storage, service: Service, scope: str | None
) -> Principal:
    """
    Authenticate a request to the API by the session in its cookie.

    What an operator changes is recorded before it is done.

    Raises:
        Unauthorized: The session has ended.
        Forbidden: Its key belongs to another service, it is of an operator who has chosen no account, or the
            request changes something and does not come from a page of this server.
    """
    signed_in = await signed_in_by(storage, request.cookies[COOKIE])
    principal, changes = signed_in.principal, request.method not in _SAFE_METHODS
    if changes:
        check_origin(
            request,
            "With a session, a change must come from a page of this server, as browsers say by "
            "Sec-Fetch-Site: same-origin or Origin; other programs send an API key.",
        )
    if signed_in.every_account:
        raise Forbidden("You look at all accounts, and this is about one of them: choose it in the console.")
    check_service(principal, service)
    if signed_in.operator is not None and changes and scope in principal.scopes:
        await storage.operators.note(signed_in.operator, principal.account_sid, request.rel_url.raw_path)
    return principal


def check_origin(request: web.Request, refusal: str) -> None:
    """
    Check that a request was sent by a page of ours; browsers say so in Sec-Fetch-Site, older ones in Origin.

    Raises:
        Forbidden: It comes from elsewhere, or does not say from where; ``refusal`` is the message.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        ours = site == "same-origin"
    else:
        # Compared as a text: it may be anything, also what no parser takes.
        ours = origin in (f"http://{request.host}", f"https://{request.host}")
    if not ours:
        raise Forbidden(refusal)
