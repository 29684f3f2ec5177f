"""A vendor's speech model as the agent of one call: its session, and the tools that it uses."""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol

from callcontrol.calls.model_tools import (
    TOOLS,
    command_of,
    error_result,
    read_arguments,
    shortened,
)
from callcontrol.errors import DomainError
from callcontrol.models import CallRecord
from media.aio.agent_stream import AgentStream
from media.streams import (
    AgentCommand,
    AgentHangup,
    AgentToolCall,
    CommandError,
    ModelChoice,
    ModelSession,
    ModelTool,
    ModelTurn,
    StreamConnectError,
)

log = logging.getLogger(__name__)

_MAX_AT_ONCE: Final = 8
"""Tools of the account that one call may use at a time."""


class SpeechModels(Protocol):
    """Stored keys and tools of accounts, for the sessions of speech models."""

    async def api_key(self, account_sid: str, name: str) -> str:
        """Return a stored key; raises ``NotFound``."""

    async def describe(self, account_sid: str, names: Sequence[str]) -> Sequence[ModelTool]:
        """Return the enabled tools among ``names``."""

    async def use(self, account_sid: str, name: str, arguments: Mapping[str, Any]) -> str:
        """Use a tool; returns its result as text. Raises ``DomainError``."""


class ModelAgent:
    """
    The sessions of one call with speech models.

    ``execute`` carries out a command of an agent, ``spawn`` runs a task until the call is over.
    """

    def __init__(
        self,
        models: SpeechModels | None,
        record: CallRecord,
        execute: Callable[[AgentCommand], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._models = models
        self._record = record
        self._execute = execute
        self._spawn = spawn
        self._allowed: frozenset[str] = frozenset()
        self._pending: dict[str, tuple[AgentStream, str]] = {}
        """By name, the uses of tools of the call whose result is not known yet."""
        self._running = 0
        self._turns: tuple[ModelTurn, ...] = ()
        self._resumption: str | None = None

    async def session(self, choice: ModelChoice, *, continues: bool) -> ModelSession:
        """
        Return the session to open; with ``continues`` it goes on with the conversation so far.

        Raises:
            StreamConnectError: The key cannot be had, or the tools cannot be looked up.
        """
        self._allowed = frozenset(choice.tools)
        account_sid, api_key = self._record.account_sid, choice.api_key
        tools = [TOOLS[name] for name in choice.tools if name in TOOLS]
        named = [name for name in choice.tools if name not in TOOLS]
        try:
            if api_key is None and self._models is not None and choice.key is not None:
                api_key = await self._models.api_key(account_sid, choice.key)
            if named and self._models is not None:
                tools += await self._models.describe(account_sid, named)
        except DomainError as refusal:
            raise StreamConnectError("key", detail=refusal.message) from None
        if api_key is None:
            raise StreamConnectError("key", detail="there is no stored key")
        return ModelSession(
            choice=choice,
            api_key=api_key,
            tools=tuple(tools),
            turns=self._turns if continues else (),
            resumption=self._resumption if continues else None,
        )

    def left(self, stream: AgentStream) -> None:
        """Keep the conversation of a session that is over, for one that continues it."""
        self._pending.clear()
        if stream.model is not None:
            self._turns = stream.model.dialect.turns
            self._resumption = stream.model.dialect.resumption

    def use(self, stream: AgentStream, call: AgentToolCall) -> None:
        """Use a tool for the model; its result follows."""
        try:
            if call.name not in self._allowed:
                raise CommandError("there is no such tool")
            arguments = read_arguments(call.arguments)
            if call.name in TOOLS:
                self._act(stream, call, arguments)
                return
            if self._running >= _MAX_AT_ONCE:
                raise CommandError(f"at most {_MAX_AT_ONCE} tools can be used at once")
        except CommandError as refusal:
            _answer(stream, call, error_result(refusal.message), is_error=True)
            return
        self._running += 1
        self._spawn(self._ask(stream, call, arguments))

    def done(self, name: str, result: Mapping[str, Any], *, is_error: bool = False) -> None:
        """Send the model the result of a tool of the call, if it has used it."""
        pending = self._pending.pop(name, None)
        if pending is not None:
            stream, call_id = pending
            _answer(stream, AgentToolCall(call_id, name, ""), json.dumps(result), is_error=is_error)

    def _act(self, stream: AgentStream, call: AgentToolCall, arguments: Mapping[str, Any]) -> None:
        if call.name in self._pending:
            raise CommandError("this is in progress already")
        command = command_of(call.name, arguments)
        if not isinstance(command, AgentHangup):
            self._pending[call.name] = (stream, call.call_id)
        self._execute(command)

    async def _ask(self, stream: AgentStream, call: AgentToolCall, arguments: Mapping[str, Any]) -> None:
        assert self._models is not None, "only tools of the account are asked"
        is_error = True
        try:
            result = await self._models.use(self._record.account_sid, call.name, arguments)
            is_error = False
        except DomainError as refusal:
            result = error_result(refusal.message)
        finally:
            self._running -= 1
        log.info("model used %s", call.name, extra={"call_sid": self._record.call_sid})
        _answer(stream, call, shortened(result), is_error=is_error)


def _answer(stream: AgentStream, call: AgentToolCall, result: str, *, is_error: bool) -> None:
    if stream.model is not None and not stream.closed:
        stream.model.send(
            stream.model.dialect.tool_result(call.call_id, call.name, result, is_error=is_error)
        )
