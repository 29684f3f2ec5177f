"""
Nodes that share one machine and one PostgreSQL: `python -m benchmarks.shared_machine [--nodes 1,2]`.

Each node is a whole server with a carrier of callers of its own; forwarded calls are answered, held 1 s and
ended, and come to all nodes alike. Nodes, PostgreSQL and SIPp share the processors; nothing is pinned.

It prints the set-up times, the CPU of a call in the nodes and in PostgreSQL, and how busy the machine was,
SIPp included, for several rates of all nodes together.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.commit_cost import postgres_cpu_s
from benchmarks.machine import describe, machine_busy_s, sample
from benchmarks.sut import NUMBER
from tests.support.ports import free_port
from tests.support.postgres import running_postgres
from tests.support.server_process import ServerProcess, wait_until
from tests.support.sipp_run import Load, Sipp, start_sipp

_SECRET_KEY = base64.b64encode(bytes(range(32))).decode()
_RTP_PORTS = 4_000
_HOLD_MS = 1000
_COLUMNS = (
    "nodes  calls/s  calls  failed  set-up p50 ms   p99  nodes' CPU ms/call  PostgreSQL's  machine busy %"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Nodes on one database, with the SIP ports of their callers and of the one callee."""

    directory: Path
    nodes: Sequence[ServerProcess]
    caller_ports: Sequence[int]
    callee_port: int


@contextmanager
def shared_machine(directory: Path, url: str, count: int) -> Iterator[Machine]:
    """Run so many nodes, and set up one account whose number is forwarded."""
    shared = {
        "TRUNKLINE_DATABASE_URL": url,
        "TRUNKLINE_SECRET_KEY": _SECRET_KEY,
        "TRUNKLINE_MAX_CPS": "1000",
    }
    nodes = [
        ServerProcess(
            directory / f"n{number}",
            environment={**shared, "TRUNKLINE_NODE": f"n{number}"},
            rtp_ports=_RTP_PORTS,
        )
        for number in range(count)
    ]
    callers, callee = [free_port() for _ in nodes], free_port()
    with ExitStack() as stack:
        first, *others = nodes
        with first.starting():
            for number, port in enumerate(callers):
                first.add_carrier(f"callers {number}", f"udp:127.0.0.1:{port}", inbound=True)
            first.add_carrier("callee", f"udp:127.0.0.1:{callee}", outbound=True)
            account = first.add_account()
            forward = {"target": "forward", "forward_to": f"sip:callee@127.0.0.1:{callee}"}
            first.add_number(account, NUMBER, forward)
        stack.callback(first.stop)
        for node in others:
            node.start()
            stack.callback(node.stop)
        yield Machine(directory, nodes, callers, callee)


def measure(machine: Machine, rate: float, seconds: float, *, printed: bool = True) -> None:
    """Place calls at a rate of all nodes together, and print what they took."""
    nodes = machine.nodes
    load = Load(round(rate * seconds / len(nodes)), rate / len(nodes), _HOLD_MS)
    total = load.calls * len(nodes)
    callee = start_sipp("uas.xml", machine.directory, machine.callee_port, Load(total, rate))
    wait_until(lambda: False, 0.5)
    before = [sample(node.pid) for node in nodes]
    postgres_s, busy_s, began = postgres_cpu_s(), machine_busy_s(), time.monotonic()
    callers = [
        _caller(machine, port, node, load) for port, node in zip(machine.caller_ports, nodes, strict=True)
    ]
    results = [caller.wait(seconds + 60) for caller in callers]
    used_s = sum(sample(node.pid).since(first)["cpu_s"] for node, first in zip(nodes, before, strict=True))
    postgres_s, busy_s = postgres_cpu_s() - postgres_s, machine_busy_s() - busy_s
    wall_s = time.monotonic() - began
    callee.stop()
    if not printed:
        return
    times = sorted(taken for result in results for taken in result.set_up_ms)
    failed = total - sum(result.successful for result in results)
    p50_ms, p99_ms = (times[int(len(times) * share)] for share in (0.5, 0.99))
    node_ms, postgres_ms = 1e3 * used_s / total, 1e3 * postgres_s / total
    print(
        f"{len(nodes):>5} {rate:>8.0f} {total:>6} {failed:>7} {p50_ms:>14.0f} {p99_ms:>5.0f}"
        f" {node_ms:>19.2f} {postgres_ms:>13.2f} {100 * busy_s / wall_s:>15.0f}",
        flush=True,
    )


def _caller(machine: Machine, port: int, node: ServerProcess, load: Load) -> Sipp:
    target = f"127.0.0.1:{node.sip_port}"
    media = ["-mp", str(free_port())]
    return start_sipp("uac.xml", machine.directory, port, load, target=target, number=NUMBER, extra=media)


def main() -> None:
    """Measure each number of nodes at each rate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="1,2")
    parser.add_argument("--rates", default="50,100,150,200")
    parser.add_argument("--seconds", type=float, default=15.0)
    asked = parser.parse_args()
    print(json.dumps(describe()))
    print(_COLUMNS)
    with running_postgres() as postgres:
        for count in map(int, asked.nodes.split(",")):
            url = asyncio.run(postgres.url())
            with (
                tempfile.TemporaryDirectory(prefix="trunkline-shared-") as folder,
                shared_machine(Path(folder), url, count) as machine,
            ):
                measure(machine, 20.0, 2.0, printed=False)
                for rate in map(float, asked.rates.split(",")):
                    measure(machine, rate, asked.seconds)


if __name__ == "__main__":
    main()
