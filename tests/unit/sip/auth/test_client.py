"""A trunk that challenges: 401 and 407, stale nonces, wrong passwords (RFC 3261 22, RFC 8760)."""

from sip import Answered, Credentials, Failed, Request, reply
from tests.support.sip_agents import SDP, RawPeer, Side
from tests.support.sip_stage import RAW, Stage

ALICE = Credentials("alice", "secret")
CHALLENGE = 'Digest realm="trunk", nonce="{}", algorithm=SHA-256, qop="auth"'


def place(stage: Stage, credentials: Credentials | None = ALICE) -> tuple[RawPeer, Side]:
    raw = stage.raw(stage.alice)
    side = stage.alice.call(RAW, credentials=credentials)
    stage.advance()
    return raw, side


def challenge(stage: Stage, raw: RawPeer, request: Request, status: int, nonce: str, extra: str = "") -> None:
    value = CHALLENGE.format(nonce) + extra
    if status == 401:
        raw.respond(request, status, WWW_Authenticate=value)
    else:
        raw.respond(request, status, Proxy_Authenticate=value)
    stage.advance()


async def test_a_challenge_is_answered_in_a_new_transaction_of_the_same_call(stage: Stage) -> None:
    raw, side = place(stage)
    challenge(stage, raw, raw.requests("INVITE")[0], 401, "n1")
    first, second = raw.requests("INVITE")
    assert second.call_id == first.call_id
    assert second.from_.tag == first.from_.tag
    assert second.cseq.number == first.cseq.number + 1
    assert second.via.branch != first.via.branch
    assert 'nonce="n1"' in (second.headers.get("Authorization") or "")
    assert second.body == SDP
    raw.respond(second, 200, body=SDP)
    stage.advance()
    assert side.last(Answered).body == SDP
    ack = raw.requests("ACK")[-1]
    assert ack.cseq.number == second.cseq.number
    assert ack.headers.get("Authorization") == second.headers.get("Authorization")
    side.session.hangup()
    stage.advance()
    bye = raw.requests("BYE")[0]
    assert "nc=00000002" in (bye.headers.get("Authorization") or "")
    raw.respond(bye, 200)
    stage.finish()


async def test_proxy_and_server_may_both_challenge(stage: Stage) -> None:
    raw, side = place(stage)
    challenge(stage, raw, raw.requests("INVITE")[0], 407, "p1")
    challenge(stage, raw, raw.requests("INVITE")[1], 401, "s1")
    third = raw.requests("INVITE")[2]
    assert "Proxy-Authorization" in third.headers
    assert "Authorization" in third.headers
    raw.respond(third, 486)
    stage.advance()
    assert side.last(Failed).status == 486
    stage.finish()


async def test_a_refused_password_is_not_tried_for_ever(stage: Stage) -> None:
    raw, side = place(stage)
    challenge(stage, raw, raw.requests("INVITE")[0], 401, "n1")
    challenge(stage, raw, raw.requests("INVITE")[1], 401, "n2")
    assert len(raw.requests("INVITE")) == 2
    failed = side.last(Failed)
    assert (failed.status, failed.cause) == (401, "response")
    stage.finish()


async def test_a_stale_nonce_is_replaced(stage: Stage) -> None:
    raw, side = place(stage)
    challenge(stage, raw, raw.requests("INVITE")[0], 401, "n1")
    challenge(stage, raw, raw.requests("INVITE")[1], 401, "n2", ", stale=true")
    assert 'nonce="n2"' in (raw.requests("INVITE")[2].headers.get("Authorization") or "")
    raw.respond(raw.requests("INVITE")[2], 503)
    stage.advance()
    assert side.last(Failed).status == 503
    stage.finish()


async def test_without_credentials_the_challenge_is_the_outcome(stage: Stage) -> None:
    raw, side = place(stage, None)
    challenge(stage, raw, raw.requests("INVITE")[0], 407, "n1")
    assert side.last(Failed).status == 407
    stage.finish()


async def test_credentials_are_told_to_their_realm_only(stage: Stage) -> None:
    raw, side = place(stage, Credentials("alice", "secret", realm="other"))
    challenge(stage, raw, raw.requests("INVITE")[0], 401, "n1")
    assert len(raw.requests("INVITE")) == 1
    assert side.last(Failed).status == 401
    stage.finish()


async def test_a_challenged_bye_and_reinvite_are_sent_again(stage: Stage) -> None:
    raw, side = place(stage)
    raw.respond(raw.requests("INVITE")[0], 200, body=SDP)
    stage.advance()
    side.session.reinvite(SDP)
    stage.advance()
    challenge(stage, raw, raw.requests("INVITE")[1], 401, "n1")
    again = raw.requests("INVITE")[2]
    assert "Authorization" in again.headers
    raw.respond(again, 200, body=SDP)
    stage.advance()
    side.session.hangup(reason="Q.850;cause=16")
    stage.advance()
    challenge(stage, raw, raw.requests("BYE")[0], 401, "n2", ", stale=true")
    bye = raw.requests("BYE")[1]
    assert 'nonce="n2"' in (bye.headers.get("Authorization") or "")
    assert bye.headers.get("Reason") == "Q.850;cause=16"
    raw.respond(bye, 200)
    stage.advance()
    assert side.names == ["Answered", "OfferAnswered", "Ended"]
    stage.finish()


async def test_hanging_up_between_challenge_and_answer(stage: Stage) -> None:
    raw, side = place(stage)
    side.session.hangup()
    stage.advance()
    challenge(stage, raw, raw.requests("INVITE")[0], 401, "n1")
    assert len(raw.requests("INVITE")) == 1
    assert side.names == ["Failed"]
    stage.finish()


async def test_a_challenged_info_is_sent_again(stage: Stage) -> None:
    raw, side = place(stage)
    raw.respond(raw.requests("INVITE")[0], 200, body=SDP)
    stage.advance()
    side.session.info("application/dtmf-relay", b"Signal=5\r\n")
    stage.advance()
    challenge(stage, raw, raw.requests("INFO")[0], 407, "n1")
    first, again = raw.requests("INFO")
    assert again.cseq.number == first.cseq.number + 1
    assert "Proxy-Authorization" in again.headers and "Authorization" not in again.headers
    assert (again.body, again.content_type) == (first.body, first.content_type)
    # The password was given with that nonce: it is refused, and not given for ever.
    challenge(stage, raw, again, 407, "n2")
    assert len(raw.requests("INFO")) == 2
    side.session.hangup()
    stage.advance()
    raw.respond(raw.requests("BYE")[0], 200)
    stage.finish()


async def test_several_proxies_challenge_at_once(stage: Stage) -> None:
    """RFC 3261 22.3: each is answered in its own realm."""
    raw, side = place(stage)
    both = ", ".join(f'Digest realm="{realm}", nonce="{realm}-n", algorithm=MD5' for realm in ("one", "two"))
    request = raw.requests("INVITE")[0]
    response = reply(request, 407, to_tag="peer")
    for value in both.split(", Digest"):
        response.headers.add("Proxy-Authenticate", value if value.startswith("Digest") else "Digest" + value)
    raw.send(response)
    stage.advance()
    answers = raw.requests("INVITE")[1].headers.get_all("Proxy-Authorization")
    assert ['realm="one"' in answers[0], 'realm="two"' in answers[1], len(answers)] == [True, True, 2]
    raw.respond(raw.requests("INVITE")[1], 486)
    stage.advance()
    assert side.last(Failed).status == 486
    stage.finish()
