"""The Model Context Protocol as its official client speaks it, in both generations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError

from api.mcp.engine import MAX_PAGE_CHARS, PAGE_SIZE
from callcontrol.errors import FieldError, InsufficientBalance, ToolFailed, ValidationFailed
from callcontrol.tools.models import ToolAnnotations
from tests.support.mcp_stage import McpStage, mcp_stage, tool
from tests.support.phone import PATIENCE_S
from tests.support.waiting import look_again

GENERATIONS = pytest.mark.parametrize("mode", ["legacy", "auto"])


@pytest.fixture
async def stage() -> AsyncIterator[McpStage]:
    async with mcp_stage() as running:
        running.tools.add(tool("echo"), _echo)
        yield running


async def _echo(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"echo": dict(arguments)}


def _fails(error: Exception) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    async def use(_: Mapping[str, Any]) -> Any:
        raise error

    return use


class Slow:
    """A tool that takes as long as the test wants."""

    def __init__(self) -> None:
        self.began, self.may_end = asyncio.Event(), asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def __call__(self, _: Mapping[str, Any]) -> str:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        return "done at last"


def _text(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@GENERATIONS
async def test_tools_are_listed_and_called(stage: McpStage, mode: str) -> None:
    hints = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    described = tool("look_up", title="Look up", description="Looks things up.", annotations=hints)
    stage.tools.add(described, _echo)
    async with stage.client(mode) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is True
        assert client.server_info is not None and client.server_info.name == "trunkline"
        listed = (await client.list_tools()).tools
        assert [one.name for one in listed] == ["echo", "look_up"]
        assert (listed[1].title, listed[1].description) == ("Look up", "Looks things up.")
        shown = listed[1].annotations
        assert shown is not None and shown.read_only_hint and not shown.destructive_hint
        called = await client.call_tool("look_up", {"name": "Asha"})
        assert called.structured_content == {"echo": {"name": "Asha"}} and not called.is_error
        assert '"Asha"' in _text(called)


@GENERATIONS
async def test_a_long_list_comes_in_pages(stage: McpStage, mode: str) -> None:
    for number in range(PAGE_SIZE + 3):
        stage.tools.add(tool(f"number_{number:03}"), _echo)
    async with stage.client(mode) as client:
        first = await client.list_tools(cache_mode="bypass")
        assert len(first.tools) == PAGE_SIZE and first.next_cursor is not None
        # What was shown last goes meanwhile: the next page neither repeats nor skips any.
        del stage.tools.known[first.tools[-1].name]
        second = await client.list_tools(cursor=first.next_cursor, cache_mode="bypass")
        assert second.next_cursor is None
        names = [one.name for one in (*first.tools, *second.tools)]
        assert len(names) == len(set(names)) == PAGE_SIZE + 4


async def test_long_descriptions_make_short_pages(stage: McpStage) -> None:
    for number in range(4):
        long = tool(f"number_{number}", description="d" * (MAX_PAGE_CHARS // 3))
        stage.tools.add(long, _echo)
    stage.tools.add(tool("number_4", description="d" * (MAX_PAGE_CHARS + 1)), _echo)
    pages: list[list[str]] = []
    cursor: str | None = None
    async with stage.client() as client:
        while not pages or cursor is not None:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            pages.append([one.name for one in page.tools])
            cursor = page.next_cursor
    assert pages == [["echo", "number_0", "number_1"], ["number_2", "number_3"], ["number_4"]]


@GENERATIONS
async def test_what_is_wrong_is_told_to_the_model(stage: McpStage, mode: str) -> None:
    stage.tools.add(tool("invalid"), _fails(ValidationFailed([FieldError("arguments.to", "is required")])))
    stage.tools.add(tool("poor"), _fails(InsufficientBalance("Top up the wallet.", details={"needed": 3})))
    stage.tools.add(tool("broken"), _fails(ToolFailed("The server of the tool answered 500.")))
    async with stage.client(mode) as client:
        for name, text in (
            ("invalid", "VALIDATION_ERROR: arguments.to: is required"),
            ("poor", "INSUFFICIENT_BALANCE: Top up the wallet."),
            ("broken", "TOOL_FAILED: The server of the tool answered 500."),
        ):
            result = await client.call_tool(name)
            assert result.is_error and _text(result).rstrip(".") == text.rstrip("."), result
        result = await client.call_tool("poor")
        assert result.structured_content["error"]["details"] == {"needed": 3}


@GENERATIONS
async def test_what_is_no_tool_and_what_nobody_foresaw(
    stage: McpStage, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage.tools.add(tool("defective"), _fails(RuntimeError("a secret of the inside")))
    async with stage.client(mode) as client:
        with pytest.raises(MCPError, match="Unknown tool: nothing") as unknown:
            await client.call_tool("nothing")
        assert unknown.value.code == types.INVALID_PARAMS
        with pytest.raises(MCPError) as failed:
            await client.call_tool("defective")
        assert failed.value.code == types.INTERNAL_ERROR and "secret" not in failed.value.message
        assert "a secret of the inside" in caplog.text
        assert (await client.call_tool("echo")).structured_content == {"echo": {}}


@GENERATIONS
async def test_a_call_that_takes_long_tells_of_its_progress(stage: McpStage, mode: str) -> None:
    slow, told = Slow(), list[float]()
    stage.tools.add(tool("slow"), slow)

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        slow.may_end.set()

    async with stage.client(mode) as client:
        result = await client.call_tool("slow", progress_callback=hear)
        assert _text(result) == "done at last" and told[0] == 1.0


@GENERATIONS
async def test_a_call_that_is_cancelled_ends(stage: McpStage, mode: str) -> None:
    slow = Slow()
    stage.tools.add(tool("slow"), slow)
    async with stage.client(mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "slow")
            await asyncio.wait_for(slow.began.wait(), PATIENCE_S)
            group.cancel_scope.cancel()
        await asyncio.wait_for(slow.was_cancelled.wait(), PATIENCE_S)
        assert (await client.call_tool("echo", {"a": 1})).structured_content == {"echo": {"a": 1}}


async def test_a_session_hears_that_tools_have_changed(stage: McpStage) -> None:
    heard = asyncio.Event()

    async def listen(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    async with stage.session(message_handler=listen) as session:
        stage.tools.add(tool("new"), _echo)
        async with asyncio.timeout(PATIENCE_S):
            # Its stream may be open a moment later than the session.
            while not heard.is_set():
                stage.tools.change("of another account")
                stage.tools.change()
                await look_again()
        assert [one.name for one in (await session.list_tools()).tools] == ["echo", "new"]


async def test_who_listens_hears_that_tools_have_changed(stage: McpStage) -> None:
    async with stage.client("auto") as client:
        async with client.listen(tools_list_changed=True) as changes:
            stage.tools.change("of another account")
            stage.tools.add(tool("new"), _echo)
            stage.tools.change()
            async with asyncio.timeout(PATIENCE_S):
                await anext(aiter(changes))
        assert len((await client.list_tools(cache_mode="bypass")).tools) == 2


async def test_sessions_side_by_side_do_not_hold_each_other_up(stage: McpStage) -> None:
    slow = Slow()
    stage.tools.add(tool("slow"), slow)
    async with stage.session() as first, stage.session() as second:
        waiting = asyncio.create_task(first.call_tool("slow"))
        await asyncio.wait_for(slow.began.wait(), PATIENCE_S)
        # Neither another session, nor another request of the same.
        for session in (second, first):
            called = await session.call_tool("echo", {"a": 1})
            assert isinstance(called, types.CallToolResult) and called.structured_content == {
                "echo": {"a": 1}
            }
        await second.send_ping()
        slow.may_end.set()
        ended = await asyncio.wait_for(waiting, PATIENCE_S)
        assert isinstance(ended, types.CallToolResult) and _text(ended) == "done at last"


async def test_the_end_waits_for_what_is_being_answered(stage: McpStage) -> None:
    slow = Slow()
    stage.tools.add(tool("slow"), slow)
    async with stage.session() as session:
        await session.list_tools()
        calling = asyncio.create_task(session.call_tool("slow"))
        await asyncio.wait_for(slow.began.wait(), PATIENCE_S)
        closing = asyncio.create_task(stage.gateway.close())
        await asyncio.sleep(0)
        slow.may_end.set()
        ended = await asyncio.wait_for(calling, PATIENCE_S)
        assert isinstance(ended, types.CallToolResult) and _text(ended) == "done at last"
        await asyncio.wait_for(closing, PATIENCE_S)
        with pytest.raises(MCPError):
            await session.send_ping()
