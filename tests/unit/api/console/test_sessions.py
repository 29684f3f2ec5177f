"""Sessions of the console: sign-in, links, forms and their ends."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from urllib.parse import quote_plus

import pytest
import sqlalchemy as sa

from api.console.page import all_pages
from api.console.rendering import POLICY, texts_of
from callcontrol.accounts.aio.sessions import MAX_SESSIONS, SESSION_LIFE
from callcontrol.aio.tokens import new_id
from callcontrol.calls.records.store import calls
from callcontrol.database.tables.accounts import console_sessions
from callcontrol.models import CallStatus, Quality
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    CARRIER_SID,
    KEY,
    MESSAGING_KEY,
    OTHER_CALL_SID,
    READER_KEY,
    REVOKED_KEY,
    call,
)
from tests.support.api_stage import ApiStage
from tests.support.console_stage import (
    OURS,
    Person,
    console_client,
    cookie_of,
    follow_link,
    send_form,
    sign_in,
)
from tests.unit.api.client import Client

CALLS = "/console/calls"
KEY_ID = f"key-{KEY}"


async def test_nobody_sees_a_page_without_signing_in(web: Client) -> None:
    answer = await web.get(f"{CALLS}?text=98", key=None)
    assert (answer.status, answer.headers["Location"]) == (
        303,
        "/console/sign-in?next=%2Fconsole%2Fcalls%3Ftext%3D98",
    )
    # An API key in a header opens no page.
    assert (await web.get(CALLS)).status == 303


async def test_the_root_leads_to_the_console(web: Client) -> None:
    answer = await web.get("/", key=None)
    assert (answer.status, answer.headers["Location"]) == (302, "/console")


async def test_a_session_is_kept_in_a_cookie_that_no_script_and_no_other_site_has(web: Client) -> None:
    answer = await send_form(web, "/console/sign-in", {"key": KEY}, OURS)
    _, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/console"} <= set(attributes)
    assert "Secure" not in attributes
    assert (await Person(web, cookie_of(answer)).get(CALLS)).status == 200


async def test_behind_https_the_cookie_is_secure(stage: ApiStage) -> None:
    async with console_client(stage, public_url="https://voice.example.com") as web:
        answer = await send_form(web, "/console/sign-in", {"key": KEY}, OURS)
    assert "Secure" in answer.headers["Set-Cookie"].split("; ")


@pytest.mark.parametrize("key", ["", "secret", REVOKED_KEY, "vp_" + "x" * 43])
async def test_a_wrong_key_opens_nothing(web: Client, key: str) -> None:
    answer = await send_form(web, "/console/sign-in", {"key": key}, OURS)
    assert answer.status == 401
    assert "Set-Cookie" not in answer.headers
    assert not key or key not in answer.body.decode()


async def test_sign_in_is_limited_in_rate(web: Client) -> None:
    for _ in range(10):
        wrong = await send_form(web, "/console/sign-in", {"key": "no"}, OURS, "192.0.2.9")
        assert wrong.status == 401
    refused = await send_form(web, "/console/sign-in", {"key": KEY}, OURS, "192.0.2.9")
    assert refused.status == 429
    other = await send_form(web, "/console/sign-in", {"key": KEY}, OURS, "192.0.2.10")
    assert other.status == 200


async def test_a_link_signs_in_once(web: Client, stage: ApiStage) -> None:
    token = await stage.storage.console_sessions.make_link(KEY_ID)
    # Programs that show what a link leads to do not use it up.
    for _ in range(2):
        await web.request("HEAD", f"/console/sign-in?token={token}", key=None)
        assert "Set-Cookie" not in (await web.get(f"/console/sign-in?token={token}", key=None)).headers
    foreign = await send_form(
        web, "/console/sign-in/link", {"token": token}, {"Sec-Fetch-Site": "cross-site"}
    )
    assert foreign.status == 403
    first = await follow_link(web, token)
    assert first.status == 200
    assert (await Person(web, cookie_of(first)).get(CALLS)).status == 200
    second = await follow_link(web, token)
    assert second.status == 401
    assert "Set-Cookie" not in second.headers


async def test_a_link_ends_after_its_time_and_is_no_session(web: Client, stage: ApiStage) -> None:
    token = await stage.storage.console_sessions.make_link(KEY_ID)
    assert (await Person(web, token).get(CALLS)).status == 303
    await move_back(stage, timedelta(minutes=10))
    assert (await follow_link(web, token)).status == 401


async def test_a_link_of_a_revoked_key_opens_nothing(web: Client, stage: ApiStage) -> None:
    token = await stage.storage.console_sessions.make_link("revoked")
    assert (await follow_link(web, token)).status == 401


async def test_only_hashes_are_stored(person: Person, stage: ApiStage) -> None:
    rows = await stage.write(lambda connection: connection.execute(sa.select(console_sessions)).all())
    assert len(rows) == 1
    assert person.cookie not in str(rows)


async def test_signing_out_ends_the_session(person: Person) -> None:
    answer = await person.post("/console/sign-out")
    assert (answer.status, answer.headers["Location"]) == (303, "/console/sign-in")
    assert cookie_of(answer) in ("", '""')
    assert all("Max-Age=0" in line for line in answer.headers.getall("Set-Cookie"))
    assert (await person.get(CALLS)).status == 303


async def test_revoking_the_key_ends_the_session(person: Person, stage: ApiStage) -> None:
    assert (await person.get(CALLS)).status == 200
    await stage.storage.keys.revoke(ACCOUNT, KEY_ID)
    assert (await person.get(CALLS)).status == 303


async def test_a_session_ends_after_its_time(person: Person, stage: ApiStage) -> None:
    await move_back(stage, SESSION_LIFE)
    assert (await person.get(CALLS)).status == 303
    assert await stage.storage.console_sessions.sweep() == 1


async def test_a_key_has_a_limited_number_of_sessions(person: Person, stage: ApiStage) -> None:
    sessions = stage.storage.console_sessions
    tokens = [await sessions.open(KEY) for _ in range(MAX_SESSIONS)]
    assert (await person.get(CALLS)).status == 303
    assert (await sessions.principal(tokens[0])).key_id == KEY_ID


# Forms


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://localhost:8081"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_form_of_another_site_does_nothing(
    web: Client, person: Person, headers: dict[str, str]
) -> None:
    given = {"Cookie": f"trunkline_console={person.cookie}", **headers}
    answer = await send_form(web, "/console/sign-out", {"csrf": await person.token()}, given)
    assert answer.status == 403
    assert (await send_form(web, "/console/sign-in", {"key": KEY}, headers)).status == 403
    assert (await person.get(CALLS)).status == 200


async def test_a_browser_that_names_its_origin_alone_is_believed(web: Client, person: Person) -> None:
    given = {"Cookie": f"trunkline_console={person.cookie}", "Origin": "http://localhost"}
    answer = await send_form(web, "/console/sign-out", {"csrf": await person.token()}, given)
    assert answer.status == 303


async def test_a_form_needs_the_token_of_its_own_session(web: Client, person: Person) -> None:
    other = await sign_in(web)
    for token in ("", "0" * 64, await other.token()):
        assert (await person.post("/console/sign-out", {"csrf": token})).status == 403
    assert (await person.get(CALLS)).status == 200


# Pages


async def test_a_page_without_the_scope_says_so(web: Client) -> None:
    reader = await sign_in(web, READER_KEY)
    assert (await reader.get(CALLS)).status == 200
    chat = await sign_in(web, MESSAGING_KEY)
    refused = await chat.get(CALLS)
    assert refused.status == 403
    assert "messaging" in refused.body.decode()
    assert f'href="{CALLS}"' not in refused.body.decode()


async def test_every_page_says_how_it_may_be_used(person: Person) -> None:
    for path in (CALLS, "/console/sign-in", "/console/nothing", "/console"):
        answer = await person.get(path)
        assert answer.headers["Content-Security-Policy"] == POLICY, path
        assert answer.headers["Cache-Control"] == "no-store", path
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
    assert "unsafe" not in POLICY and "http" not in POLICY


@pytest.mark.parametrize("path", ["nothing", "calls/x", "static/0/..%2fapp.py", "static/0/no.css"])
async def test_what_is_not_there_is_said(person: Person, path: str) -> None:
    assert (await person.get(f"/console/{path}")).status == 404


@pytest.mark.parametrize("path", ["https://evil.example", "//evil.example", "/console//evil", "/v1/calls"])
async def test_signing_in_leads_to_no_other_place(web: Client, path: str) -> None:
    answer = await send_form(web, "/console/sign-in", {"key": KEY, "next": path}, OURS)
    assert 'content="0; url=/console"' in answer.body.decode()


async def test_a_link_on_another_site_leads_to_the_page_nevertheless(web: Client) -> None:
    """The browser keeps a strict cookie back then; our own page follows the link once more."""
    answer = await web.get(f"{CALLS}/{CALL_SID}", key=None, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200
    assert f'content="0; url={CALLS}/{CALL_SID}"' in answer.body.decode()


def test_every_page_has_texts_and_entries_of_the_navigation_have_places_of_their_own() -> None:
    modules = list(all_pages())
    assert all(texts_of(module.name)["title"] for module in modules)
    places = [(module.nav.group, module.nav.order) for module in modules if module.nav is not None]
    assert len(set(places)) == len(places)
    assert {group for group, _ in places} <= texts_of("common")["groups"].keys()


async def test_calls_of_another_account_are_not_listed(person: Person) -> None:
    body = (await person.get(CALLS)).body.decode()
    assert CALL_SID in body and OTHER_CALL_SID not in body


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("text=9800000001", True),
        ("text=+91+98000+00001", True),
        ("text=00000777", False),
        ("status=in-progress", True),
        ("status=busy", False),
        ("product=calls", True),
        ("product=masking", False),
        ("length=1", False),
        ("mos=5", False),
        ("price=0", False),
        ("trunk=77777777-7777-4777-8777-777777777777", False),
        ("start=2026-01-31&end=2026-01-31", True),
        ("end=2026-01-30", False),
        # To the minute or second, in UTC with and without a zone, or with an offset.
        ("start=2026-01-31T12:00&end=2026-01-31T12:00", True),
        ("start=2026-01-31T12:00:00Z&end=2026-01-31T12:00:00Z", True),
        ("start=2026-01-31T12:00:01", False),
        ("start=2026-01-31T12:01Z", False),
        ("end=2026-01-31T11:59", False),
        ("start=2026-01-31T17:30:00%2B05:30", True),
        ("start=2026-01-31T17:31:00%2B05:30", False),
    ],
)
async def test_calls_are_searched(person: Person, query: str, found: bool) -> None:
    if query.startswith("text") and "&" not in query:
        query += "&start=2026-01-01"
    answer = await person.get(f"{CALLS}?{query}")
    assert answer.status == 200
    assert (CALL_SID in answer.body.decode()) is found


async def test_values_of_each_column_narrow_the_search(person: Person, stage: ApiStage) -> None:
    record = call(
        new_id(),
        carrier_sid=CARRIER_SID,
        status=CallStatus.BUSY,
        product="masking",
        hangup_cause="USER_BUSY",
        duration_sec=61,
        price_paise=120,
        quality=Quality(mos=4.37),
    )
    await stage.write(partial(calls.insert, rows=[calls.row_of(record)]))
    body = (await person.get(f"{CALLS}?start=2026-01-01")).body.decode().replace("&amp;", "&")
    for link in (
        "start=2026-01-31&end=2026-01-31",
        "start=2026-01-31T12%3A00Z&end=2026-01-31T12%3A59Z",
        "direction=outbound&start=2026-01-01",
        f"text={quote_plus(record.from_)}&start=2026-01-01",
        "status=busy&start=2026-01-01",
        "product=masking&start=2026-01-01",
        "cause=USER_BUSY&start=2026-01-01",
        f"trunk={CARRIER_SID}&start=2026-01-01",
        "length=61&start=2026-01-01",
        "mos=4.37&start=2026-01-01",
        "price=1.20&start=2026-01-01",
    ):
        assert f'{CALLS}?{link}"' in body, link
        assert record.call_sid in (await person.get(f"{CALLS}?{link}")).body.decode(), link


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("start=2026-01-31&end=2026-01-31", "2026-01-31T00:00:00", "2026-01-31T23:59:59"),
        ("start=2026-01-31T12:00Z&end=2026-01-31T12:59Z", "2026-01-31T12:00:00", "2026-01-31T12:59:59"),
        ("start=2026-01-31T17:30:00%2B05:30", "2026-01-31T12:00:00", ""),
    ],
)
async def test_the_search_shows_its_time_in_utc(person: Person, query: str, start: str, end: str) -> None:
    page = (await person.get(f"{CALLS}?{query}")).body.decode()
    shown = dict(re.findall(r'name="(start|end)" type="datetime-local" step="1" value="([^"]*)"', page))
    assert shown == {"start": start, "end": end}


@pytest.mark.parametrize(
    "query",
    [
        "start=yesterday",
        "end=2026-01-31T25:00",
        "start=2026-02-30T10:00",
        "length=long",
        "mos=-1",
        "price=1e9",
    ],
)
async def test_a_wrong_value_is_said_beside_its_field(person: Person, query: str) -> None:
    answer = await person.get(f"{CALLS}?{query}&cursor=")
    assert answer.status == 400
    assert 'aria-invalid="true"' in answer.body.decode()


async def move_back(stage: ApiStage, age: timedelta) -> None:
    """Make all sessions and links older."""
    micros = int(age.total_seconds() * 1_000_000)
    await stage.write(
        lambda connection: connection.execute(
            sa.update(console_sessions).values(expires_at=console_sessions.c.expires_at - micros)
        ).close()
    )
