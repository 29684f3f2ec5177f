"""Digest answers against the worked examples of the RFCs, and the choice among challenges."""

import hashlib

import pytest

from sip.auth.digest import Challenge, Credentials, answer_challenge, choose_challenges, parse_challenges
from sip.errors import InvalidValue

MUFASA = Credentials("Mufasa", "Circle of Life")


def fields(value: str) -> dict[str, str]:
    scheme, _, rest = value.partition(" ")
    assert scheme == "Digest"
    pairs = (part.split("=", 1) for part in rest.split(", "))
    return {name: text.strip('"') for name, text in pairs}


def test_rfc_2617_example() -> None:
    # RFC 2617 3.5: MD5 with qop "auth".
    (challenge,) = parse_challenges(
        [
            'Digest realm="testrealm@host.com", qop="auth,auth-int", '
            'nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"'
        ]
    )
    credentials = Credentials("Mufasa", "Circle Of Life")
    answer = answer_challenge(challenge, credentials, "GET", "/dir/index.html", b"", "0a4f113b", 1)
    assert fields(answer) == {
        "username": "Mufasa",
        "realm": "testrealm@host.com",
        "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093",
        "uri": "/dir/index.html",
        "response": "6629fae49393a05397450978507c4ef1",
        "qop": "auth",
        "nc": "00000001",
        "cnonce": "0a4f113b",
        "opaque": "5ccc069c403ebaf9f0171e9517f40e41",
    }


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_rfc_7616_example(algorithm: str, response: str) -> None:
    # RFC 7616 3.9.1.
    challenge = Challenge(
        realm="http-auth@example.org",
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
        algorithm=algorithm,
        qop="auth",
    )
    cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    answer = answer_challenge(challenge, MUFASA, "GET", "/dir/index.html", b"", cnonce, 1)
    assert fields(answer)["response"] == response
    assert f"algorithm={algorithm}" in answer


def test_answers_a_challenge_without_qop() -> None:
    (challenge,) = parse_challenges(['Digest realm="r", nonce="n"'])
    answer = answer_challenge(challenge, Credentials("u", "p"), "REGISTER", "sip:h", b"", "c", 1)

    def md5(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    assert fields(answer)["response"] == md5(f"{md5('u:r:p')}:n:{md5('REGISTER:sip:h')}")
    assert "cnonce" not in answer and "nc=" not in answer and "algorithm" not in answer


def test_auth_int_covers_the_body_when_nothing_else_is_offered() -> None:
    (challenge,) = parse_challenges(['Digest realm="r", nonce="n", qop="auth-int"'])
    assert challenge.qop == "auth-int"
    first = answer_challenge(challenge, Credentials("u", "p"), "INVITE", "sip:h", b"one", "c", 1)
    second = answer_challenge(challenge, Credentials("u", "p"), "INVITE", "sip:h", b"two", "c", 1)
    assert fields(first)["response"] != fields(second)["response"]


def test_session_variant_hashes_the_nonces_into_the_secret() -> None:
    (challenge,) = parse_challenges(['Digest realm="r", nonce="n", algorithm=MD5-sess'])
    answer = answer_challenge(challenge, Credentials("u", "p"), "INVITE", "sip:h", b"", "c", 1)

    def md5(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    secret = md5(f"{md5('u:r:p')}:n:c")
    assert fields(answer)["response"] == md5(f"{secret}:n:{md5('INVITE:sip:h')}")
    assert fields(answer)["cnonce"] == "c"


def test_sha_256_is_preferred_to_md5_whatever_the_order() -> None:
    challenges = parse_challenges(
        [
            'Digest realm="r", nonce="1", algorithm=MD5',
            'Digest realm="r", nonce="2"',
            'Digest realm="r", nonce="3", algorithm=SHA-256',
        ]
    )
    assert [challenge.nonce for challenge in challenges] == ["3", "1", "2"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Digest",
        "Basic realm=x",
        'NoOneKnowsThisScheme opaque-data="here"',
        'Digest nonce="n"',
        'Digest realm="r"',
        'Digest realm="r", nonce=""',
        'Digest realm="r", nonce="n", algorithm=AKAv1-MD5',
        'Digest realm="r", nonce="n", qop="token"',
        'Digest realm="r", nonce="n", nonce="other"',
        'Digest realm="r" nonce="n"',
        'Digest realm="r, nonce="n"',
    ],
)
def test_unusable_challenges_are_left_out(value: str) -> None:
    good = 'digest realm="good", nonce="n"'
    assert [challenge.realm for challenge in parse_challenges([value, good])] == ["good"]


def test_odd_spacing_is_read() -> None:
    (challenge,) = parse_challenges(['Digest  realm = "a \\"b\\"" ,nonce=n ,stale=TRUE, qop=auth ,'])
    assert challenge == Challenge('a \\"b\\"', "n", None, None, "auth", True)
    answer = answer_challenge(challenge, MUFASA, "BYE", "sip:h", b"", "c", 2)
    assert 'realm="a \\"b\\""' in answer and "nc=00000002" in answer


def test_a_realm_bound_password_answers_no_other_realm() -> None:
    challenges = parse_challenges(['Digest realm="evil", nonce="n"', 'Digest realm="trunk", nonce="m"'])
    bound = Credentials("u", "p", realm="trunk")
    assert [challenge.realm for challenge in choose_challenges(challenges, bound)] == ["trunk"]
    assert choose_challenges(challenges[:1], bound) == []
    free = choose_challenges(challenges, Credentials("u", "p"))
    assert [challenge.realm for challenge in free] == ["evil", "trunk"]


def test_password_is_not_shown() -> None:
    assert "secret" not in repr(Credentials("u", "secret"))


@pytest.mark.parametrize(("cnonce", "nc"), [('a"b', 1), ("", 1), ("a", 0), ("a", 2**32)])
def test_bad_client_values_are_refused(cnonce: str, nc: int) -> None:
    with pytest.raises(InvalidValue):
        answer_challenge(Challenge("r", "n"), MUFASA, "BYE", "sip:h", b"", cnonce, nc)


def test_quotes_in_the_user_name_cannot_add_parameters() -> None:
    answer = answer_challenge(
        Challenge("r", "n"), Credentials('u", realm="x', "p"), "BYE", "sip:h", b"", "c", 1
    )
    assert answer.startswith('Digest username="u\\", realm=\\"x", realm="r"')
