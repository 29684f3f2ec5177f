"""Validation of templates, the count of their variables, and their state with the network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.errors import ValidationFailed
from callcontrol.messaging.approval import Verdict
from callcontrol.messaging.models import Template, TemplateStatus
from callcontrol.messaging.template_states import after_verdict, next_check
from callcontrol.messaging.templates import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    MAX_VARIABLES,
    BodyError,
    new_template,
    variables_in,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)

# Text without two braces together, whatever it is put between.
PLAIN = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=20)


def template(**fields: str) -> Template:
    values = {"name": "order_update", "language": "en_US", "body": "Hello {{1}}.", **fields}
    return new_template("ref", "acc", category="UTILITY", now=NOW, **values)


@given(
    st.integers(0, MAX_VARIABLES).flatmap(
        lambda count: st.tuples(
            st.permutations(range(1, count + 1)), st.lists(st.integers(1, max(count, 1)), max_size=3)
        )
    ),
    st.lists(PLAIN, min_size=1),
)
def test_variables_are_counted_wherever_and_however_often_they_stand(
    numbers: tuple[list[int], list[int]], texts: list[str]
) -> None:
    order, again = numbers
    placed = [*order, *again] if order else []
    body = texts[0] + "".join(
        f"{{{{{number}}}}}{texts[place % len(texts)]}" for place, number in enumerate(placed)
    )
    assert variables_in(body) == len(order)


@given(st.integers(2, MAX_VARIABLES), st.data())
def test_a_number_that_is_left_out_is_named(count: int, data: st.DataObject) -> None:
    missing = data.draw(st.integers(1, count - 1))
    body = " ".join(f"{{{{{number}}}}}" for number in range(1, count + 1) if number != missing)
    with pytest.raises(BodyError, match=rf"no \{{\{{{missing}\}}\}}"):
        variables_in(body)


@given(
    PLAIN,
    PLAIN,
    st.sampled_from(["{{", "}}", "{{}}", "{{x}}", "{{ 1 }}", "{{0}}", "{{01}}", "{{-1}}", "{{1}"]),
)
def test_two_braces_that_are_no_variable_are_named_with_their_place(
    before: str, after: str, wrong: str
) -> None:
    with pytest.raises(BodyError, match=rf"at character {len(before) + 1},"):
        variables_in(before + wrong + " " + after)


@given(st.text(alphabet="{}12 x\n", max_size=30))
def test_any_text_is_counted_or_refused(body: str) -> None:
    try:
        count = variables_in(body)
    except BodyError:
        return
    assert all(f"{{{{{number}}}}}" in body for number in range(1, count + 1))
    rest = body
    for number in range(1, count + 1):
        rest = rest.replace(f"{{{{{number}}}}}", " ")
    assert "{{" not in rest and "}}" not in rest


@pytest.mark.parametrize(
    ("body", "count"),
    [("Hello.", 0), ("{1} is text", 0), ("{{1}}{{2}}", 2), ("{{2}} and {{1}}, {{1}}", 2), ("a {{{1}}} b", 1)],
    ids=["none", "single braces", "side by side", "any order", "braces around"],
)
def test_bodies_that_are_taken(body: str, count: int) -> None:
    assert variables_in(body) == count


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("Hello {{name}} of {{2}}", "'{{name}}' at character 7"),
        ("{{ 1 }}", "'{{ 1 }}' at character 1"),
        ("a }} of it all", "'}} of it all' at character 3"),
        ("a {{ " + "b" * 60 + " }}", "'{{ bbbbbbbbb' at character 3"),
        ("a {{b\nc}}", "'{{b' at character 3"),
    ],
)
def test_a_refusal_shows_what_stands_in_the_braces(body: str, shown: str) -> None:
    with pytest.raises(BodyError) as refused:
        variables_in(body)
    assert f"has {shown}, which is no variable" in str(refused.value)


def test_there_are_not_more_variables_than_may_be() -> None:
    body = " ".join(f"{{{{{number}}}}}" for number in range(1, MAX_VARIABLES + 2))
    with pytest.raises(BodyError, match=f"{MAX_VARIABLES} at most"):
        variables_in(body)


@pytest.mark.parametrize("name", ["a", "order_update_2", "_", "x" * 512])
def test_names_that_are_taken(name: str) -> None:
    assert template(name=name).name == name


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "Order"),
        ("name", "order-update"),
        ("name", "order update"),
        ("name", "ordér"),
        ("name", "order_update\n"),
        ("name", "x" * 513),
        ("language", "xx"),
        ("language", "en-US"),
        ("body", ""),
        ("body", " \n "),
        ("body", "x" * 1025),
        ("body", "bell \x07"),
        ("body", "nothing \x00"),
        ("body", "{{2}}"),
    ],
    ids=lambda value: repr(value[:14]),
)
def test_what_is_wrong_is_named_alone(field: str, value: str) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        template(**{field: value})
    assert [error.field for error in refusal.value.errors] == [field]


@pytest.mark.parametrize(
    ("written", "offered"),
    [
        ("en-us", "en_US"),
        ("en_us", "en_US"),
        ("hi_IN", "hi"),
        ("de_DE", "de"),
        ("pt-BR", "pt_BR"),
        ("EN", "en"),
        ("pt", "pt_BR"),
        ("zh", "zh_CN"),
    ],
)
def test_the_language_that_was_meant_is_offered(written: str, offered: str) -> None:
    with pytest.raises(ValidationFailed, match=f"did you mean {offered}"):
        template(language=written)


def test_all_that_is_wrong_is_named_at_once_and_a_language_that_is_near_is_offered() -> None:
    with pytest.raises(ValidationFailed) as refusal:
        template(name="Order", language="en-US", body="{{x}}")
    errors = {error.field: error.message for error in refusal.value.errors}
    assert set(errors) == {"name", "language", "body"}
    assert "did you mean en_US?" in errors["language"]


def test_lines_and_every_script_are_text() -> None:
    assert template(body="नमस्ते {{1}},\r\n\tआपका ऑर्डर 🎉").variables == 1
    assert template().status == "PENDING" and DEFAULT_LANGUAGE in LANGUAGES


@pytest.mark.parametrize(
    ("status", "verdict", "following"),
    [
        ("PENDING", Verdict.APPROVED, "APPROVED"),
        ("PENDING", Verdict.REJECTED, "REJECTED"),
        ("PENDING", Verdict.PENDING, None),
        ("APPROVED", Verdict.APPROVED, None),
        ("APPROVED", Verdict.PAUSED, "PAUSED"),
        ("APPROVED", Verdict.PENDING, None),
        ("PAUSED", Verdict.APPROVED, "APPROVED"),
        ("REJECTED", Verdict.APPROVED, "APPROVED"),
        ("REJECTED", Verdict.PENDING, None),
    ],
)
def test_what_a_verdict_makes_of_a_template(
    status: TemplateStatus, verdict: Verdict, following: TemplateStatus | None
) -> None:
    assert after_verdict(status, verdict) == following


def test_the_network_is_asked_less_often_the_longer_nothing_has_changed() -> None:
    def wait(status: TemplateStatus, **age: float) -> timedelta:
        asked_at = next_check(status, NOW, NOW + timedelta(**age))
        assert asked_at is not None
        return asked_at - NOW - timedelta(**age)

    assert wait("PENDING", seconds=0) == timedelta(seconds=1)
    assert wait("PENDING", seconds=10) == timedelta(seconds=5)
    assert wait("PENDING", days=2) == timedelta(minutes=10)
    assert wait("APPROVED", days=2) == timedelta(hours=6)
    assert wait("PAUSED", days=2) == timedelta(hours=1)
    assert next_check("REJECTED", NOW, NOW) is None
