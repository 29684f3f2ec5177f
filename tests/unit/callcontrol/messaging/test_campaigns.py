"""Campaigns: states, counts, times and variables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.messaging.campaigns import (
    MAX_AHEAD,
    RULES,
    Campaign,
    CampaignCounts,
    CampaignEvent,
    CampaignState,
    batch_size,
    body_parameters,
    estimated_end,
    first_state,
    progress_percent,
    schedule_errors,
    settled,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
CAMPAIGN = Campaign(
    reference="r",
    account_sid="a",
    name="Diwali",
    template_id=1,
    template_name="offer",
    language="en_US",
    body_parameters=(),
    total=100,
    created_at=NOW,
    starts_at=NOW,
    state=CampaignState.RUNNING,
    started_at=NOW,
)


def test_only_what_is_open_can_change() -> None:
    open_states = {state for state in CampaignState if state.is_open}
    assert {state for state, _ in RULES} == {CampaignState.DRAFT, *open_states}
    first = {CampaignState.DRAFT, CampaignState.SCHEDULED}
    assert {rule[0] for rule in RULES.values()} == set(CampaignState) - first


def test_a_campaign_has_failed_when_every_message_has() -> None:
    assert settled(CampaignCounts(failed=3)) is CampaignEvent.ALL_FAILED
    assert settled(CampaignCounts(failed=2, sent=1)) is CampaignEvent.SETTLED
    assert settled(CampaignCounts(delivered=1, read=2)) is CampaignEvent.SETTLED


@pytest.mark.parametrize(
    ("scheduled_for", "field"),
    [
        (None, None),
        (LATER, None),
        (NOW + MAX_AHEAD, None),
        (NOW, "scheduledFor"),
        (NOW - timedelta(seconds=1), "scheduledFor"),
        (NOW + MAX_AHEAD + timedelta(seconds=1), "scheduledFor"),
    ],
)
def test_when_a_campaign_may_start(scheduled_for: datetime | None, field: str | None) -> None:
    errors = schedule_errors(scheduled_for, NOW)
    assert [error.field for error in errors] == ([] if field is None else [field])


@pytest.mark.parametrize(
    ("scheduled_for", "immediately", "state"),
    [
        (None, True, CampaignState.RUNNING),
        (None, False, CampaignState.DRAFT),
        (LATER, True, CampaignState.SCHEDULED),
        (LATER, False, CampaignState.SCHEDULED),
    ],
)
def test_what_a_campaign_begins_as(
    scheduled_for: datetime | None, immediately: bool, state: CampaignState
) -> None:
    assert first_state(scheduled_for, immediately=immediately) is state


def test_variables_are_put_in_the_order_of_their_numbers() -> None:
    values = {str(number): f"value {number}" for number in range(12, 0, -1)}
    assert body_parameters(values, 12) == tuple(f"value {number}" for number in range(1, 13))
    assert body_parameters({}, 0) == ()


def test_variables_that_are_missing_or_too_many_are_named() -> None:
    errors = body_parameters({"1": "a", "name": "b", "03": "c"}, 3)
    assert [error.field for error in errors if not isinstance(error, str)] == [
        "variables.2",
        "variables.3",
        "variables.name",
        "variables.03",
    ]


@given(st.builds(CampaignCounts, *(st.integers(0, 400) for _ in range(6))))
def test_progress_is_100_when_nothing_is_queued_and_only_then(counts: CampaignCounts) -> None:
    percent = progress_percent(counts)
    assert 0 <= percent <= 100
    assert (percent == 100) == (counts.queued == 0)


@given(st.integers(0, 2000), st.integers(1, 1000))
def test_stretches_are_short_and_go_no_further_ahead_than_some_seconds(queued: int, rate: int) -> None:
    size = batch_size(queued, rate)
    assert 0 <= size <= 50
    assert queued + size <= max(queued, 100, 5 * rate)


def test_what_waits_is_refilled_before_it_is_sent() -> None:
    assert batch_size(0, 1) > 0
    assert batch_size(3 * 80, 80) > 0


def test_the_end_is_estimated_from_the_channels_pace_at_first() -> None:
    counts = CampaignCounts(queued=100)
    assert estimated_end(CAMPAIGN, counts, 50, NOW) == NOW + timedelta(seconds=2)
    later = replace(CAMPAIGN, state=CampaignState.SCHEDULED, started_at=None, starts_at=LATER)
    assert estimated_end(later, counts, 50, NOW) == LATER + timedelta(seconds=2)


def test_the_end_is_estimated_from_the_campaigns_own_pace_when_that_is_less() -> None:
    counts = CampaignCounts(queued=60, sent=40)
    at = NOW + timedelta(seconds=20)
    assert estimated_end(CAMPAIGN, counts, 80, at) == at + timedelta(seconds=30)
    assert estimated_end(CAMPAIGN, counts, 1, at) == at + timedelta(seconds=60)


@pytest.mark.parametrize("state", [state for state in CampaignState if not state.is_open], ids=str)
def test_what_is_over_has_no_end_to_estimate(state: CampaignState) -> None:
    assert estimated_end(replace(CAMPAIGN, state=state), CampaignCounts(queued=1), 80, NOW) is None
    assert estimated_end(CAMPAIGN, CampaignCounts(sent=100), 80, NOW) is None


def test_the_end_is_no_earlier_than_the_next_attempt_at_a_message() -> None:
    counts = CampaignCounts(queued=1, read=99)
    soon = NOW + timedelta(milliseconds=20)
    assert estimated_end(CAMPAIGN, counts, 50, NOW, NOW - timedelta(seconds=9)) == soon
    assert estimated_end(CAMPAIGN, counts, 50, NOW, LATER) == LATER


def test_a_clock_that_went_back_spoils_no_estimate() -> None:
    counts = CampaignCounts(queued=50, sent=50)
    ended = estimated_end(CAMPAIGN, counts, 50, NOW - timedelta(hours=1))
    assert ended == NOW + timedelta(seconds=1)
