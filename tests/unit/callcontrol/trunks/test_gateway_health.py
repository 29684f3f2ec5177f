"""Gateways that may be given calls, on virtual time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.trunks.gateway_health import (
    FIRST_COOLDOWN_S,
    MAX_COOLDOWN_S,
    GatewayTable,
    HealthInput,
    HealthState,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Table(GatewayTable):
    """One gateway `g`, pinged or not."""

    def __init__(self, *, pinged: bool = False) -> None:
        super().__init__(ping_every_s=30.0)
        self.pinged = {"g"} if pinged else set()

    def look(self, now: float) -> bool:
        """Return True if it is to be probed now."""
        return self.due(["g"], self.pinged, now) == ["g"]

    @property
    def state(self) -> str:
        return self.of("g").state.name

    def seen(self) -> list[str]:
        return [f"{change.before.name}->{change.after.name}" for change in self.changes()]


def test_a_new_gateway_is_given_calls_and_a_call_that_is_answered_shows_it_is_up() -> None:
    table = Table()
    assert table.usable("g")
    table.answered("g", AT, 0.0)
    assert (table.state, table.of("g").last_ok_at) == ("UP", AT)
    assert table.seen() == ["UNKNOWN->UP"]
    assert not table.look(1000.0), "one that is not pinged is left in peace while it is up"


def test_a_gateway_that_is_somewhere_else_is_as_new() -> None:
    table = Table()
    table.failed("g", 0.0)
    table.forget("g")
    table.forget("never heard of")
    assert (table.state, table.usable("g"), table.of("g").cooldown_s) == ("UNKNOWN", True, 0.0)


def test_a_failed_gateway_rests_is_probed_and_used_again_when_it_answers() -> None:
    table = Table()
    table.probed("g", AT, 0.0, 12.5)
    table.failed("g", 10.0)
    assert not table.usable("g") and table.unusable["g"] is HealthState.DOWN
    assert not table.look(10.0 + FIRST_COOLDOWN_S - 1)
    assert table.look(10.0 + FIRST_COOLDOWN_S)
    assert not table.look(10.0 + FIRST_COOLDOWN_S + 1), "one probe at a time"
    assert not table.usable("g"), "not before it has answered"
    table.probed("g", AT, 41.0, 8.0)
    assert table.usable("g") and table.of("g").rtt_ms == 8.0
    assert table.seen() == ["UNKNOWN->UP", "UP->DOWN", "DOWN->UP"]


def test_each_lost_probe_doubles_the_rest_up_to_five_minutes() -> None:
    table = Table()
    table.probed("g", AT, 0.0, 1.0)
    table.failed("g", 0.0)
    now, rests = 0.0, []
    for _ in range(6):
        began = now
        while not table.look(now):
            now += 1.0
        rests.append(now - began)
        table.probe_lost("g", now, pinged=False)
    assert rests == [30.0, 60.0, 120.0, 240.0, MAX_COOLDOWN_S, MAX_COOLDOWN_S]
    table.probed("g", AT, now, 1.0)
    table.failed("g", now)
    assert table.look(now + FIRST_COOLDOWN_S), "an answer forgives everything"


def test_calls_that_fail_together_count_once() -> None:
    table = Table()
    for _ in range(50):
        table.failed("g", 100.0)
    assert table.look(100.0 + FIRST_COOLDOWN_S)


def test_a_gateway_that_never_answers_options_gets_a_call_on_trial() -> None:
    table = Table()
    table.answered("g", AT, 0.0)
    table.failed("g", 0.0)
    assert table.look(30.0)
    table.probe_lost("g", 34.0, pinged=False)
    assert table.state == "TRIAL" and table.usable("g")
    table.failed("g", 40.0)
    assert not table.look(40.0 + 59.0)
    assert table.look(40.0 + 60.0), "it rests longer this time"
    table.probe_lost("g", 104.0, pinged=False)
    table.answered("g", AT, 110.0)
    assert table.state == "UP"


def test_a_rest_that_was_asked_for_is_kept_whatever_else_is_heard() -> None:
    table = Table(pinged=True)
    table.failed("g", 0.0, retry_after_s=60.0)
    table.failed("g", 0.0, retry_after_s=5.0)
    table.answered("g", AT, 1.0)
    table.probed("g", AT, 2.0, 1.0)
    table.failed("g", 3.0)
    assert table.state == "RESTING" and table.unusable["g"] is HealthState.RESTING
    assert not table.look(59.0), "not even a ping"
    assert table.look(60.0)
    table.probed("g", AT, 60.1, 1.0)
    assert table.state == "UP"


def test_no_gateway_can_put_itself_out_of_service_for_longer_than_five_minutes() -> None:
    table = Table()
    table.failed("g", 0.0, retry_after_s=1e9)
    assert not table.look(MAX_COOLDOWN_S - 1)
    assert table.look(MAX_COOLDOWN_S)


def test_a_pinged_gateway_is_probed_at_its_interval_and_down_when_it_does_not_answer() -> None:
    table = Table(pinged=True)
    assert table.look(0.0)
    assert not table.look(29.0)
    assert table.look(30.0)
    table.probe_lost("g", 34.0, pinged=True)
    assert table.state == "DOWN", "no call has to find out"
    assert table.look(64.0)
    table.probed("g", AT, 64.1, 3.0)
    assert table.state == "UP"


def test_gateways_that_are_gone_are_forgotten_and_states_are_counted() -> None:
    table = Table()
    table.failed("gone", 0.0)
    table.failed("g", 0.0)
    table.due(["g", "new"], (), 1.0)
    assert table.usable("gone")
    assert table.counts() == {
        HealthState.UNKNOWN: 1,
        HealthState.UP: 0,
        HealthState.TRIAL: 0,
        HealthState.RESTING: 0,
        HealthState.DOWN: 1,
    }


def test_what_there_is_no_room_for_is_probed_in_the_next_round() -> None:
    table = GatewayTable()
    sids = [f"g{number}" for number in range(5)]
    assert table.due(sids, sids, 0.0, 3) == sids[:3]
    assert table.due(sids, sids, 0.5, 3) == sids[3:]


@pytest.mark.parametrize("pinged", [True, False])
@given(st.lists(st.tuples(st.sampled_from(HealthInput), st.floats(0, 100), st.booleans()), max_size=60))
def test_whatever_happens_a_gateway_is_asked_again_in_time(
    pinged: bool, events: list[tuple[HealthInput, float, bool]]
) -> None:
    table, now = Table(pinged=pinged), 0.0
    for what, passed, _ in events:
        now += passed
        match what:
            case HealthInput.ANSWERED:
                table.answered("g", AT, now)
            case HealthInput.FAILED:
                table.failed("g", now)
            case HealthInput.ASKED:
                table.failed("g", now, retry_after_s=passed * 1000)
            case HealthInput.PROBE_LOST | HealthInput.PROBE_MUTE:
                table.probe_lost("g", now, pinged=pinged)
            case HealthInput.COOLDOWN_OVER:
                table.look(now)
    if not table.usable("g"):
        asked = table.look(now)
        assert asked or table.look(now + MAX_COOLDOWN_S) or table.of("g").probed_at >= table.of("g").until
