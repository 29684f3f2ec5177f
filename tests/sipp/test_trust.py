"""Registration and authentication against SIPp: registrars that refuse, callers that prove themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load, Sipp

CARRIERS = "/v1/trunk-portal/carriers"
USER, PASSWORD = "caller-user", "caller-secret"
SHORT = Load(pause_ms=200)


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    """The server of this module: SIPp, like old clients, looks at the first challenge alone and knows MD5."""
    environment = {"TRUNKLINE_SIP_DIGEST": "MD5,SHA-256,SHA-512-256"}
    with Exchange(tmp_path_factory.mktemp("trust"), environment) as running:
        yield running


class Trunk:
    """A carrier of the account that registers with SIPp."""

    def __init__(self, exchange: Exchange, *ports: int, **fields: Any) -> None:
        self.exchange = exchange
        values = {
            "name": "registered",
            "trunk_type": "reg",
            "requires_register": True,
            "register_username": "trunk-user",
            "register_password": "trunk-secret",
            "registrars": [f"127.0.0.1:{port}" for port in ports],
            **fields,
        }
        self.path = f"{CARRIERS}/{exchange.api('POST', CARRIERS, values)['carrier_sid']}"

    def add_gateway(self, port: int, host: str = "127.0.0.1", **fields: Any) -> None:
        self.exchange.api("POST", f"{self.path}/gateways", {"host": host, "port": port, **fields})

    def shown(self) -> dict[str, Any]:
        found = self.exchange.api("GET", self.path)
        assert isinstance(found, dict)
        return found

    def wait_for(self, state: str) -> dict[str, Any]:
        """The register status once it is in a state."""
        assert wait_until(lambda: self.shown()["register_status"]["state"] == state), self.shown()
        status = self.shown()["register_status"]
        assert isinstance(status, dict)
        return status

    def delete(self) -> None:
        """Delete it, once its last call is recorded as over."""

        def done() -> bool:
            reply = self.exchange.server.request("DELETE", self.path, self.exchange.account.api_key)
            return reply.status in (204, 404)

        assert wait_until(done), "the carrier cannot be deleted"


@pytest.fixture
def trunks(clean: Exchange) -> Iterator[list[Trunk]]:
    """Trunks of the test, deleted after it."""
    made: list[Trunk] = []
    yield made
    for trunk in made:
        trunk.delete()


def register(
    clean: Exchange, trunks: list[Trunk], scenario: str, extra: str = "", **fields: Any
) -> tuple[Trunk, Sipp]:
    port = free_port()
    registrar = clean.callee(scenario, port=port, extra=extra)
    trunk = Trunk(clean, port, **fields)
    trunks.append(trunk)
    return trunk, registrar


class TestRegistrars:
    def test_registered_with_a_password_and_taken_back(self, clean: Exchange, trunks: list[Trunk]) -> None:
        trunk, registrar = register(clean, trunks, "uas_registrar.xml")
        status = trunk.wait_for("registered")
        assert status["reason"] is None and status["expires_at"] is not None
        (registration,) = trunk.shown()["registrations"]
        assert registration["registrar"].startswith("127.0.0.1:")
        assert clean.server.metric("trunkline_sip_registrations") >= 1
        trunk.delete()
        clean.finish(registrar)
        log = clean.server.log()
        assert "registration registered carrier=" in log and "trunk-secret" not in log

    def test_a_stale_nonce_at_the_refresh(self, clean: Exchange, trunks: list[Trunk]) -> None:
        trunk, registrar = register(clean, trunks, "uas_registrar_stale.xml")
        first = trunk.wait_for("registered")["expires_at"]
        assert wait_until(lambda: trunk.shown()["register_status"]["expires_at"] > first, 15)
        trunk.delete()
        clean.finish(registrar)

    def test_a_registrar_that_wants_longer(self, clean: Exchange, trunks: list[Trunk]) -> None:
        trunk, registrar = register(clean, trunks, "uas_registrar_423.xml", register_expires_s=60)
        trunk.wait_for("registered")
        trunk.delete()
        clean.finish(registrar)

    @pytest.mark.parametrize(
        ("scenario", "state", "reason"),
        [
            ("uas_registrar_wrong.xml", "rejected", "the user name or password was refused"),
            ("uas_registrar_403.xml", "rejected", "the registrar forbids it"),
            ("uas_registrar_302.xml", "rejected", "redirects are not followed"),
            ("uas_registrar_503.xml", "unreachable", "Service Unavailable"),
        ],
    )
    def test_refusals_are_shown_and_not_hammered(
        self, clean: Exchange, trunks: list[Trunk], scenario: str, state: str, reason: str
    ) -> None:
        trunk, registrar = register(clean, trunks, scenario)
        assert trunk.wait_for(state) == {"state": state, "reason": reason, "expires_at": None}
        clean.finish(registrar)

    def test_the_worst_of_several_registrars_is_shown(self, clean: Exchange, trunks: list[Trunk]) -> None:
        good, bad = free_port(), free_port()
        running = [
            clean.callee("uas_registrar.xml", port=good),
            clean.callee("uas_registrar_403.xml", port=bad),
        ]
        trunk = Trunk(clean, good, bad)
        trunks.append(trunk)
        trunk.wait_for("rejected")
        assert wait_until(
            lambda: [item["state"] for item in trunk.shown()["registrations"]] == ["rejected", "registered"]
        ), trunk.shown()
        clean.finish(running[1])
        trunk.delete()
        clean.finish(running[0])


class TestRegisteredTrunks:
    def test_called_at_the_registered_address(self, clean: Exchange, trunks: list[Trunk]) -> None:
        """The Request-URI has our Contact's user, which even looks like a number; the number is in To."""
        trunk, registrar = register(clean, trunks, "uas_registrar.xml")
        trunk.wait_for("registered")
        trunk.add_gateway(free_port(), host="127.0.0.3")
        # A caller from a carrier of the account's own is shown to the platform's as a number of the platform.
        clean.bind(clean.to_callee(caller_id=FORWARDED))
        try:
            callee = clean.callee()
            caller = clean.caller(
                "uac_to_number.xml", FORWARDED, SHORT, extra="-i 127.0.0.3 -key user trunk-user"
            )
            clean.finish(caller, callee)
        finally:
            clean.bind(clean.to_callee())
        [call], _ = clean.calls(per_page=1)
        assert (call["status"], call["to"]) == ("completed", FORWARDED)
        trunk.delete()
        clean.finish(registrar)

    def test_calls_out_go_by_the_service_route(self, clean: Exchange, trunks: list[Trunk]) -> None:
        edge = free_port()
        trunk, registrar = register(
            clean, trunks, "uas_registrar_route.xml", extra=f"-key route 127.0.0.1:{edge}"
        )
        trunk.wait_for("registered")
        trunk.add_gateway(free_port(), inbound=False)
        callee = clean.callee("uas_route.xml", port=edge)
        body = {
            "from": FORWARDED,
            "to": "+919812345678",
            "carrier_sid": trunk.path.rpartition("/")[2],
            "verbs": [{"verb": "pause", "length": 1}, {"verb": "hangup"}],
        }
        call = clean.api("POST", "/v1/calls", body)
        clean.finish(callee)
        clean.wait_for_status(call["call_sid"], "completed")
        trunk.delete()
        clean.finish(registrar)


@pytest.fixture(scope="module")
def passwords(exchange: Exchange) -> None:
    """A platform carrier known by its password alone, and one of another account."""
    exchange.server.add_carrier(
        "by-password",
        f"udp:127.0.0.99:{free_port()}",
        inbound_auth_username=USER,
        inbound_auth_password=PASSWORD,
    )
    stranger = exchange.server.add_account("Another")
    values = {
        "name": "another's",
        "inbound_auth_username": "another-user",
        "inbound_auth_password": "another-secret",
    }
    reply = exchange.server.request("POST", CARRIERS, stranger.api_key, values)
    assert reply.status == 201, reply


@pytest.mark.usefixtures("passwords")
class TestCallersWithPasswords:
    def caller(self, clean: Exchange, scenario: str, user: str = USER, password: str = PASSWORD) -> Sipp:
        # 127.0.0.2 is no gateway's address.
        extra = f"-i 127.0.0.2 -au {user} -ap {password}"
        return clean.caller(scenario, load=SHORT, extra=extra)

    def test_a_right_password(self, clean: Exchange) -> None:
        callee = clean.callee()
        clean.finish(self.caller(clean, "uac_digest.xml"), callee)
        [call], _ = clean.calls(per_page=1)
        assert (call["status"], call["direction"]) == ("completed", "inbound")
        assert PASSWORD not in clean.server.log()

    def test_an_old_nonce(self, clean: Exchange) -> None:
        callee = clean.callee()
        clean.finish(self.caller(clean, "uac_digest_stale.xml"), callee)

    def test_the_password_unasked(self, clean: Exchange) -> None:
        _, before = clean.calls()
        callee = clean.callee(load=Load(2))
        clean.finish(self.caller(clean, "uac_digest_again.xml"), callee)
        assert clean.calls()[1] == before + 2

    @pytest.mark.parametrize(
        ("user", "password", "outcome"),
        [
            (USER, "wrong", "refused 401"),
            ("nobody", PASSWORD, "refused 401"),
            ("another-user", PASSWORD, "refused 401"),
            ("another-user", "another-secret", "refused 404"),
        ],
    )
    def test_what_opens_nothing(self, clean: Exchange, user: str, password: str, outcome: str) -> None:
        """A wrong password and an unknown user look the same; another's carrier has no such number."""
        _, before = clean.calls()
        (caller,) = clean.finish(self.caller(clean, "uac_digest_refused.xml", user, password))
        assert caller.log == (outcome,)
        assert clean.calls()[1] == before

    def test_a_carrier_known_by_its_address_is_asked_nothing(self, clean: Exchange) -> None:
        callee = clean.callee()
        clean.finish(clean.caller("uac.xml", load=SHORT), callee)
