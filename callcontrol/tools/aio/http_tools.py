"""Client of tools that accounts define: one request to a server of the account, and its answer."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from yarl import URL

from callcontrol.aio.tokens import new_id, unix_time_s, utc_now
from callcontrol.egress.aio.http_client import NotAnswered, customer_session, problem_of, read_bounded
from callcontrol.egress.requests import is_success, signed_headers
from callcontrol.egress.url_policy import WEB_SCHEMES, Destinations
from callcontrol.errors import DomainError, ToolFailed, ToolTimedOut
from callcontrol.models import WebhookEvent
from callcontrol.tools.answers import MAX_ANSWER_BYTES, AnswerUnreadable, queried, read_answer, shown
from callcontrol.tools.definitions import HttpTool
from callcontrol.tools.schemas import checked_schema

_ACCEPT: Final = "application/json, text/*;q=0.5"
_MAX_PROBLEM_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response; its ``details`` let the user of the tool correct a request."""

    status: int
    media_type: str
    body: bytes

    @property
    def details(self) -> dict[str, Any]:
        """The status, and the beginning of a body in JSON or text."""
        said = shown(self.media_type, self.body)
        return {"status": self.status, **({"answer": said} if said else {})}


class HttpToolClient:
    """Sends requests to servers of accounts; checks the address of each connection, follows no redirects."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, tool: HttpTool, arguments: Mapping[str, Any]) -> Any:
        """
        Send one request, signed with the tool's secret; return the result, which fits the output schema.

        Raises:
            ToolFailed: The server cannot be reached or did not answer with a result; ``details`` has its
                ``status`` and the beginning of its answer.
            ToolTimedOut: The request took longer than the tool allows.
        """
        try:
            async with asyncio.timeout(tool.timeout_s):
                answer = await self._ask(tool, arguments)
        except TimeoutError:
            message = f"The tool {tool.name} did not answer within {tool.timeout_s} s."
            raise ToolTimedOut(
                f"{message} It may have done what it was asked for; look before a repeat."
            ) from None
        except NotAnswered as problem:
            status = problem.http_status
            raise _failed(tool, str(problem), {"status": status} if status else {}) from None
        except DomainError as refusal:
            raise _failed(tool, refusal.message) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failed(tool, problem_of(error)[:_MAX_PROBLEM_CHARS]) from None
        return _result(tool, answer)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, tool: HttpTool, arguments: Mapping[str, Any]) -> _Answer:
        self._destinations.check_url(tool.url, schemes=WEB_SCHEMES)
        if self._session is None:
            self._session = customer_session(self._destinations, _ACCEPT)
        body = json.dumps(arguments, ensure_ascii=False).encode() if tool.sends_body else None
        url = tool.url if tool.sends_body else queried(tool.url, arguments)
        async with self._session.request(
            tool.method,
            URL(url, encoded=not tool.sends_body),
            data=body,
            headers={**tool.headers, **_signed(tool, body)},
            allow_redirects=False,
        ) as response:
            media_type = response.headers.get("Content-Type", "").partition(";")[0].strip()
            return _Answer(response.status, media_type, await read_bounded(response, MAX_ANSWER_BYTES))


def _signed(tool: HttpTool, body: bytes | None) -> dict[str, str]:
    event = WebhookEvent(
        event_id=new_id(),
        account_sid=tool.account_sid,
        event=f"tool.{tool.name}",
        url=tool.url,
        body=body or b"",
        created_at=utc_now(),
        method="GET" if body is None else "POST",
    )
    return signed_headers(event, [tool.secret], unix_time_s())


def _failed(tool: HttpTool, problem: str, details: Mapping[str, Any] | None = None) -> ToolFailed:
    return ToolFailed(f"The tool {tool.name} could not be used: {problem}", details=details)


def _result(tool: HttpTool, answer: _Answer) -> Any:
    """
    The result in a response.

    Raises:
        ToolFailed: The server refused, or the response is no result, or not one of the output schema.
    """
    if not is_success(answer.status):
        raise ToolFailed(f"The tool {tool.name} answered {answer.status}.", details=answer.details)
    try:
        content = read_answer(answer.media_type, answer.body)
    except AnswerUnreadable as problem:
        raise _failed(tool, str(problem), answer.details) from None
    if tool.output_schema is None:
        return content
    errors = checked_schema(tool.output_schema, "output_schema").errors(content, "result", MAX_ANSWER_BYTES)
    if errors:
        named = [{"field": error.field, "message": error.message} for error in errors]
        message = f"The tool {tool.name} answered what does not fit its output_schema; see details.errors."
        raise ToolFailed(message, details={**answer.details, "errors": named})
    return content
