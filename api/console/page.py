"""
Declarations of the console's pages.

A module of `api.console.pages` declares its pages at their handlers, in its `pages`. Its name is that of its
texts (``texts/NAME.toml``), whose `title` is the entry in the navigation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Literal

from aiohttp import web

from callcontrol.models import Service

if TYPE_CHECKING:
    from api.console.visit import Visit

__all__ = ["Group", "Navigation", "Page", "Pages", "all_pages"]

Group = Literal["calls", "resources", "products", "account"]
"""Heading of an entry in the navigation."""

Handler = Callable[["Visit"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Navigation:
    """Entry in the navigation: its group, its place there (10, 20, ...), and the path that it leads to."""

    group: Group
    order: int
    path: str


@dataclass(frozen=True, slots=True)
class Page:
    """
    One method of one path of the console.

    `scope` is the scope that the session's key must have, and `service` the service that it must open; None
    for a page that every session may see. A `public` page needs no session. A form `of_session` is about the
    session alone: it is valid whatever account an operator has chosen since its page was loaded, and is not
    recorded.
    """

    method: str
    path: str
    handler: Handler
    of: Pages
    scope: str | None
    public: bool = False
    of_session: bool = False

    @property
    def service(self) -> Service | None:
        """Service that the key must open; None for any."""
        return None if self.scope is None else self.of.service


class Pages:
    """
    Pages of a module, declared at their handlers; `scope` is needed to see them, `writes` to change.

    With `every_account` an operator who has chosen no account may see them. `only` is for pages that are for
    operators, and for those that are about the session's key, which an operator has not.

    Attributes:
        name: Name of the module's texts.
        under: Name of the module whose entry in the navigation these pages are under; by default its own.
        declared: The pages, in the order of their declaration.
    """

    def __init__(
        self,
        name: str,
        *,
        scope: str | None = None,
        writes: str | None = None,
        service: Service = "platform",
        nav: Navigation | None = None,
        under: str | None = None,
        every_account: bool = False,
        only: Literal["operators", "keys"] | None = None,
    ) -> None:
        self.name = name
        self.scope = scope
        self.writes = writes or scope
        self.service = service
        self.nav = nav
        self.under = under or name
        self.every_account = every_account
        self.only = only
        self.declared: list[Page] = []

    def get(self, path: str, *, public: bool = False) -> Callable[[Handler], Handler]:
        """Declare the decorated handler as GET of a path; it answers HEAD, too."""
        return self._declare("GET", path, self.scope, public)

    def post(
        self, path: str, *, scope: str | None = None, public: bool = False, of_session: bool = False
    ) -> Callable[[Handler], Handler]:
        """Declare the decorated handler as POST of a path: a form, whose token is checked before."""
        return self._declare("POST", path, scope or self.writes, public, of_session)

    def _declare(
        self, method: str, path: str, scope: str | None, public: bool, of_session: bool = False
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self.declared.append(Page(method, path, handler, self, scope, public, of_session))
            return handler

        return declare


def all_pages() -> Iterator[Pages]:
    """Pages of every module of `api.console.pages`, by the names of the modules."""
    from api.console import pages

    for found in sorted(module.name for module in iter_modules(pages.__path__)):
        declared = getattr(import_module(f"{pages.__name__}.{found}"), "pages", None)
        if isinstance(declared, Pages):
            yield declared
