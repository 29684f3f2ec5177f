"""Common parts of Twilio's forms, queries and lists."""

from typing import Annotated
from urllib.parse import urlencode

from pydantic import BeforeValidator, Field

from api.http.cursor import MAX_CURSOR_CHARS
from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import MAX_PAGE

__all__ = [
    "API_VERSION",
    "Flag",
    "Moment",
    "Number",
    "Several",
    "TwilioCursorQuery",
    "TwilioPage",
    "TwilioQuery",
    "unavailable",
]

API_VERSION = "2010-04-01"

_DEFAULT_PAGE_SIZE = 50

Moment = Annotated[str, Field(description="As in mail: Sun, 22 Nov 2026 03:00:00 +0000.")]

# Every value of a form is a text.
Number = Annotated[int, Field(strict=False)]
Flag = Annotated[bool, Field(strict=False)]
Several = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
"""Makes one value of a field that may be given several times a list."""


def unavailable(*names: str) -> dict[str, str]:
    """Make the refusals of parameters of Twilio that have no counterpart."""
    return dict.fromkeys(names, "is a parameter of Twilio's that is not available here")


class TwilioQuery(RequestModel):
    """Query of a list that is read by the number of the page."""

    PageSize: Annotated[int, Field(ge=1, le=1000)] = _DEFAULT_PAGE_SIZE
    Page: Annotated[int, Field(ge=0, le=MAX_PAGE - 1)] = 0

    @property
    def token(self) -> str | None:
        """Token of the page; None for one that is read by its number."""
        return None

    def links(self, path: str, *, has_next: bool, token: str | None = None) -> dict[str, str | int | None]:
        """Fields of a page that name itself and its neighbours; `token` is that of the next page."""
        given = self.model_dump(by_alias=True, exclude_none=True, exclude={"PageSize", "Page", "PageToken"})
        filters = {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()
        }

        def page(number: int, **by_token: str) -> str:
            query = {**filters, "PageSize": self.PageSize, "Page": number, **by_token}
            return f"{path}?{urlencode(query)}"

        tokens = {"PageToken": token} if token is not None else {}
        own = {"PageToken": self.token} if self.token is not None else {}
        return {
            "uri": page(self.Page, **own),
            "first_page_uri": page(0),
            "previous_page_uri": page(self.Page - 1) if self.Page > 0 else None,
            "next_page_uri": page(self.Page + 1, **tokens) if has_next else None,
            "page": self.Page,
            "page_size": self.PageSize,
        }


class TwilioCursorQuery(TwilioQuery):
    """Query of a list that is also read by the token which the page before it names."""

    PageToken: Annotated[str, Field(min_length=1, max_length=MAX_CURSOR_CHARS)] | None = None

    @property
    def token(self) -> str | None:
        """Token of the page; None for one that is read by its number."""
        return self.PageToken


class TwilioPage(ResponseModel):
    """Place of a page in its list; URIs are relative to the server."""

    uri: str
    first_page_uri: str
    previous_page_uri: str | None
    next_page_uri: str | None
    page: Annotated[int, Field(description="Pages count from 0.")]
    page_size: int
    start: Annotated[int, Field(description="Number of the first item in the list, from 0.")]
    end: int
