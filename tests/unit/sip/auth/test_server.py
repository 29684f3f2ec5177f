"""Judging digest answers: RFC 7616, RFC 8760, replays, and whatever a peer may write."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.auth.digest import Credentials, answer_challenge, parse_challenges
from sip.auth.server import DigestServer, DigestSettings, DigestVerdict, Outcome, Secret
from sip.message.message import Headers, Request
from sip.message.uri import SipUri

URI = SipUri.parse("sip:+918047000001@192.0.2.2")
NOW_S = 5000.0
HERE = "192.0.2.1"
BODY = b"v=0\r\n"


def secrets_of(username: str) -> Sequence[Secret]:
    return {
        "trunk": [Secret("good", "carrier-1")],
        "shared": [Secret("one", "a"), Secret("two", "b"), Secret("two", "c")],
        'odd "name"': [Secret("pässword:", "odd")],
    }.get(username, [])


def make(**settings: Any) -> DigestServer:
    source = random.Random(1)
    return DigestServer(
        DigestSettings(**settings), b"0123456789abcdef", lambda: f"{source.getrandbits(80):020x}"
    )


def request(*answers: str, uri: SipUri = URI, body: bytes = BODY) -> Request:
    fields = [("To", "<sip:+918047000001@example.net>"), ("From", "<sip:a@example.net>;tag=1")]
    return Request("INVITE", uri, Headers(fields + [("Authorization", answer) for answer in answers]), body)


def answer(
    server: DigestServer,
    *,
    user: str = "trunk",
    password: str = "good",
    now_s: float = NOW_S,
    algorithm: str | None = None,
    nc: int = 1,
    uri: str = str(URI),
    body: bytes = BODY,
) -> str:
    values = [value for _, value in server.challenge(HERE, now_s)]
    challenge = next(item for item in parse_challenges(values) if algorithm in (None, item.algorithm))
    return answer_challenge(challenge, Credentials(user, password), "INVITE", uri, body, "c0ffee", nc)


def judge(server: DigestServer, *answers: str, now_s: float = NOW_S, **changes: Any) -> DigestVerdict:
    return server.judge(request(*answers, **changes), HERE, secrets_of, now_s)


def test_a_challenge_for_each_algorithm_the_strongest_first() -> None:
    """RFC 8760 2.3."""
    values = [value for name, value in make().challenge(HERE, NOW_S) if name == "WWW-Authenticate"]
    challenges = parse_challenges(values)
    assert [item.algorithm for item in challenges] == ["SHA-512-256", "SHA-256", "MD5"]
    assert ["SHA-512-256" in values[0], "SHA-256" in values[1], "MD5" in values[2]] == [True] * 3
    assert all('qop="auth,auth-int"' in value and 'realm="trunkline"' in value for value in values)
    assert not any(item.stale for item in challenges)
    assert all(
        item.stale for item in parse_challenges([v for _, v in make().challenge(HERE, NOW_S, stale=True)])
    )


@pytest.mark.parametrize("algorithm", ["SHA-512-256", "SHA-256", "MD5"])
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_a_right_password_is_accepted(algorithm: str, qop: str) -> None:
    server = make(qop=(qop,))
    verdict = judge(server, answer(server, algorithm=algorithm))
    assert verdict == DigestVerdict(Outcome.ACCEPTED, ("carrier-1",), "trunk")


def test_the_worked_example_of_rfc_7616() -> None:
    """RFC 7616 3.9.1: the password is right, only the nonce is not of this process."""
    server = make(realm="http-auth@example.org")
    value = (
        'Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=SHA-256, '
        'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, qop=auth, '
        'cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", '
        'response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1", '
        'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
    )
    example = request(value)
    example.method = "GET"
    assert server.judge(example, HERE, secrets_of, NOW_S).outcome is Outcome.MALFORMED  # no SIP URI


def test_a_first_request_is_no_failure() -> None:
    assert judge(make()).outcome is Outcome.MISSING
    assert judge(make(), 'Digest username="trunk", realm="elsewhere", nonce="n"').outcome is Outcome.MISSING


@pytest.mark.parametrize(("user", "password"), [("trunk", "wrong"), ("nobody", "good"), ("nobody", "\x00")])
def test_unknown_users_and_wrong_passwords_are_told_the_same(user: str, password: str) -> None:
    server = make()
    verdict = judge(server, answer(server, user=user, password=password))
    assert verdict == DigestVerdict(Outcome.REJECTED, (), user)
    assert len(server._counts) == 0


def test_a_wrong_password_with_an_old_nonce_is_not_merely_stale() -> None:
    server = make()
    assert judge(server, answer(server, password="wrong"), now_s=NOW_S + 9999).outcome is Outcome.REJECTED


def test_one_user_name_of_several_carriers() -> None:
    server = make()
    assert judge(server, answer(server, user="shared", password="one")).identities == ("a",)
    assert judge(server, answer(server, user="shared", password="two")).identities == ("b", "c")


def test_names_and_passwords_with_odd_characters() -> None:
    server = make()
    verdict = judge(server, answer(server, user='odd "name"', password="pässword:"))
    assert (verdict.outcome, verdict.username) == (Outcome.ACCEPTED, 'odd "name"')


class TestNonces:
    def test_its_count_must_rise(self) -> None:
        server = make()
        (value, *_) = [value for _, value in server.challenge(HERE, NOW_S)]
        (challenge,) = parse_challenges([value])

        def used(nc: int) -> Outcome:
            text = answer_challenge(
                challenge, Credentials("trunk", "good"), "INVITE", str(URI), BODY, "c", nc
            )
            return judge(server, text).outcome

        outcomes = [used(nc) for nc in (1, 1, 2, 5, 4, 5, 6)]
        assert [outcome is Outcome.ACCEPTED for outcome in outcomes] == [
            True,
            False,
            True,
            True,
            False,
            False,
            True,
        ]
        assert set(outcomes) == {Outcome.ACCEPTED, Outcome.STALE}
        assert len(server._counts) == 1

    def test_ten_thousand_replays_open_nothing(self) -> None:
        server = make(max_nonces=1000)
        answers = [answer(server, now_s=NOW_S + index / 1000, algorithm="MD5") for index in range(10_000)]
        assert all(judge(server, text, now_s=NOW_S + 10).outcome is Outcome.ACCEPTED for text in answers)
        again = [judge(server, text, now_s=NOW_S + 11).outcome for text in answers]
        assert again.count(Outcome.ACCEPTED) == 0
        assert len(server._counts) == 1000

    @pytest.mark.parametrize("later_s", [301.0, 100_000.0, -5.0])
    def test_an_old_one_is_stale(self, later_s: float) -> None:
        server = make()
        assert judge(server, answer(server), now_s=NOW_S + later_s).outcome is Outcome.STALE

    def test_one_of_another_process_is_stale_not_wrong(self) -> None:
        """After a restart clients go on with the nonce they have; told that it is stale they ask nobody."""
        other = DigestServer(DigestSettings(), b"another secret..", lambda: "0" * 20)
        assert judge(make(), answer(other)).outcome is Outcome.STALE

    def test_one_that_was_given_to_another_source_proves_nothing(self) -> None:
        """Not even that a password is wrong: such guesses would be counted against the wrong source."""
        server = make()
        for password in ("good", "wrong"):
            text = answer(server, password=password)
            verdict = server.judge(request(text), "192.0.2.66", secrets_of, NOW_S)
            assert verdict.outcome is Outcome.STALE

    def test_an_opaque_value_is_to_come_back_as_it_was(self) -> None:
        """RFC 7616 3.3; old clients that leave it out are heard all the same."""
        server = make()
        (opaque,) = {item.opaque for item in parse_challenges([v for _, v in server.challenge(HERE, NOW_S)])}
        assert opaque
        text = answer(server)
        assert judge(server, text.replace(opaque, "another")).outcome is Outcome.STALE
        assert judge(server, text.replace(f', opaque="{opaque}"', "")).outcome is Outcome.ACCEPTED

    def test_used_ones_are_forgotten_with_time(self) -> None:
        server = make()
        for index in range(100):
            now_s = NOW_S + index * 60
            assert judge(server, answer(server, now_s=now_s), now_s=now_s).outcome is Outcome.ACCEPTED
        assert len(server._counts) <= 7

    def test_clients_without_qop_use_each_once(self) -> None:
        """RFC 7616 3.4.3 and 5.11: such answers prove a password, but nothing about when."""
        server = make()
        (*_, value) = [value for _, value in server.challenge(HERE, NOW_S)]
        (challenge,) = parse_challenges([value.replace(', qop="auth,auth-int"', "")])
        assert challenge.qop is None
        text = answer_challenge(challenge, Credentials("trunk", "good"), "INVITE", str(URI), BODY, "c", 1)
        assert judge(server, text).outcome is Outcome.ACCEPTED
        assert judge(server, text).outcome is Outcome.STALE


class TestWhatIsAnswered:
    @pytest.mark.parametrize(
        "uri", ["sip:192.0.2.2", "sip:192.0.2.2:5060", "sip:+91-8047-000001@proxy.example.net;user=phone"]
    )
    def test_equivalent_uris(self, uri: str) -> None:
        """RFC 3261 22.4: proxies rewrite the Request-URI."""
        server = make()
        assert judge(server, answer(server, uri=uri)).outcome is Outcome.ACCEPTED

    @pytest.mark.parametrize("uri", ["sip:+12025550123@192.0.2.2", "http://x/", "*", "sip:"])
    def test_an_answer_for_another_number(self, uri: str) -> None:
        server = make()
        assert judge(server, answer(server, uri=uri)).outcome is Outcome.MALFORMED

    def test_auth_int_covers_the_body(self) -> None:
        server = make(qop=("auth-int",))
        assert judge(server, answer(server, body=b"other")).outcome is Outcome.REJECTED

    def test_the_answer_for_our_realm_is_found_among_others(self) -> None:
        server = make()
        foreign = 'Digest username="x", realm="y", nonce="z", uri="sip:h", response="0"'
        assert judge(server, foreign, "Basic abc", answer(server)).outcome is Outcome.ACCEPTED

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("nc=00000001", "nc=1"),
            ("nc=00000001", "nc=0000000g"),
            ("nc=00000001, ", ""),
            ("qop=auth", "qop=token"),
            ("algorithm=SHA-512-256", "algorithm=MD4"),
            ("algorithm=SHA-512-256", "algorithm=SHA-512-256-sess"),
            ('cnonce="c0ffee"', 'cnonce=""'),
            ("username=", "user="),
            ("uri=", "url="),
            ("response=", "response=0, reply="),
        ],
    )
    def test_what_cannot_be_judged(self, old: str, new: str) -> None:
        server = make()
        text = answer(server)
        assert old in text
        assert judge(server, text.replace(old, new)).outcome is Outcome.MALFORMED

    def test_a_weaker_algorithm_than_was_offered(self) -> None:
        strong, weak = make(algorithms=("SHA-256",)), make()
        text = answer(weak, algorithm="MD5")
        assert judge(strong, text).outcome is Outcome.MALFORMED

    @given(
        st.text(max_size=200), st.sampled_from(["username", "nonce", "uri", "response", "nc", "realm", ""])
    )
    def test_whatever_a_peer_writes(self, text: str, name: str) -> None:
        server = make()
        clean = "".join(char for char in text if char not in "\r\n" and not "\ud800" <= char <= "\udfff")
        value = f'Digest {name}="{clean}", realm="trunkline", {clean}' if name else f"Digest {clean}"
        assert judge(server, value).outcome is not Outcome.ACCEPTED


def test_secrets_are_not_shown() -> None:
    assert "good" not in repr(Secret("good", "carrier-1"))
