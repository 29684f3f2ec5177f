"""Callers that are asked for a password, by one of our own user agents: RFC 3261 22 from both ends."""

from typing import Any

import pytest

from sip import (
    Answered,
    Credentials,
    DigestSettings,
    Failed,
    Request,
    Response,
    Secret,
    parse_message,
    serialise,
)
from sip.aio import Screened, ScreenVerdict, Source, UserAgentSettings
from sip.auth.server import LOCK_S, MAX_FAILURES
from tests.support.sip_agents import SDP
from tests.support.sip_stage import BOB, Stage, make_stage

GOOD = Credentials("trunk", "secret")


class FakeGuard:
    """Hears of passwords, and lets everything pass."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, bool]] = []
        self.protection = self

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None

    def answer_for(self, response: Response, *_: object) -> Response:
        return response

    def on_auth_success(self, host: str, now: float) -> None:
        self.heard.append((host, True))

    def on_auth_failure(self, host: str, now: float) -> None:
        self.heard.append((host, False))


def secrets_of(username: str) -> list[Secret]:
    return [Secret("secret", "carrier-1")] if username == "trunk" else []


def ask(_: Source, __: Request) -> Screened:
    return Screened(ScreenVerdict.CHALLENGE, secrets_of=secrets_of)


async def asking(**digest: Any) -> Stage:
    return await make_stage(UserAgentSettings(digest=DigestSettings(**digest)), screen=ask)


@pytest.mark.parametrize("algorithm", ["SHA-512-256", "SHA-256", "MD5"])
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
async def test_a_call_with_a_password(algorithm: str, qop: str) -> None:
    stage = await asking(algorithms=(algorithm,), qop=(qop,))
    side = stage.alice.call(BOB, credentials=GOOD)
    stage.advance()
    assert side.last(Answered).body == SDP
    (inbound,) = stage.bob.inbound
    assert inbound.session.identities == ("carrier-1",)
    side.session.reinvite(SDP)
    stage.advance()
    side.session.hangup()
    stage.finish()


@pytest.mark.parametrize(
    "credentials", [None, Credentials("trunk", "wrong"), Credentials("nobody", "secret")]
)
async def test_nothing_is_kept_of_who_proves_nothing(credentials: Credentials | None) -> None:
    stage = await asking()
    side = stage.alice.call(BOB, credentials=credentials)
    stage.advance()
    assert side.last(Failed).status == 401
    assert stage.bob.inbound == [] and stage.bob.ua.transactions == 0
    stage.finish()


async def test_what_was_overheard_opens_nothing() -> None:
    """The very answer that let a call in, in an INVITE of its own and from its own source."""
    stage = await asking()
    side = stage.alice.call(BOB, credentials=GOOD)
    stage.advance()
    side.session.hangup()
    stage.advance(40)
    sent = [data for _, _, target, data in stage.network.wire if target == BOB]
    overheard = next(data for data in sent if data.startswith(b"INVITE") and b"Authorization" in data)
    for turn in range(50):
        message = parse_message(overheard)
        assert isinstance(message, Request)
        message.headers.set("Call-ID", f"replay-{turn}")
        message.headers.set("Via", f"SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKreplay{turn};rport")
        stage.network.carry(serialise(message), ("192.0.2.1", 5060), BOB)
    stage.advance()
    answers = [data for _, source, _, data in stage.network.wire if source == BOB and b"replay-" in data]
    assert len(answers) == 50
    assert all(data.startswith(b"SIP/2.0 401") and b"stale=true" in data for data in answers)
    assert len(stage.bob.inbound) == 1
    stage.finish()


async def test_the_guard_hears_of_right_and_wrong_passwords_alone() -> None:
    stage = await asking()
    guard = FakeGuard()
    stage.bob.ua.guard = guard  # type: ignore[assignment]
    stage.alice.call(BOB)
    stage.advance()
    assert guard.heard == []
    stage.alice.call(BOB, credentials=Credentials("trunk", "wrong"))
    stage.advance()
    assert guard.heard == [("192.0.2.1", False)]
    side = stage.alice.call(BOB, credentials=GOOD)
    stage.advance()
    assert guard.heard[1:] == [("192.0.2.1", True)]
    side.session.hangup()
    stage.advance(40)


async def test_who_a_certificate_proves() -> None:
    """The screen is told the names, and says who that is."""
    seen: list[Source] = []

    def screen(source: Source, _: Request) -> Screened:
        seen.append(source)
        return Screened(ScreenVerdict.ACCEPT, ("carrier-2",))

    stage = await make_stage(screen=screen)
    side = stage.alice.call(BOB)
    stage.advance()
    assert stage.bob.inbound[0].session.identities == ("carrier-2",)
    assert seen == [Source("192.0.2.1", 5060, "udp", frozenset())]
    side.session.hangup()
    stage.finish()


async def test_a_password_is_not_guessed_from_a_trusted_address_either() -> None:
    """No guard bans a gateway; after twenty wrong passwords for a name even the right one is refused."""
    stage = await asking()
    statuses = []
    for number in range(MAX_FAILURES + 1):
        side = stage.alice.call(BOB, credentials=Credentials("trunk", f"guess {number}"))
        stage.advance(1)
        [failed] = [event for event in side.events if isinstance(event, Failed)]
        statuses.append(failed.status)
    assert statuses == [401] * MAX_FAILURES + [403]
    side = stage.alice.call(BOB, credentials=GOOD)
    stage.advance(1)
    assert [event.status for event in side.events if isinstance(event, Failed)] == [403]
    stage.advance(LOCK_S)
    side = stage.alice.call(BOB, credentials=GOOD)
    stage.advance(1)
    assert any(isinstance(event, Answered) for event in side.events)
    side.session.hangup()
    stage.finish()
