"""Base of all request and response models, and conversion of validation errors to readable text."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from api.http.body import UNSTORABLE
from api.process.values import CONTROLS_AND_BREAKS
from callcontrol.egress.url_policy import url_errors
from callcontrol.errors import DomainError, FieldError, ValidationFailed
from callcontrol.instructions.verbs import VerbRules

__all__ = [
    "NoBody",
    "NoQuery",
    "Reach",
    "RequestModel",
    "ResponseList",
    "ResponseModel",
    "all_optional",
    "field_names",
    "validate_body",
    "validate_query",
]

_MAX_ERRORS = 100
_TOP = re.compile(r"[.\[]")
_MAX_NAME_CHARS = 100
# pydantic also takes "+1", " 1", "1_0", "1.0" and digits of other scripts.
_FORMS: Final[Mapping[type, tuple[re.Pattern[str], str]]] = {
    int: (re.compile(r"-?[0-9]+"), "must be a whole number"),
    bool: (re.compile("true|false"), "must be true or false"),
}
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LINES: Final = frozenset(
    {
        *("name", "first_name", "last_name", "friendly_name", "caller_name", "campaign_name"),
        *("template_name", "title", "filename", "label", "tag", "reference", "email"),
    }
)
"""Fields of one line: what pages, logs and tables show as a name. Other texts may have several lines."""


@dataclass(frozen=True, slots=True)
class Reach:
    """
    Countries, prompts and hosts that requests of an account may name on this server.

    ``has_gateway`` tells by host and port if a gateway of the account or of the platform is there.
    """

    rules: VerbRules
    has_gateway: Callable[[str, int | None], bool]


class RequestModel(BaseModel):
    """A request body or query: strict types, no undeclared fields in a body, immutable."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True
    )

    #: Fields that are not accepted here, with the message to send instead of "unknown".
    not_accepted: ClassVar[Mapping[str, str]] = {}

    #: Fields with URLs that the server will connect to, and the schemes of each.
    urls: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    #: Fields that a form may give several times; their values are a list.
    repeatable: ClassVar[frozenset[str]] = frozenset()

    @field_validator("*", mode="after")
    @classmethod
    def _printable(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse control characters in every text, which nobody sees and terminals obey."""
        if info.field_name in _LINES:
            if _holds(value, CONTROLS_AND_BREAKS):
                raise ValueError("must not contain control characters or line breaks")
        elif _holds(value, _CONTROLS):
            raise ValueError("must not contain control characters other than tabs and line breaks")
        return value

    def __repr_args__(self) -> Iterator[tuple[str | None, str]]:
        """
        Show the names of the given fields without their values.

        Requests appear in error reports, and their values include passwords and phone numbers.
        """
        return ((None, name) for name in sorted(self.model_fields_set))

    @classmethod
    def schemes_of(cls, name: str, url: str, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Schemes of a field of `urls`, which may depend on the others of the raw input."""
        return cls.urls[name]

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """
        Check rules between fields, on the raw input.

        Runs even when single fields are invalid, so that one response names every error; it must therefore
        expect any type in any field. Its error of a field replaces that of the field's type.
        """
        return []

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """
        Errors that the domain would find in the fields whose form is right; None is never among their values.

        Runs only when other fields are of the wrong form, contradict each other or have a URL that the server
        must not connect to, so that one response names all errors: any other request is checked by the domain
        itself.
        """
        return []

    @classmethod
    def unreachable(cls, given: Mapping[str, Any], reach: Reach) -> list[FieldError]:
        """
        Errors of values other than `urls` that this server cannot play, fetch or call, on the raw input.

        They are told beside other errors. Without any the domain decides, which may know more: a gateway that
        another process has just added.
        """
        return []

    @classmethod
    def refusal(cls, given: Mapping[str, Any], errors: Sequence[FieldError], message: str) -> DomainError:
        """Make the error of a request, with all its field errors."""
        return ValidationFailed(errors, message)


def _holds(value: Any, characters: re.Pattern[str]) -> bool:
    """Return true if one of the characters is in a text, or in a text of a list or an object."""
    if isinstance(value, str):
        return characters.search(value) is not None
    if isinstance(value, dict):
        return any(_holds(part, characters) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(_holds(item, characters) for item in value)


class ResponseModel(BaseModel):
    """Base of response models: undeclared fields are refused."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    json_schema_mode: ClassVar[str] = "serialization"


ItemT = TypeVar("ItemT")


class ResponseList(RootModel[list[ItemT]]):
    """Base of responses that are a list."""

    model_config = ConfigDict(defer_build=True)


class NoBody(RequestModel):
    """Body of an endpoint without one: absent, or an empty object."""


class NoQuery(RequestModel):
    """Query of an endpoint without parameters."""


def all_optional(schema: dict[str, Any]) -> None:
    """Remove defaults from the schema of a change, as an omitted field keeps its value."""
    for field in schema["properties"].values():
        field.pop("default", None)


ModelT = TypeVar("ModelT", bound=RequestModel)


def validate_body(model: type[ModelT], given: Any, reach: Reach | None = None) -> ModelT:
    """
    Check a parsed JSON body against its model; without `reach` any host of a URL is accepted.

    Raises:
        DomainError: The model's refusal, in general ``ValidationFailed``; it names every missing, unknown and
            invalid field.
    """
    if not isinstance(given, dict):
        raise ValidationFailed.of("body", "must be a JSON object")
    return _validate(model, given, lambda: model.model_validate(given), reach)


@cache
def field_names(model: type[RequestModel]) -> frozenset[str]:
    """Return the names of the fields of a query or a body."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


@cache
def _written_forms(model: type[RequestModel]) -> Mapping[str, tuple[re.Pattern[str], str]]:
    """Forms of the texts of a query's numbers and booleans, and the refusal of any other."""
    return {
        field.alias or name: form
        for name, field in model.model_fields.items()
        for kind, form in _FORMS.items()
        if _is_of(kind, field.annotation)
    }


def _is_of(kind: type, annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_of(kind, get_args(annotation)[0])
    if origin in (Union, UnionType):
        return any(_is_of(kind, part) for part in get_args(annotation))
    return annotation is kind


def validate_query(model: type[ModelT], given: Iterable[tuple[str, str]]) -> ModelT:
    """
    Check query parameters against their model; numbers and booleans are read from their text.

    Parameters that the model does not know are ignored: the client may be newer than the server, and others
    on the way add their own. Those that it does not accept are refused: they would change the response.

    Raises:
        ValidationFailed: It names every missing and invalid parameter, and every one given more than once.
    """
    if model is NoQuery:
        return model()
    given = list(given)
    names = field_names(model)
    known = [(name, text) for name, text in given if name in names]
    texts = dict(known)
    refused = {name: model.not_accepted[name] for name, _ in given if name in model.not_accepted}
    refused |= {name: "must not contain NUL" for name, text in known if UNSTORABLE.search(text)}
    forms = _written_forms(model)
    refused |= {
        name: forms[name][1] for name, text in known if name in forms and not forms[name][0].fullmatch(text)
    }
    if len(texts) < len(known):
        counts = Counter(name for name, _ in known)
        refused |= {name: "is given more than once" for name, count in counts.items() if count > 1}
    sound = {name: text for name, text in texts.items() if name not in refused}
    errors = [FieldError(name, message) for name, message in refused.items()]
    return _validate(model, sound, lambda: model.model_validate_strings(sound, strict=False), refused=errors)


def _validate(
    model: type[ModelT],
    given: Mapping[str, Any],
    run: Any,
    reach: Reach | None = None,
    *,
    refused: Sequence[FieldError] = (),
) -> ModelT:
    between = [*refused, *model.cross_check(given)]
    single: list[FieldError] = []
    wrong: set[int | str] = {_TOP.split(error.field)[0] for error in between}
    result: ModelT | None = None
    try:
        result = run()
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        single = [_field_error(item, model.not_accepted) for item in details]
        wrong |= {item["loc"][0] for item in details if item["loc"]}
    unreachable = [] if reach is None else _by_urls(model, given, wrong, reach)
    beyond = [] if reach is None else model.unreachable(given, reach)
    if wrong or unreachable or beyond:
        between += _by_rules(model, given, wrong)
    named = {error.field for error in between}
    # The rules say more of a URL: that it belongs to another target, or lacks a part.
    between += [error for error in unreachable if error.field not in named]
    named |= {error.field for error in unreachable}
    errors = [error for error in single if error.field not in named and f"{error.field}.verb" not in named]
    # An entry of an object may be wrong by its name and by its value.
    errors = list({error.field: error for error in reversed(errors)}.values())[::-1]
    errors += between
    if errors:
        named = {error.field for error in errors}
        errors += [error for error in beyond if error.field not in named]
    if errors or result is None:
        kept = errors[:_MAX_ERRORS]
        raise model.refusal(given, kept, _summary(kept))
    return result


def _by_urls(
    model: type[RequestModel], given: Mapping[str, Any], wrong: Collection[int | str], reach: Reach
) -> list[FieldError]:
    """Errors of URLs, in fields other than the wrong ones, that the server must not connect to."""
    found = {name: given.get(name) for name in model.urls if name not in wrong}
    return [
        error
        for name, url in found.items()
        if isinstance(url, str) and url
        for error in url_errors(reach.rules.check_url, name, url, schemes=model.schemes_of(name, url, given))
    ]


def _by_rules(
    model: type[RequestModel], given: Mapping[str, Any], wrong: Collection[int | str]
) -> list[FieldError]:
    """Errors by the model's rules of fields other than the wrong ones."""
    known = field_names(model)
    sound = {
        name: value
        for name, value in given.items()
        if value is not None and name in known and name not in wrong
    }
    return [error for error in model.rules(sound) if _TOP.split(error.field)[0] not in wrong]


def _summary(errors: list[FieldError]) -> str:
    if len(errors) == 1:
        return f"{errors[0].field}: {errors[0].message}"
    shown = ", ".join(error.field for error in errors[:5])
    more = f" and {len(errors) - 5} more" if len(errors) > 5 else ""
    return f"{len(errors)} fields are missing or invalid: {shown}{more}; see details.errors"


def _field_error(item: ErrorDetails, not_accepted: Mapping[str, str]) -> FieldError:
    # A part that a whole object lacks is named as if it were there.
    part = (item["ctx"]["part"],) if item["type"] == "part_missing" else ()
    field = _path((*item["loc"], *part))
    if item["type"] == "extra_forbidden" and field in not_accepted:
        return FieldError(field, not_accepted[field])
    return FieldError(field, _message(item))


def _path(location: tuple[int | str, ...]) -> str:
    """Write a location as ``verbs[0].target[1].number``; names in angle brackets are tags of a union."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not (part.startswith("<") and part.endswith(">")):
            name = part if len(part) <= _MAX_NAME_CHARS else part[:_MAX_NAME_CHARS] + "..."
            text += f".{name}" if text else name
    return text.removesuffix(".[key]") or "body"


_MESSAGES: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "string_type": "must be a string",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "is too large",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "float_type": "must be a number",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "list_type": "must be a list",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "greater_than": "must be more than {gt}",
    "union_tag_not_found": "is not of a known kind",
    "union_tag_invalid": "is not of a known kind",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
}


def _message(item: ErrorDetails) -> str:
    context = item.get("ctx", {})
    if item["type"] == "value_error":
        return str(context.get("error", item["msg"]))
    template = _MESSAGES.get(item["type"])
    if template is None:
        return item["msg"]
    plain = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in context.items()
    }
    message = template.format(**plain)
    if isinstance(item["input"], str):
        # A limit behind another check is told of as that of a collection.
        message = re.sub(r" items$", " characters", message)
    message = re.sub(r"\b1 (item|character)s$", r"1 \1", message)
    message = re.sub(r"\bone of ('[\w.+/*-]*')$", r"\1", message)
    # pydantic quotes the expected values: 'a', 'b' or 'c'; quotes do not help readers of JSON.
    return re.sub(r"'([\w.+/*-]*)'", r"\1", message) if "expected" in context else message
