"""Calls at the end of the process, graceful or not."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.sipp.exchange import Exchange
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load


def test_draining_refuses_new_calls_and_lets_those_up_end(tmp_path: Path) -> None:
    with Exchange(tmp_path, {"TRUNKLINE_DRAIN_S": "20"}) as exchange:
        callee = exchange.callee()
        caller = exchange.caller("uac.xml", load=Load(pause_ms=3000))
        assert wait_until(lambda: any(call["status"] == "in-progress" for call in exchange.calls()[0]))
        assert exchange.server.process is not None
        exchange.server.process.send_signal(signal.SIGTERM)
        assert wait_until(lambda: "draining: 1 active calls" in exchange.server.log())
        late = exchange.caller("uac_refused.xml", port=exchange.second_caller_port)
        [refused] = exchange.finish(late)
        assert refused.log == ("refused 503",)
        exchange.finish(caller, callee)
        # It ends by itself; a second signal could meet it when it listens to none any more.
        assert exchange.server.process.wait(30) == 0


def test_a_killed_server_settles_its_calls_when_it_is_started_again(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    with exchange:
        callee = exchange.callee()
        caller = exchange.caller("uac.xml", load=Load(pause_ms=60_000))
        assert wait_until(lambda: any(call["status"] == "in-progress" for call in exchange.calls()[0]))
        exchange.server.kill()
        exchange.server.start()
        [call], total = exchange.calls()
        assert total == 1
        assert call["status"] in {"completed", "failed"} and call["hangup_source"] == "system"
        assert call["ended_at"] is not None
        exchange.assert_clean()
        for sipp in (caller, callee):
            sipp.kill()
