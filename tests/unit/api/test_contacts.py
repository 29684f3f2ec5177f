"""The endpoints of contacts and contact lists."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from tests.support.api_facts import ACCOUNT
from tests.support.api_stage import ApiStage
from tests.unit.api.client import Answer, Client

CONTACTS, LISTS = "/api/v1/contacts", "/api/v1/contact-lists"
KEY = "vm_" + "c" * 43


@pytest.fixture(autouse=True)
async def key(stage: ApiStage) -> None:
    await stage.add_key(KEY, "messaging", ["contacts.read", "contacts.write"])


def wrong(answer: Answer) -> dict[str, str]:
    """The fields that a refusal names, and what it says of each."""
    assert (answer.status, answer.json()["code"]) == (400, "VALIDATION_ERROR"), answer
    return {error["field"]: error["message"] for error in answer.json()["details"]["errors"]}


async def test_a_contact_is_shown_whole_and_in_camel_case(client: Client) -> None:
    body = {"phoneNumber": "+91 98765 43211", "customFields": {"vip": True}, "notes": None}
    answer = await client.post(CONTACTS, body, key=KEY)
    assert answer.status == 201
    added = answer.data
    assert answer.json() == {
        "success": True,
        "data": {
            "id": added["id"],
            "phoneNumber": "+919876543211",
            "firstName": None,
            "lastName": None,
            "email": None,
            "customFields": {"vip": True},
            "notes": None,
            "optedOut": False,
            "createdAt": added["createdAt"],
            "updatedAt": added["createdAt"],
        },
    }
    assert (await client.get(f"{CONTACTS}/{added['id']}", key=KEY)).data == added


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"a": "x" * 16_377}, "must have at most 16384 bytes as JSON"),
        ({"a": [{"b": [{"c": [{"d": [1, {}]}]}]}]}, "must not be nested more than 8 deep"),
        ([], "must be an object"),
        ("text", "must be an object"),
    ],
)
async def test_what_custom_fields_cannot_be(client: Client, fields: Any, problem: str) -> None:
    body = {"phoneNumber": "+919876543211", "customFields": fields}
    assert wrong(await client.post(CONTACTS, body, key=KEY)) == {"customFields": problem}
    changes = {"customFields": fields}
    assert wrong(await client.patch(f"{CONTACTS}/7", changes, key=KEY)) == {"customFields": problem}


async def test_custom_fields_are_kept_as_they_are(client: Client) -> None:
    fields = {
        **{"": "é" * 5000, "n": 2**64, "f": 1.5, "t": True, "z": None},
        **{"tags": ["a", []], "nested": {"a": {"b": [{"c": [{"d": {}}]}]}}},
    }
    answer = await client.post(CONTACTS, {"phoneNumber": "+919876543211", "customFields": fields}, key=KEY)
    assert answer.data["customFields"] == fields


async def test_what_is_not_taken_where_says_where_it_is(client: Client) -> None:
    refused = wrong(await client.post(CONTACTS, {"phoneNumber": "+91", "optedOut": True}, key=KEY))
    assert refused.keys() == {"phoneNumber", "optedOut"} and "PATCH" in refused["optedOut"]
    refused = wrong(await client.patch(f"{CONTACTS}/7", {"phoneNumber": "+919876543210"}, key=KEY))
    assert "cannot be changed" in refused["phoneNumber"]
    refused = wrong(await client.post(CONTACTS, {"phone_number": "+919876543210"}, key=KEY))
    assert refused.keys() == {"phoneNumber", "phone_number"}


async def test_a_change_is_of_what_is_given_alone(client: Client) -> None:
    body = {"phoneNumber": "+919876543211", "firstName": "Asha", "customFields": {"n": 1}, "notes": "VIP"}
    contact = (await client.post(CONTACTS, body, key=KEY)).data
    path = f"{CONTACTS}/{contact['id']}"
    unchanged = (await client.patch(path, {}, key=KEY)).data
    assert {**unchanged, "updatedAt": contact["updatedAt"]} == contact
    changed = (await client.patch(path, {"firstName": None, "customFields": None}, key=KEY)).data
    assert (changed["firstName"], changed["customFields"], changed["notes"]) == (None, {}, "VIP")


async def test_pages_are_of_fifty_unless_another_size_is_asked_for(client: Client, storage: Storage) -> None:
    for index in range(51):
        values = {"phone_number": f"+9198765432{index:02}", "first_name": "Asha" if index < 2 else "Ravi"}
        await storage.contacts.create(ACCOUNT, values)
    answer = await client.get(CONTACTS, key=KEY)
    assert answer.json()["pagination"] == {"page": 1, "pageSize": 50, "total": 51, "totalPages": 2}
    assert len(answer.data) == 50
    found = await client.get(f"{CONTACTS}?search=as&page=2&pageSize=1", key=KEY)
    assert found.json()["pagination"] == {"page": 2, "pageSize": 1, "total": 2, "totalPages": 2}
    assert [contact["firstName"] for contact in found.data] == ["Asha"]
    refused = wrong(await client.get(f"{CONTACTS}?pageSize=101&page=0&per_page=1", key=KEY))
    assert refused.keys() == {"pageSize", "page"}, "per_page is a parameter of other services"


async def test_all_lists_are_shown_unless_fewer_are_asked_for(client: Client, storage: Storage) -> None:
    for index in range(51):
        await storage.contact_lists.create(ACCOUNT, f"Diwali {index}", None)
    answer = await client.get(LISTS, key=KEY)
    assert answer.data[0].keys() == {"id", "name", "description", "contactCount", "createdAt", "updatedAt"}
    assert len(answer.data) == 51
    assert len((await client.get(f"{LISTS}?page=6&pageSize=10", key=KEY)).data) == 1


async def test_contacts_go_into_lists_by_their_identifiers(client: Client, storage: Storage) -> None:
    made = await storage.contact_lists.create(ACCOUNT, "Diwali", None)
    ids = [
        (await storage.contacts.create(ACCOUNT, {"phone_number": f"+91987654321{index}"})).contact_id
        for index in range(2)
    ]
    path = f"{LISTS}/{made.list_id}/contacts"
    answer = await client.post(path, {"contactIds": ids}, key=KEY)
    assert (answer.status, answer.data) == (200, {"id": made.list_id, "added": 2, "contactCount": 2})
    answer = await client.post(f"{path}/remove", {"contactIds": ids[:1]}, key=KEY)
    assert answer.data == {"id": made.list_id, "removed": 1, "contactCount": 1}
    for given in ([], [1.5], ["7"], [0], [2**63], list(range(1, 1002)), None):
        assert wrong(await client.post(path, {"contactIds": given}, key=KEY))


async def test_deleting_says_what_was_deleted(client: Client, storage: Storage) -> None:
    contact = await storage.contacts.create(ACCOUNT, {"phone_number": "+919876543211"})
    made = await storage.contact_lists.create(ACCOUNT, "Diwali", None)
    for path, identifier in ((CONTACTS, contact.contact_id), (LISTS, made.list_id)):
        answer = await client.delete(f"{path}/{identifier}", key=KEY)
        assert (answer.status, answer.data) == (200, {"id": identifier, "deleted": True})
        assert (await client.delete(f"{path}/{identifier}", key=KEY)).status == 404
