"""Media settings of a trunk."""

from __future__ import annotations

import pytest

from callcontrol.calls.aio.media.negotiation import media_policy
from callcontrol.models.trunks import preferring
from tests.support.domain import make_carrier, make_gateway


@pytest.mark.parametrize(
    ("srtp", "protocol", "expected"),
    [
        ("off", "udp", "off"),
        ("sdes", "udp", "optional"),
        ("require", "tcp", "required"),
        ("off", "tls", "off"),
        ("off", "tls/srtp", "required"),
        ("sdes", "tls/srtp", "required"),
    ],
)
def test_encryption_is_the_carriers_unless_the_gateway_demands_it(
    srtp: str, protocol: str, expected: str
) -> None:
    assert media_policy(make_carrier(srtp=srtp), make_gateway(protocol=protocol)).srtp == expected


@pytest.mark.parametrize(("dtmf_type", "events"), [("rfc2833", True), ("info", False), ("tones", False)])
def test_telephone_events_are_for_trunks_that_take_them(dtmf_type: str, events: bool) -> None:
    assert media_policy(make_carrier(dtmf_type=dtmf_type), make_gateway()).events is events


def test_the_codec_of_the_other_party_goes_first_if_the_trunk_takes_it() -> None:
    codecs = ("PCMA", "G722", "PCMU")
    assert preferring(codecs, "PCMU") == ("PCMU", "PCMA", "G722")
    assert preferring(codecs, "OPUS") == preferring(codecs, None) == codecs
