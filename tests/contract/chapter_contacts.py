"""Contacts and lists of them."""

from __future__ import annotations

from typing import Any

from callcontrol.messaging.aio import contacts as contact_service
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import limited
from tests.contract.stage import Answer, Stage

_CONTACTS, _LISTS = "/api/v1/contacts", "/api/v1/contact-lists"
_NOTHING = 2**62
_PROFILE: dict[str, Any] = {
    "firstName": "Asha",
    "lastName": "Rao",
    "email": "asha@example.com",
    "customFields": {"city": "Pune", "spent": 12.5, "agent": None, "tags": ["a"], "nested": {"a": {}}},
    "notes": "Writes in Marathi.",
}


async def _number(stage: Stage) -> str:
    """A number in E.164 that is nobody's."""
    return stage.fresh_number()


def contact(by: str = "own", **profile: Any) -> Given:
    """The id of a contact that an account has just added."""

    async def given(stage: Stage) -> int:
        body = {"phoneNumber": stage.fresh_number(), **profile}
        made = await stage.data("POST", _CONTACTS, by=by, body=body)
        stage.kept["contact"] = made
        return int(made["id"])

    return given


def contact_list(*members: Given, by: str = "own") -> Given:
    """The id of a list that an account has just made, with contacts in it."""

    async def given(stage: Stage) -> int:
        made = await stage.data("POST", _LISTS, by=by, body={"name": "Diwali"})
        ids = [await member(stage) for member in members]
        if ids:
            await stage.data("POST", f"{_LISTS}/{made['id']}/contacts", by=by, body={"contactIds": ids})
        stage.kept["members"] = ids
        stage.kept["list"] = made["id"]
        return int(made["id"])

    return given


async def _taken_number(stage: Stage) -> str:
    """The number of a contact of the own account."""
    await contact()(stage)
    return str(stage.kept["contact"]["phoneNumber"])


async def _its_members(stage: Stage) -> list[int]:
    """Members of the list that was just made."""
    return list(stage.kept["members"])


async def _is_all_there(stage: Stage, answer: Answer) -> None:
    assert _PROFILE.items() <= answer.data.items() and answer.data["optedOut"] is False
    assert (await stage.data("GET", f"{_CONTACTS}/{answer.data['id']}")) == answer.data


async def _one_spelling(_: Stage, answer: Answer) -> None:
    assert answer.data["phoneNumber"] == "+919123456780"
    assert answer.data["customFields"] == {} and answer.data["firstName"] is None


async def _names_the_first(stage: Stage, answer: Answer) -> None:
    assert answer.error["details"] == {
        "id": stage.kept["contact"]["id"],
        "phoneNumber": stage.kept["contact"]["phoneNumber"],
    }


async def _is_only_the_other_s(stage: Stage, answer: Answer) -> None:
    refusal = await stage.ask("GET", f"{_CONTACTS}/{answer.data['id']}")
    assert (refusal.status, refusal.code) == (404, "NOT_FOUND")


async def _is_paged(_: Stage, answer: Answer) -> None:
    pages = answer.body["pagination"]
    assert (pages["page"], pages["pageSize"]) == (1, 50)
    assert pages["total"] >= len(answer.data) >= 1


async def _found_alone(stage: Stage, answer: Answer) -> None:
    assert answer.data == [stage.kept["contact"]]
    assert answer.body["pagination"] == {"page": 1, "pageSize": 10, "total": 1, "totalPages": 1}


async def _nothing(_: Stage, answer: Answer) -> None:
    assert answer.data == [] and answer.body["pagination"]["total"] == 0


async def _is_changed(stage: Stage, answer: Answer) -> None:
    before = stage.kept["contact"]
    changes: dict[str, Any] = {"firstName": None, "customFields": {}, "lastName": "Iyer", "optedOut": True}
    assert answer.data == {**before, **changes, "updatedAt": answer.data["updatedAt"]}
    assert answer.data["email"] == _PROFILE["email"]


async def _is_gone(stage: Stage, answer: Answer) -> None:
    assert answer.data == {"id": answer.data["id"], "deleted": True}
    assert (await stage.ask("GET", f"{_CONTACTS}/{answer.data['id']}")).status == 404


async def _left_its_list(stage: Stage, answer: Answer) -> None:
    shown = await stage.data("GET", f"{_LISTS}/{stage.kept['list']}")
    assert shown["contactCount"] == 1 and answer.data["deleted"] is True


async def _contacts_stay(stage: Stage, answer: Answer) -> None:
    assert (await stage.ask("GET", f"{_LISTS}/{answer.data['id']}")).status == 404
    for contact_id in stage.kept["members"]:
        assert (await stage.ask("GET", f"{_CONTACTS}/{contact_id}")).status == 200


async def _is_empty(_: Stage, answer: Answer) -> None:
    assert (answer.data["name"], answer.data["description"]) == ("Diwali", "Who asked.")
    assert answer.data["contactCount"] == 0


async def _belongs_to_the_other(stage: Stage, answer: Answer) -> None:
    assert (await stage.ask("GET", f"{_LISTS}/{answer.data['id']}")).status == 404


async def _counts_two(_: Stage, answer: Answer) -> None:
    assert answer.data["contactCount"] == 2


async def _lists_it(stage: Stage, answer: Answer) -> None:
    assert answer.data[0]["id"] == stage.kept["list"], "the newest comes first"
    assert answer.body["pagination"]["total"] == len(answer.data)


async def _shows_both(stage: Stage, answer: Answer) -> None:
    assert [item["id"] for item in answer.data] == sorted(stage.kept["members"])
    assert answer.body["pagination"]["total"] == 2


async def _one_was_added(_: Stage, answer: Answer) -> None:
    assert (answer.data["added"], answer.data["contactCount"]) == (1, 1)


async def _none_was_added(stage: Stage, answer: Answer) -> None:
    assert str(_NOTHING) in answer.message
    assert (await stage.data("GET", f"{_LISTS}/{stage.kept['list']}"))["contactCount"] == 0


async def _all_were_there(_: Stage, answer: Answer) -> None:
    assert (answer.data["added"], answer.data["contactCount"]) == (0, 1)


async def _one_was_removed(_: Stage, answer: Answer) -> None:
    assert (answer.data["removed"], answer.data["contactCount"]) == (1, 0)


async def _member(stage: Stage) -> int:
    return int(stage.kept["members"][0])


def _one_of(two: Given) -> Given:
    """The id of the first contact of a list that was just made."""

    async def given(stage: Stage) -> int:
        await two(stage)
        return await _member(stage)

    return given


_WRONG = {
    "phoneNumber": "98765",
    "email": "asha",
    "firstName": 7,
    "notes": "x" * 2001,
    "customFields": ["a"],
    "optedOut": True,
    "colour": "red",
}
_WRONG_NAMES = (
    *("phoneNumber", "email", "firstName", "notes", "optedOut", "colour"),
    "customFields",
)
_TOO_LARGE = {"a": "x" * 16_384}
_ANYWHERE = {"id": _NOTHING}
_MEMBERS = f"{_LISTS}/{{id}}/contacts"

CASES = (
    *row(
        f"POST {_CONTACTS}",
        ok(201, body={"phoneNumber": _number, **_PROFILE}, then=_is_all_there),
        ok(201, name="typed otherwise", body={"phoneNumber": "091234-567.80"}, then=_one_spelling),
        refused(400, "VALIDATION_ERROR", body=_WRONG, fields=_WRONG_NAMES),
        refused(400, "VALIDATION_ERROR", name="nothing", body={}, fields=("phoneNumber",)),
        refused(
            400,
            "VALIDATION_ERROR",
            name="too large fields",
            body={"phoneNumber": _number, "customFields": _TOO_LARGE},
            fields=("customFields",),
        ),
        refused(400, "ALREADY_EXISTS", body={"phoneNumber": _taken_number}, then=_names_the_first),
        unseen(201, body={"phoneNumber": _taken_number}, then=_is_only_the_other_s),
    ),
    *row(
        f"GET {_CONTACTS}",
        ok(before=(contact(),), then=_is_paged),
        ok(
            name="by part of a name",
            before=(contact(firstName="Élodie", lastName="ÇELİK 100%"),),
            query={"search": "éLODIE çel", "pageSize": "10"},
            then=_found_alone,
        ),
        ok(
            name="what looks like a wildcard",
            before=(contact(),),
            query={"search": "0%_", "page": "1"},
            then=_nothing,
        ),
        refused(400, "VALIDATION_ERROR", query={"page": "0", "pageSize": "101"}, fields=("page", "pageSize")),
        unseen(by="poor", before=(contact(),), then=_nothing),
    ),
    *row(
        f"GET {_CONTACTS}/{{id}}",
        ok(path={"id": contact()}),
        foreign(404, "NOT_FOUND", path={"id": contact()}),
        refused(404, "NOT_FOUND", path=_ANYWHERE),
        refused(404, "NOT_FOUND", name="no number", path={"id": "first"}),
    ),
    *row(
        f"PATCH {_CONTACTS}/{{id}}",
        ok(
            path={"id": contact(**_PROFILE)},
            body={"firstName": None, "customFields": None, "lastName": "Iyer", "optedOut": True},
            then=_is_changed,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"id": contact()},
            body={"phoneNumber": "+919876543210", "optedOut": None, "email": "", "customFields": _TOO_LARGE},
            fields=("phoneNumber", "optedOut", "email", "customFields"),
        ),
        foreign(404, "NOT_FOUND", path={"id": contact()}, body={"notes": "mine"}),
        refused(404, "NOT_FOUND", path=_ANYWHERE, body={"notes": "mine"}),
    ),
    *row(
        f"DELETE {_CONTACTS}/{{id}}",
        ok(path={"id": contact()}, then=_is_gone),
        ok(
            name="of a list",
            path={"id": _one_of(contact_list(contact(), contact()))},
            then=_left_its_list,
        ),
        foreign(404, "NOT_FOUND", path={"id": contact()}),
        refused(404, "NOT_FOUND", path=_ANYWHERE),
    ),
    *row(
        f"POST {_LISTS}",
        ok(201, body={"name": "Diwali", "description": "Who asked."}, then=_is_empty),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"name": "", "description": 7, "contactIds": [1]},
            fields=("name", "description", "contactIds"),
        ),
        refused(409, "CONFLICT", body={"name": "Diwali"}, during=limited(contact_service, "MAX_LISTS")),
        unseen(201, body={"name": "Diwali"}, then=_belongs_to_the_other),
    ),
    *row(
        f"GET {_LISTS}",
        ok(before=(contact_list(),), then=_lists_it),
        refused(400, "VALIDATION_ERROR", query={"pageSize": "1001"}, fields=("pageSize",)),
        unseen(by="poor", before=(contact_list(),), then=_nothing),
    ),
    *row(
        f"GET {_LISTS}/{{id}}",
        ok(path={"id": contact_list(contact(), contact())}, then=_counts_two),
        foreign(404, "NOT_FOUND", path={"id": contact_list()}),
        refused(404, "NOT_FOUND", path=_ANYWHERE),
    ),
    *row(
        f"PATCH {_LISTS}/{{id}}",
        ok(path={"id": contact_list(contact(), contact())}, body={"name": "Holi"}, then=_counts_two),
        refused(400, "VALIDATION_ERROR", path={"id": contact_list()}, body={"name": None}, fields=("name",)),
        foreign(404, "NOT_FOUND", path={"id": contact_list()}, body={"name": "Holi"}),
        refused(404, "NOT_FOUND", path=_ANYWHERE, body={"name": "Holi"}),
    ),
    *row(
        f"DELETE {_LISTS}/{{id}}",
        ok(path={"id": contact_list(contact(), contact())}, then=_contacts_stay),
        foreign(404, "NOT_FOUND", path={"id": contact_list()}),
        refused(404, "NOT_FOUND", path=_ANYWHERE),
    ),
    *row(
        f"GET {_MEMBERS}",
        ok(path={"id": contact_list(contact(), contact())}, then=_shows_both),
        refused(400, "VALIDATION_ERROR", path={"id": contact_list()}, query={"page": "x"}, fields=("page",)),
        foreign(404, "NOT_FOUND", path={"id": contact_list(contact())}),
        refused(404, "NOT_FOUND", path=_ANYWHERE),
    ),
    *row(
        f"POST {_MEMBERS}",
        ok(path={"id": contact_list()}, body={"contactIds": [contact()]}, then=_one_was_added),
        ok(
            name="twice",
            path={"id": contact_list(contact())},
            body={"contactIds": _its_members},
            then=_all_were_there,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="unknown",
            path={"id": contact_list()},
            body={"contactIds": [contact(), _NOTHING, contact(by="other")]},
            fields=("contactIds[1]", "contactIds[2]"),
            then=_none_was_added,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"id": contact_list()},
            body={"contactIds": ["1", 0, 2**63]},
            fields=("contactIds[0]", "contactIds[1]", "contactIds[2]"),
        ),
        foreign(404, "NOT_FOUND", path={"id": contact_list()}, body={"contactIds": [1]}),
        refused(404, "NOT_FOUND", path=_ANYWHERE, body={"contactIds": [1]}),
    ),
    *row(
        f"POST {_MEMBERS}/remove",
        ok(path={"id": contact_list(contact())}, body={"contactIds": _its_members}, then=_one_was_removed),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"id": contact_list()},
            body={"contactIds": []},
            fields=("contactIds",),
        ),
        foreign(404, "NOT_FOUND", path={"id": contact_list()}, body={"contactIds": [1]}),
        refused(404, "NOT_FOUND", path=_ANYWHERE, body={"contactIds": [1]}),
    ),
)
