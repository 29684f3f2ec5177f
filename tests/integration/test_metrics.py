"""The metrics as documents, the dashboard and the alarms have them, held against a running server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.support.exposition import Family, families, sample_names
from tests.support.sandbox_process import NUMBER, place_call, sandbox_process

pytestmark = pytest.mark.real_time(reason="a server in a process of its own")

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy/grafana/trunkline.json"
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
ROW = re.compile(r"^\| `((?:trunkline|process)_\w+)` \| (\w+) \| ([^|]*) \| (.+) \|$")
# What Prometheus adds to every series, and what it keeps of each target itself.
OF_PROMETHEUS = frozenset({"instance", "job"})
UP = "up"


@dataclass(frozen=True, slots=True)
class Documented:
    kind: str
    labels: frozenset[str]
    meaning: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Family]]:
    """Return the metrics, after a call, of a server with everything switched on."""
    server = sandbox_process(tmp_path_factory.mktemp("server"), HEP_TARGET="udp:127.0.0.1:9")
    server.start()
    try:
        account = server.add_account()
        server.add_number(account, NUMBER)
        place_call(server, account)
        yield families(str(server.request("GET", "/metrics").body))
    finally:
        server.stop()


@pytest.fixture(scope="module")
def documented() -> dict[str, Documented]:
    found: dict[str, Documented] = {}
    for line in (ROOT / "docs/metrics.md").read_text().splitlines():
        if row := ROW.match(line):
            name, kind, labels, meaning = row.groups()
            assert name not in found, f"{name} stands there twice"
            found[name] = Documented(kind, frozenset(filter(None, labels.split(", "))), meaning)
    return found


def test_every_metric_is_documented_as_it_is(
    served: dict[str, Family], documented: dict[str, Documented]
) -> None:
    """Each metric of a running server is in docs/metrics.md with its type and meaning, and no other is."""
    assert {name: (family.kind, family.help_text) for name, family in served.items()} == {
        name: (row.kind, row.meaning) for name, row in documented.items()
    }
    for name, family in served.items():
        assert family.labels <= documented[name].labels, name
        assert not family.samples or family.labels == documented[name].labels, name


def test_names_follow_the_conventions(served: dict[str, Family]) -> None:
    """Counters end in _total, and what has a unit has a base unit: no milliseconds, no percent."""
    for name, family in served.items():
        assert name.endswith("_total") == (family.kind == "counter"), name
        assert not re.search(r"_(ms|msec|milliseconds|percent|pct|kb|mb|minutes|hours)(_|$)", name), name
        assert family.help_text.endswith("."), name


def parts_of(query: str) -> list[Any]:
    """Every node of a query's tree; the query is an error when it is no PromQL."""
    found: list[Any] = []

    def note(node: Any) -> bool:
        found.append(node)
        return True

    promql_parser.walk(promql_parser.parse(query), note)
    return found


def check_query(query: str, documented: dict[str, Documented], served: dict[str, Family]) -> None:
    """Each metric that a query names exists, and has the labels that it asks for."""
    names = {name: family.name for family in served.values() for name in sample_names({"": family})}
    labels = OF_PROMETHEUS | {"le"}
    for node in parts_of(query):
        if isinstance(node, promql_parser.VectorSelector):
            assert node.name == UP or node.name in names, f"no metric {node.name}: {query}"
            if node.name != UP:
                own = documented[names[str(node.name)]].labels | OF_PROMETHEUS | {"le"}
                labels |= own
                assert {matcher.name for matcher in node.matchers.matchers} <= own, query
    for node in parts_of(query):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            assert set(node.modifier.labels) <= labels, query


def test_the_dashboard_asks_for_what_there_is(
    served: dict[str, Family], documented: dict[str, Documented]
) -> None:
    """Every query of the dashboard is PromQL over metrics and labels that a running server has."""
    dashboard = json.loads(DASHBOARD.read_text())
    targets = [target for panel in dashboard["panels"] for target in panel.get("targets", ())]
    queries = [target["expr"] for target in targets + dashboard["annotations"]["list"]]
    assert len(queries) > 50
    for query in queries:
        check_query(query.replace("$__rate_interval", "5m"), documented, served)
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    (instances,) = (v["query"] for v in dashboard["templating"]["list"] if v["type"] == "query")
    assert instances["query"] == "label_values(trunkline_build_info, instance)"
    assert "trunkline_build_info" in served


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_the_alarms_ask_for_what_there_is(
    served: dict[str, Family], documented: dict[str, Documented]
) -> None:
    """Every alarm is a query over metrics that a running server has, with a severity and a summary."""
    rules = alerts()
    assert len({rule["alert"] for rule in rules}) == len(rules) > 20
    for rule in rules:
        check_query(rule["expr"], documented, served)
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert "{{ $labels.instance }}" in rule["annotations"]["summary"]


def test_every_alarm_is_explained() -> None:
    """The operations guide says of every alarm what it means and what to do, and of no other."""
    guide = (ROOT / "docs/operations.md").read_text()
    assert re.findall(r"^\| `(Trunkline\w+)` \|", guide, re.MULTILINE) == [rule["alert"] for rule in alerts()]


def test_queries_of_the_document_are_true(
    served: dict[str, Family], documented: dict[str, Documented]
) -> None:
    """The ratios that docs/metrics.md offers are PromQL over metrics that there are."""
    section = (ROOT / "docs/metrics.md").read_text().split("## Common ratios")[1]
    queries = re.findall(r"\| `(.+)` \|$", section, re.MULTILINE)
    assert len(queries) >= 5
    for query in queries:
        check_query(query, documented, served)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus' own checker is not installed")
def test_prometheus_takes_the_rules() -> None:
    """Prometheus itself takes the alarms and the example of its configuration."""
    for arguments in (["rules", str(ALERTS)], ["config", str(ALERTS.with_name("prometheus.yml"))]):
        ran = subprocess.run(["promtool", "check", *arguments], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
