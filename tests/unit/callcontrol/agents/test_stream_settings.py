"""Stream settings of accounts: the default dialect, and the secret, changed with an overlap."""

from datetime import timedelta

import pytest

from callcontrol.agents.stream_settings import MAX_OVERLAP_S, check_protocol, rotated
from callcontrol.calls.events.agent import AgentOpened
from callcontrol.calls.plan import Stream
from callcontrol.errors import ValidationFailed
from callcontrol.models import Account
from media.streams import choose_stream, under_default
from tests.support.call_drive import Drive
from tests.support.domain import ACCOUNT_SID, NOW

ACCOUNT = Account(ACCOUNT_SID, "Acme", NOW, NOW, webhook_secret="whsec_1")
URL = "wss://agent.example/ws"


def test_requests_are_signed_with_both_secrets_until_the_overlap_is_over() -> None:
    assert ACCOUNT.stream_secrets(NOW) == ("whsec_1", None)
    first = rotated(ACCOUNT, "sec-1", 60, NOW)
    assert first.stream_secrets(NOW) == ("sec-1", "whsec_1")
    assert first.stream_secrets(NOW + timedelta(seconds=60)) == ("sec-1", None)
    second = rotated(first, "sec-2", 3600, NOW + timedelta(seconds=30))
    assert second.stream_secrets(NOW + timedelta(minutes=50)) == ("sec-2", "sec-1")
    assert rotated(second, "sec-3", 0, NOW).stream_secrets(NOW) == ("sec-3", None)
    assert "sec-2" not in repr(second) and "sec-1" not in repr(second)


@pytest.mark.parametrize("overlap_s", [-1, MAX_OVERLAP_S + 1])
def test_an_overlap_has_its_bounds(overlap_s: int) -> None:
    with pytest.raises(ValidationFailed):
        rotated(ACCOUNT, "sec-1", overlap_s, NOW)


def test_a_default_is_something_that_is_spoken() -> None:
    check_protocol("exotel")
    check_protocol(None)
    with pytest.raises(ValidationFailed) as caught:
        check_protocol("esperanto")
    assert caught.value.errors[0].field == "default_stream_protocol"


@pytest.mark.parametrize(
    ("query", "fields", "spoken"),
    [
        ("", {}, ("plivo", 8000)),
        ("?sample-rate=16000", {}, ("plivo", 16000)),
        ("?stream_protocol=exotel", {}, ("exotel", 8000)),
        ("", {"stream_protocol": "exotel"}, ("exotel", 8000)),
    ],
)
def test_a_default_is_spoken_where_nothing_else_was_asked_for(
    query: str, fields: dict[str, object], spoken: tuple[str, int]
) -> None:
    choice = under_default(choose_stream(URL + query, fields), "plivo")
    assert (choice.protocol, choice.sample_rate) == spoken


def test_a_default_gives_way_where_it_cannot_carry_what_was_asked_for() -> None:
    wide = under_default(choose_stream(URL, {"sample_rate": 16000}), "twilio")
    assert (wide.protocol, wide.encoding, wide.sample_rate) == ("exotel", "l16", 16000)
    linear = under_default(choose_stream(URL, {"encoding": "l16"}), "twilio")
    assert (linear.protocol, linear.encoding) == ("exotel", "l16")
    plain = under_default(choose_stream(URL), "twilio")
    assert (plain.protocol, plain.encoding) == ("twilio", "mulaw")


def test_a_call_speaks_the_default_of_its_account() -> None:
    drive = Drive(Stream(choose_stream(URL)))
    drive.machine.stream_protocol = "twilio"
    drive.start()
    drive.feed(AgentOpened())
    stream = drive.record.stream
    assert stream is not None and (stream.protocol, stream.encoding) == ("twilio", "mulaw")
