"""Transfers over real sockets: REFER both ways, Replaces, redirections, and what is refused of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.sipp.exchange import Exchange
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load, Sipp

QUICK = Load(pause_ms=200)


class TransferExchange(Exchange):
    """The usual trunks with the right to transfer and to redirect, and a caller's trunk without it."""

    def _set_up(self) -> None:
        self.plain_port = free_port()
        gateway = "udp:127.0.0.1:{}".format
        callers, callees = (
            (self.caller_port, self.second_caller_port),
            (
                self.callee_port,
                self.second_callee_port,
            ),
        )
        self.server.add_carrier("callers", *map(gateway, callers), inbound=True, allows_refer=True)
        self.server.add_carrier("plain", gateway(self.plain_port), inbound=True)
        self.server.add_carrier(
            "callees", *map(gateway, callees), outbound=True, allows_refer=True, follows_redirects=True
        )
        self.account = self.server.add_account()
        self.number_id = self.server.add_number(self.account, "+918047000001", self.to_callee())

    @property
    def target(self) -> str:
        """Target of transfers: the second trunk of the callees."""
        return f"sip:target@127.0.0.1:{self.second_callee_port}"

    def refer(self, refer_to: str, scenario: str = "uac_refer.xml", *, port: int = 0) -> Sipp:
        """A caller that transfers its peer."""
        return self.caller(scenario, load=QUICK, port=port, extra=f"-key refer_to {refer_to}")

    def newest(self) -> dict[str, Any]:
        """The call that began last."""
        [call], _ = self.calls(per_page=1)
        return call

    def up(self, call_sid_before: str = "") -> dict[str, Any]:
        """The newest call once it is answered; its identifier is another than the one given."""
        found: dict[str, Any] = {}

        def answered() -> bool:
            calls, _ = self.calls(per_page=1)
            found.update(calls[0] if calls else {})
            return bool(calls) and found["call_sid"] != call_sid_before and found["status"] == "in-progress"

        assert wait_until(answered, 20), self.server.log()[-3000:]
        return found

    def path(self, call: dict[str, Any]) -> str:
        """Return the path of a call."""
        return f"/v1/Accounts/{self.account.account_sid}/Calls/{call['call_sid']}"

    def trace(self, call: dict[str, Any]) -> list[str]:
        """The SIP messages of a call."""
        trace = self.api("GET", f"/v1/calls/{call['call_sid']}/trace")
        return [entry["message"] for entry in trace["messages"]]

    def replaces(self, call: dict[str, Any], **changes: str) -> str:
        """Return the Replaces value for the caller's dialog of a call to us."""
        answer = next(
            text
            for text in self.trace(call)
            if text.startswith("SIP/2.0 200") and "CSeq: 1 INVITE" in text and "SIPpTag00" in text
        )
        fields = dict(line.split(": ", 1) for line in answer.split("\r\n") if ": " in line)
        parts = {
            "call_id": fields["Call-ID"],
            "to_tag": fields["To"].rpartition("tag=")[2],
            "from_tag": fields["From"].rpartition("tag=")[2],
            **changes,
        }
        value = f"{parts['call_id']};to-tag={parts['to_tag']};from-tag={parts['from_tag']}"
        return value + parts.get("more", "")


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    with TransferExchange(tmp_path_factory.mktemp("transfer")) as running:
        yield running


@pytest.fixture
def stage(clean: Exchange) -> TransferExchange:
    assert isinstance(clean, TransferExchange)
    return clean


def assert_completed(stage: TransferExchange) -> dict[str, Any]:
    call = stage.newest()
    ended = stage.wait_for_status(call["call_sid"], "completed")
    assert ended["hangup_cause"] == "NORMAL_CLEARING"
    return ended


# --- REFER --------------------------------------------------------------------------------------------------


def test_caller_transfers_the_callee(stage: TransferExchange) -> None:
    callee = stage.callee("uas_bye.xml", Load(pause_ms=1500))
    target = stage.callee(port=stage.second_callee_port, load=Load(pause_ms=100))
    caller, *_ = stage.finish(stage.refer(stage.target), callee, target)
    assert caller.log[-1] == "news 200"
    assert_completed(stage)


def test_callee_transfers_the_caller(stage: TransferExchange) -> None:
    target = stage.callee("uas_bye.xml", Load(pause_ms=800), port=stage.second_callee_port)
    callee = stage.callee("uas_refer.xml", QUICK, extra=f"-key refer_to {stage.target}")
    caller = stage.caller("uac_stay.xml")
    referring, *_ = stage.finish(callee, caller, target)
    assert referring.log[-1] == "news 200"
    assert_completed(stage)


@pytest.mark.parametrize("uri", ["tel:+919812345678", "tel:+91-98123-45678", "sip:9812345678@127.0.0.1"])
def test_a_number_is_dialled_as_the_account_dials_it(stage: TransferExchange, uri: str) -> None:
    callees = stage.callee(load=Load(2, 10, 100))
    (caller,) = stage.finish(stage.refer(uri))
    assert caller.log[-1] == "news 200"
    stage.api("DELETE", stage.path(stage.newest()))
    stage.finish(callees)
    invites = [text for text in stage.trace(assert_completed(stage)) if text.startswith("INVITE")]
    assert invites[-1].startswith("INVITE sip:+919812345678@")
    assert "<sip:+918047000001@" in invites[-1], "the number of the call is shown"


def test_custom_header_fields_of_the_target_arrive(stage: TransferExchange) -> None:
    callee = stage.callee("uas_bye.xml", Load(pause_ms=1200))
    target = stage.callee(port=stage.second_callee_port)
    uri = stage.target + "?X-Case=4%2F2%3B%20urgent&Subject=secret&Route=%3Csip%3A127.0.0.9%3E"
    caller, *_ = stage.finish(stage.refer(uri), callee, target)
    assert caller.log[-1] == "news 200"
    invite = [text for text in stage.trace(assert_completed(stage)) if text.startswith("INVITE")][-1]
    assert "\r\nX-Case: 4/2; urgent\r\n" in invite
    assert "secret" not in invite and "127.0.0.9" not in invite


def test_a_target_that_is_busy_leaves_the_call_up(stage: TransferExchange) -> None:
    callee = stage.callee()
    target = stage.callee("uas_busy.xml", port=stage.second_callee_port)
    caller, *_ = stage.finish(stage.refer(stage.target), callee, target)
    assert caller.log[-1] == "news 486"
    assert assert_completed(stage)["hangup_source"] == "caller"


@pytest.mark.parametrize(
    ("refer_to", "status"),
    [
        ("<tel:+19005550123>", 403),
        ("<tel:+882100000000>", 403),
        ("<sip:+19005550123@127.0.0.1:{second}>", 403),
        ("<sip:anyone@127.0.0.77>", 404),
        ("<sip:nobody@127.0.0.1:{server}>", 404),
        ("<tel:12>", 404),
        ("<sips:target@127.0.0.1>", 403),
        ("<mailto:a@b>", 416),
        ("<sip:target@127.0.0.1;method=BYE>", 603),
        ("<sip:a@b>,<sip:c@d>", 400),
    ],
)
def test_a_target_that_nobody_may_be_sent_to(stage: TransferExchange, refer_to: str, status: int) -> None:
    callee = stage.callee()
    named = refer_to.format(second=stage.second_callee_port, server=stage.server.sip_port)
    caller, _ = stage.finish(stage.refer(named, "uac_refer_refused.xml"), callee)
    assert caller.log == (f"refused {status}",)
    assert_completed(stage)


def test_a_trunk_without_the_right_is_declined(stage: TransferExchange) -> None:
    callee = stage.callee()
    refused = stage.refer(f"<{stage.target}>", "uac_refer_refused.xml", port=stage.plain_port)
    caller, _ = stage.finish(refused, callee)
    assert caller.log == ("refused 603",)


def test_outside_a_dialog_it_is_never_dialled(stage: TransferExchange) -> None:
    _, before = stage.calls()
    stage.finish(stage.caller("uac_refer_outside.xml"))
    assert stage.calls()[1] == before


def test_a_second_transfer_waits_for_the_first(stage: TransferExchange) -> None:
    callee = stage.callee("uas_bye.xml", Load(pause_ms=2500))
    # News of its ringing beside the answer to the second REFER would be more than SIPp can take.
    target = stage.callee("uas_late_ringing.xml", Load(pause_ms=800), port=stage.second_callee_port)
    caller, *_ = stage.finish(stage.refer(stage.target, "uac_refer_twice.xml"), callee, target)
    assert caller.log[-1] == "news 200"
    assert_completed(stage)


def test_a_caller_that_hangs_up_behind_its_refer(stage: TransferExchange) -> None:
    callee = stage.callee("uas_bye.xml", Load(pause_ms=1800))
    # News between the first NOTIFY and the caller's BYE would be more than SIPp can take.
    target = stage.callee("uas_late_ringing.xml", Load(pause_ms=300), port=stage.second_callee_port)
    caller, *_ = stage.finish(stage.refer(stage.target, "uac_refer_bye.xml"), callee, target)
    assert caller.log[-1] == "news 200"
    assert_completed(stage)


# --- Replaces -----------------------------------------------------------------------------------------------


def test_two_calls_are_joined(stage: TransferExchange) -> None:
    callees = stage.callee(load=Load(2, 10, 100))
    held = stage.caller("uac_stay.xml", port=stage.second_caller_port)
    first = stage.up()
    uri = f"{stage.target}?Replaces={quote(stage.replaces(first), safe='')}"
    asking = stage.refer(uri)
    caller, _ = stage.finish(asking, held)
    assert caller.log[-1] == "news 200"
    second = stage.newest()
    for call in (first, second):
        now = stage.api("GET", stage.path(call))
        assert now["status"] == "in-progress", "those who remain talk on"
    stage.api("DELETE", stage.path(second))
    stage.finish(callees)
    for call in (first, second):
        stage.wait_for_status(call["call_sid"], "completed")


def test_a_dialog_that_is_not_ours_is_left_to_the_target(stage: TransferExchange) -> None:
    callee = stage.callee("uas_bye.xml", Load(pause_ms=1200))
    target = stage.callee("uas_replaces.xml", port=stage.second_callee_port)
    uri = stage.target + "?Replaces=elsewhere%40host%3Bto-tag%3Da%3Bfrom-tag%3Db"
    caller, *_ = stage.finish(stage.refer(uri), callee, target)
    assert caller.log[-1] == "news 200"


def test_a_caller_takes_the_place_of_another(stage: TransferExchange) -> None:
    callee = stage.callee()
    replaced = stage.caller("uac_stay.xml", port=stage.second_caller_port)
    value = stage.replaces(stage.up())
    newcomer = stage.caller("uac_replaces.xml", load=Load(pause_ms=300), extra=f"-key replaces {value}")
    stage.finish(newcomer, replaced, callee)
    assert_completed(stage)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"call_id": "nobody"}, 481),
        ({"to_tag": "nobody"}, 481),
        ({"from_tag": "nobody"}, 481),
        ({"more": ";early-only"}, 486),
        ({"more": ";to-tag=twice"}, 400),
    ],
)
def test_a_dialog_that_does_not_match(stage: TransferExchange, changes: dict[str, str], status: int) -> None:
    callee = stage.callee()
    caller = stage.caller("uac_stay.xml", port=stage.second_caller_port)
    call = stage.up()
    value = stage.replaces(call, **changes)
    [newcomer] = stage.finish(stage.caller("uac_replaces_refused.xml", extra=f"-key replaces {value}"))
    assert newcomer.log == (f"refused {status}",)
    # Only now: a dialog that is over is refused otherwise.
    stage.api("DELETE", stage.path(call))
    stage.finish(caller, callee)
    assert_completed(stage)


def test_a_trunk_without_the_right_replaces_nobody(stage: TransferExchange) -> None:
    callee = stage.callee()
    caller = stage.caller("uac_stay.xml", port=stage.second_caller_port)
    call = stage.up()
    extra = f"-key replaces {stage.replaces(call)}"
    [newcomer] = stage.finish(stage.caller("uac_replaces_refused.xml", extra=extra, port=stage.plain_port))
    assert newcomer.log == ("refused 603",)
    stage.api("DELETE", stage.path(call))
    stage.finish(caller, callee)


# --- redirections -------------------------------------------------------------------------------------------


def test_a_redirection_is_followed(stage: TransferExchange) -> None:
    redirecting = stage.callee("uas_redirect.xml", extra=f"-key contact <{stage.target}>;q=0.5")
    target = stage.callee(port=stage.second_callee_port)
    stage.finish(stage.caller("uac.xml", load=QUICK), redirecting, target)
    invites = [
        text
        for text in stage.trace(assert_completed(stage))
        if text.startswith("INVITE sip:") and "SIPpTag" not in text
    ]
    assert invites[0].startswith("INVITE sip:callee@") and invites[-1].startswith("INVITE sip:target@")
    for name in ("Call-ID: ", "From: "):
        values = {line for text in invites for line in text.split("\r\n") if line.startswith(name)}
        assert len(values) == 1, values
    assert "CSeq: 2 INVITE" in invites[-1]


@pytest.mark.parametrize(
    "contact", ["<sip:x@127.0.0.77>", "<tel:+19005550123>", "<sip:+19005550123@127.0.0.1:{second}>"]
)
def test_a_redirection_that_may_not_be_followed(stage: TransferExchange, contact: str) -> None:
    named = contact.format(second=stage.second_callee_port)
    redirecting = stage.callee("uas_redirect.xml", extra=f"-key contact {named}")
    caller, _ = stage.finish(stage.caller("uac_refused.xml"), redirecting)
    assert caller.log == ("refused 480",)
    call = stage.newest()
    assert (call["status"], call["sip_status"]) == ("failed", 302)


def test_redirections_that_go_round_in_circles(stage: TransferExchange) -> None:
    there = stage.callee("uas_redirect.xml", extra=f"-key contact <{stage.target}>")
    back = stage.callee(
        "uas_redirect.xml",
        port=stage.second_callee_port,
        extra=f"-key contact <sip:callee@127.0.0.1:{stage.callee_port}>",
    )
    caller, *_ = stage.finish(stage.caller("uac_refused.xml"), there, back)
    assert caller.log == ("refused 480",)
    assert stage.newest()["sip_status"] == 302
