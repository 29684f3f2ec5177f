"""Bodies of messaging: what one refusal names, and what null and spaces mean."""

from __future__ import annotations

from typing import Any

import pytest

from api.schemas.base import RequestModel, validate_body
from api.schemas.messaging.campaigns import CreateCampaign
from api.schemas.messaging.contacts import CreateContact, CreateContactList, UpdateContact, UpdateContactList
from api.schemas.messaging.messages import SandboxInbound, SendMessageBody
from api.schemas.messaging.templates import CreateTemplate, UpdateChannel
from api.schemas.messaging.webhooks import CreateWebhookEndpoint, UpdateWebhookEndpoint
from callcontrol.errors import ValidationFailed

_TO = "+919800100000"
_CAMPAIGN = {"templateName": "offer", "campaignName": "Diwali", "phoneNumbers": [_TO]}


def named(model: type[RequestModel], body: dict[str, Any]) -> set[str]:
    """The fields that a refusal names; none when the body is accepted."""
    try:
        validate_body(model, body)
    except ValidationFailed as refusal:
        return {error.field for error in refusal.errors}
    return set()


@pytest.mark.parametrize(
    ("model", "body", "wrong"),
    [
        (SendMessageBody, {"type": "text"}, {"to", "text"}),
        (SendMessageBody, {"to": "123", "type": "text", "text": "a", "foo": 1}, {"to", "foo"}),
        (SendMessageBody, {"to": "123", "type": "text", "text": 5}, {"to", "text"}),
        (SendMessageBody, {"to": _TO, "type": "fax", "text": 5}, {"type", "text"}),
        (
            SendMessageBody,
            {"type": "media", "media": {"type": "audio", "url": "ftp://x", "caption": "a"}, "text": "a"},
            {"to", "media.url", "text"},
        ),
        (
            SendMessageBody,
            {"type": "template", "template": {"name": "a", "bodyParameters": None, "language": None}},
            {"to"},
        ),
        (SandboxInbound, {"from": "123"}, {"from", "text"}),
        (CreateTemplate, {"name": "A b", "body": "{{x}}", "category": "X"}, {"name", "body", "category"}),
        (CreateTemplate, {"name": "a", "language": "xx_YY"}, {"language", "body"}),
        (
            CreateCampaign,
            {"templateName": "a", "phoneNumbers": ["1", "x"], "scheduledFor": "2020-01-01T00:00:00Z"},
            {"campaignName", "phoneNumbers", "scheduledFor"},
        ),
        (CreateCampaign, {"templateName": "a", "phoneNumbers": ["1", _TO]}, {"campaignName"}),
        (CreateWebhookEndpoint, {"url": "ftp://x", "events": ["x"]}, {"url", "events[0]"}),
        (
            CreateWebhookEndpoint,
            {"url": "https://x.example", "events": ["x"], "secret": "a"},
            {"events[0]", "secret"},
        ),
        (UpdateWebhookEndpoint, {"url": "https://x y", "isActive": 1}, {"url", "isActive"}),
    ],
)
def test_a_refusal_names_what_is_wrong_in_form_and_in_content(
    model: type[RequestModel], body: dict[str, Any], wrong: set[str]
) -> None:
    assert named(model, body) == wrong


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (SendMessageBody, {"to": _TO, "type": "text", "text": "a"}),
        (SendMessageBody, {"to": _TO, "type": "template", "template": {"name": "a"}}),
        (
            SendMessageBody,
            {"to": _TO, "type": "media", "media": {"type": "image", "url": "https://a.example"}},
        ),
        (CreateCampaign, _CAMPAIGN),
        (CreateTemplate, {"name": "a", "body": "a"}),
        (CreateContact, {"phoneNumber": _TO}),
        (CreateContactList, {"name": "a"}),
        (CreateWebhookEndpoint, {"url": "https://a.example", "events": ["message.read"]}),
    ],
)
def test_null_is_the_same_as_leaving_an_optional_field_out(
    model: type[RequestModel], body: dict[str, Any]
) -> None:
    optional = {
        field.alias or name: None for name, field in model.model_fields.items() if not field.is_required()
    }
    written = {**optional, **body}
    if "template" in body:
        written["template"] = {**body["template"], "language": None, "bodyParameters": None}
    assert validate_body(model, written) == validate_body(model, body)
    schema = model.model_json_schema()
    for name in optional:
        assert {"type": "null"} in schema["properties"][name]["anyOf"], name


@pytest.mark.parametrize(
    ("model", "body", "removed", "wrong"),
    [
        (UpdateContact, {"email": None, "optedOut": None}, "email", {"optedOut"}),
        (UpdateContactList, {"description": None, "name": None}, "description", {"name"}),
        (UpdateChannel, {"displayName": None, "isConnected": None}, "display_name", {"isConnected"}),
        (UpdateWebhookEndpoint, {"description": None, "url": None}, "description", {"url"}),
    ],
)
def test_null_in_a_change_removes_a_value_and_is_no_omission(
    model: type[RequestModel], body: dict[str, Any], removed: str, wrong: set[str]
) -> None:
    assert named(model, body) == wrong
    kept = {name: value for name, value in body.items() if name not in wrong}
    assert validate_body(model, kept).model_dump(exclude_unset=True) == {removed: None}


@pytest.mark.parametrize(
    ("model", "body", "blank"),
    [
        (SendMessageBody, {"to": _TO, "type": "text", "text": " "}, "text"),
        (
            SendMessageBody,
            {"to": _TO, "type": "template", "template": {"name": "a", "bodyParameters": [" \t"]}},
            "template.bodyParameters[0]",
        ),
        (CreateCampaign, {**_CAMPAIGN, "campaignName": "  "}, "campaignName"),
        (CreateCampaign, {**_CAMPAIGN, "variables": {"1": "\n"}}, "variables.1"),
        (CreateContactList, {"name": " "}, "name"),
        (UpdateContactList, {"name": " "}, "name"),
        (UpdateChannel, {"displayName": " "}, "displayName"),
    ],
)
def test_spaces_alone_are_no_text(model: type[RequestModel], body: dict[str, Any], blank: str) -> None:
    assert named(model, body) == {blank}


def test_a_text_that_is_too_long_is_measured_in_characters() -> None:
    with pytest.raises(ValidationFailed, match="text: must have at most 4096 characters"):
        validate_body(SendMessageBody, {"to": _TO, "type": "text", "text": "x" * 4097})
