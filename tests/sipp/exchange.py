"""The set-up of the SIPp tests: a server between a caller's trunk and callees' trunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.ports import free_port
from tests.support.server_process import Account, ServerProcess, wait_until
from tests.support.sipp_run import Load, Sipp, SippResult, start_sipp

__all__ = ["FORWARDED", "UNKNOWN", "Exchange"]

FORWARDED = "+918047000001"
UNKNOWN = "+918047009999"
# On a machine with more to do than it can, everything takes its time; nothing here asserts speed.
_PATIENCE_S = 60.0
_ONE_CALL = Load()


class Exchange:
    """
    A running server that knows SIPp as two trunks.

    Calls to `FORWARDED` are bridged to the first callee's trunk. A second stands behind it for calls that are
    routed by number.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        self.directory = directory
        self.server = ServerProcess(
            directory / "server",
            environment={
                "TRUNKLINE_MAX_CPS": "1000",
                **(environment or {}),
            },
            tls=tls,
            rtp_ports=800,
        )
        self.caller_port = free_port()
        self.second_caller_port = free_port()
        self.callee_port = free_port()
        self.second_callee_port = free_port()
        self.account = Account("", "")
        self.number_id = ""
        self._started: list[Sipp] = []

    def __enter__(self) -> Self:
        with self.server.starting():
            self._set_up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sipp in self._started:
            sipp.kill()
        status = self.server.stop()
        assert status == 0, f"the server ended with {status}:\n{self.server.log()}"
        assert "Traceback" not in self.server.log(), self.server.log()

    def _set_up(self) -> None:
        gateway = "udp:127.0.0.1:{}".format
        self.server.add_carrier(
            "sipp-callers", gateway(self.caller_port), gateway(self.second_caller_port), inbound=True
        )
        self.server.add_carrier(
            "sipp-callees", gateway(self.callee_port), gateway(self.second_callee_port), outbound=True
        )
        self.account = self.server.add_account()
        self.number_id = self.server.add_number(self.account, FORWARDED, self.to_callee())

    def own_trunk(self, gateways: int = 1, **policy: Any) -> tuple[str, list[int]]:
        """
        A trunk for one test that makes its gateways fail: its carrier_sid, and their ports in their order.

        A gateway that failed rests and is probed, and would be out of service for the tests that follow. No
        other call is routed by this trunk: it serves no number by itself.
        """
        ports = [free_port() for _ in range(gateways)]
        addresses = (f"udp:127.0.0.1:{port}" for port in ports)
        carrier_sid = self.server.add_carrier(
            "sipp-own", *addresses, outbound=True, prefixes=["+8835100"], **policy
        )
        return carrier_sid, ports

    @contextmanager
    def own_callee(self, **policy: Any) -> Iterator[int]:
        """Bind `FORWARDED` to a trunk of its own meanwhile; gives the port of its gateway."""
        _, [port] = self.own_trunk(**policy)
        self.bind(self.to_callee(port))
        try:
            yield port
        finally:
            self.bind(self.to_callee())

    def to_callee(self, port: int = 0, **more: Any) -> dict[str, Any]:
        """The binding that forwards to the first callee's trunk, unless another port is given."""
        address = f"127.0.0.1:{port or self.callee_port}"
        return {"target": "forward", "forward_to": f"sip:callee@{address}", **more}

    def bind(self, binding: Mapping[str, Any]) -> None:
        """Bind `FORWARDED` anew."""
        body = {**binding, "force": True}
        reply = self.server.request(
            "PUT", f"/v1/phone-numbers/{self.number_id}/inbound", self.account.api_key, body
        )
        assert reply.status == 200, reply

    # SIPp on either side

    def caller(
        self,
        scenario: str,
        number: str = FORWARDED,
        load: Load = _ONE_CALL,
        *,
        port: int = 0,
        extra: str = "",
        target: str = "",
    ) -> Sipp:
        """Start a SIPp that calls the server, from the first caller's trunk unless told otherwise."""
        sipp = start_sipp(
            scenario,
            self.directory,
            port or self.caller_port,
            load,
            target=target or f"127.0.0.1:{self.server.sip_port}",
            number=number,
            extra=["-mp", str(free_port()), *extra.split()],
        )
        self._started.append(sipp)
        return sipp

    def callee(
        self, scenario: str = "uas.xml", load: Load = _ONE_CALL, *, port: int = 0, extra: str = ""
    ) -> Sipp:
        """Start a SIPp that is called, on the first callee's trunk unless told otherwise."""
        port = port or self.callee_port
        transport = "tcp" if "-t t" in extra else "udp"
        assert wait_until(lambda: not _bound(port, transport)), f"another process listens on {port}"
        sipp = start_sipp(
            scenario, self.directory, port, load, extra=["-mp", str(free_port()), *extra.split()]
        )
        self._started.append(sipp)
        assert wait_until(lambda: _bound(port, transport) or not sipp.running), "SIPp does not listen"
        return sipp

    def finish(self, *running: Sipp) -> list[SippResult]:
        """Wait for the given SIPps; each must have ended with every call as its scenario says."""
        results = []
        for sipp in running:
            results.append(sipp.wait(_PATIENCE_S))
            if results[-1].exit_status != 0:
                # What the others saw tells why; they may wait for a call that does not come any more.
                others = [other.wait(1.0) for other in running[len(results) :]]
                said = "\n".join(f"{one.failed} failed\n{one.errors}" for one in (*results, *others))
                raise AssertionError(f"{said}\n{self.server.log()[-4000:]}")
        return results

    # The REST API

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """A request of the account; the reply must be a success and its `data` is returned."""
        reply = self.server.request(method, path, self.account.api_key, body)
        assert 200 <= reply.status < 300, reply
        return reply.data

    def calls(self, **query: str | int) -> tuple[list[dict[str, Any]], int]:
        """A page of the account's calls, newest first, and how many there are in all."""
        text = "&".join(f"{name}={value}" for name, value in query.items())
        reply = self.server.request("GET", f"/v1/calls?{text}", self.account.api_key)
        assert reply.status == 200, reply
        return reply.data, int(reply.body["meta"]["total"])

    def wait_for_status(self, call_sid: str, *statuses: str) -> dict[str, Any]:
        """The call, once it is in one of the statuses."""
        latest: dict[str, Any] = {}

        def arrived() -> bool:
            latest.update(self.api("GET", f"/v1/Accounts/{self.account.account_sid}/Calls/{call_sid}"))
            return latest["status"] in statuses

        assert wait_until(arrived, _PATIENCE_S), (
            f"{latest} did not become {statuses}\n{self.server.log()[-4000:]}"
        )
        return latest

    def gateways(self, state: str) -> int:
        """Return the number of outbound gateways in a state of health."""
        text = str(self.server.request("GET", "/metrics").body)
        wanted = f'trunkline_gateways{{state="{state}"}}'
        line = next(line for line in text.splitlines() if line.startswith(wanted))
        return int(float(line.split()[-1]))

    def assert_clean(self) -> None:
        """Nothing of any call is left: no call, no RTP port, no reserve."""
        left = {name: self.server.metric(name) for name in _LEFT_OVERS}
        done = wait_until(lambda: not any(self._left_over(left)), _PATIENCE_S)
        assert done, f"left over: {left}\n{self.server.log()[-4000:]}"

    def _left_over(self, into: dict[str, float]) -> list[float]:
        into.update({name: self.server.metric(name) for name in _LEFT_OVERS})
        return list(into.values())


_LEFT_OVERS = ("trunkline_calls_active", "trunkline_rtp_ports_in_use", "trunkline_wallet_reserved_paise")


def _bound(port: int, transport: str) -> bool:
    """
    Some process listens on the port.

    Only one transport is asked: the kernel takes milliseconds to list sockets of TCP. Column 2 of
    /proc/net/udp and the like is the address and port in hexadecimal, column 4 the state: a socket of UDP is
    in one, of TCP also connections are that have ended.
    """
    tables = (Path("/proc/net", table) for table in (transport, f"{transport}6"))
    lines = [line.split() for table in tables for line in table.read_text().splitlines()]
    return any(line[1].endswith(f":{port:04X}") and line[3] in _LISTENING for line in lines)


# Of UDP, and of TCP.
_LISTENING = ("07", "0A")
