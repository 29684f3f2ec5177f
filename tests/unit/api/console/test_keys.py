"""Pages of keys and the wallet: secrets are shown once, and money as the ledger has it."""

from __future__ import annotations

import re

from tests.support.api_facts import CALL_SID, ENDED_SID, MESSAGING_KEY, READER_KEY
from tests.support.console_stage import Person, sign_in
from tests.unit.api.client import Client
from tests.unit.api.console.test_numbers import text_of

KEYS = "/console/keys"
SECRET = re.compile(r'aria-label="The secret"><code>([^<]+)</code>')


async def test_a_new_key_is_shown_once_and_opens_its_scopes(person: Person, web: Client) -> None:
    form = {"name": "CI", "service": "platform", "scope:numbers.read": "1", "scope:keys.read": "1"}
    page = text_of(await person.post(f"{KEYS}/create", form))
    found = SECRET.search(page)
    assert found is not None and found[1].startswith("vp_")
    assert found[1] not in text_of(await person.get(KEYS))
    other = await sign_in(web, found[1])
    assert (await other.get("/console/numbers")).status == 200
    assert (await other.get("/console/wallet")).status == 403
    assert "/rotate" not in text_of(await other.get(KEYS))


async def test_a_key_is_rotated_and_revoked(person: Person, web: Client) -> None:
    form = {"name": "CI", "service": "platform", "scope:numbers.read": "1"}
    await person.post(f"{KEYS}/create", form)
    row = re.search(r"/console/keys/([0-9a-f-]{36})/rotate", text_of(await person.get(KEYS)))
    assert row is not None
    found = SECRET.search(text_of(await person.post(f"{KEYS}/{row[1]}/rotate")))
    assert found is not None
    renewed = await sign_in(web, found[1])
    page = text_of(await person.get(KEYS))
    for key_id in set(re.findall(r"/console/keys/([0-9a-f-]{36})/revoke", page)):
        assert (await person.post(f"{KEYS}/{key_id}/revoke")).status == 303
    assert (await renewed.get("/console/numbers")).status == 303


async def test_wrong_scopes_are_named_and_kept_chosen(person: Person) -> None:
    form = {"name": "<b>", "service": "messaging", "scope:calls.read": "1"}
    page = text_of(await person.post(f"{KEYS}/create", form), 400)
    assert 'class="hint wrong"' in page and 'value="&lt;b&gt;"' in page
    assert re.search(r'name="scope:calls.read" value="1" checked', page)
    assert SECRET.search(page) is None


async def test_no_key_makes_one_that_opens_more(web: Client) -> None:
    reader = await sign_in(web, READER_KEY)
    assert (await reader.post(f"{KEYS}/create", {"name": "x", "service": "all"})).status == 403


async def test_the_secret_of_webhooks_is_renewed_and_shown_once(person: Person) -> None:
    page = text_of(await person.post(f"{KEYS}/webhook-secret", {"overlap_seconds": "60"}))
    found = SECRET.search(page)
    assert found is not None and found[1] not in text_of(await person.get(KEYS))
    wrong = text_of(await person.post(f"{KEYS}/webhook-secret", {"overlap_seconds": "soon"}), 400)
    assert 'id="secret-overlap_seconds-hint"' in wrong


async def test_the_wallet_shows_the_ledger(person: Person) -> None:
    page = text_of(await person.get("/console/wallet"))
    assert "\u20b91,000.50" in page and "\u20b9-0.60" in page and "\u20b93.00" in page
    assert f"/console/calls/{ENDED_SID}" in page and CALL_SID not in page
    charged = text_of(await person.get("/console/wallet?kind=top_up"))
    assert "pay-1" in charged and ENDED_SID not in charged
    assert "must" in text_of(await person.get("/console/wallet?start_date=soon"), 400)


async def test_a_key_of_another_service_is_told_so(web: Client) -> None:
    writer = await sign_in(web, MESSAGING_KEY)
    assert "for the service messaging" in text_of(await writer.get("/console/wallet"), 403)
