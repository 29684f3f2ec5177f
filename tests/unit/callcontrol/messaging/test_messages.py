"""Required fields of a message of each type; and the words by which people opt out."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.errors import DestinationForbidden, ValidationFailed
from callcontrol.messaging.messages import SendMessage, checked, template_errors
from callcontrol.messaging.models import MessageType, Template
from callcontrol.messaging.receipts import preference
from tests.unit.callcontrol.messaging.facts import MOMENT

TO = "+919800100000"
MEDIA = {"type": "image", "url": "https://example.com/a.png"}
BUTTON = {"id": "yes", "title": "Yes"}


def refuse_private(url: str, *, schemes: tuple[str, ...]) -> None:
    if "10.0.0.1" in url:
        raise DestinationForbidden("10.0.0.1 is a private address; give a public address.")


def content(type_: MessageType, to: str = TO, **parts: Any) -> dict[str, Any]:
    return checked(SendMessage(to, type_, **parts), refuse_private)[1]


def wrong(type_: MessageType, to: str = TO, **parts: Any) -> set[str]:
    """The fields that are refused."""
    with pytest.raises(ValidationFailed) as refusal:
        content(type_, to, **parts)
    return {error.field for error in refusal.value.errors}


def test_each_type_takes_the_part_it_requires() -> None:
    assert content("text", text="Hello") == {"text": "Hello"}
    assert content("media", media=MEDIA) == {"media": MEDIA}
    interactive = {"body": "Well?", "buttons": [BUTTON]}
    assert content("buttons", interactive=interactive) == {"interactive": interactive}
    assert content("list", interactive=interactive) == {"interactive": interactive}
    filled = {"name": "order_sent", "language": "en_US", "bodyParameters": []}
    assert content("template", template={"name": "order_sent"}) == {"template": filled}


def test_a_number_is_kept_in_one_spelling() -> None:
    for number in ("+91 98001-00000", "919800100000", "09800100000", "tel:+919800100000"):
        assert checked(SendMessage(number, "text", text="Hello"), refuse_private)[0] == TO
    for number in ("980010000", "+91", "+999999999999", "tel:+91", ""):
        assert wrong("text", number, text="Hello") == {"to"}


@pytest.mark.parametrize(
    ("type_", "part"),
    [
        ("text", "text"),
        ("template", "template"),
        ("media", "media"),
        ("buttons", "interactive"),
        ("list", "interactive"),
    ],
)
def test_the_part_of_a_type_is_required_and_no_other_is_taken(type_: MessageType, part: str) -> None:
    assert wrong(type_) == {part}
    others = {"text": "x", "template": {"name": "x"}, "media": MEDIA, "interactive": {}}
    others.pop(part)
    assert wrong(type_, "nobody", **others) == {"to", part, *others}


def test_texts_have_their_limits() -> None:
    assert content("text", text="x" * 4096)
    assert wrong("text", text="x" * 4097) == {"text"} == wrong("text", text=" \n")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": "gif"}, "media.type"),
        ({"url": "https://10.0.0.1/a.png"}, "media.url"),
        ({"caption": "x" * 1025}, "media.caption"),
        ({"filename": "x" * 241}, "media.filename"),
    ],
    ids=["kind", "private", "caption", "long-name"],
)
def test_media_is_what_the_network_takes(changes: dict[str, str], field: str) -> None:
    assert wrong("media", media={**MEDIA, **changes}) == {field}


@pytest.mark.parametrize("kind", ["image", "video", "audio", "document"])
def test_every_kind_of_media_may_have_a_name_and_a_caption(kind: str) -> None:
    named = {**MEDIA, "type": kind, "filename": "x.mp4", "caption": "x"}
    assert content("media", media=named) == {"media": named}


def test_a_wrong_address_is_called_by_its_own_name_alone() -> None:
    with pytest.raises(ValidationFailed) as refusal:
        content("media", media={**MEDIA, "url": "https://10.0.0.1/a.png"})
    assert [error.message for error in refusal.value.errors] == [
        "10.0.0.1 is a private address; give a public address."
    ]


def buttons(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [{"id": str(place), "title": f"Choice {place}", **changes} for place in range(count)]


@pytest.mark.parametrize(("type_", "most", "title"), [("buttons", 3, 20), ("list", 10, 24)])
def test_buttons_and_rows_have_their_limits(type_: MessageType, most: int, title: int) -> None:
    def given(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"interactive": {"body": "Well?", "buttons": rows}}

    assert content(type_, **given(buttons(most)))
    assert wrong(type_, **given(buttons(most + 1))) == {"interactive.buttons"}
    assert wrong(type_, **given([])) == {"interactive.buttons"}
    assert content(type_, **given(buttons(1, title="x" * title)))
    assert wrong(type_, **given(buttons(1, title="x" * (title + 1)))) == {"interactive.buttons[0].title"}
    assert wrong(type_, **given(buttons(2, id="same"))) == {"interactive.buttons[1].id"}
    assert wrong(type_, **given(buttons(1, id="x" * 257))) == {"interactive.buttons[0].id"}


def test_only_rows_of_lists_have_descriptions() -> None:
    described = {"body": "Well?", "buttons": buttons(1, description="x" * 72)}
    assert content("list", interactive=described)
    assert wrong("buttons", interactive=described) == {"interactive.buttons[0].description"}
    described = {"body": "Well?", "buttons": buttons(1, description="x" * 73)}
    assert wrong("list", interactive=described) == {"interactive.buttons[0].description"}


def test_what_stands_around_buttons_has_its_limits() -> None:
    given = {"body": "x" * 1025, "header": "x" * 61, "footer": "", "buttons": [BUTTON]}
    assert wrong("buttons", interactive=given) == {
        "interactive.body",
        "interactive.header",
        "interactive.footer",
    }
    assert wrong("buttons", interactive={"buttons": [BUTTON]}) == {"interactive.body"}


def test_a_template_needs_a_value_for_each_variable() -> None:
    approved = Template(
        7, "a", "order_sent", "en_US", "UTILITY", "{{1}} {{2}}!", 2, "APPROVED", MOMENT, MOMENT
    )
    wanted = content("template", template={"name": "order_sent", "bodyParameters": ["Asha", "4711"]})
    assert list(template_errors(wanted, approved)) == []
    short = content("template", template={"name": "order_sent", "bodyParameters": ["Asha"]})
    for errors, field in (
        (template_errors(short, approved), "template.bodyParameters"),
        (template_errors(wanted, None), "template.name"),
    ):
        assert [error.field for error in errors] == [field]
    empty = {"name": "order_sent", "bodyParameters": ["", "x" * 1025]}
    assert wrong("template", template=empty) == {
        "template.bodyParameters[0]",
        "template.bodyParameters[1]",
    }


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("STOP", False),
        (" Stop.\n", False),
        ("opt  out", False),
        ("Start!", True),
        ("unstop", True),
        ("please stop shouting", None),
        ("stop" + "." * 30, None),
        ("", None),
        (None, None),
    ],
    ids=["stop", "spaces", "two-words", "start", "unstop", "sentence", "long", "empty", "none"],
)
def test_only_a_message_that_is_nothing_but_the_word_opts_out_or_in(
    text: str | None, wants: bool | None
) -> None:
    assert preference(text) is wants
