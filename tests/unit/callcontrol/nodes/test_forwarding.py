"""Decision whether and where a request for what another node has goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callcontrol.nodes.forwarding import KnownNodes, NoWay, way_to
from callcontrol.nodes.lease import Node

OWN = Node("a", "1", "boot-1:8:1", "http://10.0.0.1:8080", 6.0)
OWNER = Node("b", "2", "boot-2:8:1", "http://10.0.0.2:8080", 6.0)


def test_a_living_node_is_asked_at_its_address() -> None:
    assert way_to(OWNER, OWN) == "http://10.0.0.2:8080"


@pytest.mark.parametrize(
    "owner",
    [
        None,
        replace(OWNER, lease_left_s=0.0),
        replace(OWNER, lease_left_s=-3.0),
        replace(OWNER, adopted_by="c"),
    ],
    ids=["no row", "lease just over", "lease over", "adopted, with the lease of its adopter"],
)
def test_a_node_without_a_lease_of_its_own_is_not_asked(owner: Node | None) -> None:
    assert way_to(owner, OWN) is NoWay.DEAD


@pytest.mark.parametrize("url", ["", OWN.url], ids=["none", "this node's own"])
def test_a_node_without_an_address_is_not_asked(url: str) -> None:
    assert way_to(replace(OWNER, url=url), OWN) is NoWay.NO_ADDRESS


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9090", "http://[::1]:9090", "http://localhost:9090", "https://127.8.8.8"]
)
def test_a_loopback_address_is_asked_on_the_same_machine_alone(url: str) -> None:
    owner = replace(OWNER, url=url)
    assert way_to(owner, OWN) is NoWay.NO_ADDRESS
    assert way_to(replace(owner, place="boot-1:8:2"), OWN) == url
    nowhere = replace(OWN, place="")
    assert way_to(replace(owner, place=""), nowhere) is NoWay.NO_ADDRESS


def test_a_node_is_known_while_its_lease_lasts_since_it_was_read() -> None:
    known = KnownNodes()
    assert known.living("b", 10.0) is None
    known.update([OWN, OWNER], 10.0)
    assert known.living("b", 10.0) == OWNER
    assert known.living("b", 15.5) == replace(OWNER, lease_left_s=0.5)
    assert known.living("b", 16.0) is None
    known.update([OWN, OWNER], 12.0)
    assert known.living("b", 16.0) == replace(OWNER, lease_left_s=2.0)


@pytest.mark.parametrize("changes", [{"lease_left_s": 0.0}, {"adopted_by": "c"}], ids=["dead", "adopted"])
def test_of_a_node_that_did_not_live_nothing_is_known(changes: dict[str, Any]) -> None:
    """It may have started since."""
    known = KnownNodes()
    known.update([OWN, replace(OWNER, **changes)], 10.0)
    assert known.living("b", 10.0) is None


def test_a_node_that_does_not_accept_connections_is_forgotten_until_it_is_read_again() -> None:
    known = KnownNodes()
    known.update([OWN, OWNER], 10.0)
    known.forget("b")
    known.forget("nobody")
    assert known.living("b", 10.0) is None
    known.update([OWN, OWNER], 12.0)
    assert known.living("b", 12.0) == OWNER
