"""Metrics of a server, parsed as Prometheus does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["Family", "families", "sample_names"]


@dataclass(slots=True)
class Family:
    """A metric with its samples; `name` is how queries spell it (`..._total` of a counter)."""

    name: str
    kind: str
    help_text: str
    labels: frozenset[str] = frozenset()
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)


def families(text: str) -> dict[str, Family]:
    """The metrics of an exposition by their names; labels are those that its samples have."""
    found: dict[str, Family] = {}
    for metric in text_string_to_metric_families(text):
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        family = Family(name, metric.type, metric.documentation)
        for sample in metric.samples:
            family.labels |= frozenset(sample.labels) - {"le"}
            family.samples[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
        found[name] = family
    return found


def sample_names(found: Mapping[str, Family]) -> Iterator[str]:
    """Each name that a query may use."""
    for family in found.values():
        yield from (
            [f"{family.name}_{part}" for part in ("bucket", "count", "sum")]
            if family.kind == "histogram"
            else [family.name]
        )
