"""Contacts and their lists over a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.errors import AlreadyExists, NotFound, ValidationFailed
from callcontrol.messaging.contacts import ContactList
from callcontrol.messaging.models import Contact
from callcontrol.messaging.store import contact_lists, contacts
from callcontrol.models import Account, Page
from tests.support.examples import examples
from tests.support.secrets import SECRETS

ASHA, RAVI, NOBODY = "+919876543210", "+919876543211", "+919876543212"
T = TypeVar("T")


@pytest.fixture
async def other(storage: Storage, url: str) -> AsyncIterator[Storage]:
    """Another process on the same database."""
    opened = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    yield opened
    await opened.close()


def number(index: int) -> str:
    return f"+9198{index:08d}"


async def add(storage: Storage, account_sid: str, index: int, **values: Any) -> Contact:
    return await storage.contacts.create(account_sid, {"phone_number": number(index), **values})


async def every_page(page_of: Callable[[int], Coroutine[Any, Any, Page[T]]]) -> list[T]:
    """Return the rows of all pages, as many as each of them says there are."""
    first = await page_of(1)
    items, total = list(first.items), first.total
    for page in range(2, first.total_pages + 1):
        following = await page_of(page)
        assert following.items and following.total == total
        items += following.items
    beyond = await page_of(first.total_pages + 1)
    assert (list(beyond.items), beyond.total) == ([], total)
    assert len(items) == total
    return items


async def test_a_contact_is_what_it_was_made_of(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    values = {
        "phone_number": ASHA,
        "first_name": "आशा",
        "last_name": "O'Rao",
        "email": "asha@example.com",
        "custom_fields": {"city": "पुणे", "orders": 3, "spent": 0.1, "vip": False, "none": None},
        "notes": "x" * 2000,
    }
    made = await storage.contacts.create(sid, values)
    assert {name: getattr(made, name) for name in values} == values and not made.opted_out
    assert await storage.contacts.get(sid, made.contact_id) == made
    assert await storage.contacts.find(sid, ASHA) == made
    changed = await storage.contacts.update(sid, made.contact_id, {"first_name": None, "opted_out": True})
    assert (changed.first_name, changed.last_name, changed.opted_out) == (None, "O'Rao", True)
    assert changed.updated_at > made.updated_at
    again = await storage.contacts.update(sid, made.contact_id, {"first_name": None})
    assert again == changed == await storage.contacts.get(sid, made.contact_id), "nothing was changed"


async def test_an_account_has_one_contact_of_a_number(
    storage: Storage, other: Storage, account: Account, stranger: Account
) -> None:
    sid = account.account_sid
    made = await add(storage, sid, 1)
    with pytest.raises(AlreadyExists) as refusal:
        await add(storage, sid, 1, first_name="Second")
    assert refusal.value.details == {"id": made.contact_id, "phoneNumber": number(1)}
    theirs = await add(storage, stranger.account_sid, 1)
    assert theirs.contact_id != made.contact_id
    for service in (storage.contacts, other.contacts):
        with pytest.raises(NotFound):
            await service.get(stranger.account_sid, made.contact_id)
        with pytest.raises(NotFound):
            await service.update(stranger.account_sid, made.contact_id, {"notes": "mine"})
        with pytest.raises(NotFound):
            await service.delete(stranger.account_sid, made.contact_id)
    assert await storage.contacts.get(sid, made.contact_id) == made


async def test_two_processes_make_one_contact_of_a_number(
    storage: Storage, other: Storage, account: Account
) -> None:
    sid = account.account_sid
    tried = await asyncio.gather(
        *(add(process, sid, index) for index in range(5) for process in (storage, other, storage)),
        return_exceptions=True,
    )
    made = [found for found in tried if isinstance(found, Contact)]
    assert sorted(contact.phone_number for contact in made) == [number(index) for index in range(5)]
    assert sum(isinstance(found, AlreadyExists) for found in tried) == 10


async def test_what_is_committed_twice_is_made_once(storage: Storage, account: Account) -> None:
    """The answer to a commit can be lost: then the same is done once more."""
    sid, now = account.account_sid, utc_now()

    def make(connection: Connection) -> tuple[Contact | None, ContactList]:
        contact = contacts.insert(connection, Contact(0, sid, ASHA, now, now), "request 1")
        made = contact_lists.insert(connection, ContactList(0, sid, "Diwali", None, now, now), "request 1")
        return contact, made

    first, second = [await storage.database.write(make) for _ in range(2)]
    assert first == second and first[0] is not None
    assert (await storage.contacts.list(sid, None, 1, 10)).total == 1
    assert (await storage.contact_lists.list(sid, 1, 10)).total == 1


async def test_an_identifier_is_never_another_contact(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    first = await add(storage, sid, 1)
    await storage.contacts.delete(sid, first.contact_id)
    second = await add(storage, sid, 1)
    assert second.contact_id > first.contact_id


# Few letters, so that searches find something: wildcards, case, composed ones, and signs of numbers.
LETTERS = "aAbßſ éÉe\u0301%_\\/'-+1İक"
NAMES = st.text(LETTERS, max_size=4)
PEOPLE = st.lists(
    st.tuples(NAMES, NAMES, st.sampled_from([None, "a@b.example", "A1@b.example"])), max_size=12
)


def shown(text: str) -> str:
    return normalize("NFC", normalize("NFC", text).casefold())


def found_naively(contact: Contact, search: str) -> bool:
    typed = " ".join(search.split())
    if any(letter in "0123456789" for letter in typed) and not set(typed) - set("+-1 "):
        # Such as "+1-1": a number, whatever separates its digits. A plus within it makes it none.
        if "+" not in typed[1:]:
            typed = typed.replace("-", "").replace(" ", "")
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    return any(shown(typed) in shown(text) for text in (contact.phone_number, name, contact.email or ""))


@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(people=PEOPLE, search=st.text(LETTERS, max_size=3), per_page=st.integers(1, 5))
async def test_every_contact_is_on_one_page_whatever_is_searched(
    storage: Storage, people: list[tuple[str, str, str | None]], search: str, per_page: int
) -> None:
    account, _ = await storage.accounts.create("Acme")
    sid = account.account_sid
    made = [
        await add(storage, sid, index, first_name=first, last_name=last, email=email)
        for index, (first, last, email) in enumerate(people)
    ]
    assert await every_page(lambda page: storage.contacts.list(sid, None, page, per_page)) == made
    found = await every_page(lambda page: storage.contacts.list(sid, search, page, per_page))
    assert found == [contact for contact in made if found_naively(contact, search)]


async def test_a_search_that_finds_many_is_paged_as_one_that_finds_few(
    storage: Storage, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    sid = account.account_sid
    made = [await add(storage, sid, index, email=f"{index}@example.com") for index in range(12)]
    for few in (1, 11, 12, 13):
        monkeypatch.setattr(contacts, "_FEW", few)
        assert await every_page(lambda page: storage.contacts.list(sid, "@EXAMPLE", page, 5)) == made


@pytest.mark.parametrize("writing", ["0{}", "0091{}", "91{}", "+91 {}", "tel:+91{}", "{}"])
async def test_a_number_is_found_in_any_writing(storage: Storage, account: Account, writing: str) -> None:
    made = [await add(storage, account.account_sid, index) for index in (1, 2)]
    search = writing.format(made[0].phone_number.removeprefix("+91"))
    assert (await storage.contacts.list(account.account_sid, search, 1, 10)).items == made[:1]


async def test_the_longest_names_and_addresses_are_kept_and_found(storage: Storage, account: Account) -> None:
    # Each of these signs is three of four bytes once it is composed, and no two in a row are alike.
    signs = "".join(chr(0x1D15E + index * index % 7) for index in range(100))
    values = {"first_name": signs, "last_name": signs[::-1], "email": "é" * 30 + "@" + "ü.b." * 46 + "de"}
    made = await add(storage, account.account_sid, 1, **values)
    assert {name: getattr(made, name) for name in values} == values
    for search in (number(1), values["email"].upper(), signs[:66]):
        assert (await storage.contacts.list(account.account_sid, search, 1, 10)).items == [made]


async def test_contacts_that_come_meanwhile_shift_no_page(storage: Storage, account: Account) -> None:
    sid = account.account_sid
    made = [await add(storage, sid, index) for index in (5, 3, 1)]
    first = await storage.contacts.list(sid, None, 1, 2)
    late = await add(storage, sid, 2)
    second = await storage.contacts.list(sid, None, 2, 2)
    assert [*first.items, *second.items] == [*made, late]


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["add", "remove"]), st.integers(0, 1), st.sets(st.integers(0, 4), min_size=1)
        ),
        st.tuples(st.just("delete contact"), st.just(0), st.sets(st.integers(0, 4), min_size=1, max_size=1)),
        st.tuples(st.just("delete list"), st.integers(0, 1), st.just(set[int]())),
    ),
    max_size=8,
)


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
async def test_lists_hold_what_was_put_into_them(
    storage: Storage, steps: list[tuple[str, int, set[int]]]
) -> None:
    account, _ = await storage.accounts.create("Acme")
    sid, lists = account.account_sid, storage.contact_lists
    people = [(await add(storage, sid, index)).contact_id for index in range(5)]
    names = [(await lists.create(sid, f"list {index}", None)).list_id for index in range(2)]
    there, members = set(people), {list_id: set[int]() for list_id in names}
    for what, which, indexes in steps:
        list_id, ids = names[which], {people[index] for index in indexes}
        if what == "delete contact":
            (contact_id,) = ids
            if contact_id in there:
                await storage.contacts.delete(sid, contact_id)
            there.discard(contact_id)
            members = {name: held - ids for name, held in members.items()}
        elif list_id not in members:
            with pytest.raises(NotFound):
                await lists.add(sid, list_id, list(ids))
        elif what == "delete list":
            await lists.delete(sid, list_id)
            del members[list_id]
        elif what == "remove":
            changed, removed = await lists.remove(sid, list_id, list(ids))
            assert removed == len(members[list_id] & ids)
            members[list_id] -= ids
            assert changed.contact_count == len(members[list_id])
        elif ids <= there:
            changed, added = await lists.add(sid, list_id, [*ids, *ids])
            assert added == len(ids - members[list_id])
            members[list_id] |= ids
            assert changed.contact_count == len(members[list_id])
        else:
            with pytest.raises(ValidationFailed) as refusal:
                await lists.add(sid, list_id, list(ids))
            assert len(refusal.value.errors) == len(ids - there)
    shown_lists = await every_page(lambda page: lists.list(sid, page, 1))
    assert {item.list_id: item.contact_count for item in shown_lists} == {
        list_id: len(held) for list_id, held in members.items()
    }
    for list_id, held in members.items():
        found = await every_page(partial(lists.contacts, sid, list_id, per_page=2))
        assert [contact.contact_id for contact in found] == sorted(held)
    assert (await storage.contacts.list(sid, None, 1, 1)).total == len(there)


async def test_lists_are_their_account_s(storage: Storage, account: Account, stranger: Account) -> None:
    sid, lists = stranger.account_sid, storage.contact_lists
    made = await lists.create(account.account_sid, "Diwali", "Who asked.")
    mine = await add(storage, account.account_sid, 1)
    theirs = await add(storage, sid, 1)
    with pytest.raises(ValidationFailed) as refusal:
        await lists.add(account.account_sid, made.list_id, [mine.contact_id, theirs.contact_id])
    assert [error.field for error in refusal.value.errors] == ["contactIds[1]"]
    assert str(theirs.contact_id) in refusal.value.message
    for ask in (
        lists.get(sid, made.list_id),
        lists.contacts(sid, made.list_id, 1, 10),
        lists.update(sid, made.list_id, {"name": "mine"}),
        lists.add(sid, made.list_id, [theirs.contact_id]),
        lists.remove(sid, made.list_id, [mine.contact_id]),
        lists.delete(sid, made.list_id),
    ):
        with pytest.raises(NotFound):
            await ask
    assert await lists.get(account.account_sid, made.list_id) == made


async def test_who_opts_out_is_remembered_until_they_opt_in(storage: Storage, account: Account) -> None:
    sid, now = account.account_sid, utc_now()

    async def hear(number: str, out: bool) -> bool:
        return await storage.writer.commit(lambda rows: contacts.set_opted_out(rows, sid, number, out, now))

    async def out() -> set[str]:
        numbers = [ASHA, RAVI, NOBODY]
        return await storage.database.read(lambda rows: contacts.opted_out(rows, sid, numbers))

    assert await hear(ASHA, True) and await hear(RAVI, True)
    assert not await hear(ASHA, True), "that is known"
    assert not await hear(NOBODY, False), "nobody who has not opted out is made a contact"
    assert await out() == {ASHA, RAVI}
    assert await hear(ASHA, False)
    assert await out() == {RAVI}
    listed = await storage.contacts.list(sid, None, 1, 10)
    assert [(contact.phone_number, contact.opted_out) for contact in listed.items] == [
        (ASHA, False),
        (RAVI, True),
    ]
    other = await storage.database.read(lambda rows: contacts.opted_out(rows, "another", [RAVI]))
    assert other == set()
