"""Decision whether and where a request for what another node has goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callcontrol.nodes.forwarding import NoWay, way_to
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
