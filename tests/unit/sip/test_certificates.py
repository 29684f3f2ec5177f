"""Identities of a certificate (RFC 5922 7)."""

import pytest

from sip.certificates import names_of, proves


def certificate(*alternatives: tuple[str, str], common: str | None = "cn.example.net") -> dict[str, object]:
    subject = ((("countryName", "IN"),), (("commonName", common),)) if common else ()
    return {"subject": subject, "subjectAltName": alternatives}


@pytest.mark.parametrize(
    ("alternatives", "names"),
    [
        ((), {"cn.example.net"}),
        ((("DNS", "SBC.Example.net"),), {"sbc.example.net"}),
        ((("DNS", "a.example.net."), ("DNS", "b.example.net")), {"a.example.net", "b.example.net"}),
        ((("URI", "sip:Example.net"),), {"example.net"}),
        ((("URI", "sips:example.net;transport=tcp"),), {"example.net"}),
        ((("URI", "sip:example.net"), ("DNS", "sbc.example.net")), {"example.net", "sbc.example.net"}),
        ((("IP Address", "192.0.2.1"),), {"192.0.2.1"}),
        ((("IP Address", "2001:DB8:0:0:0:0:0:1"),), {"2001:db8::1"}),
        # A user is no domain, and a web address is no SIP identity: as if they were not there.
        ((("URI", "sip:alice@example.net"),), {"cn.example.net"}),
        ((("URI", "https://example.net/"),), {"cn.example.net"}),
        ((("email", "root@example.net"),), {"cn.example.net"}),
        ((("URI", "sip:alice@example.net"), ("DNS", "sbc.example.net")), {"sbc.example.net"}),
        ((("IP Address", "nonsense"),), {"cn.example.net"}),
    ],
)
def test_identities(alternatives: tuple[tuple[str, str], ...], names: set[str]) -> None:
    assert names_of(certificate(*alternatives)) == names


def test_nobody() -> None:
    assert names_of({}) == frozenset()
    assert names_of(certificate(common=None)) == frozenset()


def test_a_common_name_that_is_an_address() -> None:
    assert names_of(certificate(common="2001:DB8::0:1")) == {"2001:db8::1"}


@pytest.mark.parametrize(
    ("host", "plain", "with_wildcards"),
    [
        ("sbc.example.net", True, True),
        ("SBC.example.NET.", True, True),
        ("a.wild.example.net", False, True),
        ("a.b.wild.example.net", False, False),
        ("wild.example.net", False, False),
        ("2001:db8:0::1", True, True),
        ("[2001:db8::1]", True, True),
        ("192.0.2.1", False, False),
        ("example.net", False, False),
        ("net", False, False),
        ("", False, False),
    ],
)
def test_what_is_proved(host: str, plain: bool, with_wildcards: bool) -> None:
    names = {"sbc.example.net", "*.wild.example.net", "2001:db8::1", "*.2.1", "*.0.2.1", "*.net", "*"}
    assert proves(names, host) is plain
    assert proves(names, host, wildcards=True) is with_wildcards
