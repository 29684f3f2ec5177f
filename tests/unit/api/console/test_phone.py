"""The telephone of the console: its page, and the tokens that its script gets."""

from __future__ import annotations

import json

from callcontrol.webrtc.tokens import TOKEN_PREFIX
from tests.support.api_facts import NUMBER, READER_KEY
from tests.support.console_stage import OURS, Person, send_form, sign_in
from tests.unit.api.client import Client
from tests.unit.api.console.test_numbers import text_of

PAGE = "/console/phone"
TOKEN = f"{PAGE}/token"


async def test_the_page_offers_the_numbers_of_the_account(person: Person) -> None:
    page = text_of(await person.get(f"{PAGE}?to=%22%3E%3Cscript%3E"))
    assert f'<option value="{NUMBER}"' in page and "+919800000001" in page
    assert 'value="&#34;&gt;&lt;script&gt;"' in page


async def test_the_script_gets_a_token_of_the_session_s_key(person: Person) -> None:
    answer = await person.post(TOKEN, {"identity": "asha", "from": NUMBER})
    assert answer.status == 200 and answer.headers["Cache-Control"] == "no-store"
    made = json.loads(answer.body)
    assert made["token"].startswith(TOKEN_PREFIX) and (made["identity"], made["from"]) == ("asha", NUMBER)
    assert (made["may_call"], made["receives_calls"], made["ice_servers"]) == (["*"], True, [])


async def test_wrong_names_are_told_to_the_script(person: Person) -> None:
    answer = await person.post(TOKEN, {"identity": "1 x", "from": "y"})
    assert answer.status == 400
    assert set(json.loads(answer.body)["errors"]) == {"identity", "from"}


async def test_only_a_page_of_the_session_gets_a_token(person: Person, web: Client) -> None:
    cookie = {"Cookie": f"trunkline_console={person.cookie}"}
    without = await send_form(web, TOKEN, {"identity": "asha"}, {**OURS, **cookie})
    assert without.status == 403 and TOKEN_PREFIX.encode() not in without.body
    nobody = await send_form(web, TOKEN, {"identity": "asha"}, OURS)
    assert nobody.status == 401


async def test_a_key_that_calls_nobody_has_no_telephone(web: Client) -> None:
    reader = await sign_in(web, READER_KEY)
    assert (await reader.get(PAGE)).status == 403
    assert (await reader.post(TOKEN, {"identity": "asha"})).status == 403
