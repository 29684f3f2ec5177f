"""Requests for calls of another node, changes that reach it, and the cuts between the two."""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle.evidence import Evidence
from tests.faults.oracle.nodes_stage import Answer, NodesStage, wait_till
from tests.faults.oracle.stage import FORWARDED
from tests.faults.pair import Pair
from tests.support.server_process import ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S

pytestmark = [
    pytest.mark.durable,
    pytest.mark.timeout(0),
    pytest.mark.long(reason="two servers in processes of their own"),
]

_CALLS = 3
_CUT_S = seconds("CUT_S", short=2.0, long=60.0)
_ASKED = count("ASKED_ELSEWHERE", short=10, long=300)
_REWIRED = count("REWIRED", short=20, long=200)
_REVOKED = count("REVOKED", short=3, long=50)
_UNHEARD = count("REWIRED_UNHEARD", short=3, long=20)
# A change is polled for twice a second: what comes sooner was heard of.
_HEARD_S = 0.05 if SOAK else 0.2
_LATE_SHARE = 0.01 if SOAK else 0.1
_POLLED_S = 1.0 if SOAK else 1.5
_ADDED_S = 0.01 if SOAK else 0.1


@pytest.fixture(autouse=True)
def ended(pair: Pair) -> Iterator[None]:
    """No call is up before and after a test, and none is lost."""
    yield
    pair.stage.judge()


def calls_on_b(stage: NodesStage, number: int = _CALLS) -> list[str]:
    """Set up calls on node b that nobody hangs up."""
    stage.callees(ring_s=(0.0, 0.0))
    stage.load(20.0, {"forwarded": 1}, calls=number)
    stage.wait(lambda: len(stage.active()) == number, "calls do not come up")
    return stage.active()


Request = Callable[[ServerProcess, str], Answer]


def requests_of_a_call(stage: NodesStage) -> dict[str, Request]:
    """Requests that only the node of a call can answer, and that leave it up."""
    own = stage.account.account_sid
    basic = base64.b64encode(f"{own}:{stage.account.api_key}".encode()).decode()

    def twilio(node: ServerProcess, call_sid: str) -> Answer:
        path = f"/2010-04-01/Accounts/{own}/Calls/{call_sid}.json"
        twiml = "<Response><Pause length='600'/></Response>"
        return stage.ask(node, "POST", path, form={"Twiml": twiml}, Authorization=f"Basic {basic}")

    def control(body: dict[str, Any], node: ServerProcess, call_sid: str) -> Answer:
        return stage.ask(node, "POST", stage.path_of(call_sid), body)

    return {
        "mute": partial(control, {"mute_status": "mute"}),
        "unmute": partial(control, {"mute_status": "unmute"}),
        "time limit": partial(control, {"time_limit": 3600}),
        "trace": lambda node, call_sid: stage.ask(node, "GET", f"/v1/calls/{call_sid}/trace"),
        "Twilio": twilio,
    }


def test_the_wrong_node_answers_as_the_right_one(pair: Pair) -> None:
    """Each request for a call is answered by the other node as by its own, and hardly later."""
    stage = pair.stage
    call_sid = calls_on_b(stage, 1)[0]
    for name, ask in requests_of_a_call(stage).items():
        if name == "Twilio":
            continue  # It ends the forwarding: below.
        took: dict[str, list[float]] = {"right": [], "wrong": []}
        for _ in range(_ASKED):
            right, wrong = ask(stage.b, call_sid), ask(stage.a, call_sid)
            assert right.status == wrong.status < 300, (name, right, wrong)
            assert shape(right.body) == shape(wrong.body), name
            took["right"].append(right.took_s)
            took["wrong"].append(wrong.took_s)
        added_s = percentile(took["wrong"]) - percentile(took["right"])
        reports.sample(f"added to the p99 of {name}, ms", 1000 * added_s)
        assert added_s <= _ADDED_S, (name, took)
    assert requests_of_a_call(stage)["Twilio"](stage.a, call_sid).status == 200
    assert stage.ask(stage.a, "DELETE", stage.path_of(call_sid)).status == 200
    for node in stage.nodes:
        assert wait_until(lambda: not stage.active(), PATIENCE_S)
        assert stage.ask(node, "DELETE", stage.path_of(call_sid)).code == "CALL_ENDED"


def shape(value: Any) -> Any:
    """The names of a body, without values that change from one request to the next."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value[:1]]
    return type(value).__name__


def percentile(values: list[float]) -> float:
    """The 99th percentile; with few values, where it is the worst, the median."""
    ordered = sorted(values)
    return ordered[int(0.99 * len(ordered))] if SOAK else ordered[len(ordered) // 2]


@pytest.mark.parametrize("cut", ["refused", "swallowed"])
def test_nodes_that_do_not_reach_each_other_say_so(pair: Pair, cut: str) -> None:
    """
    The network between two nodes is cut while both renew their leases: a call of the other node is
    `NODE_UNREACHABLE` with Retry-After, shown as active, and never ended; after the cut all is as before.
    """
    stage = pair.stage
    up = calls_on_b(stage)
    asked = requests_of_a_call(stage)
    pair.tunnel.refuse() if cut == "refused" else pair.tunnel.swallow()
    try:
        until = time.monotonic() + _CUT_S
        rounds = 0
        while rounds == 0 or time.monotonic() < until:
            assert_unreachable(stage, asked, up)
            rounds += 1
        progress(f"{cut}: {rounds * (len(asked) + 1)} requests for {_CUT_S:.0f} s")
        listed = stage.a.command("nodes", "list")["nodes"]
        assert {node["node"]: node["state"] for node in listed} == {"a": "up", "b": "up"}
    finally:
        pair.tunnel.mend()
    for call_sid in up:
        assert asked["mute"](stage.a, call_sid).status == 202
        assert stage.ask(stage.a, "DELETE", stage.path_of(call_sid)).status == 200
    assert wait_until(lambda: not stage.active(), PATIENCE_S)


def assert_unreachable(stage: NodesStage, asked: dict[str, Request], up: list[str]) -> None:
    """Every request for calls of node b is refused for now, and nothing has happened to them."""
    calls = itertools.cycle(up)
    answers = {name: ask(stage.a, next(calls)) for name, ask in asked.items()}
    answers["DELETE"] = stage.ask(stage.a, "DELETE", stage.path_of(next(calls)))
    for name, answer in answers.items():
        assert answer.status == 503 and int(answer.headers["Retry-After"]) > 0, (name, answer)
        if name != "Twilio":  # Which has numbers.
            assert answer.code == "NODE_UNREACHABLE", (name, answer)
    for call_sid in up:
        shown = stage.api("GET", stage.path_of(call_sid))
        assert shown["status"] == "in-progress" and shown["ended_at"] is None


def rewire(stage: NodesStage, times: int, wait_s: float, start: int) -> dict[str, float]:
    """Forward the number anew at node a, again and again, and call b by it; when each was forwarded so."""
    wired: dict[str, float] = {}
    found = stage.pages("/v1/phone-numbers")
    number_id = next(one["id"] for one in found if one["number"] == FORWARDED)
    for number in range(start, start + times):
        user = f"callee{number}"
        to = f"sip:{user}@127.0.0.1:{stage.far.callee_port}"
        binding = {"target": "forward", "forward_to": to, "status_webhook_url": stage.webhook_url}
        stage.api("PUT", f"/v1/phone-numbers/{number_id}/inbound", {**binding, "force": True})
        wired[user] = time.monotonic()
        wait_till(wired[user] + wait_s)
        stage.load(1000.0, {"forwarded": 1}, calls=1, hold_s=(0.2, 0.2))
    return wired


def stale(evidence: Evidence, wired: dict[str, float]) -> list[float]:
    """Of calls that went by what was no longer so: for how long it was not."""
    callees = {leg.session_id: leg.number for leg in evidence.legs if leg.role == "callee"}
    found, order = [], sorted(wired.values())
    for leg in evidence.legs:
        went = wired.get(callees.get(leg.session_id, ""), 0.0)
        later = [at for at in order if went < at < leg.began_at]
        if leg.role == "caller" and leg.began_at > order[0] and later:
            found.append(leg.began_at - later[0])
    return found


def test_a_number_wired_anew_is_heard_of_by_the_other_node(pair: Pair) -> None:
    """
    A number is wired at one node: an INVITE 50 ms later at the other goes by it, and one a second later also
    when nobody hears of changes.
    """
    stage = pair.stage
    stage.callees(ring_s=(0.0, 0.0))
    assert wait_until(lambda: stage.b.metric("trunkline_listener_connected") == 1, PATIENCE_S)
    heard = rewire(stage, _REWIRED, _HEARD_S, 0)
    with nobody_listens(pair):
        unheard = rewire(stage, _UNHEARD, _POLLED_S, _REWIRED)
    evidence = pair.stage.judge()
    wrong = stale(evidence, heard | unheard)
    reports.sample("INVITEs by an old wiring", len(wrong))
    assert len(wrong) <= _LATE_SHARE * _REWIRED, wrong
    assert not [late_s for late_s in stale(evidence, unheard) if late_s > 0], "the poll is too slow"


@contextmanager
def nobody_listens(pair: Pair) -> Iterator[None]:
    """Cut the connection on which node b listens for changes, whenever there is one."""
    connected = partial(pair.stage.b.metric, "trunkline_listener_connected")
    pair.proxy.deaf = True
    try:
        assert wait_until(lambda: connected() == 0, PATIENCE_S)
        yield
    finally:
        pair.proxy.deaf = False
    assert wait_until(lambda: connected() == 1, PATIENCE_S)


def test_a_key_revoked_at_one_node_opens_nothing_at_the_other(pair: Pair) -> None:
    """A key that the other node has just accepted is refused by it 50 ms after its end."""
    stage = pair.stage
    account = stage.account.account_sid
    late = [after_revoking(stage, account, _HEARD_S) for _ in range(_REVOKED)].count(200)
    assert late <= max(1, _LATE_SHARE * _REVOKED)
    with nobody_listens(pair):
        assert after_revoking(stage, account, _POLLED_S) == 401


def after_revoking(stage: NodesStage, account: str, wait_s: float) -> int:
    """Make a key, use it at node b, revoke it beside node a; its status at b some time later."""
    made = stage.a.command("keys", "create", "--account", account, "--service", "platform")
    used = partial(stage.ask, stage.b, "GET", "/v1/calls?per_page=1", key=str(made["key"]))
    assert wait_until(lambda: used().status == 200, PATIENCE_S)
    stage.a.command("keys", "revoke", "--account", account, "--key", str(made["key_id"]))
    # The command has ended some time after the change.
    wait_till(time.monotonic() + wait_s)
    return used().status
