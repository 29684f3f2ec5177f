"""Validation of templates."""

import difflib
import re
from datetime import datetime
from typing import Final

from callcontrol.errors import FieldError, ValidationFailed
from callcontrol.messaging.models import Template, TemplateCategory

DEFAULT_LANGUAGE: Final = "en_US"

LANGUAGES: Final = frozenset(
    (
        "af ar ar_AE ar_EG ar_LB ar_MA ar_QA ar_SA as az be be_BY bg bn bn_BD bn_IN ca cs da de de_AT "
        "de_CH el en en_AE en_AU en_CA en_GB en_GH en_IE en_IN en_JM en_MY en_NZ en_QA en_SG en_UG en_US "
        "en_ZA es es_AR es_CL es_CO es_CR es_DO es_EC es_ES es_GT es_HN es_MX es_PA es_PE es_US es_UY et "
        "fa fi fil fr fr_BE fr_CA fr_CH fr_CI fr_MA ga gu ha he hi hr hu id it ja ka kk kn ko kok ky_KG "
        "lo lt lv mai mk ml mni mr ms nb ne nl nl_BE or pa pl prs_AF ps_AF pt_BR pt_PT ro ru rw_RW sat "
        "sd si_LK sk sl sq_AL sr sv sw ta te th tr uk ur uz vi zh_CN zh_HK zh_TW zu"
    ).split()
)

MAX_NAME_CHARACTERS: Final = 512
MAX_TEMPLATES: Final = 1000
"""Templates that an account may have."""
MAX_BODY_CHARACTERS: Final = 1024
MAX_VARIABLES: Final = 50
NAME: Final = re.compile(r"[a-z0-9_]+", re.ASCII)
_VARIABLE: Final = re.compile(r"\{\{([1-9][0-9]{0,3})\}\}")
_BRACES: Final = re.compile(r"\{\{|\}\}")
_SHOWN: Final = 12
_LONGEST_SHOWN: Final = 40
# Control characters other than line breaks and tabs have no meaning on a phone.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class BodyError(ValueError):
    """The body is invalid; the message names the error and its place."""


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
    errors = wrong_template(name, language, body)
    if errors:
        raise ValidationFailed(errors)
    return Template(
        template_id=0,
        account_sid=account_sid,
        name=name,
        language=language,
        category=category,
        body=body,
        variables=_read_body(body),
        status="PENDING",
        created_at=now,
        updated_at=now,
        reference=reference,
    )


def wrong_template(name: str | None, language: str | None, body: str | None) -> list[FieldError]:
    """Errors in the texts of a template; None is not judged."""
    errors: list[FieldError] = []
    if name is not None:
        errors += _wrong_name(name)
    if language is not None:
        errors += _wrong_language(language)
    if body is not None:
        try:
            _read_body(body)
        except BodyError as error:
            errors.append(FieldError("body", str(error)))
    return errors


def _wrong_name(name: str) -> list[FieldError]:
    if len(name) > MAX_NAME_CHARACTERS:
        return [FieldError("name", f"must have at most {MAX_NAME_CHARACTERS} characters")]
    if NAME.fullmatch(name) is None:
        return [FieldError("name", "must be lowercase letters, digits and underscores, such as order_update")]
    return []


def _wrong_language(language: str) -> list[FieldError]:
    if language in LANGUAGES:
        return []
    near = _nearest(language[:16].replace("-", "_"))
    hint = f"; did you mean {near}?" if near else ""
    return [FieldError("language", f"must be a language of the network, such as en_US or hi{hint}")]


def _nearest(language: str) -> str | None:
    """Return a language of the network in other letters, of another region, or that is written alike."""
    known = {name.lower(): name for name in sorted(LANGUAGES)}
    wanted = language.lower()
    spoken = wanted.partition("_")[0]
    regional = (name for name in known if name.startswith(f"{spoken}_"))
    alike = difflib.get_close_matches(wanted, known, n=1)
    near = next((name for name in (wanted, spoken, *regional, *alike) if name in known), None)
    return known[near] if near else None


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


def variables_in(body: str) -> int:
    """
    Number of variables of a body, which has each number from 1 to the result at least once, in any order.

    A variable is a number in two pairs of braces with nothing else between them. Single braces are text.

    Raises:
        BodyError: Double braces belong to no variable, a number is left out, or there are too many.
    """
    end = 0
    numbers: set[int] = set()
    for found in _VARIABLE.finditer(body):
        _check_text(body, end, found.start())
        numbers.add(int(found[1]))
        end = found.end()
    _check_text(body, end, len(body))
    count = max(numbers, default=0)
    if count > MAX_VARIABLES:
        raise BodyError(f"has the variable {{{{{count}}}}}; there may be {MAX_VARIABLES} at most")
    left_out = next((number for number in range(1, count) if number not in numbers), None)
    if left_out is not None:
        raise BodyError(
            f"has a variable {{{{{count}}}}} but no {{{{{left_out}}}}}; number them from 1 without gaps"
        )
    return count


def _check_text(body: str, start: int, end: int) -> None:
    """Refuse double braces in the text between variables."""
    found = _BRACES.search(body, start, end)
    if found is not None:
        place = found.start()
        closing = body.find("}}", place + 2, place + _LONGEST_SHOWN)
        end = closing + 2 if closing > 0 and body[place] == "{" else place + _SHOWN
        shown = body[place:end].split("\n")[0]
        raise BodyError(
            f"has {shown!r} at character {place + 1}, which is no variable; write variables as {{{{1}}}}"
        )
