"""Validation of templates, and their submission to the network."""

import difflib
import re
from datetime import datetime
from typing import Final

from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.messaging.approval import Submission
from callcontrol.messaging.languages import LANGUAGES
from callcontrol.messaging.models import Channel, Template, TemplateCategory
from callcontrol.messaging.template_text import MAX_BODY_CHARACTERS, BodyError, variables_in

__all__ = ["MAX_NAME_CHARACTERS", "MAX_TEMPLATES", "NAME", "new_template", "submission_of"]

MAX_NAME_CHARACTERS: Final = 512
MAX_TEMPLATES: Final = 1000
"""Templates that an account may have."""
NAME: Final = re.compile(r"[a-z0-9_]+", re.ASCII)
# Control characters other than line breaks and tabs have no meaning on a phone.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def new_template(
    reference: str,
    account_sid: str,
    *,
    name: str,
    category: TemplateCategory,
    language: str,
    body: str,
    now: datetime,
) -> Template:
    """
    A template to be submitted; the database assigns its identifier.

    Raises:
        ValidationFailed: Names every wrong field.
    """
    errors = [*_wrong_name(name), *_wrong_language(language)]
    variables = 0
    try:
        variables = _read_body(body)
    except BodyError as error:
        errors.append(FieldError("body", str(error)))
    if errors:
        raise ValidationFailed(errors)
    return Template(
        template_id=0,
        account_sid=account_sid,
        name=name,
        language=language,
        category=category,
        body=body,
        variables=variables,
        status="PENDING",
        created_at=now,
        updated_at=now,
        reference=reference,
    )


def submission_of(template: Template, channel: Channel) -> Submission:
    """The submission of a template to the network."""
    return Submission(
        reference=template.reference,
        account_sid=template.account_sid,
        number=channel.number,
        name=template.name,
        language=template.language,
        category=template.category,
        body=template.body,
        variables=template.variables,
        created_at=template.created_at,
    )


def _wrong_name(name: str) -> list[FieldError]:
    if len(name) > MAX_NAME_CHARACTERS:
        return [FieldError("name", f"must have at most {MAX_NAME_CHARACTERS} characters")]
    if NAME.fullmatch(name) is None:
        return [FieldError("name", "must be lowercase letters, digits and underscores, such as order_update")]
    return []


def _wrong_language(language: str) -> list[FieldError]:
    if language in LANGUAGES:
        return []
    near = difflib.get_close_matches(language[:16].replace("-", "_"), sorted(LANGUAGES), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return [FieldError("language", f"must be a language of the network, such as en_US or hi{hint}")]


def _read_body(body: str) -> int:
    """Validate a body and return the number of its variables."""
    if not body.strip():
        raise BodyError("must not be empty")
    if len(body) > MAX_BODY_CHARACTERS:
        raise BodyError(f"must have at most {MAX_BODY_CHARACTERS} characters")
    unprintable = _UNPRINTABLE.search(body)
    if unprintable is not None:
        raise BodyError(f"must not contain the character U+{ord(unprintable[0]):04X}")
    return variables_in(body)
