"""Headers of the upgrade request."""

import base64
import hashlib
import hmac

from media.streams import DIALECTS, BasicAuth, BearerAuth, StreamSetup, upgrade_headers
from media.streams.handshake import authorization

SETUP = StreamSetup(
    url="wss://bot.example.com/ws?customer=42",
    stream_sid="s",
    call_sid="c",
    account_sid="a",
    from_="+919876543210",
    to="+918047491899",
)


def test_headers_of_a_plain_stream() -> None:
    assert upgrade_headers(SETUP, 1732099200) == [
        ("User-Agent", "trunkline/1.0"),
        ("X-Account-Sid", "a"),
        ("X-Call-Sid", "c"),
        ("X-Stream-Sid", "s"),
        ("X-Service-Timestamp", "1732099200"),
    ]


def test_signature_covers_time_and_url() -> None:
    signed = StreamSetup(**{name: getattr(SETUP, name) for name in SETUP.__slots__} | {"secret": "new"})
    digest = hmac.new(b"new", b"1732099200.wss://bot.example.com/ws?customer=42", hashlib.sha256).hexdigest()
    assert dict(upgrade_headers(signed, 1732099200))["X-Service-Signature"] == f"sha256={digest}"
    assert "new" not in repr(signed)


def test_both_secrets_sign_while_one_replaces_the_other() -> None:
    fields = {name: getattr(SETUP, name) for name in SETUP.__slots__}
    rotating = StreamSetup(**fields | {"secret": "new", "previous_secret": "old"})
    first, second = dict(upgrade_headers(rotating, 1))["X-Service-Signature"].split(" ")
    alone = StreamSetup(**fields | {"secret": "old"})
    assert second == dict(upgrade_headers(alone, 1))["X-Service-Signature"] != first


def test_authorization_and_headers_of_the_caller() -> None:
    fields = {name: getattr(SETUP, name) for name in SETUP.__slots__}
    setup = StreamSetup(**fields | {"auth": BearerAuth("t"), "extra_headers": (("X-Trace", "1"),)})
    headers = upgrade_headers(setup, 1)
    assert ("Authorization", "Bearer t") in headers
    assert headers[-1] == ("X-Trace", "1")
    assert authorization(BasicAuth("Aladdin", "open sesame")) == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


def test_servers_of_twilio_find_the_signature_that_they_check() -> None:
    fields = {name: getattr(SETUP, name) for name in SETUP.__slots__}
    twilio = StreamSetup(**fields | {"secret": "new", "previous_secret": "old", "dialect": "twilio"})
    expected = base64.b64encode(hmac.new(b"new", SETUP.url.encode(), hashlib.sha1).digest()).decode()
    assert dict(upgrade_headers(twilio, 1))["X-Twilio-Signature"] == expected
    unsigned = StreamSetup(**fields | {"dialect": "twilio"})
    assert "X-Twilio-Signature" not in dict(upgrade_headers(unsigned, 1))
    assert "X-Twilio-Signature" not in dict(upgrade_headers(StreamSetup(**fields | {"secret": "new"}), 1))


def test_only_jambonz_and_asterisk_offer_a_subprotocol() -> None:
    fields = {name: getattr(SETUP, name) for name in SETUP.__slots__}
    offers = {
        name: dict(upgrade_headers(StreamSetup(**fields | {"dialect": name}), 1)).get(
            "Sec-WebSocket-Protocol"
        )
        for name in DIALECTS
    }
    assert {name: offer for name, offer in offers.items() if offer} == {
        "jambonz": "audio.drachtio.org",
        "asterisk": "media",
        "asterisk_json": "media",
    }
