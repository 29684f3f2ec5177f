"""Choosing how to speak to an agent."""

from typing import Any

import pytest

from media.streams import BasicAuth, BearerAuth, StreamSetupError, choose_stream, under_default

URL = "wss://bot.example.com/ws"


def test_the_url_alone_is_enough() -> None:
    choice = choose_stream(URL)
    assert (choice.url, choice.protocol, choice.encoding, choice.sample_rate) == (URL, "exotel", "l16", 8000)
    assert (choice.custom_parameters, choice.auth, choice.track, choice.max_retries) == (
        (),
        None,
        "inbound",
        0,
    )
    assert choice.tls
    assert not choose_stream("ws://127.0.0.1:8765").tls


def test_the_query_selects_and_the_rest_is_passed_on() -> None:
    url = f"{URL}?sample-rate=16000&stream_protocol=exotel&stream_encoding=l16&customer=42&note=a%20b&empty="
    choice = choose_stream(url)
    assert choice.url == url
    assert choice.sample_rate == 16_000
    assert choice.custom_parameters == (("customer", "42"), ("note", "a b"), ("empty", ""))


def test_the_body_selects_and_may_repeat_the_url() -> None:
    fields = {
        "stream_protocol": "exotel",
        "encoding": "l16",
        "sample_rate": 16_000,
        "custom_parameters": {"customer": "7", "more": "x"},
        "stream_track": "inbound",
        "stream_max_retries": 3,
        "stream_auth": None,
    }
    choice = choose_stream(f"{URL}?sample-rate=16000&customer=42", fields)
    assert choice.sample_rate == 16_000
    assert choice.custom_parameters == (("customer", "7"), ("more", "x"))
    assert choice.max_retries == 3


def test_user_information_moves_to_the_header_and_the_rest_stays_verbatim() -> None:
    choice = choose_stream("wss://us%40er:p%3Ass@bot.example.com:8443/a;v=1?x=//us%40er:p%3Ass@")
    assert choice.url == "wss://bot.example.com:8443/a;v=1?x=//us%40er:p%3Ass@"
    assert choice.auth == BasicAuth("us@er", "p:ss")
    assert "p:ss" not in repr(choice.auth)


def test_auth_of_the_body() -> None:
    basic = {"type": "basic", "username": "u", "password": "p"}
    assert choose_stream(URL, {"stream_auth": basic}).auth == BasicAuth("u", "p")
    assert choose_stream("wss://u:p@bot.example.com", {"stream_auth": basic}).auth == BasicAuth("u", "p")
    bearer = choose_stream(URL, {"stream_auth": {"type": "bearer", "token": "abc"}})
    assert bearer.auth == BearerAuth("abc")
    assert "abc" not in repr(bearer)


@pytest.mark.parametrize(
    "url",
    [
        None,
        7,
        "",
        "https://bot.example.com/ws",
        "bot.example.com/ws",
        "ws://",
        "ws:///path",
        "ws://:8080/",
        "wss://bot.example.com/ws#part",
        "wss://bot.example.com/ws#",
        "wss://bot.example.com:0/",
        "wss://bot.example.com:65536/",
        "wss://bot.example.com:port/",
        "wss://[::1/",
        "wss://bot.example.com/a b",
        "wss://bot.example.com/\r\nX: y",
        "wss://bot.example.com/\x7f",
        "wss://b\u00f6t.example.com/",
        "wss://bot.example.com/" + "a" * 2048,
        "wss://bot.example.com/?" + "&".join(f"a{n}=1" for n in range(65)),
        "wss://bot.example.com/?stream_events=speech,video",
        "wss://a%0Ab:c@bot.example.com/",
        "wss://:c@bot.example.com/",
    ],
)
def test_urls_that_cannot_be_dialled_are_refused(url: object) -> None:
    with pytest.raises(StreamSetupError) as caught:
        choose_stream(url)
    assert caught.value.field == "stream_url"


@pytest.mark.parametrize(
    ("query", "fields", "field", "reason"),
    [
        ("", {"stream_protocol": "smoke"}, "stream_protocol", "must be one of exotel"),
        (
            "",
            {"stream_protocol": "twilio", "sample_rate": 16_000},
            "sample_rate",
            "twilio carries mulaw at 8000",
        ),
        ("?sample-rate=16000", {"stream_protocol": "twilio"}, "sample_rate", "twilio carries"),
        ("", {"stream_protocol": "twilio", "encoding": "l16"}, "encoding", "twilio carries"),
        ("?stream_protocol=vonage", {"encoding": "alaw"}, "encoding", "vonage carries"),
        ("?stream_protocol=telnyx", {"encoding": "l16"}, "sample_rate", "telnyx carries"),
        ("?stream_protocol=jambonz", {"stream_track": "both"}, "stream_track", "one track"),
        ("", {"stream_protocol": 1}, "stream_protocol", "string"),
        ("?stream_protocol=smoke", {}, "stream_protocol", "must be one of exotel"),
        ("?stream_protocol=plivo", {"stream_protocol": "exotel"}, "stream_protocol", "disagrees"),
        ("", {"encoding": "opus"}, "encoding", "must be one of l16, mulaw, alaw"),
        ("", {"encoding": "mulaw"}, "encoding", "exotel carries l16 at 8000, l16 at 16000"),
        ("?stream_encoding=mulaw", {}, "encoding", "exotel carries"),
        ("?stream_encoding=mulaw", {"encoding": "l16"}, "encoding", "disagrees"),
        ("", {"sample_rate": 44_100}, "sample_rate", "8000 or 16000"),
        ("", {"sample_rate": True}, "sample_rate", "8000 or 16000"),
        ("", {"sample_rate": "8000"}, "sample_rate", "8000 or 16000"),
        ("?sample-rate=8k", {}, "sample_rate", "sample-rate in stream_url"),
        ("?sample-rate=16000", {"sample_rate": 8000}, "sample_rate", "disagrees"),
        ("", {"custom_parameters": []}, "custom_parameters", "object of strings"),
        ("", {"custom_parameters": {"a": 1}}, "custom_parameters", "object of strings"),
        ("", {"custom_parameters": {"a": "x" * 1025}}, "custom_parameters", "1024"),
        ("", {"custom_parameters": {"a" * 129: "x"}}, "custom_parameters", "128"),
        ("", {"custom_parameters": {str(n): "" for n in range(65)}}, "custom_parameters", "64"),
        ("", {"stream_auth": "x"}, "stream_auth", "must be"),
        ("", {"stream_auth": {"type": "digest"}}, "stream_auth", "must be"),
        ("", {"stream_auth": {"type": "basic", "username": "u"}}, "stream_auth", "must be"),
        ("", {"stream_auth": {"type": "basic", "username": "a:b", "password": ""}}, "stream_auth", "colon"),
        (
            "",
            {"stream_auth": {"type": "basic", "username": "a", "password": "\r\n"}},
            "stream_auth",
            "printable",
        ),
        ("", {"stream_auth": {"type": "basic", "username": 1, "password": ""}}, "stream_auth", "printable"),
        ("", {"stream_auth": {"type": "bearer", "token": "a b"}}, "stream_auth", "visible"),
        ("", {"stream_auth": {"type": "bearer", "token": ""}}, "stream_auth", "visible"),
        ("", {"stream_track": "outbound"}, "stream_track", "inbound or both"),
        ("", {"stream_track": "outbound"}, "stream_track", "inbound"),
        ("", {"stream_max_retries": 11}, "stream_max_retries", "0 to 10"),
        ("", {"stream_max_retries": True}, "stream_max_retries", "0 to 10"),
    ],
)
def test_wrong_fields_are_named(query: str, fields: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(StreamSetupError, match=reason) as caught:
        choose_stream(URL + query, fields)
    assert caught.value.field == field


def test_auth_in_both_places_must_agree() -> None:
    other = {"type": "basic", "username": "u", "password": "x"}
    with pytest.raises(StreamSetupError, match="disagrees"):
        choose_stream("wss://u:p@bot.example.com", {"stream_auth": other})


@pytest.mark.parametrize(
    ("query", "protocol", "encoding", "rate"),
    [
        ("?stream_protocol=twilio", "twilio", "mulaw", 8000),
        ("?stream_protocol=vonage", "vonage", "l16", 8000),
        ("?stream_protocol=vonage&sample-rate=16000", "vonage", "l16", 16_000),
        ("?stream_protocol=plivo", "plivo", "mulaw", 8000),
        ("?stream_protocol=plivo&sample-rate=16000", "plivo", "l16", 16_000),
        ("?stream_protocol=vobiz&stream_encoding=l16", "vobiz", "l16", 8000),
        ("?stream_protocol=jambonz&sample-rate=16000", "jambonz", "l16", 16_000),
        ("?stream_protocol=telnyx", "telnyx", "mulaw", 8000),
        ("?stream_protocol=telnyx&stream_encoding=alaw", "telnyx", "alaw", 8000),
        ("?stream_protocol=telnyx&sample-rate=16000", "telnyx", "l16", 16_000),
    ],
)
def test_every_dialect_has_a_format_for_each_rate(
    query: str, protocol: str, encoding: str, rate: int
) -> None:
    choice = choose_stream(URL + query)
    assert (choice.protocol, choice.encoding, choice.sample_rate) == (protocol, encoding, rate)
    # What was chosen from the URL and is kept as fields of the body agrees with the URL ever after.
    kept = {"stream_protocol": protocol, "encoding": encoding, "sample_rate": rate}
    again = choose_stream(URL + query, kept)
    assert (again.protocol, again.encoding, again.sample_rate, again.url) == (
        protocol,
        encoding,
        rate,
        choice.url,
    )


def test_two_tracks_and_more_events_are_chosen() -> None:
    choice = choose_stream(f"{URL}?stream_events=speech,hold", {"stream_track": "both"})
    assert choice.track == "both"
    assert choice.events == {"speech", "hold"}
    assert choose_stream(URL).events == frozenset()
    # It is a wish of ours to fulfil, not a word for the agent; the URL is dialled with it all the same.
    assert choice.custom_parameters == ()
    assert choice.url.endswith("?stream_events=speech,hold")


def test_the_default_protocol_comes_last() -> None:
    assert under_default(choose_stream(URL), "twilio").protocol == "twilio"
    assert under_default(choose_stream(f"{URL}?stream_protocol=exotel"), "twilio").protocol == "exotel"
    assert under_default(choose_stream(URL, {"stream_protocol": "vonage"}), "twilio").protocol == "vonage"


def test_every_fault_is_named_and_none_twice() -> None:
    fields = {"stream_protocol": "x", "sample_rate": 7, "encoding": "y", "stream_track": "z"}
    with pytest.raises(StreamSetupError) as refused:
        choose_stream("wss://a:b:c@bot.example.com/?stream_events=no", {**fields, "stream_max_retries": 11})
    assert list(refused.value.faults) == [
        *("stream_protocol", "sample_rate", "encoding", "stream_track", "stream_max_retries", "stream_url"),
    ]
    assert refused.value.field == "stream_protocol"
    # A protocol that is unknown has no number of tracks, and no formats.
    with pytest.raises(StreamSetupError) as one:
        choose_stream(URL, {"stream_protocol": "x", "stream_track": "both", "encoding": "mulaw"})
    assert list(one.value.faults) == ["stream_protocol"]


def test_a_url_that_cannot_be_read_contradicts_nothing() -> None:
    fields = {"stream_track": "both", "encoding": "mulaw"}
    with pytest.raises(StreamSetupError) as refused:
        choose_stream("http://bot.example.com/?stream_protocol=twilio", fields)
    assert list(refused.value.faults) == ["stream_url"]
    with pytest.raises(StreamSetupError) as refused:
        choose_stream("", {**fields, "stream_protocol": "jambonz", "sample_rate": 8000})
    assert list(refused.value.faults) == ["stream_url", "encoding", "stream_track"]


SOCKET = "audiosocket://bot.example.com:9092"


@pytest.mark.parametrize(
    ("url", "rate"), [(SOCKET, 8000), (f"{SOCKET}?sample-rate=16000&customer=42", 16_000)]
)
def test_a_url_of_audiosocket_chooses_its_protocol(url: str, rate: int) -> None:
    choice = choose_stream(url)
    assert (choice.url, choice.protocol, choice.encoding, choice.sample_rate) == (
        url,
        "audiosocket",
        "l16",
        rate,
    )
    assert not choice.tls
    assert choose_stream(url, {"stream_protocol": "audiosocket"}) == choice
    # No default of the account takes its place.
    assert under_default(choice, "twilio") == choice


def test_audiosocket_is_no_default_of_other_urls() -> None:
    choice = choose_stream(URL)
    assert under_default(choice, "audiosocket") == choice
    assert under_default(choice, "asterisk").protocol == "asterisk"


@pytest.mark.parametrize(
    ("url", "fields", "field", "reason"),
    [
        ("audiosocket://bot.example.com", {}, "stream_url", "host:port"),
        ("audiosocket://u:p@bot.example.com:9092", {}, "stream_url", "host:port"),
        (f"{SOCKET}/path", {}, "stream_url", "host:port"),
        (SOCKET, {"stream_protocol": "twilio"}, "stream_protocol", "ws:// or wss://"),
        (URL, {"stream_protocol": "audiosocket"}, "stream_protocol", "audiosocket://"),
        (SOCKET, {"encoding": "mulaw"}, "encoding", "carries l16"),
        (SOCKET, {"stream_track": "both"}, "stream_track", "one track"),
        (SOCKET, {"stream_auth": {"type": "bearer", "token": "t"}}, "stream_auth", "no credentials"),
    ],
)
def test_what_audiosocket_does_not_have_is_refused(
    url: str, fields: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(StreamSetupError, match=reason) as caught:
        choose_stream(url, fields)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("fields", "encoding"),
    [
        ({}, "mulaw"),
        ({"encoding": "alaw"}, "alaw"),
        ({"encoding": "l16"}, "l16"),
        ({"sample_rate": 16_000}, "l16"),
    ],
)
def test_asterisk_carries_what_its_channels_do(fields: dict[str, Any], encoding: str) -> None:
    assert choose_stream(URL, {"stream_protocol": "asterisk"} | fields).encoding == encoding
