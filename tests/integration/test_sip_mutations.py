"""A short run of mutated messages against a real process; `python -m fuzz.wire` is the long one."""

from pathlib import Path

import pytest

from fuzz.wire import run

pytestmark = pytest.mark.real_time(reason="a server in a process of its own")


def test_mutated_messages_neither_stop_the_server_nor_make_it_complain(tmp_path: Path) -> None:
    report = run(tmp_path, 2000, seed=4475)
    assert sum(report.sent.values()) == 2000 and set(report.sent) == {"udp", "tcp", "tls", "stranger"}
    assert report.calls > 10 and len(report.probes_s) > 40
    # The server's tags are random, so the numbers vary: about 135 and 280. Each probe is answered by 200.
    assert report.statuses[200] > len(report.probes_s) and report.statuses[400] > 100
