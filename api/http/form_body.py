"""Parser of form bodies, for clients of interfaces without JSON."""

from __future__ import annotations

from urllib.parse import parse_qsl

from callcontrol.errors import FieldError, ValidationFailed

__all__ = ["FORM", "parse_form"]

FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 100


def parse_form(data: bytes) -> dict[str, str]:
    """
    Parse a request body.

    Raises:
        ValidationFailed: It is not a form in UTF-8, has more than 100 fields, repeats one, or holds NUL.
    """
    try:
        text = data.decode("ascii")
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        message = f"must be a form in UTF-8 of at most {_MAX_FIELDS} fields, such as Status=completed"
        raise ValidationFailed.of("body", message) from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = [name for name in fields if names.count(name) > 1]
        raise ValidationFailed([FieldError(name[:100], "is given more than once") for name in repeated])
    if "\0" in "".join([*fields, *fields.values()]):
        raise ValidationFailed.of("body", "must not contain NUL")
    return fields
