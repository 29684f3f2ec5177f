"""Dialogs: routes, targets and sequence numbers (RFC 3261 12)."""

import pytest

from sip import NameAddr, ParseError, Request, Response, parse_message, reply
from sip.session.dialog import Dialog
from tests.support.sip_agents import SDP
from tests.support.sip_stage import RAW, Stage


def routes_of(request: Request) -> list[str]:
    return [str(NameAddr.parse(route).uri) for route in request.headers.get_all("Route")]


def make_invite(*lines: str) -> Request:
    text = "\r\n".join(
        (
            "INVITE sip:bob@example.net SIP/2.0",
            "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKa",
            "From: Alice <sip:alice@example.net>;tag=a1",
            "To: <sip:bob@example.net>",
            "Call-ID: c1",
            "CSeq: 314159 INVITE",
            *lines,
            "\r\n",
        )
    )
    message = parse_message(text.encode())
    assert isinstance(message, Request)
    return message


def make_answer(invite: Request, *fields: tuple[str, str]) -> Response:
    response = reply(invite, 200, to_tag="b1")
    for name, value in fields:
        response.headers.add(name, value)
    return response


def as_uas(*lines: str) -> Dialog:
    invite = make_invite("Contact: <sip:alice@192.0.2.1:5070>", *lines)
    return Dialog.from_request(invite, "b1", "<sip:192.0.2.2>")


def as_uac(*fields: tuple[str, str]) -> Dialog:
    invite = make_invite("Contact: <sip:192.0.2.1>")
    return Dialog.from_response(invite, make_answer(invite, *fields))


def test_the_called_side_keeps_the_route_as_it_came() -> None:
    dialog = as_uas("Record-Route: <sip:p2.example.net;lr>, <sip:p1.example.net;lr>")
    request = dialog.request("BYE")
    assert str(request.uri) == "sip:alice@192.0.2.1:5070"
    assert routes_of(request) == [
        "sip:p2.example.net;lr",
        "sip:p1.example.net;lr",
    ]
    assert str(dialog.next_hop()) == "sip:p2.example.net;lr"
    assert request.headers.get("From") == "<sip:bob@example.net>;tag=b1"
    assert request.headers.get("To") == "Alice <sip:alice@example.net>;tag=a1"
    assert request.call_id == "c1"


def test_the_calling_side_turns_the_route_around() -> None:
    dialog = as_uac(
        ("Record-Route", "<sip:p2.example.net;lr>"),
        ("Record-Route", "<sip:p1.example.net;lr>"),
        ("Contact", "<sip:bob@192.0.2.2>"),
    )
    request = dialog.request("BYE")
    assert routes_of(request) == [
        "sip:p1.example.net;lr",
        "sip:p2.example.net;lr",
    ]
    assert request.cseq.number == 314160


def test_a_strict_router_is_named_by_the_request_uri() -> None:
    """RFC 3261 12.2.1.1."""
    dialog = as_uas("Record-Route: <sip:strict.example.net>, <sip:p1.example.net;lr>")
    request = dialog.request("BYE")
    assert str(request.uri) == "sip:strict.example.net"
    assert routes_of(request) == [
        "sip:p1.example.net;lr",
        "sip:alice@192.0.2.1:5070",
    ]
    assert str(dialog.next_hop()) == "sip:strict.example.net"


def test_a_target_refresh_moves_the_peer() -> None:
    dialog = as_uas()
    dialog.refresh_target(make_invite("Contact: <sip:alice@192.0.2.50>"))
    assert str(dialog.request("INFO").uri) == "sip:alice@192.0.2.50"


@pytest.mark.parametrize("contact", ["", "Contact: <tel:+911>", "Contact: <<>>"])
def test_a_bad_contact_refreshes_nothing(contact: str) -> None:
    dialog = as_uas()
    dialog.refresh_target(make_invite(*([contact] if contact else [])))
    assert str(dialog.request("INFO").uri) == "sip:alice@192.0.2.1:5070"


def test_header_fields_of_a_contact_do_not_reach_the_request_line() -> None:
    dialog = as_uac(("Contact", "<sip:bob@192.0.2.2?X-Evil=1>"))
    assert str(dialog.request("BYE").uri) == "sip:bob@192.0.2.2"


def test_an_invite_without_usable_contact_makes_no_dialog() -> None:
    with pytest.raises(ParseError):
        Dialog.from_request(make_invite(), "b1", "<sip:192.0.2.2>")


def test_an_answer_without_usable_contact_or_route_still_makes_one() -> None:
    dialog = as_uac(("Contact", "<<>>"), ("Record-Route", "<<>>"))
    assert str(dialog.request("ACK", cseq=1).uri) == "sip:bob@example.net"


def test_sequence_numbers_must_grow() -> None:
    dialog = as_uas()
    assert not dialog.accept_sequence(make_invite())
    grown = make_invite()
    grown.headers.set("CSeq", "314170 INVITE")
    assert dialog.accept_sequence(grown)
    assert not dialog.accept_sequence(grown)


def test_an_ack_reuses_the_number_of_its_invite() -> None:
    dialog = as_uas()
    dialog.request("INFO")
    ack = dialog.request("ACK", cseq=1)
    assert str(ack.cseq) == "1 ACK"
    assert dialog.request("BYE").cseq.number == 2


async def test_requests_within_the_dialog_go_to_the_first_route(stage: Stage) -> None:
    raw = stage.raw()
    route = f"<sip:{RAW[0]}:{RAW[1]};lr>"
    raw.send(
        raw.request("INVITE", branch="a", body=SDP, Record_Route=route, Contact="<sip:far@198.51.100.7:5060>")
    )
    stage.advance()
    answer = raw.responses("INVITE", 200)[0]
    assert answer.headers.get("Record-Route") == route
    raw.send(raw.request("ACK", branch="ack", To=answer.headers.get("To") or ""))
    stage.advance()
    stage.bob.inbound[0].session.hangup()
    stage.advance()
    bye = raw.requests("BYE")[0]
    assert str(bye.uri) == "sip:far@198.51.100.7:5060"
    assert bye.headers.get("Route") == route
    raw.respond(bye, 200)
    stage.finish()
