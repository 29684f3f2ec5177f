"""The client for Python against a running server, and every block of its README."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.clients.waiting import PATIENCE_S
from tests.acceptance.clients.webhooks import Receiver
from tests.acceptance.pages import Block, blocks
from tests.acceptance.stage import Customer
from tests.support.ports import free_port
from tests.support.server_process import ServerProcess
from tests.test_layering import ROOT
from trunkline_client import (
    AsyncClient,
    BadRequest,
    Client,
    Conflict,
    NotFound,
    Unauthorized,
    WebhookInvalid,
    verify_webhook,
)
from trunkline_client.agent import AgentCall, Audio, Digit, Stopped, serve_agent
from trunkline_client.audio import level, tone

CALLER: Final = "+918047000001"
ECHO, BUSY, DIGITS, LISTENS = "+919800000001", "+919800000003", "+919800000006", "+919800000009"
README: Final = ROOT / "clients" / "python" / "README.md"
BLOCKS: Final = [block for block in blocks(README) if block.language == "python"]


@pytest.fixture
def demo_key(server: ServerProcess) -> str:
    """Key of the account with a number that a first start makes."""
    return server.first_key()


@pytest.fixture
async def client(server: ServerProcess, demo_key: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(demo_key, base_url=server.url) as ready:
        yield ready


def environment(server: ServerProcess, key: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")}
    return {**kept, "TRUNKLINE_BASE": server.url, "TRUNKLINE_KEY": key, "PYTHONPATH": str(README.parent)}


def test_all_blocks_are_python() -> None:
    assert len(BLOCKS) == len(list(blocks(README))) >= 6


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.section)
async def test_a_block_of_the_readme_runs(
    block: Block, server: ServerProcess, demo_key: str, client: AsyncClient, tmp_path: Path
) -> None:
    port = free_port()
    program = tmp_path / "block.py"
    program.write_text(block.text.replace("port=9000", f"port={port}"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error::SyntaxWarning", program),
        env=environment(server, demo_key),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        if "run_agent" in block.text:
            assert process.stdout is not None
            assert b"listening" in await process.stdout.readline()
            call = await client.calls.create(from_=CALLER, to=DIGITS, stream_url=f"ws://127.0.0.1:{port}")
            assert (await call.wait(0.1)).hangup_source == "stream"
            process.terminate()
            out, errors = await process.communicate()
        else:
            out, errors = await process.communicate()
            assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors, errors.decode()
    assert out or block.section == "Audio"


async def test_a_call_is_followed_to_its_end_and_told_by_signed_webhooks(
    client: AsyncClient, receiver: Receiver
) -> None:
    secret = (await client.account.rotate_webhook_secret(overlap_seconds=0)).webhook_secret
    call = await client.calls.create(
        from_=CALLER,
        to=ECHO,
        verbs=[{"verb": "say", "text": "Hello."}],
        status_webhook_url=receiver.url("/status"),
        tag="client",
    )
    seen = [event async for event in call.events(0.1)]
    names = [event.name for event in seen]
    assert names == ["call.initiated", "call.ringing", "call.answered", "call.completed"]
    assert seen[-1].call.status == "completed" and seen[-1].call.tag == "client"
    received = await receiver.event("call.completed", "/status")
    event = verify_webhook(received.headers, received.body, secret)
    assert (event.name, event.data["call_sid"]) == ("call.completed", call.sid)
    with pytest.raises(WebhookInvalid):
        verify_webhook(received.headers, received.body, "another secret")


async def test_a_call_is_changed_while_it_goes_on(client: AsyncClient) -> None:
    call = await client.calls.create(from_=CALLER, to=LISTENS, verbs=[{"verb": "pause", "length": 60}])
    async for event in call.events(0.1):
        if event.name == "call.answered":
            await call.update(time_limit=50)
            assert (await call.hangup()).sid == call.sid
    ended = await call.refresh()
    assert (ended.status, ended.hangup_source) == ("completed", "api")
    with pytest.raises(Conflict) as refused:
        await call.hangup()
    assert refused.value.code == "CALL_ENDED"


async def test_an_agent_plays_hears_and_hangs_up(client: AsyncClient) -> None:
    secret = (await client.streams.rotate_secret(overlap_sec=0)).stream_secret
    heard: list[str | int] = []
    port = free_port()

    async def answer(call: AgentCall) -> None:
        await call.play(tone(440, 0.5, call.sample_rate))
        loudest = 0
        async for event in call:
            match event:
                case Audio(pcm=pcm):
                    loudest = max(loudest, level(pcm))
                    if loudest > 1000:
                        await call.hangup()
                case Stopped(detail=detail):
                    heard.extend([loudest, detail])

    public_url = f"ws://127.0.0.1:{port}"
    async with serve_agent(answer, port, secret=secret, public_url=public_url):
        call = await client.calls.create(
            from_=CALLER, to=ECHO, stream_url=f"{public_url}/ws", custom_parameters={"a": "b"}
        )
        ended = await call.wait(0.1)
    loudest, detail = heard
    assert isinstance(loudest, int) and loudest > 1000 and detail == "stream_hangup"
    assert (ended.status, ended.hangup_source) == ("completed", "stream")


async def test_an_agent_refuses_a_handshake_that_another_secret_signed(client: AsyncClient) -> None:
    port = free_port()

    async def answer(call: AgentCall) -> None:
        raise AssertionError("it was let in")

    public_url = f"ws://127.0.0.1:{port}"
    async with serve_agent(answer, port, secret="another", public_url=public_url):
        call = await client.calls.create(from_=CALLER, to=DIGITS, stream_url=public_url)
        assert (await call.wait(0.1)).status == "failed" or (await call.refresh()).hangup_source != "stream"


async def test_digits_reach_the_agent(client: AsyncClient) -> None:
    digits: list[str] = []
    port = free_port()

    async def answer(call: AgentCall) -> None:
        async for event in call:
            if isinstance(event, Digit):
                digits.append(event.digit)
                if event.digit == "#":
                    await call.hangup()

    async with serve_agent(answer, port):
        call = await client.calls.create(from_=CALLER, to=DIGITS, stream_url=f"ws://127.0.0.1:{port}")
        await call.wait(0.1)
    assert digits == ["1", "2", "3", "#"]


def test_lists_are_read_whole_by_small_pages(server: ServerProcess, demo_key: str) -> None:
    with Client(demo_key, base_url=server.url) as client:
        made = {
            client.calls.create(from_=CALLER, to=BUSY, verbs=[{"verb": "hangup"}]).wait(0.1).sid
            for _ in range(3)
        }
        busy = client.calls.list(status="busy", per_page=1)
        found = [call.sid for call in busy]
        assert made <= set(found) and len(found) == len(set(found)) == busy.total()
        assert len(busy.first()) == 1
        entries = [entry.id for entry in client.wallet.list_ledger(per_page=2)]
        assert entries == sorted(entries, reverse=True)
        assert [number.number for number in client.numbers.list(per_page=1)] == [CALLER]


async def test_every_list_and_setting_can_be_read(client: AsyncClient) -> None:
    """Each answer is of the form that its generated model has."""
    for pages in (
        *(client.applications.list(), client.trunks.list_carriers(), client.trunks.list_numbers()),
        *(client.agents.list(), client.otp.list(), client.masking.list_masked_calls(), client.keys.list()),
        *(
            client.contacts.list(),
            client.contact_lists.list(),
            client.campaigns.list(),
            client.messages.list(),
        ),
        *(client.templates.list(), client.assistant.list_calls(), client.trunks.list_call_logs()),
        client.numbers.search_dids(),
    ):
        await pages.first()
    assert await client.tools.list()
    for whole in (client.subscriptions, client.webhook_endpoints, client.assistant_webhooks, client.app_keys):
        assert isinstance(await whole.list(), list)
    await client.assistant_keys.list()
    await client.managed_tools.list()
    account = await client.account.get()
    assert account.key.service == "all"
    assert (await client.wallet.get()).currency == "INR"
    assert (await client.masking.get_settings()).model_extra == {}
    assert (await client.streams.get_settings()).model_extra == {}
    assert (await client.templates.get_channel()).model_extra == {}
    await client.otp.stats()
    await client.assistant.get_analytics()
    await client.tool_usage.get()


async def test_objects_are_created_changed_and_deleted(client: AsyncClient) -> None:
    contact = await client.contacts.create(firstName="Asha", phoneNumber="+919811100001")
    changed = await client.contacts.update(contact.id, lastName="K")
    assert (changed.id, changed.firstName, changed.lastName) == (contact.id, "Asha", "K")
    assert (await client.contacts.delete(contact.id)).deleted is True
    numbers = await client.numbers.list().first()
    wiring = await client.numbers.bind(numbers[0].id, target="missed_call", force=True)
    assert wiring.number == CALLER
    await client.numbers.unbind(numbers[0].id)


async def test_refusals_are_errors_with_their_fields(
    client: AsyncClient, server: ServerProcess, customer: Customer
) -> None:
    with pytest.raises(NotFound) as missing:
        await client.calls.get("00000000-0000-4000-8000-000000000000")
    assert missing.value.code == "NOT_FOUND" and missing.value.request_id
    without_text: Any = [{"verb": "say"}]
    with pytest.raises(BadRequest) as wrong:
        await client.calls.create(from_=CALLER, to="nobody", verbs=without_text)
    assert {field.field for field in wrong.value.fields} == {"to", "verbs[0].text"}
    async with AsyncClient("vk_none", base_url=server.url) as nobody:
        with pytest.raises(Unauthorized):
            await nobody.wallet.get()
    async with AsyncClient(customer.key, base_url=server.url) as platform:
        assert (await platform.account.get()).account_sid == customer.account_sid
