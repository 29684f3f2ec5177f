"""The page of the first call: what it offers depends on the server."""

from __future__ import annotations

from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, console_client, sign_in
from tests.unit.api.console.test_numbers import text_of

FIRST = "/console/first"
ECHO = "ws://127.0.0.1:40123/echo"


async def test_without_the_sandbox_there_is_no_echo_agent(person: Person) -> None:
    page = text_of(await person.get(f"{FIRST}?does=echo"))
    assert 'name="does" value="echo"' not in page
    assert 'name="does" value="prompt" checked' in page
    refused = text_of(await person.post(FIRST, {"to": "+919800000002", "does": "echo"}), 404)
    assert "no echo agent" in refused


async def test_the_echo_agent_is_offered_with_the_request_that_does_the_same(stage: ApiStage) -> None:
    async with console_client(stage, echo_url=ECHO) as web:
        person = await sign_in(web)
        page = text_of(await person.get(f"{FIRST}?does=echo"))
    assert 'name="does" value="echo" checked' in page
    assert f"stream_url&#34;: &#34;{ECHO}" in page
