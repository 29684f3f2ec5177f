"""
The console as part of the HTTP application.

A request for a page is admitted by the session in its cookie, and judged by the key of that session: scope
and account are the key's at the time of the request. A form is also judged by where it comes from, and by
the token that it carries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import Morsel
from itertools import groupby
from typing import TYPE_CHECKING, Final, cast, get_args
from urllib.parse import urlencode

from aiohttp import web

from api.console.feed import Feed
from api.console.page import Group, Navigation, Page, Pages, all_pages
from api.console.rendering import HEADERS, refusal_text, render, static_response
from api.console.visit import HOME, Visit
from api.http.body import FORM, parse_form, read_body
from api.http.errors import ApiError, to_api_error, unexpected
from api.http.middleware import current_request
from api.http.ratelimit import Allowance, RateLimiter
from api.http.session import API_PATH, COOKIE, TAKES_SESSIONS, check_origin, signed_in_by
from api.process.lifecycle import Lifecycle
from callcontrol.accounts.aio.sessions import SESSION_LIFE
from callcontrol.accounts.keys import opens
from callcontrol.bootstrap.aio.services import Services
from callcontrol.errors import (
    DomainError,
    Forbidden,
    NodeUnreachable,
    NotFound,
    RateLimited,
    Unauthorized,
)
from callcontrol.models import CallFilter

if TYPE_CHECKING:
    from api.http.forward import Forwarder
    from api.process.call_lines import CallLines

__all__ = ["Console", "ConsoleSettings"]

_log = logging.getLogger("api.console")

_PAGES_PER_MINUTE: Final = 600
_SIGN_INS_PER_MINUTE: Final = 10
_GROUPS: Final[Sequence[Group]] = get_args(Group)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """
    Surroundings of the console.

    Attributes:
        public_url: Root of the API, for the curl lines that pages show.
        is_trusted: True for source addresses that are not limited in rate.
        forwarder: Forwards what another node must answer; None on a database that one node has.
        shown: Settings of the server by name, as operators see them; no secrets.
        operators: Accounts whose keys see the page of the server; empty for the only account.
        scrape: Reads the metrics of the server in the format of Prometheus.
        banned: Returns the banned SIP sources, each with the seconds left.
        lines: Log lines of recent calls.
        echo_url: Stream URL of the echo agent in this process; None without the sandbox.
    """

    public_url: str
    is_trusted: Callable[[str | None], bool] = lambda _: False
    forwarder: Forwarder | None = None
    shown: Mapping[str, str] | None = None
    operators: frozenset[str] = frozenset()
    scrape: Callable[[], Awaitable[bytes]] | None = None
    banned: Callable[[], Mapping[str, float]] = dict
    lines: CallLines | None = None
    echo_url: str | None = None


class Console:
    """
    The console of a server.

    Attributes:
        services: The services that its pages call.
        feed: Events for the pages that are open.
        navigation: Entries of the navigation, by their groups.
    """

    def __init__(self, services: Services, lifecycle: Lifecycle, settings: ConsoleSettings) -> None:
        self.services = services
        self.lifecycle = lifecycle
        self.settings = settings
        self.feed = Feed(services)
        self._limiter = RateLimiter(60, monotonic=time.monotonic, wall=time.time)
        self._modules = list(all_pages())
        self.navigation = _navigation(self._modules)

    def attach(self, app: web.Application) -> None:
        """Add the routes of the console to an application, behind all others."""
        app[TAKES_SESSIONS] = True
        router = app.router
        router.add_route("GET", "/", self._root)
        for module in self._modules:
            for page in module.declared:
                handler = self._handler(page)
                router.add_route(page.method, page.path, handler)
                if page.method == "GET":
                    router.add_route("HEAD", page.path, handler)
        missing = Pages("common", every_account=True)
        files = f"{HOME}/static/{{version}}/{{name}}"
        router.add_route("GET", files, self._handler(Page("GET", files, _static, missing, None, public=True)))
        router.add_route("GET", HOME, self._handler(Page("GET", HOME, _home, missing, None)))
        for method in ("GET", "POST"):
            router.add_route(
                method, HOME + "/{tail:.*}", self._handler(Page(method, HOME, _missing, missing, None))
            )

    async def close(self) -> None:
        """End the event streams of all open pages."""
        await self.feed.close()

    def status_of(self, error: DomainError) -> int:
        """HTTP status of a refusal, as the API has it."""
        return to_api_error(error).status

    # --- sign-in --------------------------------------------------------------------------------------------

    def count_sign_in(self, request: web.Request) -> None:
        """
        Count an attempt to sign in from a source.

        Raises:
            RateLimited: There were too many from it.
        """
        self._count(request, "source", f"sign-in {request.remote}", _SIGN_INS_PER_MINUTE)

    def keep_session(self, request: web.Request, response: web.StreamResponse, token: str) -> None:
        """
        Set the cookie of a session; an empty token removes it.

        It is set for each part of the server that takes it, so that no other part gets it.
        """
        secure = request.secure or self.settings.public_url.startswith("https:")
        for path in (HOME, API_PATH):
            # By hand, as the library keeps one cookie of a name.
            cookie = Morsel[str]()
            cookie.set(COOKIE, token, token)
            cookie["path"], cookie["samesite"] = path, "Strict"
            cookie["httponly"], cookie["secure"] = True, secure
            cookie["max-age"] = int(SESSION_LIFE.total_seconds()) if token else 0
            response.headers.add("Set-Cookie", cookie.OutputString())

    # --- requests -------------------------------------------------------------------------------------------

    def _handler(self, page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            visit = Visit(self, request, page)
            try:
                response = await self._answer(visit)
                # Of a stream, and of a file that another node has sent, the headers are gone.
                if not response.prepared:
                    for name, value in HEADERS.items():
                        response.headers.setdefault(name, value)
                return response
            except Unauthorized as error:
                return self._ask_to_sign_in(visit, error)
            except DomainError as error:
                return self._refuse(visit, to_api_error(error))
            except ApiError as error:
                return self._refuse(visit, error)
            except web.HTTPException as redirection:
                location = redirection.headers["Location"]
                return web.Response(status=redirection.status, headers={**HEADERS, "Location": location})
            except Exception as error:
                # A person gets a page that says so, never a traceback.
                failure = unexpected(error)
                _log.error("request %s failed", current_request().request_id, exc_info=error)
                return self._refuse(visit, failure)

        return handle

    async def _answer(self, visit: Visit) -> web.StreamResponse:
        request, page = visit.request, visit.page
        if page.method == "POST":
            check_origin(request, refusal_text("foreign_form"))
        visit.token = request.cookies.get(COOKIE, "")
        if not page.public:
            visit.session = await signed_in_by(self.services.storage, visit.token)
            self._admit(visit)
        if page.method == "POST":
            raw = await read_body(request, (FORM,))
            fields = parse_form(raw) if raw else {}
            visit.form = {name: value for name, value in fields.items() if isinstance(value, str)}
            wanted = visit.session_csrf if page.of_session else visit.csrf
            if not page.public and visit.form.get("csrf") != wanted:
                raise Forbidden(refusal_text("old_form"))
        # Before it is done, so that nothing is done unrecorded.
        recorded = await self._record(visit)
        try:
            return await page.handler(visit)
        except NodeUnreachable as elsewhere:
            if self.settings.forwarder is None:
                raise
            response = await self.settings.forwarder.answer(request, elsewhere)
            if recorded is not None and response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                # The other node has recorded it, or refused it as this one would have.
                await self.services.storage.operators.withdraw(recorded)
            return response

    async def _record(self, visit: Visit) -> int | None:
        """Record a form that an operator has sent in an account; returns the entry's number, if it is one."""
        page, operator = visit.page, visit.operator
        if page.method != "POST" or page.of_session or operator is None or not visit.account_sid:
            return None
        path = visit.request.rel_url.raw_path
        return await self.services.storage.operators.note(operator, visit.account_sid, path)

    def _admit(self, visit: Visit) -> None:
        """
        Count a request of a session, and check the scope of its page.

        Raises:
            RateLimited: The key has asked for too many pages.
            Forbidden: The key lacks the scope, or is of another service; or the page is not for operators, or
                not before they have chosen an account.
        """
        principal, page = visit.principal, visit.page
        current_request().account_sid = principal.account_sid or None
        self._count(visit.request, "key", f"pages {principal.key_id}", _PAGES_PER_MINUTE)
        if visit.operator is not None:
            _admit_operator(visit)
        elif page.of.only == "operators":
            raise Forbidden(refusal_text("for_operators"))
        if page.service is not None and not opens(principal.service, page.service):
            raise Forbidden(refusal_text("other_service", service=principal.service))
        if page.scope is not None and page.scope not in principal.scopes:
            raise Forbidden(refusal_text("page_scope", scope=page.scope))

    def _count(self, request: web.Request, policy: str, name: str, limit: int) -> None:
        if self.settings.is_trusted(request.remote):
            return
        found = self._limiter.take([Allowance(policy, name, limit)])
        if not found.allowed:
            message = refusal_text("too_often", seconds=found.reset_in_s)
            raise RateLimited(message, retry_after_s=found.reset_in_s)

    def _ask_to_sign_in(self, visit: Visit, error: Unauthorized) -> web.StreamResponse:
        request = visit.request
        if request.method not in ("GET", "HEAD") or "text/event-stream" in request.headers.get("Accept", ""):
            return self._refuse(visit, to_api_error(error))
        if COOKIE not in request.cookies and request.headers.get("Sec-Fetch-Site") == "cross-site":
            # A link on another site: the browser keeps the cookie back until a page of ours follows it.
            body = render("again.html", {"path": str(request.rel_url)})
            return web.Response(text=body, content_type="text/html", headers=HEADERS)
        query = urlencode({"next": str(request.rel_url)})
        location = f"{HOME}/sign-in" + (f"?{query}" if request.path != HOME else "")
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": location})

    def _refuse(self, visit: Visit, error: ApiError) -> web.Response:
        """Respond with a page that says why, within the frame if somebody is signed in."""
        missing = error.status == HTTPStatus.NOT_FOUND
        response = visit.show("refused.html", status=error.status, refusal=error, missing=missing)
        response.headers.update(error.headers)
        response.headers.popall("WWW-Authenticate", None)
        return response

    async def _root(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=HTTPStatus.FOUND, headers={**HEADERS, "Location": HOME})


def _admit_operator(visit: Visit) -> None:
    """
    Check that a page is one for an operator.

    Raises:
        Forbidden: It is about the session's key, or about an account, and none is chosen.
    """
    page = visit.page
    if page.of.only == "keys":
        raise Forbidden(refusal_text("of_a_key"))
    changes = page.method == "POST" and page.scope is not None
    if visit.every_account and (changes or not page.of.every_account):
        raise Forbidden(refusal_text("choose_account"))


async def _home(visit: Visit) -> web.StreamResponse:
    """Lead to the first page that the key may see; an account without calls begins with one."""
    if visit.may("calls.read") and not visit.every_account:
        page = await visit.services.calls.list_calls(visit.account_sid, CallFilter(), 1, 1)
        if not page.items:
            visit.go(f"{HOME}/first")
    for _, entries in visit.navigation:
        for entry in entries:
            visit.go(cast(Navigation, entry.nav).path)
    raise Forbidden(refusal_text("no_page_for_key"))


async def _static(visit: Visit) -> web.StreamResponse:
    found = static_response(visit.path("version"), visit.path("name"))
    if found is None:
        raise NotFound(refusal_text("no_such_file"))
    return found


async def _missing(visit: Visit) -> web.StreamResponse:
    if not visit.request.match_info.get("tail"):
        visit.go(HOME)
    raise NotFound(refusal_text("no_page"))


def _navigation(modules: Sequence[Pages]) -> Sequence[tuple[str, Sequence[Pages]]]:
    def place(module: Pages) -> tuple[int, int]:
        nav = cast(Navigation, module.nav)
        return _GROUPS.index(nav.group), nav.order

    listed = sorted((module for module in modules if module.nav is not None), key=place)
    return [
        (group, list(found)) for group, found in groupby(listed, lambda it: cast(Navigation, it.nav).group)
    ]
