"""One request for a page of the console, as its handler sees it."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlencode

from aiohttp import web

from api.console.page import Page, Pages
from api.console.rendering import HEADERS, STATIC, refusal_text, render, texts_of
from api.http.body import UNSTORABLE
from api.http.session import SignedIn
from api.schemas.base import Reach
from callcontrol.accounts.keys import opens
from callcontrol.bootstrap.aio.services import Services, Storage
from callcontrol.errors import DomainError, NotFound, Unauthorized, ValidationFailed
from callcontrol.models import CallRecord, Principal, Service

if TYPE_CHECKING:
    from api.console.app import Console

__all__ = ["HOME", "UUID", "Visit", "form_token"]

HOME: Final = "/console"

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""Identifier of a call."""
_MOST_QUERY_CHARS: Final = 256


def form_token(session: str, account_sid: str = "") -> str:
    """
    Token of the forms of a session, which no other site can know.

    With the account that an operator has chosen: a form of a page from before another choice is refused.
    """
    return hmac.new(
        session.encode(), b"forms of the console" + account_sid.encode(), hashlib.sha256
    ).hexdigest()


@dataclass(slots=True)
class Visit:
    """
    A checked request: the session is valid, its key has the scope of the page, and a form has its token.

    Attributes:
        console: The console, with the event feed and the settings that pages show.
        page: The page.
        form: Fields of a form; empty for a GET.
        token: Token of the session; empty without one.
        session: The session; None on a public page.
        entered: Account of the call that is shown to an operator who has chosen none; empty otherwise.
    """

    console: Console
    request: web.Request
    page: Page
    form: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    session: SignedIn | None = None
    entered: str = ""

    @property
    def services(self) -> Services:
        """All services of the server."""
        return self.console.services

    @property
    def storage(self) -> Storage:
        """The services on the database."""
        return self.console.services.storage

    @property
    def principal(self) -> Principal:
        """
        The key of the session.

        Raises:
            Unauthorized: Nobody is signed in; only on a public page.
        """
        if self.session is None:
            raise Unauthorized(refusal_text("not_signed_in"))
        return self.session.principal

    @property
    def account_sid(self) -> str:
        """The account of the session's key, or that an operator has chosen; empty for all accounts."""
        return self.principal.account_sid or self.entered

    @property
    def operator(self) -> str | None:
        """Name of the operator whose session it is; None for a session of a key."""
        return None if self.session is None else self.session.operator

    @property
    def every_account(self) -> bool:
        """True for an operator who has chosen no account, and sees the calls of all."""
        return self.session is not None and self.session.every_account

    def account_name(self, account_sid: str) -> str:
        """Name of an account, for operators."""
        account = self.storage.directory.account(account_sid)
        return account_sid if account is None else account.name

    @property
    def texts(self) -> Mapping[str, Any]:
        """Texts of the page's module."""
        return texts_of(self.page.of.name)

    def texts_of(self, name: str) -> Mapping[str, Any]:
        """Texts of another module of pages, for a part that several share."""
        return texts_of(name)

    def may(self, scope: str | None, service: Service = "platform") -> bool:
        """Return True if the session's key has a scope, and opens the service; always for None."""
        if self.session is None:
            return False
        return scope is None or (scope in self.principal.scopes and opens(self.principal.service, service))

    @property
    def reach(self) -> Reach:
        """Countries, prompts and hosts that forms of the account may name."""
        has_gateway = partial(self.storage.directory.has_gateway, self.account_sid)
        return Reach(self.services.verb_rules, has_gateway)

    async def call(self, call_sid: str) -> CallRecord:
        """
        Return a call of the account; for an operator who has chosen none, of any, whose account is entered.

        Raises:
            NotFound: There is no such call.
            Forbidden: It belongs to another account.
        """
        if not self.every_account:
            return await self.services.calls.get_call(self.account_sid, call_sid)
        runner = self.services.calls.active(call_sid)
        record = await self.storage.calls.find(call_sid) if runner is None else runner.record
        if record is None:
            raise NotFound(refusal_text("no_such_call"))
        self.entered = record.account_sid
        return record

    def path(self, name: str) -> str:
        """Value of a parameter of the path."""
        return self.request.match_info[name]

    def sid(self, name: str = "sid") -> str:
        """
        Identifier in the path, a UUID in lower case.

        Raises:
            NotFound: It is none, so nothing has it.
        """
        value = self.path(name)
        if UUID.fullmatch(value) is None:
            raise NotFound(refusal_text("no_such_thing"))
        return value.lower()

    def query(self, name: str) -> str:
        """Value of a parameter of the query without spaces around it; empty without one."""
        value = self.request.query.get(name, "").strip()
        return "" if UNSTORABLE.search(value) or len(value) > _MOST_QUERY_CHARS else value

    def queries(self, *names: str) -> dict[str, str]:
        """Values of parameters of the query, by their names; those that are not given are empty."""
        return {name: self.query(name) for name in names}

    def address(self, path: str | None = None, **parameters: str | int | None) -> str:
        """Path with a query of those parameters that are not empty; by default of this page."""
        given = {name: value for name, value in parameters.items() if value not in (None, "")}
        return (path or self.request.path) + (f"?{urlencode(given)}" if given else "")

    def show(self, template: str, *, status: int = 200, **values: Any) -> web.Response:
        """
        Respond with a template of the console.

        It gets `values` as well as `visit`, the texts of its module `t`, and those of all pages `common`.
        `problem` and `errors`, which the frame shows, are empty unless given.
        """
        shown = {"problem": None, "errors": {}, "t": self.texts, "static": f"{HOME}/static/{STATIC.version}"}
        body = render(template, {**shown, **values, "visit": self})
        return web.Response(text=body, status=status, content_type="text/html", headers=HEADERS)

    def show_invalid(self, template: str, error: DomainError, **values: Any) -> web.Response:
        """
        Respond with a form whose values were refused: 400, or the status that the API has for it.

        The template gets `problem`, the sentence, and `errors`, messages by field; the values are in
        `visit.form`.
        """
        fields = error.errors if isinstance(error, ValidationFailed) else ()
        by_field = {item.field: item.message for item in fields}
        status = self.console.status_of(error)
        return self.show(template, status=status, problem=error.message, errors=by_field, **values)

    def go(self, path: str, **parameters: str | int | None) -> NoReturn:
        """
        Respond with a redirection after a form (303).

        The parameter `done` names a text of the module's ``[done]``, which the next page shows.
        """
        raise web.HTTPSeeOther(self.address(path, **parameters))

    # --- for the frame --------------------------------------------------------------------------------------

    @property
    def csrf(self) -> str:
        """Token of the session's forms."""
        return form_token(self.token, "" if self.session is None else self.session.chosen)

    @property
    def session_csrf(self) -> str:
        """Token of forms that are about the session alone, whatever account is chosen."""
        return form_token(self.token)

    @property
    def events(self) -> str:
        """Name of the event stream that the open pages of the session share; of no use to anybody else."""
        chosen = "" if self.session is None else self.session.chosen
        text = b"events of the console" + chosen.encode()
        return hmac.new(self.token.encode(), text, hashlib.sha256).hexdigest()[:32]

    @property
    def done(self) -> str | None:
        """Text of what a form has just done."""
        name = self.query("done")
        text = self.texts.get("done", {}).get(name) if name else None
        return text if isinstance(text, str) else None

    @property
    def navigation(self) -> Sequence[tuple[str, Sequence[Pages]]]:
        """Entries of the navigation that the session may see, by their groups."""
        return [
            (group, found)
            for group, listed in self.console.navigation
            if (found := [entry for entry in listed if self._sees(entry)])
        ]

    def _sees(self, pages: Pages) -> bool:
        barred = "operators" if self.operator is None else "keys"
        if pages.only == barred or (self.every_account and not pages.every_account):
            return False
        return self.may(pages.scope, pages.service)

    def title_of(self, pages: Pages) -> str:
        """Title of a module of pages."""
        title = texts_of(pages.name)["title"]
        assert isinstance(title, str)
        return title
