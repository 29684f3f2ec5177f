"""Pages of numbers, keys and the wallet: what they show, do and refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

import pytest

from api.schemas.model import ModelFields
from api.schemas.numbers import InboundBinding
from callcontrol.models.numbers import InboundTarget
from tests.support.api_facts import ACCOUNT, NOWHERE, NUMBER, NUMBER_ID, READER_KEY
from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, sign_in
from tests.unit.api.client import Answer, Client
from tests.unit.api.test_dids import LISTING

NUMBERS = "/console/numbers"
ONE = f"{NUMBERS}/{NUMBER_ID}"
STREAM = {"target": "media_stream", "stream_url": "wss://bot.example.com/ws"}


def text_of(answer: Answer, status: int = 200) -> str:
    """Page of a response of this status."""
    page = answer.body.decode()
    assert answer.status == status, page
    return page


async def test_numbers_are_listed_and_lead_to_their_pages(person: Person) -> None:
    page = text_of(await person.get(NUMBERS))
    assert f'href="{ONE}"' in page and NUMBER in page and "Front desk" in page
    assert NUMBER not in text_of(await person.get(f"{NUMBERS}?status=released"))
    assert "must" in text_of(await person.get(f"{NUMBERS}?region=9111"), 400)


async def test_a_number_is_labelled_bound_and_unbound(person: Person, stage: ApiStage) -> None:
    done = await person.post(f"{ONE}/label", {"friendly_name": "Desk <2>"})
    assert (done.status, done.headers["Location"]) == (303, f"{ONE}?done=labelled")
    assert "Desk &lt;2&gt;" in text_of(await person.get(ONE))
    done = await person.post(f"{ONE}/bind", STREAM)
    assert (done.status, done.headers["Location"]) == (303, f"{ONE}?done=bound"), done.body.decode()
    assert "media_stream" in text_of(await person.get(ONE))
    assert (await person.post(f"{ONE}/unbind")).status == 303


async def test_a_wrong_field_is_named_beside_it_in_the_words_of_the_api(person: Person) -> None:
    page = text_of(await person.post(f"{ONE}/bind", {**STREAM, "stream_url": "ftp://x"}), 400)
    hint = re.search(r'class="hint wrong" id="bind-stream_url-hint">([^<]+)<', page)
    assert hint is not None and "ws" in hint[1]
    assert 'value="ftp://x"' in page and 'aria-invalid="true"' in page


async def test_a_number_of_nobody_is_not_there(person: Person) -> None:
    assert "Not here" in text_of(await person.get(f"{NUMBERS}/{NOWHERE}"), 404)
    assert (await person.post(f"{NUMBERS}/{NOWHERE}/unbind")).status == 404
    assert (await person.get(f"{NUMBERS}/no-uuid")).status == 404


async def test_a_number_is_bought_at_the_price_that_was_shown(person: Person, stage: ApiStage) -> None:
    stage.inventory.listings = {"did_1": LISTING}
    page = text_of(await person.get(f"{NUMBERS}/buy"))
    fields = dict(re.findall(r'name="(live_ref|months|acknowledged_total)" value="([^"]+)"', page))
    bought = await person.post(f"{NUMBERS}/buy", fields)
    assert bought.status == 303, bought.body.decode()
    assert "The number is yours" in text_of(await person.get(bought.headers["Location"]))
    gone = await person.post(f"{NUMBERS}/buy", fields)
    assert gone.status == 409 and 'role="alert"' in gone.body.decode()


async def test_a_number_is_released(person: Person) -> None:
    released = await person.post(f"{ONE}/release")
    assert (released.status, released.headers["Location"]) == (303, f"{NUMBERS}?done=released")
    assert (await person.get(ONE)).status == 404


async def test_without_a_sandbox_a_call_from_it_is_refused_in_words(person: Person) -> None:
    page = text_of(await person.post(f"{ONE}/call", {"hangup_after_seconds": "x"}), 400)
    assert 'id="call-hangup_after_seconds-hint"' in page


async def test_a_key_without_the_scope_changes_nothing(web: Client) -> None:
    reader = await sign_in(web, READER_KEY)
    for path in (f"{ONE}/label", f"{ONE}/bind", f"{ONE}/release", f"{NUMBERS}/buy"):
        refused = await reader.post(path, {"friendly_name": "x"})
        assert refused.status == 403, path
        assert "lacks the scope numbers.write" in refused.body.decode()


@pytest.mark.parametrize("path", [NUMBERS, "/console/keys", "/console/wallet"])
async def test_what_the_key_may_not_see_is_not_in_its_navigation(web: Client, path: str) -> None:
    reader = await sign_in(web, READER_KEY)
    page = (await reader.get("/console/no-such-page")).body.decode()
    answer = await reader.get(path)
    assert (f'href="{path}"' in page) == (answer.status == 200)


BINDINGS: Mapping[str, Mapping[str, str]] = {
    "media_stream": {
        "stream_url": "wss://bot.example.com/ws",
        "custom_parameters": '{"tier": "gold"}',
        "stream_auth": '{"type": "bearer", "token": "t0"}',
        "stream_max_retries": "2",
    },
    "model": {
        "model_provider": "openai",
        "model_model": "gpt-realtime",
        "model_api_key": "sk-1",
        "record": "true",
    },
    "forward": {"forward_to": "+919812345678", "timeout": "20"},
    "browser": {"identity": "desk-1", "timeout": "25"},
    "webhook": {"webhook_url": "https://hooks.example.com/call", "webhook_format": "form"},
    "voice_agent": {"agent_id": NOWHERE},
    "missed_call": {"timeout": "10"},
    "masking": {"language": "hi"},
}


async def test_every_target_of_the_api_is_offered_with_its_fields(person: Person) -> None:
    page = text_of(await person.get(ONE))
    select = re.search(r'<select id="bind-target".*?</select>', page, re.DOTALL)
    assert select is not None
    assert set(re.findall(r'value="([^"]+)"', select[0])) == set(get_args(InboundTarget)) == set(BINDINGS)
    form = page[page.index('id="bind-heading"') :]
    named = set(re.findall(r'name="([a-z_]+)"', form[: form.index("</form>")])) - {"csrf", "form"}
    parts = {f"model_{part}" for part in ModelFields.model_fields}
    assert named == (set(InboundBinding.model_fields) - {"model"}) | parts
    # A script shows the fields of the target that is chosen.
    assert re.search(r'data-of="browser">\s*<label for="bind-identity"', page)
    assert re.search(r'data-of="model">\s*<label for="bind-model_voice"', page)


@pytest.mark.parametrize("target", BINDINGS)
async def test_a_number_is_bound_to_each_target(person: Person, stage: ApiStage, target: str) -> None:
    given = {**BINDINGS[target], "target": target, "identity": BINDINGS[target].get("identity", "")}
    if target == "voice_agent":
        agent = await stage.services.storage.agents.create(ACCOUNT, {"name": "Desk"})
        given["agent_id"] = agent.agent_id
    done = await person.post(f"{ONE}/bind", given)
    assert done.status == 303, done.body.decode()
    found = await stage.services.storage.numbers.get(ACCOUNT, NUMBER_ID)
    assert found.binding is not None and found.binding.target == target
    stored = found.binding.to_json()
    match target:
        case "model":
            assert stored["model"]["model"] == "gpt-realtime" and stored["record"] is True
            assert "sk-1" not in text_of(await person.get(ONE))
        case "media_stream":
            assert stored["custom_parameters"] == {"tier": "gold"} and stored["stream_max_retries"] == 2
        case "voice_agent":
            # The agent is in the workspace of its account.
            assert stored["workspace_id"] == ACCOUNT
        case "browser":
            assert (stored["identity"], stored["timeout_s"]) == ("desk-1", 25)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"target": "browser", "identity": "1 bad"}, "identity"),
        ({"target": "browser"}, "identity"),
        ({"target": "browser", "identity": "a", "timeout": "soon"}, "timeout"),
        ({"target": "model"}, "model_provider"),
        ({"target": "model", "model_provider": "openai"}, "model_model"),
        ({"target": "model", "model_provider": "nobody", "model_model": "m"}, "model_provider"),
        (
            {"target": "media_stream", "stream_url": "wss://a.example/", "custom_parameters": "{"},
            "custom_parameters",
        ),
        ({"target": "forward", "forward_to": "<b>"}, "forward_to"),
        ({"target": "voice_agent", "agent_id": NOWHERE}, "agent_id"),
        ({"target": "missed_call", "timeout": "90"}, "timeout"),
        ({"target": "webhook", "webhook_url": "https://a.example/", "identity": "x"}, "identity"),
    ],
)
async def test_a_wrong_field_of_each_target_is_named_beside_it(
    person: Person, given: Mapping[str, str], field: str
) -> None:
    page = text_of(await person.post(f"{ONE}/bind", given), 400)
    assert f'class="hint wrong" id="bind-{field}-hint"' in page, re.findall(r'hint wrong" id="([^"]+)', page)


@pytest.mark.parametrize(
    ("path", "given", "secret"),
    [
        (f"{ONE}/bind", {"form": "bind", "target": "model", "identity": "kept"}, "model_api_key"),
        (f"{ONE}/bind", {"form": "bind", "target": "media_stream", "identity": "kept"}, "stream_auth"),
        ("/console/trunks", {"form": "create", "name": "", "register_username": "kept"}, "register_password"),
        ("/console/webhooks", {"form": "create", "product": "calls", "url": "kept"}, "secret"),
    ],
)
async def test_a_refused_form_does_not_show_a_secret_again(
    person: Person, path: str, given: Mapping[str, str], secret: str
) -> None:
    page = text_of(await person.post(path, {**given, secret: "hunter22"}), 400)
    assert f'name="{secret}"' in page and "hunter22" not in page
    # All else is there to be mended.
    assert 'value="kept"' in page
